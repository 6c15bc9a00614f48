"""Two sides of one corpus: what a side may be, and what is said of the difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.compare import Change, Comparison, SideBase, SideError, compare, parse_side
from analysis.configs import ConfigError
from analysis.corpus import CorpusReplay, replay_corpus
from analysis.detect import DetectorError, parse_detectors
from analysis.labels import LabelRules, parse_label
from analysis.replay import ReplayPlan
from breaker.rulesets import ruleset_named
from breaker.settings import Settings, SettingsError
from tests.analysis.logs import LogWriter

EXIT_1 = "out\n[exit code: 1]"


def _base(**given: object) -> SideBase:
    return SideBase(ReplayPlan(Settings.from_config(given)), given)


def _sessions(root: Path, lengths: dict[str, int], *, failing: bool = False) -> Path:
    """Write sessions that make the same call so many times."""
    for name, length in lengths.items():
        log = LogWriter(name)
        log.user()
        for _ in range(length):
            log.bash(text=EXIT_1 if failing else "done")
        log.write(root)
    return root


def _compared(
    root: Path, a: str, b: str, *others: str, base: SideBase | None = None, labels: Sequence[str] = ()
) -> Comparison:
    rules = LabelRules(map(parse_label, labels))

    def replay(plan: ReplayPlan) -> CorpusReplay:
        return replay_corpus([root], plan, labels=rules)

    under = base or SideBase(ReplayPlan())
    return compare(parse_side(a, under), parse_side(b, under), replay, parse_detectors(others))


def _kinds(comparison: Comparison, group: str = "any") -> dict[str, str]:
    return {one.session_id: one.stages[group].kind for one in comparison.sessions}


# -- what a side may be ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("breaker", {"warnAt": 5, "summarizeAt": 11, "ruleset": "0.8", "policy": "unattended"}),
        ("warnAt=3", {"warnAt": 3, "summarizeAt": 11}),
        ("set:warnAt=3", {"warnAt": 3}),
        ("breaker:warnAt=3", {"warnAt": 3}),
        ("limits.host=9,limits.exact=null", {"host": 9, "exact": None, "cmd": 12}),
        ("limits.net:a.com/x?b=2=9", {"net:a.com/x?b=2": 9}),
        ('exclude=["a","b"]', {"exclude": ["a", "b"]}),
        ("0.5.2", {"ruleset": "0.5.2", "warnAt": 5}),
        ("ruleset:0.5.2", {"ruleset": "0.5.2"}),
        ("observe", {"policy": "observe", "warnAt": 5}),
        ("policy:approve", {"policy": "approve"}),
        ("ruleset=0.5.3,policy=deny,warnAt=4", {"ruleset": "0.5.3", "policy": "deny", "warnAt": 4}),
        ("fail-guard", {"threshold": 2}),
        ("fail-guard:threshold=3", {"threshold": 3}),
        ("detector:fail-guard:threshold=3", {"threshold": 3}),
    ],
)
def test_what_a_side_may_be(text: str, expected: dict[str, object]) -> None:
    side = parse_side(text, _base(warnAt=5))
    plan = side.plan
    shown: dict[str, object] = {**plan.settings.as_config, **plan.settings.limits}
    shown |= {"ruleset": plan.ruleset.name, "policy": plan.policy}
    shown |= side.detector.settings if side.detector is not None else {}
    assert side.label == text
    assert {key: shown[key] for key in expected} == expected


def test_a_settings_file_is_laid_over_the_base_and_a_key_nobody_knows_is_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("warnAt = 3\nwarnatt = 4\n")
    for text in (str(path), f"file:{path}"):
        side = parse_side(text, _base(warnAt=5, summarizeAt=9))
        assert (side.plan.settings.warn_at, side.plan.settings.summarize_at) == (3, 9)
        assert side.notes == (f"{text}: `warnatt` is no setting of ruleset 0.8; did you mean `warnAt`?",)


def test_settings_of_detectors_from_a_file_hold_for_a_side() -> None:
    base = replace(_base(), configs={"fail-guard": {"threshold": 7}})
    side = parse_side("fail-guard:sameToolOnly=false", base)
    assert side.detector is not None
    assert (side.detector.settings["threshold"], side.detector.settings["sameToolOnly"]) == (7, False)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("nonsense", SideError, r"'nonsense' is neither .*rulesets: 0\.5\.0.*policies: unattended.*detectors: breaker"),
        ("fail-gard:threshold=3", SideError, r"'fail-gard:threshold=3' is neither .*detectors: .*fail-guard"),
        ("warnatt=3", SideError, r"warnatt=3: `warnatt` is no setting of ruleset 0\.8; did you mean `warnAt`\?"),
        ("warnAt=x", SettingsError, r"`warnAt` must be a number"),
        ("limits=3", SettingsError, r"`limits` must be an object"),
        ("warnAt=3,limits", ConfigError, r"limits: must be key=value"),
        ("ruleset:0.4", SideError, r"0\.4"),
        ("policy:perhaps", SideError, r"unknown policy 'perhaps'; known: unattended"),
        ("policy=perhaps", SideError, r"unknown policy 'perhaps'"),
        ("detector:nope", DetectorError, r"unknown detector 'nope'; known: breaker, fail-guard"),
        ("fail-guard:threshold=0", DetectorError, r"`threshold` must be an integer >= 1 \(got 0\)"),
        ("absent.toml", ConfigError, r"absent\.toml: cannot read the settings"),
    ],
)
def test_what_is_no_side_is_refused(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_side(text, _base())


def test_a_settings_file_the_guard_refuses_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"window": 3}')
    with pytest.raises(ConfigError, match=r"bad\.json: .*`window` must be an integer >= 4 \(got 3\)"):
        parse_side(str(path), _base())


# -- what is said of the difference ------------------------------------------------------------------------------


def test_a_lower_threshold_fires_newly_or_earlier_stage_by_stage(tmp_path: Path) -> None:
    root = _sessions(tmp_path, {"short": 2, "middle": 4, "long": 8})
    comparison = _compared(root, "warnAt=7", "warnAt=3")
    assert _kinds(comparison) == {"short": "silent", "middle": "newly-firing", "long": "earlier"}
    (long,) = [one for one in comparison.sessions if one.session_id == "long"]
    assert long.stages["warn"] == Change("earlier", first_a=6, first_b=2, count_a=1, count_b=1)
    assert long.stages["gate"] == Change("silent", None, None, 0, 0)
    assert long.kinds["cmd"].kind == "earlier"
    warned = comparison.totals["warn"]
    assert (warned.changes["newly-firing"], warned.changes["earlier"], warned.changes["silent"]) == (1, 1, 1)
    assert (warned.events, warned.sessions) == ((1, 2), (1, 2))
    assert comparison.kind_totals["cmd"].sessions == (1, 2)
    assert comparison.sessions_with(["newly-firing"]) == 1
    assert comparison.sessions_with(["stopped"]) == 0
    assert comparison.sessions_with(["earlier", "later"]) == 1


def test_the_other_way_round_it_stops_or_comes_later(tmp_path: Path) -> None:
    root = _sessions(tmp_path, {"short": 2, "middle": 4, "long": 8})
    comparison = _compared(root, "warnAt=3", "warnAt=7")
    assert _kinds(comparison) == {"short": "silent", "middle": "stopped", "long": "later"}


def test_the_same_side_twice_is_the_same_and_read_once(tmp_path: Path) -> None:
    root = _sessions(tmp_path, {"short": 2, "long": 8})
    comparison = _compared(root, "breaker", "breaker")
    assert _kinds(comparison) == {"short": "silent", "long": "same"}
    assert comparison.corpora[0] is comparison.corpora[1]
    assert not any(one.differs for one in comparison.sessions)
    assert comparison.detectors == ("breaker",)


def test_a_stage_that_fires_newly_counts_though_the_session_was_warned_before(tmp_path: Path) -> None:
    root = _sessions(tmp_path, {"long": 8})
    comparison = _compared(root, "breaker", "limits.exact=8")
    assert _kinds(comparison) == {"long": "same"}
    assert _kinds(comparison, "gate") == {"long": "newly-firing"}
    assert comparison.sessions_with(["newly-firing"]) == 1
    (session,) = comparison.sessions
    assert session.differs
    assert (session.withheld, session.false_rejections) == ((0, 1), (0, 1))


def test_the_breaker_and_a_detector_are_compared_by_messages_and_stops(tmp_path: Path) -> None:
    root = _sessions(tmp_path, {"short": 2, "long": 6}, failing=True)
    comparison = _compared(root, "breaker", "fail-guard")
    assert comparison.groups == ("any", "message", "stop")
    assert _kinds(comparison) == {"short": "newly-firing", "long": "earlier"}
    assert _kinds(comparison, "message") == {"short": "silent", "long": "stopped"}
    assert _kinds(comparison, "stop") == {"short": "newly-firing", "long": "earlier"}
    (long,) = [one for one in comparison.sessions if one.session_id == "long"]
    assert (long.stages["stop"].first_a, long.stages["stop"].first_b) == (5, 1)
    assert long.kinds["tool"] == Change("newly-firing", None, 1, 0, 3)
    assert comparison.corpora[0] is comparison.corpora[1]


def test_a_detector_against_the_breaker_is_read_under_the_breakers_side(tmp_path: Path) -> None:
    root = _sessions(tmp_path, {"long": 4})
    comparison = _compared(root, "repeat-stop:n=4", "warnAt=3")
    assert comparison.corpus.plan.settings.warn_at == 3
    assert _kinds(comparison) == {"long": "earlier"}


def test_two_detectors_are_compared_stage_by_stage(tmp_path: Path) -> None:
    root = _sessions(tmp_path, {"short": 3, "long": 8})
    comparison = _compared(root, "reminder", "repeat-stop")
    assert comparison.groups == ("any", "message", "stop", "notice", "trip", "ask", "deny")
    assert _kinds(comparison) == {"short": "stopped", "long": "later"}
    assert _kinds(comparison, "deny") == {"short": "silent", "long": "newly-firing"}


def test_one_detector_with_two_settings(tmp_path: Path) -> None:
    root = _sessions(tmp_path, {"short": 3, "long": 8})
    comparison = _compared(root, "consecutive:n=3", "consecutive:n=5")
    assert _kinds(comparison) == {"short": "stopped", "long": "later"}
    assert _kinds(_compared(root, "reminder", "reminder")) == {"short": "same", "long": "same"}


def test_two_rulesets_are_read_twice(tmp_path: Path) -> None:
    log = LogWriter()
    for _ in range(3):
        log.result(log.call("load | tail"), "Traceback\nValueError: x")
    log.write(tmp_path)
    comparison = _compared(tmp_path, "0.5.0", "0.8")
    assert _kinds(comparison, "fail-warn") == {"session-a": "newly-firing"}
    assert [corpus.plan.ruleset.name for corpus in comparison.corpora] == ["0.5.0", "0.8"]


def test_the_base_keeps_what_was_given_under_another_ruleset(tmp_path: Path) -> None:
    root = _sessions(tmp_path, {"long": 8})
    comparison = _compared(root, "0.5.2", "0.8", base=_base(warnAt=3))
    assert [corpus.plan.settings.warn_at for corpus in comparison.corpora] == [3, 3]
    assert comparison.b.plan.ruleset is ruleset_named("0.8")


def test_labels_say_who_caught_and_who_wrongly_touched(tmp_path: Path) -> None:
    root = _sessions(tmp_path, {"stuck-1": 8, "stuck-2": 4, "good-1": 4, "good-2": 2, "other": 9})
    comparison = _compared(root, "warnAt=7", "warnAt=3", labels=["stuck=stuck-*", "good=good-*"])
    good, stuck, unknown = (comparison.labels[label] for label in ("good", "stuck", "unknown"))
    assert (good.sessions, good.both, good.neither, good.only_a, good.only_b) == (2, 0, 1, (), ("good-1",))
    assert (stuck.both, stuck.only_b) == (1, ("stuck-2",))
    assert (unknown.sessions, unknown.both) == (1, 1)


def test_the_matrix_says_who_fires_alone_and_how_far_they_agree(tmp_path: Path) -> None:
    root = _sessions(tmp_path, {"one": 1, "three": 3, "four": 4, "seven": 7})
    comparison = _compared(root, "breaker", "reminder", "consecutive:n=4", "repeat-stop:n=2")
    assert comparison.detectors == ("breaker", "reminder", "consecutive", "repeat-stop")
    assert comparison.firing == {"breaker": 1, "reminder": 3, "consecutive": 2, "repeat-stop": 3}
    assert comparison.alone == dict.fromkeys(comparison.detectors, 0)
    pair = comparison.agreements["breaker", "consecutive"]
    assert (pair.both, pair.only_first, pair.only_second, pair.neither) == (1, 0, 1, 2)
    assert pair.kappa == pytest.approx(0.5)
    assert comparison.agreements["reminder", "repeat-stop"].kappa == 1
    assert _compared(root, "warnAt=9", "repeat-stop:n=2").alone == {"warnAt=9": 0, "repeat-stop:n=2": 3}


def test_a_detector_given_twice_is_refused(tmp_path: Path) -> None:
    root = _sessions(tmp_path, {"one": 1})
    with pytest.raises(DetectorError, match="detector reminder is given twice"):
        _compared(root, "breaker", "reminder", "reminder")


def test_a_refused_shell_fetch_has_a_kind_of_its_own(tmp_path: Path) -> None:
    log = LogWriter()
    log.bash("curl -s https://example.com/")
    log.write(tmp_path)
    base = SideBase(replace(ReplayPlan(), shell_http="on"))
    comparison = _compared(tmp_path, "blockShellHttp=false", "breaker", base=base)
    assert _kinds(comparison, "shell-http") == {"session-a": "newly-firing"}
    assert comparison.kinds == ("none",)


def test_a_corpus_without_sessions_compares_to_nothing(tmp_path: Path) -> None:
    comparison = _compared(tmp_path, "breaker", "fail-guard")
    assert comparison.sessions == ()
    assert comparison.agreements["breaker", "fail-guard"].kappa is None
    assert comparison.labels == {}


def test_a_session_only_one_reading_has_is_left_out_and_counted(tmp_path: Path) -> None:
    root = _sessions(tmp_path, {"one": 1, "two": 2})
    readings: list[CorpusReplay] = []

    def replay(plan: ReplayPlan) -> CorpusReplay:
        corpus = replay_corpus([root], plan)
        readings.append(corpus if not readings else replace(corpus, sessions=corpus.sessions[:1]))
        return readings[-1]

    base = SideBase(ReplayPlan())
    comparison = compare(parse_side("warnAt=2", base), parse_side("warnAt=3", base), replay)
    assert (len(comparison.sessions), comparison.unmatched) == (1, 1)
    assert _compared(root, "warnAt=2", "warnAt=3").unmatched == 0
