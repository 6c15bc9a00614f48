"""Runs of the same call: `repeat-stop` denies from the 7th, `consecutive` halts at the n-th and counts anew."""

from __future__ import annotations

import pytest

from breaker.detectors import Consecutive, DetectorSettingsError, RepeatStop, SeenOutcome
from tests.breaker.detectors.traces import Said, Trace, arguments, run_of


def _spoken(said: list[Said]) -> dict[int, Said]:
    """Return what was said, by the 1-based number of the call."""
    return {number: one for number, one in enumerate(said, 1) if one}


# repeat-stop


def test_the_7th_and_every_later_same_call_is_denied() -> None:
    said = run_of(Trace(RepeatStop({})), "a" * 9)
    assert _spoken(said) == {7: [("deny", 7)], 8: [("deny", 8)], 9: [("deny", 9)]}


def test_six_same_calls_are_allowed_and_another_call_begins_a_new_run() -> None:
    trace = Trace(RepeatStop({}))
    assert _spoken(run_of(trace, "aaaaaabaaaaaa")) == {}
    assert _spoken(run_of(trace, "a")) == {1: [("deny", 7)]}


def test_a_human_message_ends_the_run() -> None:
    trace = Trace(RepeatStop({}))
    run_of(trace, "a" * 6)
    trace.human()
    assert _spoken(run_of(trace, "a" * 7)) == {7: [("deny", 7)]}


def test_job_tools_are_looked_through() -> None:
    trace = Trace(RepeatStop({}))
    assert [trace.made("job_output", {"id": 1}) for _ in range(9)] == [[]] * 9
    run_of(trace, "aaa")
    assert trace.made("job_wait", {}) == []
    assert _spoken(run_of(trace, "aaaa")) == {4: [("deny", 7)]}


def test_the_number_and_the_transparent_tools_are_settings() -> None:
    trace = Trace(RepeatStop({"n": 2, "exclude": []}))
    assert [trace.made("job_output", {}) for _ in range(3)] == [[], [("deny", 2)], [("deny", 3)]]
    assert trace.detector.on_outcome(trace.offer(), SeenOutcome("ok")) == ()


# consecutive


def test_the_default_halts_at_five_and_begins_again_at_0() -> None:
    trace = Trace(Consecutive({}))
    assert _spoken(run_of(trace, "a" * 11)) == {5: [("trip", 5)], 10: [("trip", 5)]}


def test_four_are_none_and_another_call_or_a_human_message_ends_the_run() -> None:
    trace = Trace(Consecutive({}))
    assert _spoken(run_of(trace, "aaaabaaaa")) == {}
    trace.human()
    assert _spoken(run_of(trace, "aaaa")) == {}
    assert _spoken(run_of(trace, "a")) == {1: [("trip", 5)]}


@pytest.mark.parametrize(
    ("settings", "numbers"),
    [
        ({"preset": "gemini"}, [5, 10]),
        ({"preset": "roo"}, [4, 8]),
        ({"preset": "roo", "n": 0}, []),
        ({"preset": "roo", "n": None}, []),
        ({"preset": "goose"}, []),
        ({"preset": "goose", "max": None}, []),
        ({"preset": "goose", "max": 3}, [4, 8]),
        ({"preset": "goose", "max": 1}, [2, 4, 6, 8, 10]),
        ({"n": 2}, [2, 4, 6, 8, 10]),
        ({"n": 10, "after": "halt"}, [10]),
        ({"n": 11}, []),
    ],
)
def test_presets_and_numbers(settings: dict[str, object], numbers: list[int]) -> None:
    assert list(_spoken(run_of(Trace(Consecutive(settings)), "a" * 10))) == numbers


def test_failed_denied_and_unfinished_calls_count_where_they_are_offered() -> None:
    trace = Trace(Consecutive({"n": 4}))
    assert trace.made("read", arguments("a"), "failed") == []
    assert trace.made("read", arguments("a"), "denied") == []
    assert trace.offered(trace.offer("read", arguments("a"))) == []
    assert trace.offered(trace.offer("read", arguments("a"))) == [("trip", 4)]


@pytest.mark.parametrize(
    ("settings", "key", "rule"),
    [
        ({"n": 1}, "n", "must be an integer >= 2, or null/0 to disable it"),
        ({"n": -1}, "n", "must be an integer >= 2, or null/0 to disable it"),
        ({"n": False}, "n", "must be an integer >= 2, or null/0 to disable it"),
        ({"preset": "claude"}, "preset", "must be one of gemini, roo, goose"),
        ({"after": "warn"}, "after", "must be one of halt"),
        ({"preset": "goose", "n": 3}, "n", "is not used by the preset goose; set `max`"),
        ({"max": 3}, "max", "is used by the preset goose only; set `n`"),
        ({"preset": "goose", "max": 0}, "max", "must be an integer >= 1"),
    ],
)
def test_a_bad_setting_of_consecutive(settings: dict[str, object], key: str, rule: str) -> None:
    with pytest.raises(DetectorSettingsError) as caught:
        Consecutive(settings)
    assert (caught.value.key, caught.value.rule) == (key, rule)


@pytest.mark.parametrize("n", [1, None, "7"])
def test_a_bad_setting_of_repeat_stop(n: object) -> None:
    with pytest.raises(DetectorSettingsError, match="repeat-stop: `n` must be an integer >= 2"):
        RepeatStop({"n": n})
