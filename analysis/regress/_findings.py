"""What a check found: places in logs, and what is wrong with them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal

from analysis.corpus import SessionRow
from analysis.regress._faults import Origin
from analysis.regress._rules import Waiver
from analysis.replay import ReplayEvent

__all__ = ["RULES", "Finding", "Place", "Rule", "explain_line", "place_of_event", "place_of_session"]

Rule = Literal[
    "limit",
    "expectation/unexpected",
    "expectation/missing",
    "expectation/times",
    "expectation/unreadable",
    "baseline/incompatible",
    "baseline/newly-firing",
    "baseline/stopped",
    "baseline/earlier",
    "baseline/later",
    "baseline/more",
    "baseline/fewer",
    "baseline/changed",
    "baseline/log-changed",
    "baseline/new",
    "baseline/gone",
    "waiver/expired",
    "waiver/unused",
]

RULES: dict[Rule, str] = {
    "limit": "A number of the corpus is beyond its limit.",
    "expectation/unexpected": "An event shows that no expectation of the session names.",
    "expectation/missing": "An event that must show does not.",
    "expectation/times": "An event shows another number of times than it must.",
    "expectation/unreadable": "A session that is expected to show something cannot be read.",
    "baseline/incompatible": "The baseline was made with other settings, another ruleset or other semantics.",
    "baseline/newly-firing": "A stage fires in a session where it did not when the baseline was approved.",
    "baseline/stopped": "A stage that fired when the baseline was approved does not any more.",
    "baseline/earlier": "A stage fires at an earlier call than when the baseline was approved.",
    "baseline/later": "A stage fires at a later call than when the baseline was approved.",
    "baseline/more": "A stage fires more often than when the baseline was approved.",
    "baseline/fewer": "A stage fires less often than when the baseline was approved.",
    "baseline/changed": "Events differ from the approved ones though their first calls and numbers do not.",
    "baseline/log-changed": "A log is not the one the baseline was approved with.",
    "baseline/new": "A session is not in the baseline.",
    "baseline/gone": "An entry of the baseline no longer matches a session that can be read.",
    "waiver/expired": "The last day of a waiver is over.",
    "waiver/unused": "A waiver covers nothing any more.",
}
"""What each rule means, in one sentence."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a log something shows. Without a call, it is the session as a whole."""

    session: str
    path: str
    explain: str
    """The command that shows it."""
    call: int | None = None
    seq: int | None = None
    turn: int | None = None
    tool: str | None = None
    stage: str | None = None
    measure: str | None = None
    count: int | None = None
    threshold: float | None = None
    decision: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. A waived one is told and does not fail the check."""

    rule: Rule
    subject: str
    """The limit, the session or the waiver it is about."""
    message: str
    """The cause, in one sentence."""
    session: str | None = None
    """The session's id, where it is about one."""
    path: str | None = None
    """The session's log."""
    places: tuple[Place, ...] = ()
    """The worst or first ones."""
    places_untold: int = 0
    origin: Origin | None = None
    """The line of the configuration or the baseline that asks for it."""
    waiver: Waiver | None = None

    @property
    def fails(self) -> bool:
        """Tell whether it fails the check."""
        return self.waiver is None


def explain_line(path: str, options: tuple[str, ...], *, call: int | None = None) -> str:
    """Return the command that shows a call of a session, or the session, under the same settings."""
    words = ["breaker", "explain", path, *(["--call", str(call)] if call is not None else []), *options]
    return shlex.join(words)


def place_of_event(row: SessionRow, event: ReplayEvent, options: tuple[str, ...]) -> Place:
    """Return where an event shows."""
    counted = bool(event.measure)
    return Place(
        session=row.session_id,
        path=row.path,
        explain=explain_line(row.path, options, call=event.call),
        call=event.call,
        seq=event.seq,
        turn=event.turn,
        tool=event.tool,
        stage=event.stage,
        measure=event.measure if counted else None,
        count=event.count if counted else None,
        threshold=event.threshold if counted else None,
        decision=event.decision,
    )


def place_of_session(row: SessionRow, options: tuple[str, ...], *, call: int | None = None) -> Place:
    """Return a session as a whole, or one call of it at which nothing shows now."""
    return Place(row.session_id, row.path, explain_line(row.path, options, call=call), call=call)
