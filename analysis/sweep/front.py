"""Which configurations no other one beats, and which of those comes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.labels import Label
from analysis.sweep.metrics import ConfigMetrics, metric_named

__all__ = ["OBJECTIVES", "ORDER", "Front", "find_front"]

OBJECTIVES = ("false_rejections", "good_touched", "messages", "stuck_caught", "lead_calls_median")
"""What the front weighs: a configuration is on it unless another is as good in all of them and better in one."""

ORDER = ("stuck_caught", "good_touched", "false_rejections", "messages", "lead_calls_median")
"""The order by which one of the front is recommended: the first that differs decides, then the order of the rows."""

_ORDER_TOLD = (
    "most stuck sessions caught, then fewest good ones touched, fewest false rejections, fewest messages, longest lead"
)


@dataclass(frozen=True, slots=True)
class Front:
    """The Pareto front of a sweep."""

    objectives: tuple[str, ...]
    members: tuple[bool, ...] | None
    """For each configuration whether it is on the front; None where there is no front to speak of."""
    recommended: int | None
    """The configuration that comes first on the front."""
    why: str
    """The reason of the recommendation, or of there being none."""


def find_front(rows: Sequence[ConfigMetrics], labels: Mapping[Label, int]) -> Front:
    """Find the front, given how many sessions carry each label.

    Without stuck sessions the best guard would be the one that never speaks, so there is no front; without good ones
    nothing is recommended, since what it costs them is not known.
    """
    if not labels.get("stuck", 0):
        why = "no session is labelled stuck: by its costs alone the best guard is the one that never speaks"
        return Front((), None, None, why)
    objectives = tuple(name for name in OBJECTIVES if name != "good_touched" or labels.get("good", 0))
    costs = [_costs(row, objectives) for row in rows]
    distinct = sorted(set(costs))
    best: list[tuple[float, ...]] = []
    for cost in distinct:  # in this order nothing later can beat what is already on the front
        if not any(_beats(other, cost) for other in best):
            best.append(cost)
    kept = set(best)
    members = tuple(cost in kept for cost in costs)
    if not labels.get("good", 0):
        why = "no session is labelled good: what a configuration costs good sessions is not known"
        return Front(objectives, members, None, why)
    order = [_costs(row, ORDER) for row in rows]
    chosen = min(
        (number for number, member in enumerate(members) if member), key=lambda number: (order[number], number)
    )
    values = rows[chosen].values
    if not values["stuck_caught"]:
        return Front(objectives, members, None, "no configuration catches a stuck session")
    why = (
        f"catches {values['stuck_caught']} of {labels['stuck']} stuck sessions, touches {values['good_touched']} of "
        f"{labels['good']} good ones, {values['false_rejections']} false rejections, {values['messages']} messages; "
        f"first on the Pareto front by {_ORDER_TOLD}. Chosen on the same sessions it is measured on, without intervals"
    )
    return Front(objectives, members, chosen, why)


def _costs(row: ConfigMetrics, names: Sequence[str]) -> tuple[float, ...]:
    """Return the metrics as costs, less being better; a lead of a configuration that catches nothing is the worst."""
    costs: list[float] = []
    for name in names:
        value = row.values[name]
        if metric_named(name).better == "less":
            costs.append(0 if value is None else value)
        else:
            costs.append(float("inf") if value is None else -value)
    return tuple(costs)


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(mine <= theirs for mine, theirs in zip(one, other, strict=True))
