"""Which configurations no other one beats, and which of those is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.labels import Label
from analysis.shares import session_share
from analysis.sweep.conformal import fewest_good
from analysis.sweep.metrics import ConfigMetrics, metric_named
from analysis.sweep.requirements import Choosing, unmet

__all__ = ["FEWEST_STUCK", "OBJECTIVES", "ORDER", "Front", "find_front"]

OBJECTIVES = ("false_rejections", "good_touched", "messages", "stuck_caught", "lead_calls_median")
"""What the front weighs: a configuration is on it unless another is as good in all of them and better in one."""

ORDER = ("stuck_caught", "good_touched", "false_rejections", "lead_calls_median", "messages")
"""The order by which one of the front is chosen: the first that differs decides, then the order of the rows.

The lead stands before the messages: of thresholds that cost good runs the same, the early one also catches stuck runs
that go less far than those seen, and the messages it gives more are to stuck runs.
"""

FEWEST_STUCK = 4
"""Stuck sessions a recommendation needs: of three, even catching all leaves a rate below one half possible (Wilson)."""

_ORDER_TOLD = (
    "most stuck sessions caught, then fewest good ones touched, fewest false rejections, longest lead, fewest messages"
)
_LEAD = "lead_calls_median"
_USUAL = Choosing()


@dataclass(frozen=True, slots=True)
class Front:
    """The Pareto front of a sweep, and the choice."""

    objectives: tuple[str, ...]
    members: tuple[bool, ...] | None
    """For each configuration whether it is on the front; None where there is no front to speak of."""
    recommended: int | None
    """The configuration that is chosen."""
    why: str
    """The reason of the recommendation, or of there being none."""
    leading: int | None = None
    """What would be chosen if there were enough sessions."""
    lacking: str | None = None
    """What is missing for a choice, where something is: sessions, or a configuration that keeps to the requirements."""


def find_front(rows: Sequence[ConfigMetrics], labels: Mapping[Label, int], choosing: Choosing = _USUAL) -> Front:
    """Find the front and choose, given how many sessions carry each label.

    Without stuck sessions the best guard would be the one that never speaks, so there is no front; without good ones
    nothing is recommended, since what it costs them is not known. Nor is anything where there are too few of either.
    Of the configurations that keep to the requirements, the first of their own front by the order is chosen; with
    weights the one of the least weighted cost.
    """
    if not labels.get("stuck", 0):
        why = "no session is labelled stuck: by its costs alone the best guard is the one that never speaks"
        return _undecided(Front((), None, None, why))
    objectives = tuple(name for name in OBJECTIVES if name != "good_touched" or labels.get("good", 0))
    members = _members(rows, objectives)
    front = Front(objectives, members, None, "")
    if not labels.get("good", 0):
        why = "no session is labelled good: what a configuration costs good sessions is not known"
        return _undecided(replace(front, why=why))
    contradiction = unmet(choosing.requirements, rows, labels)
    if contradiction is not None:
        return _undecided(replace(front, why=contradiction))
    kept = [number for number, row in enumerate(rows) if all(one.met(row, labels) for one in choosing.requirements)]
    missing = sorted({name for name in choosing.weights for number in kept if rows[number].values[name] is None})
    if missing and all(rows[number].values[missing[0]] is None for number in kept):
        reason = rows[kept[0]].reasons.get(missing[0], "it cannot be had")
        return _undecided(replace(front, why=f"--objective {missing[0]}: {reason}"))
    chosen = _first(rows, kept, objectives, choosing)
    if not rows[chosen].values["stuck_caught"]:
        return _undecided(replace(front, why="no configuration catches a stuck session"))
    few = _too_few(labels, choosing) if choosing.enough else None
    if few is not None:
        return replace(_undecided(replace(front, why=few)), leading=chosen)
    why = _reason(rows[chosen], labels, choosing)
    return replace(front, recommended=chosen, leading=chosen, why=why)


def _undecided(front: Front) -> Front:
    return replace(front, lacking=front.why)


def _members(rows: Sequence[ConfigMetrics], objectives: Sequence[str]) -> tuple[bool, ...]:
    costs = [_costs(row, objectives) for row in rows]
    best: list[tuple[float, ...]] = []
    for cost in sorted(set(costs)):  # in this order nothing later can beat what is already on the front
        if not any(_beats(other, cost) for other in best):
            best.append(cost)
    on_front = set(best)
    return tuple(cost in on_front for cost in costs)


def _first(rows: Sequence[ConfigMetrics], kept: Sequence[int], objectives: Sequence[str], choosing: Choosing) -> int:
    if choosing.weights:
        return min(kept, key=lambda number: (_weighed(rows[number], choosing), _costs(rows[number], ORDER), number))
    on_front = _members([rows[number] for number in kept], objectives)
    first = (number for number, member in zip(kept, on_front, strict=True) if member)
    return min(first, key=lambda number: (_costs(rows[number], ORDER), number))


def _weighed(row: ConfigMetrics, choosing: Choosing) -> float:
    return sum(weight * _costs(row, (name,))[0] for name, weight in choosing.weights.items())


def _too_few(labels: Mapping[Label, int], choosing: Choosing) -> str | None:
    """Return how many sessions are missing for a recommendation; None where there are enough."""
    good, stuck = labels.get("good", 0), labels.get("stuck", 0)
    needed = fewest_good(choosing.alpha)
    parts: list[str] = []
    if good < needed:
        parts.append(
            f"{needed - good} more sessions labelled good are needed ({good} of {needed}: with fewer, no threshold "
            f"keeps the chance of touching a new good run at {choosing.alpha:g})"
        )
    if stuck < FEWEST_STUCK:
        low = session_share(stuck, stuck).low or 0.0
        parts.append(
            f"{FEWEST_STUCK - stuck} more labelled stuck are needed ({stuck} of {FEWEST_STUCK}: catching all of them "
            f"would leave a true rate of {low:.0%} possible)"
        )
    return f"not enough evidence: {'; '.join(parts)}" if parts else None


def _reason(row: ConfigMetrics, labels: Mapping[Label, int], choosing: Choosing) -> str:
    values = row.values
    caught, touched = int(values["stuck_caught"] or 0), int(values["good_touched"] or 0)
    parts = [
        f"catches {caught} of {labels['stuck']} stuck sessions{_between(caught, labels['stuck'])}, touches {touched} "
        f"of {labels['good']} good ones{_between(touched, labels['good'])}, {values['false_rejections']} false "
        f"rejections, {values['messages']} messages"
    ]
    if choosing.requirements:
        parts.append(f"keeps to {' and '.join(one.told for one in choosing.requirements)}")
    if choosing.weights:
        told = " + ".join(
            f"{weight:g} x {'' if metric_named(name).better == 'less' else 'minus '}{name}"
            for name, weight in choosing.weights.items()
        )
        parts.append(f"the least weighted cost, {_weighed(row, choosing):g} = {told}")
    else:
        parts.append(f"first on the Pareto front by {_ORDER_TOLD}")
    return (
        f"{'; '.join(parts)}. Chosen on the same sessions it is measured on, which flatters it: --cv tells by how much"
    )


def _between(part: int, whole: int) -> str:
    share = session_share(part, whole)
    return "" if share.low is None or share.high is None else f" (95 % interval {share.low:.0%} to {share.high:.0%})"


def _costs(row: ConfigMetrics, names: Sequence[str]) -> tuple[float, ...]:
    """Return the metrics as costs, less being better; a lead of a configuration that catches nothing is the worst.

    Beside the median lead stands the lead of all caught sessions together: a median of few does not move with most.
    """
    costs: list[float] = []
    for name in names:
        value = row.values[name]
        if metric_named(name).better == "less":
            costs.append(0 if value is None else value)
        else:
            costs.append(float("inf") if value is None else -value)
        if name == _LEAD:
            costs.append(-row.lead_calls)
    return tuple(costs)


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(mine <= theirs for mine, theirs in zip(one, other, strict=True))
