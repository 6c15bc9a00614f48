"""Patterns of the last calls: `doom-loop` in a step or a turn, and the three of `openhands`."""

from __future__ import annotations

import pytest

from breaker.detectors import DetectorSettingsError, DoomLoop, OpenHands
from tests.breaker.detectors.traces import Trace, arguments, run_of

# doom-loop


def _in_steps(trace: Trace, *steps: str) -> list[list[tuple[str, int]]]:
    """Make the calls of each step; the same letter is the same call."""
    return [
        trace.made("read", arguments(letter), step=number) for number, letters in enumerate(steps) for letter in letters
    ]


def test_the_third_same_call_of_one_step_is_asked_about_and_each_after_it() -> None:
    assert _in_steps(Trace(DoomLoop({})), "aaaa") == [[], [], [("ask", 3)], [("ask", 4)]]


def test_two_same_calls_or_a_step_in_between_are_none() -> None:
    assert _in_steps(Trace(DoomLoop({})), "aa", "aa", "a") == [[]] * 5


def test_only_the_last_calls_of_a_step_matter() -> None:
    assert _in_steps(Trace(DoomLoop({})), "aabaa", "baaa") == [[]] * 8 + [[("ask", 3)]]


def test_the_scope_of_a_turn_looks_past_steps_and_ends_with_the_turn() -> None:
    trace = Trace(DoomLoop({"scope": "turn"}))
    assert _in_steps(trace, "a", "a", "a") == [[], [], [("ask", 3)]]
    trace.human()
    assert _in_steps(trace, "a", "a") == [[], []]
    assert _in_steps(trace, "b", "a", "a") == [[], [], []]


def test_calls_of_a_program_are_no_part_of_a_step_but_of_the_turn() -> None:
    for scope, expected in (("step", [("ask", 3)]), ("turn", [])):
        trace = Trace(DoomLoop({"scope": scope}))
        trace.made("read", arguments("a"))
        trace.made("read", arguments("a"))
        trace.made("bash", arguments("x"), nested=True)
        assert trace.made("read", arguments("a")) == expected


def test_the_number_of_calls_is_a_setting() -> None:
    assert _in_steps(Trace(DoomLoop({"n": 2})), "aa") == [[], [("ask", 2)]]


@pytest.mark.parametrize(("key", "value"), [("n", 1), ("scope", "session")])
def test_a_bad_setting_of_doom_loop(key: str, value: object) -> None:
    with pytest.raises(DetectorSettingsError, match=f"doom-loop: `{key}` must be"):
        DoomLoop({key: value})


# openhands


def test_four_same_calls_with_equal_results_stop() -> None:
    trace = Trace(OpenHands({}))
    assert run_of(trace, "aaaa") == [[], [], [], [("trip", 4)]]
    assert run_of(trace, "a") == [[("trip", 4)]]


def test_another_text_or_outcome_is_no_equal_result() -> None:
    trace = Trace(OpenHands({}))
    for text in ("1", "1", "1", "2", "2", "2"):
        assert trace.made("read", text=text) == []
    assert trace.made("read", text="2") == [("trip", 4)]
    trace = Trace(OpenHands({}))
    for kind in ("ok", "ok", "failed", "ok", "ok", "ok"):
        assert trace.made("read", kind=kind) == []


def test_three_same_calls_that_fail_stop_whatever_they_say() -> None:
    trace = Trace(OpenHands({}))
    said = [trace.made("bash", kind="failed", text=text) for text in ("1", "2", "3")]
    assert said == [[], [], [("trip", 3)]]
    assert trace.found[0].track == "failure"


def test_two_failures_and_a_success_are_none() -> None:
    trace = Trace(OpenHands({}))
    said = [trace.made("bash", kind=kind, text=kind) for kind in ("failed", "failed", "ok", "failed", "failed")]
    assert said == [[]] * 5


def test_failures_of_different_calls_are_none() -> None:
    trace = Trace(OpenHands({}))
    assert run_of(trace, "abcab", kind="failed") == [[]] * 5


def test_six_alternating_calls_with_the_same_results_stop() -> None:
    trace = Trace(OpenHands({}))
    assert run_of(trace, "ababa") == [[]] * 5
    assert run_of(trace, "b") == [[("trip", 6)]]
    assert run_of(trace, "a") == [[("trip", 6)]]


def test_alternation_with_a_new_result_is_progress() -> None:
    trace = Trace(OpenHands({}))
    assert run_of(trace, "ababa") == [[]] * 5
    assert trace.made("read", arguments("b"), text="something new") == []


def test_one_call_whose_results_alternate_is_no_alternation() -> None:
    trace = Trace(OpenHands({}))
    assert [trace.made("read", text=text) for text in "121212"] == [[]] * 6


def test_three_in_turn_are_no_alternation() -> None:
    assert run_of(Trace(OpenHands({})), "abcabcabc") == [[]] * 9


def test_a_human_message_forgets() -> None:
    trace = Trace(OpenHands({}))
    run_of(trace, "aaa")
    trace.human()
    assert run_of(trace, "aaaa") == [[], [], [], [("trip", 4)]]


def test_a_call_takes_its_place_where_its_result_stands() -> None:
    trace = Trace(OpenHands({}))
    calls = [trace.offer("read", arguments("a")) for _ in range(5)]
    for call in calls:
        assert trace.offered(call) == []
    assert [trace.settled(call) for call in calls] == [[], [], [], [("trip", 4)], [("trip", 4)]]


def test_calls_without_a_result_of_their_own_take_no_place() -> None:
    trace = Trace(OpenHands({}))
    run_of(trace, "aaa")
    assert trace.settled(trace.offer("bash"), "open", closer=True) == []
    assert run_of(trace, "a") == [[("trip", 4)]]


def test_the_numbers_are_settings_and_a_pattern_that_does_not_fit_the_window_is_never_seen() -> None:
    assert run_of(Trace(OpenHands({"same": 2})), "aa") == [[], [("trip", 2)]]
    assert run_of(Trace(OpenHands({"failed": 2})), "aa", kind="failed") == [[], [("trip", 2)]]
    assert run_of(Trace(OpenHands({"alternating": 4})), "abab") == [[], [], [], [("trip", 4)]]
    assert run_of(Trace(OpenHands({"window": 3})), "aaaaa") == [[]] * 5
    assert run_of(Trace(OpenHands({"window": 6})), "ababab")[-1] == [("trip", 6)]
    assert run_of(Trace(OpenHands({"window": 5})), "ababab")[-1] == []


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("window", 1, "must be an integer >= 2"),
        ("same", 1, "must be an integer >= 2"),
        ("failed", 0, "must be an integer >= 2"),
        ("alternating", 3, "must be an integer >= 4"),
        ("alternating", 5, "must be even: whole pairs of A and B"),
    ],
)
def test_a_bad_setting_of_openhands(key: str, value: object, rule: str) -> None:
    with pytest.raises(DetectorSettingsError) as caught:
        OpenHands({key: value})
    assert (caught.value.key, caught.value.rule) == (key, rule)
