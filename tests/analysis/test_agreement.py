"""Cohen's kappa and its interval."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.agreement import Agreement

COUNTS = st.integers(0, 60)
STEP = 1e-6


def _kappa_of(shares: list[float]) -> float:
    """Return kappa of the four shares, scaled so that they need not sum to 1."""
    whole = sum(shares)
    both, first, second, neither = (share / whole for share in shares)
    chance = (both + first) * (both + second) + (1 - both - first) * (1 - both - second)
    return (both + neither - chance) / (1 - chance)


def _delta_error(counts: list[int]) -> float:
    """Return the standard error by the delta method, its derivatives taken numerically."""
    number = sum(counts)
    shares = [count / number for count in counts]
    slopes: list[float] = []
    for at in range(len(shares)):
        up, down = list(shares), list(shares)
        up[at] += STEP
        down[at] -= STEP
        slopes.append((_kappa_of(up) - _kappa_of(down)) / (2 * STEP))
    mean = sum(share * slope for share, slope in zip(shares, slopes, strict=True))
    square = sum(share * slope**2 for share, slope in zip(shares, slopes, strict=True))
    return sqrt(max(square - mean**2, 0) / number)


def test_a_worked_example() -> None:
    agreement = Agreement(both=20, only_first=5, only_second=10, neither=15)
    assert (agreement.sessions, agreement.agreed) == (50, 35)
    assert agreement.kappa == pytest.approx(0.4)
    low, high = agreement.interval or (0.0, 0.0)
    assert (low, high) == pytest.approx((0.151, 0.649), abs=0.001)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_the_interval_is_that_of_the_delta_method(both: int, first: int, second: int, neither: int) -> None:
    agreement = Agreement(both, first, second, neither)
    kappa, interval = agreement.kappa, agreement.interval
    if interval is None:
        return
    assert kappa is not None
    error = 1.959963985 * _delta_error([both, first, second, neither])
    assert interval == pytest.approx((max(kappa - error, -1), min(kappa + error, 1)), abs=1e-4)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_kappa_lies_between_its_bounds_and_does_not_mind_the_order(
    both: int, first: int, second: int, neither: int
) -> None:
    agreement, other = Agreement(both, first, second, neither), Agreement(both, second, first, neither)
    assert agreement.kappa == other.kappa
    if agreement.kappa is not None:
        assert -1 <= agreement.kappa <= 1


@pytest.mark.parametrize("counts", [(0, 0, 0, 0), (7, 0, 0, 0), (0, 0, 0, 7)])
def test_there_is_none_where_chance_explains_everything(counts: tuple[int, int, int, int]) -> None:
    assert Agreement(*counts).kappa is None
    assert Agreement(*counts).interval is None


def test_full_agreement_is_1_and_claims_no_interval() -> None:
    agreement = Agreement(both=3, only_first=0, only_second=0, neither=4)
    assert (agreement.kappa, agreement.interval) == (1, None)


def test_full_disagreement_is_negative() -> None:
    assert Agreement(both=0, only_first=5, only_second=5, neither=0).kappa == -1
