"""The fail-guard, call by call."""

from __future__ import annotations

import pytest

from breaker.detectors import DetectorSettingsError, FailGuard
from breaker.detectors.protocol import OutcomeKind
from tests.breaker.detectors.traces import EXIT_1, Trace

TRIP = [("trip", 2)]


def _guard(**settings: object) -> Trace:
    return Trace(FailGuard(settings))


def test_two_failures_in_a_row_trip_and_the_count_begins_again() -> None:
    trace = _guard()
    said = [trace.made("bash", kind="failed") for _ in range(5)]
    assert said == [[], TRIP, [], TRIP, []]


def test_one_failure_short_of_the_threshold_says_nothing() -> None:
    trace = _guard(threshold=3)
    assert [trace.made("bash", kind="failed") for _ in range(2)] == [[], []]
    assert trace.made("bash", kind="ok") == []
    assert [trace.made("bash", kind="failed") for _ in range(3)] == [[], [], [("trip", 3)]]


def test_a_threshold_of_one_trips_at_every_failure() -> None:
    trace = _guard(threshold=1)
    assert [trace.made("bash", kind=kind) for kind in ("failed", "ok", "failed")] == [[("trip", 1)], [], [("trip", 1)]]


def test_failures_count_by_tool_whatever_the_arguments_and_a_success_clears_its_own_tool_only() -> None:
    trace = _guard()
    assert trace.made("bash", {"command": "make"}, "failed") == []
    assert trace.made("read", kind="ok") == []
    assert trace.made("edit", kind="failed") == []
    assert trace.made("bash", {"command": "make all"}, "failed") == TRIP
    assert trace.made("edit", kind="ok") == []
    assert trace.made("edit", kind="failed") == []
    assert trace.found[0].measure == "tool:bash"


def test_without_same_tool_only_the_session_has_one_streak_that_any_success_clears() -> None:
    trace = _guard(sameToolOnly=False)
    assert trace.made("bash", kind="failed") == []
    assert trace.made("edit", kind="failed") == TRIP
    assert trace.made("bash", kind="failed") == []
    assert trace.made("read", kind="ok") == []
    assert trace.made("bash", kind="failed") == []
    assert trace.found[0].measure == "session"


def test_a_human_message_clears_nothing_and_a_new_process_everything() -> None:
    trace = _guard()
    trace.human()
    assert trace.made("bash", kind="failed") == []
    trace.human()
    assert trace.made("bash", kind="failed") == TRIP
    assert trace.made("bash", kind="failed") == []
    trace.resume()
    assert trace.made("bash", kind="failed") == []


@pytest.mark.parametrize("kind", ["failed", "denied", "undecidable", "not-run"])
def test_an_error_counts_whatever_became_of_the_call(kind: OutcomeKind) -> None:
    trace = _guard()
    for expected in ([], TRIP):
        call = trace.offer("bash")
        assert trace.settled(call, kind, is_error=True) == expected


def test_an_exit_code_that_is_not_0_is_a_failure_though_the_result_is_no_error() -> None:
    trace = _guard()
    codes = (1.0, 2.0, 0.0, 1.0, None, 1.0)
    said = [trace.settled(trace.offer("bash"), "ok", exit_code=code) for code in codes]
    assert said == [[], TRIP, [], [], [], []]


def test_what_the_classifier_reads_out_of_words_is_no_failure_here() -> None:
    trace = _guard()
    said = [trace.settled(trace.offer("bash"), "failed", is_error=False, exit_code=0) for _ in range(3)]
    assert said == [[], [], []]


def test_it_says_what_rests_on_a_rebuilt_exit_code() -> None:
    trace = _guard()
    guard = trace.detector
    assert isinstance(guard, FailGuard)
    trace.settled(trace.offer("bash"), "failed", is_error=True, exit_code=1, rebuilt=True)
    trace.settled(trace.offer("bash"), "failed", exit_code=1)
    assert [finding.on_rebuilt for finding in trace.found] == [False]
    trace.settled(trace.offer("bash"), "failed", is_error=True)
    trace.settled(trace.offer("bash"), "failed", exit_code=1, rebuilt=True)
    assert [finding.on_rebuilt for finding in trace.found] == [False, True]
    assert (guard.failures, guard.rebuilt_failures) == (4, 1)


def test_nested_calls_and_repairs_of_the_log_neither_count_nor_clear() -> None:
    trace = _guard()
    assert trace.made("bash", kind="failed") == []
    assert trace.made("bash", kind="failed", nested=True) == []
    assert trace.made("bash", kind="ok", nested=True) == []
    assert trace.settled(trace.offer("bash"), "open", is_error=True, closer=True) == []
    assert trace.made("bash", kind="failed") == TRIP


def test_it_never_blocks_and_its_trip_carries_the_instruction_and_the_failure() -> None:
    trace = _guard(stopText="Halt.", threshold=1)
    assert trace.offered(trace.offer("bash")) == []
    trace.made("bash", kind="failed")
    (finding,) = trace.found
    assert (finding.message, finding.failure, finding.track, finding.threshold) == ("Halt.", EXIT_1, "failure", 1)


def test_the_instruction_has_four_parts() -> None:
    text = FailGuard({}).stop_text
    assert [word for word in ("First", "Second", "Third", "Fourth") if word in text] == [
        "First",
        "Second",
        "Third",
        "Fourth",
    ]


def test_the_settings_are_shown_whole() -> None:
    shown = FailGuard({"threshold": 3.0, "debug": True}).settings
    assert shown["threshold"] == 3
    assert shown["sameToolOnly"] is True
    assert shown["debug"] is True
    assert set(shown) == {"threshold", "sameToolOnly", "stopText", "stopSummary", "debug"}


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("threshold", 0, "must be an integer >= 1"),
        ("threshold", 1.5, "must be an integer >= 1"),
        ("threshold", "2", "must be an integer >= 1"),
        ("threshold", True, "must be an integer >= 1"),
        ("threshold", float("inf"), "must be an integer >= 1"),
        ("threshold", 10**400, "must be an integer >= 1"),
        ("threshold", None, "must be an integer >= 1"),
        ("sameToolOnly", "yes", "must be true or false"),
        ("stopText", " ", "must be a text that is not empty"),
        ("stopSummary", 3, "must be a text that is not empty"),
        ("debug", 1, "must be true or false"),
    ],
)
def test_a_bad_setting_names_key_rule_and_value(key: str, value: object, rule: str) -> None:
    with pytest.raises(DetectorSettingsError) as caught:
        FailGuard({key: value})
    assert (caught.value.key, caught.value.rule, caught.value.value) == (key, rule, value)
    assert str(caught.value).startswith(f"fail-guard: `{key}` {rule} (got ")


def test_an_unknown_setting_is_refused_and_the_near_one_named() -> None:
    with pytest.raises(DetectorSettingsError, match=r"`treshold` is no setting of it; .*did you mean `threshold`\?"):
        FailGuard({"treshold": 3})
