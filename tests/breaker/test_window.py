from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breaker.failure import Failure
from breaker.window import AgentState

MEASURES = "abcd"
FAILED = Failure("exit", "1")


def test_a_new_window_has_seen_nothing() -> None:
    state = AgentState(4)
    assert state.records == 0
    assert state.next_count("a") == 1
    assert (state.exempt, state.refused, state.streaks, state.streak_failures) == (set(), set(), {}, {})
    assert state.last_result == ""


def test_the_next_count_is_one_more_than_the_window_holds() -> None:
    state = AgentState(3)
    for _ in range(5):
        state.commit(["a", "b"])
    assert (state.records, state.next_count("a"), state.next_count("c")) == (3, 4, 1)
    state.commit(["b"])
    assert (state.next_count("a"), state.next_count("b")) == (3, 4)
    state.commit(["c"])
    state.commit(["c"])
    assert (state.next_count("a"), state.next_count("b"), state.next_count("c")) == (1, 2, 3)


def test_a_measure_twice_in_one_record_counts_twice_and_leaves_twice() -> None:
    state = AgentState(2)
    state.commit(["a", "a"])
    assert state.next_count("a") == 3
    state.commit(["a"])
    assert (state.records, state.next_count("a")) == (2, 4)
    state.commit(["b"])
    assert state.next_count("a") == 2


def test_exempt_measures_are_not_recorded() -> None:
    state = AgentState(4)
    state.commit(["a", "b"])
    state.exempt.add("a")
    state.commit(["a", "b"])
    assert (state.records, state.next_count("a"), state.next_count("b")) == (2, 2, 3)


def test_an_empty_record_is_none() -> None:
    state = AgentState(2)
    state.exempt.add("a")
    state.commit(["b"])
    state.commit(["a"])
    state.commit([])
    assert (state.records, state.next_count("b")) == (1, 2)


def test_a_streak_grows_until_a_success() -> None:
    state = AgentState(2)
    assert [state.fail("a", FAILED), state.fail("a", Failure("http", "404"))] == [1, 2]
    assert state.streak_failures["a"] == Failure("http", "404")
    state.succeed("b")
    assert state.streaks == {"a": 2}
    state.succeed("a")
    assert (state.streaks, state.streak_failures) == ({}, {})
    assert state.fail("a", FAILED) == 1


def test_streaks_do_not_slide() -> None:
    state = AgentState(1)
    state.fail("a", FAILED)
    for _ in range(10):
        state.commit(["b"])
    assert state.streaks == {"a": 1}


RECORDS = st.lists(st.lists(st.sampled_from(MEASURES), max_size=6), max_size=60)


@given(st.integers(1, 7), RECORDS, st.dictionaries(st.integers(0, 59), st.sampled_from(MEASURES), max_size=2))
def test_running_counts_are_what_a_recount_finds(size: int, records: list[list[str]], frees: dict[int, str]) -> None:
    state = AgentState(size)
    kept: list[list[str]] = []
    exempt: set[str] = set()
    for step, record in enumerate(records):
        if step in frees:
            exempt.add(frees[step])
            state.exempt.add(frees[step])
        state.commit(record)
        left = [measure for measure in record if measure not in exempt]
        if left:
            kept.append(left)
        window = kept[-size:]
        assert state.records == len(window)
        for measure in MEASURES:
            assert state.next_count(measure) == sum(one.count(measure) for one in window) + 1


@pytest.mark.parametrize("size", [4, 100_000])
def test_a_long_run_of_distinct_measures_passes_through(size: int) -> None:
    state = AgentState(size)
    for number in range(200_000):
        state.commit([f"exact:{number}", "cmd:x"])
    assert state.records == size
    assert state.next_count("cmd:x") == size + 1
    assert (state.next_count(f"exact:{200_000 - size - 1}"), state.next_count(f"exact:{200_000 - size}")) == (1, 2)


def test_what_was_committed_can_be_looked_at() -> None:
    state = AgentState(2)
    assert (state.commits, state.recent) == (0, ())
    state.commit(["a"])
    state.commit(["b", "a"])
    state.commit(["c"])
    assert (state.commits, state.recent) == (3, (("b", "a"), ("c",)))
    state.exempt.add("c")
    state.commit(["c"])
    assert (state.commits, state.recent) == (3, (("b", "a"), ("c",)))
