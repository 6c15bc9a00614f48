"""The floor: the smallest threshold a new good run reaches with a chance of at most alpha."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.sweep import Sweep, fewest_good, sweep_floors
from analysis.sweep.conformal import floor_of


@pytest.mark.parametrize(("alpha", "runs"), [(0.05, 19), (0.1, 9), (0.2, 4), (0.5, 1), (0.3, 3), (0.01, 99)])
def test_it_takes_so_many_good_runs(alpha: float, runs: int) -> None:
    assert fewest_good(alpha) == runs
    assert floor_of([3] * runs, alpha).threshold == 4
    short = floor_of([3] * (runs - 1), alpha)
    assert (short.threshold, short.missing) == (None, 1)


def test_the_highest_run_may_be_passed_over_where_there_are_enough() -> None:
    peaks = [*range(1, 40)]
    assert floor_of(peaks, 0.05) == floor_of(peaks[::-1], 0.05)
    assert floor_of(peaks, 0.05).threshold == 39
    assert floor_of(peaks, 0.05).touched == 1
    assert floor_of(peaks, 0.2).threshold == 33


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, float("nan")])
def test_no_chance_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        fewest_good(alpha)


@given(st.lists(st.integers(0, 20), min_size=5, max_size=60), st.sampled_from([0.05, 0.1, 0.2, 0.25]))
def test_of_any_runs_left_out_in_turn_at_most_alpha_are_touched(peaks: list[int], alpha: float) -> None:
    """Exchangeability, counted: of n + 1 runs each is once the new one."""
    touched = 0
    for number, peak in enumerate(peaks):
        threshold = floor_of([*peaks[:number], *peaks[number + 1 :]], alpha).threshold
        touched += threshold is not None and peak >= threshold
    assert touched <= alpha * len(peaks) + 1e-9


def test_floors_of_the_planted_runs(sweep: Sweep) -> None:
    """Good runs repeat a measure up to 8 times and fail at most twice in a row."""
    floors = {(one.track, one.kind): one.floor.threshold for one in sweep_floors(sweep.sessions, 0.05)}
    assert floors["occurrence", None] == 9
    assert floors["failure", None] == 3
    assert floors["occurrence", "host"] == 9
    assert {one.floor.missing for one in sweep_floors(sweep.sessions, 0.01)} == {75}
