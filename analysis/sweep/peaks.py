"""How high the counts of one session go under the settings a sweep starts from, with nothing withheld."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.replay import decide
from analysis.sweep.script import CALL, SETTLE, MeasuredColumn, SessionScript
from breaker.engine import Breaker
from breaker.kinds import kind_of

__all__ = ["SessionPeaks", "peaks_of"]


@dataclass(frozen=True, slots=True)
class SessionPeaks:
    """The largest numbers any threshold would have been compared with in a session."""

    by_kind: Mapping[str, int]
    """For each enabled kind the highest next count of its measures."""
    streak: int
    """The longest failure streak of an enabled measure."""

    @property
    def highest(self) -> int:
        """The highest next count of any enabled measure; 0 where no call had one."""
        return max(self.by_kind.values(), default=0)


def peaks_of(script: SessionScript, measured: MeasuredColumn, guard: Breaker) -> SessionPeaks:
    """Follow the counts of a session.

    Args:
        script: the session's steps.
        measured: the calls' measures under the guard's settings.
        guard: a fresh guard; only measures it has a cap for are looked at.
    """
    judged = script.judged[0]
    by_kind: dict[str, int] = {}
    streak = 0
    for kind, position, _ in script.steps:
        if kind != CALL and kind != SETTLE:
            guard.turn()
            continue
        call = measured[position]
        if call is None:
            continue
        enabled = [measure for measure in call.measures if guard.settings.cap(measure) is not None]
        if kind == CALL and judged[position].commits:
            for measure in enabled:
                name = kind_of(measure)
                by_kind[name] = max(by_kind.get(name, 0), guard.next_count(measure))
            decide(guard, call, "observe")
        elif kind == SETTLE and judged[position].settles:
            guard.settle(call, judged[position].failure)
            streak = max(streak, *(guard.streak(measure) for measure in enabled), 0)
    return SessionPeaks(by_kind, streak)
