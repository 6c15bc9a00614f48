"""Intervals of shares: known values, and what they must do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.shares import clustered_share, session_share


@pytest.mark.parametrize(
    ("part", "whole", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (1, 1, 0.2065, 1.0),
        (81, 263, 0.2553, 0.3662),
    ],
)
def test_shares_of_sessions_have_wilsons_interval(part: int, whole: int, low: float, high: float) -> None:
    share = session_share(part, whole)
    assert share.value == part / whole
    assert share.low == pytest.approx(low, abs=5e-5)
    assert share.high == pytest.approx(high, abs=5e-5)


def test_nothing_to_divide_gives_no_share_and_no_interval() -> None:
    for share in (session_share(0, 0), clustered_share([]), clustered_share([(0, 0), (0, 0)])):
        assert (share.value, share.low, share.high) == (None, None, None)


def test_the_interval_of_a_share_of_calls_is_that_of_a_ratio_over_sessions() -> None:
    # Ratio 4/16; residuals 1 - 2 = -1 and 3 - 2 = 1; half width 1.96 * sqrt(2 * 2/1) / 16.
    share = clustered_share([(1, 8), (3, 8)])
    assert (share.part, share.whole) == (4, 16)
    assert share.low == pytest.approx(0.25 - 1.959964 * 2 / 16, abs=1e-6)
    assert share.high == pytest.approx(0.25 + 1.959964 * 2 / 16, abs=1e-6)


def test_one_session_or_calls_that_all_went_one_way_say_nothing_of_others() -> None:
    for clusters in ([(3, 10)], [(3, 10), (0, 0)], [(0, 4), (0, 5)], [(4, 4), (5, 5)]):
        share = clustered_share(clusters)
        assert (share.low, share.high) == (None, None)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted).map(tuple), min_size=1, max_size=20))
def test_an_interval_holds_its_share_and_lies_between_nothing_and_all(clusters: list[tuple[int, int]]) -> None:
    whole = sum(size for _, size in clusters)
    part = sum(one for one, _ in clusters)
    for share in (session_share(part, whole), clustered_share(clusters)):
        assert (share.part, share.whole) == (part, whole)
        if share.low is not None and share.high is not None and share.value is not None:
            assert -1e-9 <= share.low <= share.value + 1e-9
            assert share.value - 1e-9 <= share.high <= 1 + 1e-9
