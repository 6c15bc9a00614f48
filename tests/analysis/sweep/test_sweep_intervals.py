"""Intervals over sessions: held equal to scipy's, the same for a seed, and honest about what they do not cover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, bootstrap

from analysis.shares import session_share
from analysis.sweep import Evidence, Sweep, sweep_intervals
from analysis.sweep.intervals import (
    NOMINAL,
    bootstrap_medians,
    bootstrap_totals,
    coverage_table,
    effective_sessions,
    measured_coverage,
)
from analysis.sweep.metrics import METRICS

SKEWED = np.array([[0.0, 2], [0, 1], [0, 3], [1, 2], [0, 2], [4, 0], [0, 1], [12, 5], [2, 2], [0, 3], [1, 1], [0, 4]])


@pytest.mark.parametrize(("part", "whole"), [(0, 20), (1, 5), (26, 109), (5, 5), (500, 1000)])
def test_wilsons_interval_is_scipys(part: int, whole: int) -> None:
    share, theirs = session_share(part, whole), binomtest(part, whole).proportion_ci(0.95, "wilson")
    assert (share.low, share.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_the_bootstrap_of_a_sum_is_scipys() -> None:
    low, high = bootstrap_totals(SKEWED, seed=3, resamples=20_000)
    for column in range(SKEWED.shape[1]):
        drawn = bootstrap(
            (SKEWED[:, column],), np.sum, n_resamples=20_000, method="BCa", rng=np.random.default_rng(4), axis=0
        )
        theirs = drawn.confidence_interval
        spread = float(theirs.high - theirs.low)
        assert low[column] == pytest.approx(theirs.low, abs=0.05 * spread)
        assert high[column] == pytest.approx(theirs.high, abs=0.05 * spread)


def test_a_seed_gives_the_same_ends_and_another_one_others() -> None:
    one, again, other = (bootstrap_totals(SKEWED, seed=seed)[1].tolist() for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_sessions_in_which_nothing_happens_count() -> None:
    few = bootstrap_totals(SKEWED, seed=1)
    silent = np.vstack([SKEWED, np.zeros((200, 2))])
    more = bootstrap_totals(silent, seed=1)
    assert more[1][1] > few[1][1]
    assert np.all(more[0] < silent.sum(axis=0))


def test_columns_without_spread_are_their_sum() -> None:
    values = np.array([[0.0, 3.0], [0.0, 3.0]])
    low, high = bootstrap_totals(values, seed=1)
    assert (low.tolist(), high.tolist()) == ([0.0, 6.0], [0.0, 6.0])


def test_the_interval_of_a_median_holds_it_and_lies_in_the_values() -> None:
    values = np.array([[1.0], [5.0], [6.0], [7.0], [float("nan")], [40.0]])
    low, high = bootstrap_medians(values, seed=1)
    assert 1 <= low[0] <= 6 <= high[0] <= 40


def test_effective_sessions_of_equal_and_of_lonely_ones() -> None:
    values = np.array([[2.0, 0, 0], [2, 0, 0], [2, 9, 0], [2, 0, 0]])
    assert effective_sessions(values).tolist() == [4, 1, 0]


def test_the_recorded_coverage_is_looked_up_on_the_safe_side() -> None:
    cells = {(cell.sessions, cell.shape): cell for cell in coverage_table()}
    assert {size for size, _ in cells} == {30, 107, 1000}
    assert measured_coverage(5, 1) == cells[30, "extreme"]
    assert measured_coverage(106, 4.5).sessions == 30
    assert measured_coverage(109, 20) == cells[107, "skewed"]
    assert measured_coverage(5000, 3000) == cells[1000, "even"]
    assert cells[1000, "even"].coverage > NOMINAL > cells[107, "heavy"].coverage


def test_every_metric_has_an_interval_or_a_reason(sweep: Sweep) -> None:
    evidence = Evidence(sweep.sessions, len(sweep.rows))
    found = sweep_intervals(evidence, [row.values for row in sweep.rows], seed=7)
    assert found.seed == 7
    assert len(found.configs) == len(sweep.rows)
    for one, row in zip(found.configs, sweep.rows, strict=True):
        assert set(one.intervals) == {metric.name for metric in METRICS}
        for name, interval in one.intervals.items():
            value = row.values[name]
            assert (interval is None) == (name in one.reasons)
            if interval is not None and value is not None:
                assert interval.low <= value <= interval.high


def test_rates_of_sessions_are_wilsons_in_sessions(sweep: Sweep) -> None:
    evidence = Evidence(sweep.sessions, len(sweep.rows))
    (one, *_) = sweep_intervals(evidence, [row.values for row in sweep.rows], seed=0).configs
    touched = sweep.rows[0].values["good_touched"]
    assert touched is not None
    share = session_share(int(touched), 24)
    interval = one.intervals["good_touched"]
    assert interval is not None
    assert (interval.low, interval.high) == (
        pytest.approx(24 * (share.low or 0)),
        pytest.approx(24 * (share.high or 0)),
    )
    assert interval.method == "wilson"


def test_counts_say_how_they_are_spread_and_when_they_cover_too_little(sweep: Sweep) -> None:
    evidence = Evidence(sweep.sessions, len(sweep.rows))
    (one, *_) = sweep_intervals(evidence, [row.values for row in sweep.rows], seed=0).configs
    values = evidence.session_values("gate_calls", 0)
    spread = one.spreads["gate_calls"]
    assert (spread.sessions, spread.median, spread.highest) == ((values > 0).sum(), 0, values.max())
    assert spread.top_share == pytest.approx(values.max() / values.sum())
    assert spread.coverage is not None
    assert spread.coverage.coverage < NOMINAL
    asked = one.spreads["asks"]
    assert asked.coverage is not None
