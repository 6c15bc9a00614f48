"""The floor under a threshold: how high it must be for a new good run to stay untouched, but for a chance of alpha."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.sweep.sessions import SweepSession

__all__ = ["ALPHA", "Floor", "TrackFloor", "fewest_good", "floor_of", "sweep_floors"]

ALPHA = 0.05
"""The chance of touching a new good run that is put up with, unless another is given."""

_ROUNDING = 1e-9
"""Shares like 0.05 have no exact double; a product this near to a whole number is that number."""


@dataclass(frozen=True, slots=True)
class Floor:
    """The smallest threshold that good runs allow."""

    threshold: int | None
    """None where there are too few good runs to say."""
    missing: int
    """How many good runs it takes more."""
    touched: int
    """Good runs of the corpus that reach it all the same."""


@dataclass(frozen=True, slots=True)
class TrackFloor:
    """The floor of one track, or of the measures of one kind."""

    track: str
    kind: str | None
    """A measure kind of the occurrence track; None for all enabled ones together."""
    keys: tuple[str, ...]
    """The settings it is a floor of."""
    floor: Floor


def fewest_good(alpha: float) -> int:
    """Return how many good runs it takes before any floor can be named.

    Raises:
        ValueError: alpha is no chance between 0 and 1.
    """
    if not 0 < alpha < 1:
        message = f"alpha must lie between 0 and 1, both excluded (got {alpha:g})"
        raise ValueError(message)
    return math.ceil(1 / alpha - _ROUNDING) - 1


def floor_of(peaks: Sequence[int], alpha: float) -> Floor:
    """Return the smallest threshold that a new good run reaches with a chance of at most alpha.

    Split-conformal: of n good runs and one more of the same kind, each is as likely as any to have the k-th highest
    peak. With k = ceil((n + 1)(1 - alpha)), one more run exceeds the k-th lowest peak with a chance of at most alpha,
    whatever the peaks' distribution. A threshold touches a run whose peak reaches it, so the floor is that peak plus 1.

    Args:
        peaks: the highest count of each known-good run.
        alpha: the chance.
    """
    missing = max(fewest_good(alpha) - len(peaks), 0)
    if missing:
        return Floor(None, missing, 0)
    place = math.ceil((len(peaks) + 1) * (1 - alpha) - _ROUNDING)
    threshold = sorted(peaks)[place - 1] + 1
    return Floor(threshold, 0, sum(peak >= threshold for peak in peaks))


def sweep_floors(sessions: Sequence[SweepSession], alpha: float) -> list[TrackFloor]:
    """Return the floors that the good runs of a sweep give, under the settings it starts from.

    Args:
        sessions: the sessions; those labelled good count.
        alpha: the chance of touching a new good run, on each track and kind by itself.
    """
    good = [session.peaks for session in sessions if session.label == "good" and session.peaks is not None]
    stages = ("warnAt", "summarizeAt")
    kinds = sorted({kind for peaks in good for kind in peaks.by_kind})
    return [
        TrackFloor("occurrence", None, (*stages, "limits"), floor_of([peaks.highest for peaks in good], alpha)),
        *(
            TrackFloor(
                "occurrence", kind, (f"limits.{kind}",), floor_of([peaks.by_kind.get(kind, 0) for peaks in good], alpha)
            )
            for kind in kinds
        ),
        TrackFloor("failure", None, ("failWarnAt", "failLimit"), floor_of([peaks.streak for peaks in good], alpha)),
    ]
