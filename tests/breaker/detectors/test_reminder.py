"""The reminder, call by call."""

from __future__ import annotations

import pytest

from breaker.detectors import DetectorSettingsError, Reminder
from tests.breaker.detectors.traces import Said, Trace, arguments, run_of

KINDS = ("ok", "failed", "denied", "undecidable")


def _reminder(**settings: object) -> Trace:
    return Trace(Reminder(settings))


def _notices(said: list[Said]) -> list[int]:
    """Return the 1-based numbers of the calls that were answered with a notice."""
    assert all(one in ([], [("notice", number)]) for number, one in enumerate(said, 1))
    return [number for number, one in enumerate(said, 1) if one]


def test_it_speaks_at_exactly_3_5_and_8_and_then_no_more() -> None:
    assert _notices(run_of(_reminder(), "a" * 20)) == [3, 5, 8]


def test_a_different_call_begins_a_new_run() -> None:
    trace = _reminder()
    assert run_of(trace, "aabaab") == [[]] * 6
    assert run_of(trace, "aaa") == [[], [], [("notice", 3)]]


def test_a_human_message_begins_a_new_run() -> None:
    trace = _reminder()
    run_of(trace, "aa")
    trace.human()
    assert run_of(trace, "aaa") == [[], [], [("notice", 3)]]


def test_calls_count_where_they_settle_whatever_they_came_to() -> None:
    trace = _reminder()
    said = [trace.made("read", kind=kind) for kind in ("ok", "failed", "denied", "undecidable", "failed")]
    assert _notices(said) == [3, 5]


def test_calls_that_were_not_run_or_stay_open_never_count_and_do_not_end_a_run() -> None:
    trace = _reminder()
    run_of(trace, "aa")
    assert trace.made("read", arguments("a"), "not-run") == []
    assert trace.made("read", arguments("b"), "not-run") == []
    trace.offered(trace.offer("read", arguments("b")))
    assert trace.settled(trace.offer("read", arguments("b")), "open", closer=True) == []
    assert run_of(trace, "a") == [[("notice", 3)]]


def test_the_order_of_results_is_the_order_that_counts() -> None:
    trace = _reminder(thresholds=[2])
    first, second, third = (trace.offer("read", arguments(letter)) for letter in "aba")
    for call in (first, second, third):
        assert trace.offered(call) == []
    assert trace.settled(first) == []
    assert trace.settled(third) == [("notice", 2)]
    assert trace.settled(second) == []


def test_every_tool_counts_by_default_and_an_excluded_one_is_looked_through() -> None:
    plain, transparent = _reminder(thresholds=[2]), _reminder(thresholds=[2], exclude=["todo_*"])
    for trace, expected in ((plain, []), (transparent, [("notice", 2)])):
        run_of(trace, "a")
        trace.made("todo_write", {})
        assert run_of(trace, "a") == [expected]


def test_include_leaves_every_other_tool_out() -> None:
    trace = _reminder(thresholds=[2], include=["bash"])
    assert run_of(trace, "aaa") == [[], [], []]
    assert [trace.made("bash"), trace.made("read"), trace.made("bash")] == [[], [], [("notice", 2)]]


def test_all_arguments_are_identity_and_their_order_is_none() -> None:
    trace = _reminder(thresholds=[2])
    assert trace.made("bash", {"command": "make", "description": "one"}) == []
    assert trace.made("bash", {"command": "make", "description": "two"}) == []
    assert trace.made("bash", {"description": "two", "command": "make"}) == [("notice", 2)]
    assert trace.made("Bash", {"description": "two", "command": "make"}) == []


def test_the_lowest_threshold_is_gentle_and_the_others_give_the_details() -> None:
    trace = _reminder(argumentsPreviewChars=10)
    run_of(trace, "a" * 5)
    gentle, detailed = (finding.message for finding in trace.found)
    assert "read" not in gentle.split()
    assert "- tool: read" in detailed
    assert "- consecutive_calls: 5" in detailed
    assert '- arguments: {"path":"a… (+2 more chars)' in detailed


def test_thresholds_are_sorted() -> None:
    trace = _reminder(thresholds=[4, 2])
    assert _notices(run_of(trace, "aaaaa")) == [2, 4]
    assert "consecutive_calls" not in trace.found[0].message


@pytest.mark.parametrize(
    ("settings", "key", "rule"),
    [
        ({"thresholds": []}, "thresholds", "must not be empty"),
        ({"thresholds": [3, 1, 0]}, "thresholds", "must hold integers >= 2; 1 is none"),
        ({"thresholds": [3, 2.5]}, "thresholds", "must hold integers >= 2; 2.5 is none"),
        ({"thresholds": [3, 3]}, "thresholds", "must not hold a number twice"),
        ({"thresholds": [3, 3], "argumentsPreviewChars": 0}, "thresholds", "must not hold a number twice"),
        ({"thresholds": 3}, "thresholds", "must be a list of numbers"),
        ({"thresholds": ["3"]}, "thresholds", "must be a list of numbers"),
        ({"argumentsPreviewChars": 0}, "argumentsPreviewChars", "must be an integer >= 1"),
        ({"exclude": "todo"}, "exclude", "must be a list of strings"),
        ({"include": [1]}, "include", "must be a list of strings"),
    ],
)
def test_a_bad_setting_names_key_and_rule(settings: dict[str, object], key: str, rule: str) -> None:
    with pytest.raises(DetectorSettingsError) as caught:
        Reminder(settings)
    assert (caught.value.key, caught.value.rule) == (key, rule)
    assert str(caught.value).startswith("repeat-tool-reminder: ")
