import pytest

from analysis.lint import Finding, dead_stages, lint_settings
from analysis.replay import Policy
from breaker.rulesets import RULESETS
from breaker.settings import Settings, SettingsError

ALL_CAPPED = ("exact", "cmd", "net", "host", "sink")
BUT_HOST = ("exact", "cmd", "net", "sink")


def caps(cap: float, host: float) -> dict[str, float]:
    return {"exact": cap, "cmd": cap, "net": cap, "sink": cap, "host": host}


def stages(warn_at: int, summarize_at: int, cap: float, host: float) -> dict[str, object]:
    return {"warnAt": warn_at, "summarizeAt": summarize_at, "limits": caps(cap, host)}


CANDIDATES = {
    "shipped": stages(3, 6, 9, 9),
    "B": stages(6, 8, 9, 9),
    "C": stages(7, 8, 9, 9),
    "D": stages(7, 11, 12, 16),
    "E": stages(8, 12, 12, 16),
    "F": stages(9, 13, 14, 14),
    "G": stages(8, 13, 16, 16),
}


def found(findings: list[Finding], code: str) -> Finding:
    (finding,) = [each for each in findings if each.code == code]
    return finding


@pytest.mark.parametrize("name", CANDIDATES)
def test_the_published_candidates(name: str) -> None:
    dead = dead_stages(Settings.from_config(CANDIDATES[name]))
    assert dict(dead.by_kind) == ({"summarize": BUT_HOST} if name == "E" else {})
    assert dead.wholly == []


def test_a_stage_dead_for_some_kinds_names_them_and_the_one_it_speaks_for() -> None:
    finding = found(lint_settings(CANDIDATES["E"]), "stage-at-cap")
    assert (finding.severity, finding.key, finding.kinds) == ("warning", "summarizeAt", BUT_HOST)
    assert "still speaks for host" in finding.message
    assert "below 12" in finding.remedy


@pytest.mark.parametrize(
    ("policy", "dead"), [("unattended", True), ("deny", True), ("approve", False), ("observe", False)]
)
def test_a_stage_at_the_cap_speaks_where_the_call_runs(policy: Policy, dead: bool) -> None:
    settings = Settings.from_config(stages(8, 12, 12, 12))
    assert (dead_stages(settings, policy).wholly == ["summarize"]) is dead


def test_above_the_cap_an_approval_does_not_help() -> None:
    assert dead_stages(Settings.from_config(stages(8, 13, 12, 12)), "approve").wholly == ["summarize"]


@pytest.mark.parametrize(("cap", "dead"), [(16, ()), (17, ()), (18, ("host",))])
def test_a_cap_of_window_plus_one_is_reachable(cap: int, dead: tuple[str, ...]) -> None:
    findings = lint_settings({"limits": {"host": cap}})
    assert tuple(each.kinds[0] for each in findings if each.code == "cap-beyond-window") == dead
    assert dead_stages(Settings.from_config({"limits": {"host": cap}})).by_kind.get("gate", ()) == dead


@pytest.mark.parametrize(("summarize_at", "severity"), [(17, None), (18, "error")])
def test_a_stage_above_window_plus_one(summarize_at: int, severity: str | None) -> None:
    findings = lint_settings(stages(7, summarize_at, 30, 30))
    assert next((each.severity for each in findings if each.code == "stage-above-window"), None) == severity


def test_warn_at_summarize_never_speaks_and_above_it_comes_late() -> None:
    equal = found(lint_settings({"warnAt": 6, "summarizeAt": 6}), "warn-at-summarize")
    assert equal.severity == "error"
    assert dead_stages(Settings.from_config({"warnAt": 6, "summarizeAt": 6})).wholly == ["warn"]
    assert found(lint_settings({"warnAt": 8, "summarizeAt": 6}), "stages-inverted").severity == "warning"
    assert dead_stages(Settings.from_config({"warnAt": 8, "summarizeAt": 6})).wholly == []


def test_a_failure_warning_above_the_limit_needs_a_parallel_batch() -> None:
    finding = found(lint_settings({"failWarnAt": 6}), "fail-warn-above-limit")
    assert "side by side" in finding.message
    assert all(each.code != "fail-warn-above-limit" for each in lint_settings({"failWarnAt": 5}))


def test_kinds_without_a_cap() -> None:
    finding = found(lint_settings({"limits": {"host": None}}), "kind-without-cap")
    assert (finding.severity, finding.kinds) == ("warning", ("host", "site", "family", "verb"))
    assert found(lint_settings({}), "kind-without-cap").severity == "note"
    nothing = lint_settings({"limits": dict.fromkeys(ALL_CAPPED)})
    assert {each.key for each in nothing if each.code == "no-kind-enabled"} == {
        "warnAt",
        "summarizeAt",
        "failWarnAt",
        "failLimit",
    }


def test_aliases_that_never_match() -> None:
    aliases = {"www.a.org": "b.org", "c.org": "b.org", "Example.ORG": "b.org", "d.org": 7}
    findings = [each for each in lint_settings({"hostAliases": aliases}) if each.severity == "warning"]
    assert {each.key: each.remedy for each in findings} == {
        "hostAliases.www.a.org": "write `a.org`",
        "hostAliases.Example.ORG": "write `example.org`",
        "hostAliases.d.org": "name a host, or take it out",
    }
    released = [each.key for each in lint_settings({}) if each.code == "alias-never-matches"]
    assert released == ["hostAliases.www.open.canada.ca", "hostAliases.www.open-data.canada.ca"]


@pytest.mark.parametrize(("ruleset", "severity"), [("0.8.7", "warning"), ("0.8", "warning"), ("0.7.0", "note")])
def test_nulls_the_released_form_would_fill_in(ruleset: str, severity: str) -> None:
    findings = lint_settings({"summarizeAt": None, "failLimit": None, "warnAt": 0}, RULESETS[ruleset])
    nulls = {each.key: each for each in findings if each.code == "null-becomes-default"}
    assert set(nulls) == {"summarizeAt", "failLimit"}
    assert {each.severity for each in nulls.values()} == {severity}
    assert "default 11" in nulls["summarizeAt"].message
    assert "write 0" in nulls["summarizeAt"].remedy
    assert "no off-switch" in nulls["failLimit"].remedy


def test_unknown_keys_and_kinds() -> None:
    findings = lint_settings({"warnat": 3, "limits": {"hots": 3}})
    assert found(findings, "unknown-key").remedy == "did you mean `warnAt`?"
    assert found(findings, "unknown-kind").key == "limits.hots"


def test_a_corpus_tells_what_it_never_reaches() -> None:
    findings = lint_settings({}, reached={"warn": {"host": 3}, "gate": dict.fromkeys(ALL_CAPPED, 1)})
    unreached = {each.key: (each.kinds, each.reached) for each in findings if each.code == "never-reached"}
    assert unreached["warnAt"] == (BUT_HOST, 0)
    assert "limits" not in unreached
    assert unreached["failLimit"] == (ALL_CAPPED, 0)


def test_settings_the_guard_refuses_are_an_error() -> None:
    with pytest.raises(SettingsError, match="window"):
        lint_settings({"window": 3})
