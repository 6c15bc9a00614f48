"""What the replay of one session saw, and what may watch it. Loads no engine: who only adds up needs none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from analysis.sessions.outcome_kinds import OutcomeKind

if TYPE_CHECKING:
    from analysis.detect import DetectorReplay
    from analysis.sessions.facts import CallFact, MessageFact, SettleFact, TurnFact
    from analysis.sessions.session_facts import SessionFacts
    from breaker.engine import Decision
    from breaker.failure import Failure
    from breaker.measures import MeasuredCall
    from breaker.settings import Settings

__all__ = [
    "STAGES",
    "FailureKey",
    "FirstTrip",
    "MeasureCount",
    "ReplayEvent",
    "RunObserver",
    "SessionReplay",
    "StageName",
]

StageName = Literal["warn", "summarize", "gate", "fail-warn", "fail-gate", "shell-http"]
STAGES: tuple[StageName, ...] = ("warn", "summarize", "gate", "fail-warn", "fail-gate", "shell-http")


class MeasureCount(msgspec.Struct, frozen=True):
    """A measure and a number: a peak, or a streak."""

    measure: str
    count: int


@dataclass(frozen=True, slots=True)
class ReplayEvent:
    """One stage reached by one call. `seq` and `call` are the call's, also for what its result set off."""

    seq: int
    turn: int
    call: int
    tool: str
    stage: StageName
    track: str
    measure: str
    count: int
    threshold: float
    decision: str
    failure: Failure | None = None
    message: str | None = None
    """What the guard says at this event, where it was asked for."""
    false_rejection: bool = False
    """It withheld a call that had succeeded in the record."""
    position: int = field(default=0, compare=False)
    """Which fact of the session set it off."""


class FirstTrip(msgspec.Struct, frozen=True):
    """Where a stage was first reached, and what the session still did after it."""

    seq: int
    turn: int
    call: int
    seconds: float | None
    """Since the session's first own event; None without times."""
    tokens: int | None
    """Used before it; None where the log records no usage."""
    calls_after: int
    seconds_after: float | None
    tokens_after: int | None


class FailureKey(msgspec.Struct, frozen=True):
    """What failures are counted by."""

    tool: str
    reason: str
    detail: str
    evidence: str


@dataclass(slots=True)
class SessionReplay:
    """What one session's replay saw. Outcomes and streaks describe the record; the rest is under the policy."""

    shell_http: bool = False
    """The shell-HTTP policy was engaged."""
    turns: int = 0
    calls: int = 0
    tracked: int = 0
    outcomes: Counter[OutcomeKind] = field(default_factory=Counter[OutcomeKind])
    failed_text_only: int = 0
    clipped: int = 0
    truncated: int = 0
    not_started: int = 0
    failed_by: Counter[FailureKey] = field(default_factory=Counter[FailureKey])
    stages: Counter[StageName] = field(default_factory=Counter[StageName])
    stages_by_kind: dict[str, Counter[StageName]] = field(default_factory=dict[str, Counter[StageName]])
    asks: int = 0
    denials: int = 0
    false_rejections: int = 0
    peak: MeasureCount | None = None
    longest_streak: MeasureCount | None = None
    gate_margin: float | None = None
    """The least of cap minus count over every enabled measure seen."""
    first_trips: dict[StageName, FirstTrip] = field(default_factory=dict[StageName, FirstTrip])
    events: list[ReplayEvent] = field(default_factory=list[ReplayEvent])
    first_calls: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """By stage and kind of measure: the first call that reached it."""
    detectors: tuple[DetectorReplay, ...] = ()
    """What the plan's other detectors saw, in the plan's order."""
    observer: RunObserver | None = field(default=None, compare=False, repr=False)
    """What watched the run, where something did; the way the session went counts."""

    @property
    def settled(self) -> int:
        """Calls that succeeded or failed in the record."""
        return self.outcomes["ok"] + self.outcomes["failed"]

    @property
    def streak_length(self) -> int:
        """The longest failure streak; 0 without a failure."""
        return self.longest_streak.count if self.longest_streak is not None else 0

    def near_miss(self, settings: Settings) -> dict[str, float | None]:
        """Return how far the session stayed from each stage, not below 0; None for a stage that is off."""
        peak = self.peak.count if self.peak is not None else 0
        return {
            "gate": None if self.gate_margin is None else max(self.gate_margin, 0),
            "warn": _margin(settings.warn_at, peak),
            "summarize": _margin(settings.summarize_at, peak),
            "fail-warn": _margin(settings.fail_warn_at, self.streak_length),
            "fail-gate": _margin(settings.fail_limit, self.streak_length),
        }


def _margin(threshold: float | None, reached: int) -> float | None:
    return None if threshold is None else max(threshold - reached, 0)


class RunObserver(Protocol):
    """Sees one session's replay as it happens. A session that must be replayed once more gets another observer."""

    def on_turn(self, fact: TurnFact, *, clears_streaks: bool) -> None:
        """See the guard's state cleared; the record's own streaks end here too where `clears_streaks`."""
        ...

    def on_message(self, fact: MessageFact) -> None:
        """See a message of the model."""
        ...

    def on_call(
        self, fact: CallFact, measured: MeasuredCall, counts: Mapping[str, int], decision: Decision | None
    ) -> None:
        """See a call, untracked ones too, before the events it sets off.

        Args:
            fact: the call with its outcome.
            measured: its measures.
            counts: the next count of each enabled measure, this call included; empty where it never met the guard.
            decision: the guard's answer; None where it never met the guard.
        """
        ...

    def on_settle(self, fact: SettleFact, measured: MeasuredCall | None, streaks: Mapping[str, int]) -> None:
        """See a call's result.

        Args:
            fact: the result.
            measured: the call's measures; None where the result settles nothing.
            streaks: the record's own streaks above 0 of those measures, after this result.
        """
        ...

    def on_event(self, event: ReplayEvent) -> None:
        """See a stage reached."""
        ...

    def on_end(self, session: SessionFacts) -> None:
        """See the session's end, when everything about it is known."""
        ...
