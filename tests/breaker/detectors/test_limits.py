"""`step-cap` counts steps of a turn; `failure-streak` failures of one call or one tool."""

from __future__ import annotations

import pytest

from breaker.detectors import DetectorSettingsError, FailureStreak, StepCap
from tests.breaker.detectors.traces import Trace, arguments, run_of

# step-cap


@pytest.mark.parametrize(
    ("settings", "at"), [({}, 25), ({"preset": "smolagents"}, 20), ({"n": 3}, 3), ({"preset": "smolagents", "n": 4}, 4)]
)
def test_it_stops_where_the_nth_step_begins_and_only_there(settings: dict[str, object], at: int) -> None:
    trace = Trace(StepCap(settings))
    trace.human()
    assert [number for number in range(1, 2 * at) if trace.step()] == [at]
    assert (trace.found[0].stage, trace.found[0].count, trace.found[0].track) == ("trip", at, "step")


def test_a_new_turn_counts_from_the_beginning() -> None:
    trace = Trace(StepCap({"n": 3}))
    assert [trace.step(), trace.step()] == [[], []]
    trace.human()
    assert [trace.step(), trace.step(), trace.step()] == [[], [], [("trip", 3)]]


def test_calls_do_not_count() -> None:
    trace = Trace(StepCap({"n": 2}))
    assert trace.step() == []
    assert run_of(trace, "aaaa") == [[]] * 4


@pytest.mark.parametrize(("key", "value"), [("n", 0), ("n", None), ("preset", "autogpt")])
def test_a_bad_setting_of_step_cap(key: str, value: object) -> None:
    with pytest.raises(DetectorSettingsError, match=f"step-cap: `{key}` must be"):
        StepCap({key: value})


# failure-streak


def test_the_same_call_is_warned_of_at_its_2nd_failure_and_blocked_from_the_6th_on() -> None:
    trace = Trace(FailureStreak({}))
    said = run_of(trace, "a" * 7, kind="failed")
    assert said == [[], [("notice", 2)], [], [], [], [("deny", 5)], [("deny", 5)]]


def test_four_failures_do_not_block_the_fifth_call() -> None:
    trace = Trace(FailureStreak({}))
    run_of(trace, "aaaa", kind="failed")
    assert run_of(trace, "aa") == [[], []]


def test_a_success_of_the_same_call_clears_and_one_of_another_does_not() -> None:
    trace = Trace(FailureStreak({"block": 3}))
    run_of(trace, "aa", kind="failed")
    run_of(trace, "b")
    run_of(trace, "a", kind="failed")
    assert run_of(trace, "a") == [[("deny", 3)]]
    trace = Trace(FailureStreak({"block": 3}))
    run_of(trace, "aa", kind="failed")
    run_of(trace, "a")
    run_of(trace, "aa", kind="failed")
    assert run_of(trace, "a") == [[]]


def test_what_became_of_a_blocked_call_is_not_counted() -> None:
    trace = Trace(FailureStreak({"block": 2, "warn": 0}))
    run_of(trace, "aa", kind="failed")
    assert run_of(trace, "aaa") == [[("deny", 2)]] * 3


def test_by_tool_the_arguments_do_not_matter() -> None:
    trace = Trace(FailureStreak({"by": "tool"}))
    said = run_of(trace, "abcdefghij", kind="failed")
    assert said == [[], [], [("notice", 3)], [], [], [], [], [], [("deny", 8)], [("deny", 8)]]
    assert {finding.measure for finding in trace.found} == {"tool:read"}
    assert trace.made("bash", kind="failed") == []


def test_by_tool_any_success_of_the_tool_clears() -> None:
    trace = Trace(FailureStreak({"by": "tool"}))
    run_of(trace, "ab", kind="failed")
    run_of(trace, "c")
    assert run_of(trace, "ab", kind="failed") == [[], []]
    assert run_of(trace, "c", kind="failed") == [[("notice", 3)]]


def test_what_neither_succeeded_nor_failed_changes_nothing() -> None:
    trace = Trace(FailureStreak({}))
    run_of(trace, "a", kind="failed")
    for kind in ("undecidable", "denied", "not-run"):
        assert trace.made("read", arguments("a"), kind) == []
    assert run_of(trace, "a", kind="failed") == [[("notice", 2)]]


def test_a_human_message_clears() -> None:
    trace = Trace(FailureStreak({}))
    run_of(trace, "aaaaa", kind="failed")
    trace.human()
    assert run_of(trace, "aa", kind="failed") == [[], [("notice", 2)]]


def test_a_batch_is_offered_before_it_has_failed() -> None:
    trace = Trace(FailureStreak({"block": 2}))
    calls = [trace.offer("read", arguments("a")) for _ in range(4)]
    assert [trace.offered(call) for call in calls] == [[]] * 4
    assert [trace.settled(call, "failed") for call in calls] == [[], [("notice", 2)], [], []]
    assert trace.offered(trace.offer("read", arguments("a"))) == [("deny", 4)]


def test_either_number_can_be_off() -> None:
    trace = Trace(FailureStreak({"warn": None, "block": 0}))
    assert run_of(trace, "a" * 9, kind="failed") == [[]] * 9


@pytest.mark.parametrize(("key", "value"), [("by", "host"), ("warn", -1), ("block", 1.5)])
def test_a_bad_setting_of_failure_streak(key: str, value: object) -> None:
    with pytest.raises(DetectorSettingsError, match=f"failure-streak: `{key}` must be"):
        FailureStreak({key: value})
