"""The breaker behind the protocol: built from settings, and fail-loud."""

from __future__ import annotations

import pytest

from breaker.detectors import BreakerDetector, DetectorSettingsError, breaker_from_config
from breaker.settings import Settings
from tests.breaker.detectors.traces import Trace, arguments, run_of


def test_it_speaks_at_the_released_thresholds() -> None:
    said = run_of(Trace(BreakerDetector()), "a" * 14)
    spoken = {number: one for number, one in enumerate(said, 1) if one}
    assert spoken == {
        7: [("warn", 7)],
        11: [("summarize", 11)],
        12: [("gate", 12)],
        13: [("gate", 13)],
        14: [("gate", 14)],
    }


@pytest.mark.parametrize(
    ("policy", "decisions"),
    [
        ("unattended", ["ask-declined", "deny"]),
        ("approve", ["ask-approved"]),
        ("deny", ["deny", "deny"]),
        ("observe", ["observed", "observed"]),
    ],
)
def test_the_policy_answers_at_a_gate(policy: str, decisions: list[str]) -> None:
    trace = Trace(breaker_from_config({"policy": policy, "limits": {"exact": 3}, "warnAt": 0, "summarizeAt": 0}))
    run_of(trace, "aaaa")
    assert [finding.decision for finding in trace.found] == decisions


def test_failures_of_a_call_it_withheld_are_not_counted() -> None:
    trace = Trace(BreakerDetector(Settings.from_config({"failWarnAt": 2, "failLimit": 3})))
    assert run_of(trace, "aaaaa", kind="failed") == [[], [("fail-warn", 2)], [], [("fail-gate", 3)], [("fail-gate", 3)]]


def test_a_human_message_clears_and_an_untracked_tool_is_not_looked_at() -> None:
    trace = Trace(breaker_from_config({"warnAt": 2}))
    run_of(trace, "a")
    trace.human()
    assert run_of(trace, "a") == [[]]
    assert [trace.made("todo_write", arguments("x")) for _ in range(3)] == [[], [], []]
    assert run_of(trace, "a") == [[("warn", 2)]]


@pytest.mark.parametrize(
    ("config", "key", "rule"),
    [
        ({"policy": "maybe"}, "policy", "must be one of unattended, approve, deny, observe"),
        ({"warnAt": "x"}, "warnAt", "must be a number, or null/0/negative to disable it"),
        ({"warnAtt": 1}, "warnAtt", "is no setting of ruleset 0.8; did you mean `warnAt`?"),
        ({"limits": {"exact": 1}}, "exact", "must be a finite number >= 2, or null to disable it"),
    ],
)
def test_a_bad_setting_names_key_and_rule(config: dict[str, object], key: str, rule: str) -> None:
    with pytest.raises(DetectorSettingsError) as caught:
        breaker_from_config(config)
    assert (caught.value.key, caught.value.rule) == (key, rule)


def test_an_unknown_ruleset_names_the_known_ones() -> None:
    with pytest.raises(DetectorSettingsError, match=r"`ruleset` .*0\.5\.0"):
        breaker_from_config({"ruleset": "0.4"})
