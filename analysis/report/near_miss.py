"""How close runs come to each stage without reaching it, as a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.replay import StageName
from analysis.report.plots import CALM, COLUMN_WIDTH, FAINT, INK, Figure, new_figure, styled

__all__ = ["MOST_LEFT", "draw_near_miss", "near_miss_figure", "near_miss_told"]

MOST_LEFT = 12
"""Calls left from which on runs stand in one place: they are far from the stage."""

_STAGES: tuple[StageName, ...] = ("warn", "summarize", "gate", "fail-warn", "fail-gate")
_LEAST_AREA = 14.0
_MOST_AREA = 190.0


def _places(margins: Sequence[float]) -> dict[int, int]:
    """Return how many runs have how many calls left; fractions of limits act as the whole calls below them."""
    return dict(sorted(Counter(min(int(margin), MOST_LEFT) for margin in margins).items()))


def near_miss_figure(margins: Mapping[StageName, Sequence[float]], runs: str) -> Figure:
    """Draw how many calls runs had left before each stage.

    Args:
        margins: for each stage that is on, every run's calls left; 0 where it reached the stage.
        runs: whose they are, such as `30 good runs`.
    """
    with styled():
        figure = new_figure(COLUMN_WIDTH, 0.36 * max(len(margins), 2) + 1.25)
        draw_near_miss(figure.subplots(), margins, runs)
        return figure


def draw_near_miss(axes: Any, margins: Mapping[StageName, Sequence[float]], runs: str) -> None:
    """Draw the same on axes that are there."""
    stages: list[StageName] = [stage for stage in _STAGES if margins.get(stage)]
    most = max((count for stage in stages for count in _places(margins[stage]).values()), default=1)
    for row, stage in enumerate(stages):
        for left, count in _places(margins[stage]).items():
            reached = left == 0
            axes.scatter(
                [left],
                [row],
                s=_LEAST_AREA + (_MOST_AREA - _LEAST_AREA) * count / most,
                marker="s" if reached else "o",
                facecolors=INK if reached else CALM,
                edgecolors=INK,
                linewidths=0.6,
                zorder=3,
            )
            axes.annotate(str(count), (left, row), xytext=(0, 8.5), textcoords="offset points", ha="center", fontsize=8)
    axes.axvline(0.5, color=FAINT, linestyle="--", linewidth=0.9)
    axes.set_yticks(range(len(stages)), stages)
    axes.set_ylim(len(stages) - 0.4, -0.75)
    axes.set_xlim(-0.6, MOST_LEFT + 0.7)
    ticks = [0, 1, 2, 4, 6, 8, 10, MOST_LEFT]
    axes.set_xticks(ticks, [*map(str, ticks[:-1]), f"{MOST_LEFT}+"])
    axes.set_xlabel("calls left before it [calls]; square: reached")
    axes.set_ylabel("stage")
    axes.set_title(f"How close {runs} come [runs]")


def near_miss_told(margins: Mapping[StageName, Sequence[float]]) -> str:
    """Return the same in words."""
    parts: list[str] = []
    for stage in _STAGES:
        values = margins.get(stage)
        if values:
            reached = sum(value < 1 for value in values)
            left = min((value for value in values if value >= 1), default=None)
            near = "" if left is None else f", the nearest other had {left:g} left"
            parts.append(f"{stage}: reached by {reached} of {len(values)}{near}")
    return "; ".join(parts)
