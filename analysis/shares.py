"""How sure a share is: 95 % intervals for shares of sessions, and for shares of calls that come in sessions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

__all__ = ["CONFIDENCE", "NORMAL_QUANTILE", "Share", "clustered_share", "session_share"]

CONFIDENCE = 0.95
"""How often an interval holds the true value, in the long run."""

NORMAL_QUANTILE = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""How many standard errors such an interval reaches to either side, where the estimate is nearly normal."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its two integers and its interval."""

    part: int
    whole: int
    low: float | None
    high: float | None
    """None where there are too few sessions to say."""

    @property
    def value(self) -> float | None:
        """The share; None where there is nothing to divide."""
        return self.part / self.whole if self.whole else None


def session_share(part: int, whole: int) -> Share:
    """Return a share of independent sessions with Wilson's interval, which holds near 0 and 1 too."""
    if not whole:
        return Share(part, whole, None, None)
    share = part / whole
    square = NORMAL_QUANTILE * NORMAL_QUANTILE
    centre = (share + square / (2 * whole)) / (1 + square / whole)
    half = (
        NORMAL_QUANTILE * math.sqrt(share * (1 - share) / whole + square / (4 * whole * whole)) / (1 + square / whole)
    )
    return Share(part, whole, max(centre - half, 0.0), min(centre + half, 1.0))


def clustered_share(clusters: Sequence[tuple[int, int]]) -> Share:
    """Return a share of calls with the interval of a ratio of sums over sessions.

    Calls of one session resemble each other, so sessions are what varies: the ratio's linearised variance over
    sessions, as in cluster sampling. It needs two sessions, and says nothing where every call went the same way.

    Args:
        clusters: part and whole of every session.
    """
    used = [(part, whole) for part, whole in clusters if whole]
    part, whole = sum(one for one, _ in used), sum(one for _, one in used)
    sessions = len(used)
    if sessions < 2 or part in {0, whole}:
        return Share(part, whole, None, None)
    share = part / whole
    spread = sum((one - share * size) ** 2 for one, size in used)
    half = NORMAL_QUANTILE * math.sqrt(spread * sessions / (sessions - 1)) / whole
    return Share(part, whole, max(share - half, 0.0), min(share + half, 1.0))
