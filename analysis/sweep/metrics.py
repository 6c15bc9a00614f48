"""What a choice of settings costs and catches, added up session by session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from statistics import median
from typing import Literal, NamedTuple, TypeAlias

from analysis.labels import LABELS, Label
from analysis.replay import STAGES, StageName
from breaker.kinds import KINDS

__all__ = [
    "METRICS",
    "ConfigMetrics",
    "Lead",
    "Metric",
    "SessionView",
    "SweepError",
    "Tally",
    "metric_named",
]

ADVISORIES: tuple[StageName, ...] = ("warn", "summarize", "fail-warn")
GATES: tuple[StageName, ...] = ("gate", "fail-gate")

Value: TypeAlias = "int | float | None"


class SweepError(ValueError):
    """A sweep cannot answer what it was asked for; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a configuration's row."""

    name: str
    told: str
    better: Literal["less", "more"]
    needs: Label | None = None
    """The label without which it is null."""


METRICS: tuple[Metric, ...] = (
    Metric("messages", "advisories the model reads: warn, summarize and fail-warn", "less"),
    Metric("sessions_warned", "sessions with at least one advisory", "less"),
    Metric("sessions_gated", "sessions with at least one gated call", "less"),
    Metric("gate_calls", "calls gated on either track", "less"),
    Metric("asks", "questions to the operator", "less"),
    Metric("denials", "calls withheld, declined asks and refused shell fetches included", "less"),
    Metric("false_rejections", "calls withheld that had succeeded in the record", "less"),
    Metric("sessions_with_false_rejection", "sessions with at least one of them", "less"),
    Metric("good_touched", "good sessions with an advisory or a gated call", "less", "good"),
    Metric("good_gated", "good sessions with a gated call", "less", "good"),
    Metric("stuck_caught", "stuck sessions with an advisory or a gated call", "more", "stuck"),
    Metric("stuck_gated", "stuck sessions with a gated call", "more", "stuck"),
    Metric("lead_calls_median", "median calls a caught stuck session still made after its first trip", "more", "stuck"),
    Metric("lead_minutes_median", "median minutes it still took", "more", "stuck"),
    Metric("lead_tokens_median", "median tokens it still used", "more", "stuck"),
)

_NAMED = {metric.name: metric for metric in METRICS}


def metric_named(name: str) -> Metric:
    """Return the metric of that name.

    Raises:
        SweepError: there is none; the nearest is named.
    """
    if name in _NAMED:
        return _NAMED[name]
    near = get_close_matches(name, _NAMED, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(_NAMED)}"
    message = f"unknown metric {name!r}; {hint}"
    raise SweepError(message)


class Lead(NamedTuple):
    """What a session still did after the guard first spoke or stopped a call."""

    calls: int
    seconds: float | None
    tokens: int | None


@dataclass(frozen=True, slots=True)
class SessionView:
    """What one session shows under one configuration."""

    stages: Mapping[StageName, Counter[str]]
    """For each stage reached, how often by kind; the shell-HTTP policy has no kind."""
    asks: int
    denials: int
    false_rejections: int
    lead: Lead | None
    """None where no advisory was given and no call gated."""

    @property
    def silent(self) -> bool:
        """Tell whether nothing happened at all."""
        return not self.stages and not self.asks and not self.denials


# Numbers that are sums are kept in one flat list, so that adding a session is a few additions.
_SUMS = (
    *STAGES,
    "asks",
    "denials",
    "false_rejections",
    "sessions_warned",
    "sessions_gated",
    "sessions_with_false_rejection",
)
_BY_LABEL = ("touched", "gated")
_BY_KIND = (*STAGES, "sessions", "sessions_gated")
_SLOTS: dict[tuple[str, str], int] = {
    key: number
    for number, key in enumerate(
        [
            *(("", name) for name in _SUMS),
            *((label, name) for label in LABELS for name in _BY_LABEL),
            *((kind, name) for kind in KINDS for name in _BY_KIND),
        ]
    )
}

Increments: TypeAlias = "tuple[tuple[int, int], ...]"


def increments(view: SessionView, label: Label) -> Increments:
    """Return what a session of a label adds to the sums of its configuration: positions and amounts."""
    added: Counter[tuple[str, str]] = Counter()
    spoke = gated = False
    by_kind: dict[str, bool] = {}
    for stage, kinds in view.stages.items():
        added["", stage] += sum(kinds.values())
        spoke = spoke or stage in ADVISORIES
        gated = gated or stage in GATES
        if stage not in ADVISORIES and stage not in GATES:
            continue
        for kind, times in kinds.items():
            if kind not in KINDS:
                continue
            added[kind, stage] += times
            by_kind[kind] = by_kind.get(kind, False) or stage in GATES
    added["", "asks"] += view.asks
    added["", "denials"] += view.denials
    added["", "false_rejections"] += view.false_rejections
    added["", "sessions_warned"] += spoke
    added["", "sessions_gated"] += gated
    added["", "sessions_with_false_rejection"] += view.false_rejections > 0
    added[label, "touched"] += spoke or gated
    added[label, "gated"] += gated
    for kind, stopped in by_kind.items():
        added[kind, "sessions"] += 1
        added[kind, "sessions_gated"] += stopped
    return tuple((_SLOTS[key], amount) for key, amount in added.items() if amount)


@dataclass(slots=True)
class Tally:
    """The sums of one configuration over the sessions added so far."""

    sums: list[int] = field(default_factory=lambda: [0] * len(_SLOTS))
    leads: list[Lead] = field(default_factory=list[Lead])
    """Of the stuck sessions that were caught."""

    def add(self, added: Increments, lead: Lead | None) -> None:
        """Add one session: its increments, and its lead where it is a stuck one."""
        sums = self.sums
        for position, amount in added:
            sums[position] += amount
        if lead is not None:
            self.leads.append(lead)

    def metrics(self, labels: Mapping[Label, int]) -> ConfigMetrics:
        """Return the metrics, given how many sessions carry each label."""

        def total(name: str, group: str = "") -> int:
            return self.sums[_SLOTS[group, name]]

        values: dict[str, Value] = {name: total(name) for name in _SUMS if name in _NAMED}
        values["messages"] = sum(total(stage) for stage in ADVISORIES)
        values["gate_calls"] = sum(total(stage) for stage in GATES)
        values["good_touched"], values["good_gated"] = total("touched", "good"), total("gated", "good")
        values["stuck_caught"], values["stuck_gated"] = total("touched", "stuck"), total("gated", "stuck")
        values["lead_calls_median"] = _median([lead.calls for lead in self.leads])
        values["lead_minutes_median"] = _median([lead.seconds / 60 for lead in self.leads if lead.seconds is not None])
        values["lead_tokens_median"] = _median([lead.tokens for lead in self.leads if lead.tokens is not None])
        reasons: dict[str, str] = {}
        for metric in METRICS:
            if metric.needs is not None and not labels.get(metric.needs, 0):
                values[metric.name] = None
                reasons[metric.name] = f"no session is labelled {metric.needs}"
            elif values[metric.name] is None:
                recorded = "no stuck session was caught" if not self.leads else "not recorded in the logs"
                reasons[metric.name] = recorded
        return ConfigMetrics(
            values={metric.name: values[metric.name] for metric in METRICS},
            reasons=reasons,
            stages={stage: total(stage) for stage in STAGES},
            by_kind={kind: {name: total(name, kind) for name in _BY_KIND} for kind in KINDS if total("sessions", kind)},
            lead_calls=sum(lead.calls for lead in self.leads),
        )


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


@dataclass(frozen=True, slots=True)
class ConfigMetrics:
    """The numbers of one configuration."""

    values: Mapping[str, Value]
    """By metric name; None where a number cannot be had."""
    reasons: Mapping[str, str]
    """For each None, why."""
    stages: Mapping[StageName, int]
    by_kind: Mapping[str, Mapping[str, int]]
    """For each kind that spoke or gated: the stages, the sessions, and the sessions it gated."""
    lead_calls: int = 0
    """Calls all caught stuck sessions still made after their first trip: the lead where medians are alike."""
