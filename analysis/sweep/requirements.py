"""What a choice must keep to (`good_gated=0`), and what it weighs (`messages=0.1`)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import eq, ge, gt, le, lt

from analysis.labels import Label
from analysis.sweep.conformal import ALPHA
from analysis.sweep.metrics import ConfigMetrics, Metric, SweepError, metric_named

__all__ = ["Choosing", "Requirement", "parse_objective", "parse_requirement", "refuse_contradictions", "unmet"]

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {"<=": le, ">=": ge, "<": lt, ">": gt, "=": eq}
_REQUIREMENT = re.compile(r"\s*([A-Za-z_]+)\s*(<=|>=|<|>|==?)\s*([0-9]+(?:\.[0-9]+)?)\s*(%?)\s*\Z")
_PER_CENT = 100


@dataclass(frozen=True, slots=True)
class Requirement:
    """A bound on one metric."""

    metric: Metric
    comparison: str
    bound: float
    of_sessions: bool
    """The bound is a share of the sessions the metric looks at, in percent."""

    @property
    def told(self) -> str:
        """The requirement as it is written."""
        return f"{self.metric.name}{self.comparison}{self.bound:g}{'%' if self.of_sessions else ''}"

    def met(self, row: ConfigMetrics, labels: Mapping[Label, int]) -> bool:
        """Tell whether a configuration keeps to it; one without the metric does not."""
        value = self._value(row, labels)
        return value is not None and _COMPARISONS[self.comparison](value, self.bound)

    def nearest(self, rows: Sequence[ConfigMetrics], labels: Mapping[Label, int]) -> float | None:
        """Return the value that comes nearest to it among configurations; None where none has the metric."""
        values = [value for value in (self._value(row, labels) for row in rows) if value is not None]
        return min(values, key=lambda value: (abs(value - self.bound), value), default=None)

    def _value(self, row: ConfigMetrics, labels: Mapping[Label, int]) -> float | None:
        value = row.values[self.metric.name]
        if value is None or not self.of_sessions:
            return value
        whole = labels.get(self.metric.needs, 0) if self.metric.needs is not None else sum(labels.values())
        return _PER_CENT * value / whole if whole else None


@dataclass(frozen=True, slots=True)
class Choosing:
    """How one configuration is chosen."""

    requirements: tuple[Requirement, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    """What one more of a metric costs, or one less of it where more is better; empty for the usual order."""
    alpha: float = ALPHA
    """The chance of touching a new good run that is put up with; it decides how many good runs it takes."""
    enough: bool = True
    """Recommend only where there are enough good and stuck sessions to say anything."""


def parse_requirement(text: str) -> Requirement:
    """Read `metric=value`, with `<=`, `>=`, `<` and `>` too; `good_touched<=5%` is a share of the sessions.

    Raises:
        SweepError: not of that form, an unknown metric (the nearest is named), a share of no number of sessions.
    """
    found = _REQUIREMENT.match(text)
    if found is None:
        message = f"--require {text}: must be METRIC=NUMBER, with =, <=, >=, < or >"
        raise SweepError(message)
    metric = _metric("--require", text, found[1])
    if found[4] and not _counts_sessions(metric):
        message = f"--require {text}: {metric.name} counts no sessions, so it has no share of them"
        raise SweepError(message)
    comparison = "=" if found[2] == "==" else found[2]
    return Requirement(metric, comparison, float(found[3]), bool(found[4]))


def _counts_sessions(metric: Metric) -> bool:
    return metric.name.startswith(("sessions_", "good_", "stuck_"))


def parse_objective(texts: Sequence[str]) -> dict[str, float]:
    """Read weights, `good_touched=10,messages=0.1`, several at once or one after another.

    Raises:
        SweepError: not of that form, an unknown metric (the nearest is named), one given twice, a weight that is no
            number above 0.
    """
    weights: dict[str, float] = {}
    for text in texts:
        for piece in text.split(","):
            name, _, number = piece.partition("=")
            metric = _metric("--objective", text, name.strip())
            try:
                weight = float(number)
            except ValueError:
                weight = math.nan
            if not (math.isfinite(weight) and weight > 0):
                message = f"--objective {text}: the weight of {metric.name} must be a number above 0"
                raise SweepError(message)
            if metric.name in weights:
                message = f"--objective: {metric.name} is given twice"
                raise SweepError(message)
            weights[metric.name] = weight
    return weights


def _metric(option: str, text: str, name: str) -> Metric:
    try:
        return metric_named(name)
    except SweepError as error:
        message = f"{option} {text}: {error}"
        raise SweepError(message) from None


def refuse_contradictions(requirements: Sequence[Requirement]) -> None:
    """Refuse requirements that no sessions whatever could keep to together.

    Raises:
        SweepError: two of them, named.
    """
    for place, one in enumerate(requirements):
        for other in requirements[:place]:
            if (one.metric, one.of_sessions) == (other.metric, other.of_sessions) and not _compatible(one, other):
                message = f"--require {other.told} and --require {one.told} contradict each other"
                raise SweepError(message)


def _compatible(one: Requirement, other: Requirement) -> bool:
    """Tell whether a number can keep to both: the bounds, what lies between and beside them are tried."""
    bounds = (one.bound, other.bound)
    tried = (*bounds, sum(bounds) / 2, min(bounds) / 2, max(bounds) + 1)
    return any(
        _COMPARISONS[one.comparison](value, one.bound) and _COMPARISONS[other.comparison](value, other.bound)
        for value in tried
    )


def unmet(
    requirements: Sequence[Requirement], rows: Sequence[ConfigMetrics], labels: Mapping[Label, int]
) -> str | None:
    """Return the fewest requirements no configuration keeps to together; None where one keeps to all."""
    keeping = {
        requirement: frozenset(number for number, row in enumerate(rows) if requirement.met(row, labels))
        for requirement in requirements
    }
    if not keeping or _in_all(keeping.values()):
        return None
    needed = list(keeping)
    for requirement in list(keeping):
        fewer = [one for one in needed if one != requirement]
        if fewer and not _in_all(keeping[one] for one in fewer):
            needed = fewer
    if len(needed) > 1:
        told = " and ".join(f"{one.told} ({len(keeping[one])} configurations)" for one in needed)
        return f"no configuration keeps to {told} at once"
    (one,) = needed
    nearest = one.nearest(rows, labels)
    if nearest is None:
        return f"no configuration keeps to {one.told}: {_why_null(one.metric, rows)}"
    return f"no configuration keeps to {one.told}: the nearest has {nearest:g}{'%' if one.of_sessions else ''}"


def _in_all(sets: Iterable[frozenset[int]]) -> frozenset[int]:
    return reduce(frozenset[int].intersection, sets)


def _why_null(metric: Metric, rows: Sequence[ConfigMetrics]) -> str:
    reasons = [row.reasons[metric.name] for row in rows if metric.name in row.reasons]
    return reasons[0] if reasons else "it cannot be had"
