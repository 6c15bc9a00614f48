"""What every session adds to every configuration: kept by session, so that sessions can be drawn, left out, weighed."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from analysis.labels import Label
from analysis.replay import SessionReplay
from analysis.sweep.metrics import ADVISORIES, GATES, SessionView
from analysis.sweep.peaks import SessionPeaks

__all__ = ["Counted", "Members", "SessionValues", "SweepSession", "SweptReplay", "session_values"]

_SECONDS = 60

Members: TypeAlias = "array[int]"
"""Numbers of configurations."""


Counted: TypeAlias = "tuple[SessionView, list[int]]"
"""A session's view and the configurations that have it; silent views are left out."""


@dataclass(slots=True)
class SweptReplay(SessionReplay):
    """One session under all configurations, in place of a replay: of that it has no more than turns and calls."""

    engine_runs: int = 0
    """Runs of the engine it took."""
    counted: list[Counted] = field(default_factory=list["Counted"])
    peaks: SessionPeaks | None = None
    """Under the settings the sweep starts from, where they were asked for."""


class SessionValues(NamedTuple):
    """One session's part in the metrics of a configuration."""

    messages: int
    gate_calls: int
    asks: int
    denials: int
    false_rejections: int
    warned: bool
    gated: bool
    lead_calls: float | None
    """What it still did after its first trip; None where it had none, or the log does not say."""
    lead_minutes: float | None
    lead_tokens: float | None


@dataclass(frozen=True, slots=True)
class SweepSession:
    """One session that counts."""

    label: Label
    project: str | None
    models: tuple[str, ...]
    values: tuple[tuple[SessionValues, Members], ...]
    """Its values, with the configurations that have them; where nothing happened it has none."""
    peaks: SessionPeaks | None
    """Under the settings the sweep starts from; None for a session without a label."""


def session_values(counted: Sequence[tuple[SessionView, Sequence[int]]]) -> tuple[tuple[SessionValues, Members], ...]:
    """Return a session's views as values, those that are alike together."""
    members: dict[SessionValues, Members] = {}
    for view, configs in counted:
        members.setdefault(_values(view), array("l")).extend(configs)
    return tuple(members.items())


def _values(view: SessionView) -> SessionValues:
    stages = {stage: sum(kinds.values()) for stage, kinds in view.stages.items()}
    lead = view.lead
    return SessionValues(
        messages=sum(stages.get(stage, 0) for stage in ADVISORIES),
        gate_calls=sum(stages.get(stage, 0) for stage in GATES),
        asks=view.asks,
        denials=view.denials,
        false_rejections=view.false_rejections,
        warned=any(stage in stages for stage in ADVISORIES),
        gated=any(stage in stages for stage in GATES),
        lead_calls=None if lead is None else lead.calls,
        lead_minutes=None if lead is None or lead.seconds is None else lead.seconds / _SECONDS,
        lead_tokens=None if lead is None else lead.tokens,
    )
