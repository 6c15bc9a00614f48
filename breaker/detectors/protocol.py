"""What every detector is: told of turns, calls and outcomes in the order they happen, it answers with findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from breaker.ecmascript import canonical_json
from breaker.failure import Failure
from breaker.measures import Call

__all__ = [
    "NOTHING",
    "RIVAL_STAGES",
    "Detector",
    "DetectorFactory",
    "Finding",
    "OutcomeKind",
    "SeenCall",
    "SeenOutcome",
    "SeenStep",
    "SeenTurn",
    "StepDetector",
]

OutcomeKind: TypeAlias = Literal["ok", "failed", "undecidable", "denied", "not-run", "open"]

RIVAL_STAGES = ("notice", "trip", "ask", "deny")
"""What a detector other than the breaker can do: say something, stop the run, ask a person, withhold a call."""


@dataclass(frozen=True, slots=True)
class SeenTurn:
    """A human message, or the place where a process opened the log again and memory begins anew."""

    cause: Literal["human", "resume", "import"]
    number: int
    """The human turn from here on."""


@dataclass(frozen=True, slots=True)
class SeenStep:
    """A step begins: one answer of the model, with the calls it asks for."""

    number: int
    """0-based over the session."""
    turn: int
    """The human turn."""
    next_call: int
    """The index of the first call row that can belong to it."""


@dataclass(frozen=True)
class SeenCall:
    """A call where its row stands in the log."""

    index: int
    """0-based over all call rows of the session, nested and untracked ones too."""
    call: Call
    turn: int = 0
    """The human turn; 0 before the first human message."""
    step: int = 0
    """The step it was asked for in, 0-based over the session."""
    nested: bool = False
    """Made by a program (`run_code`), not asked for in the model's own answer."""
    met_guard: bool = True
    """It came as far as a guard before the call: not refused before it and not dropped before it was run."""

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.call.name

    @cached_property
    def key(self) -> str:
        """What makes two calls the same call: tool and canonical JSON of all arguments, nothing left out."""
        return f"call:{self.call.name}:{canonical_json(self.call.arguments)}"


@dataclass(frozen=True, slots=True)
class SeenOutcome:
    """A call's result where its row stands in the log, whatever became of the call."""

    kind: OutcomeKind
    settles: bool = True
    """The call succeeded or failed, in a way that moves failure streaks."""
    failure: Failure | None = None
    is_error: bool = False
    """The result's own flag."""
    exit_code: float | None = None
    exit_code_rebuilt: bool = False
    """The exit code was read off the end of the output; the log keeps no structured one."""
    text: str = ""
    closer: bool = False
    """Not a result of the tool: written when a log was repaired, for a call whose outcome is unknown."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a detector says at one moment."""

    stage: str
    """One of `RIVAL_STAGES`; the breaker has its own."""
    measure: str
    """The key it counted; kind and value with a colon between."""
    count: int
    threshold: float
    track: str = "occurrence"
    """`occurrence`, `failure` or `step`: what was counted; the breaker's refusals of shell HTTP say `shell-http`."""
    decision: str = ""
    """What a guard answers to the call; empty stands for `deny` at that stage and `allow` at every other."""
    failure: Failure | None = None
    message: str = ""
    """What the detector would tell the model."""
    on_rebuilt: bool = False
    """It would not have been found without a rebuilt exit code."""


NOTHING: tuple[Finding, ...] = ()


class Detector(Protocol):
    """One agent's detector; made new for each session, and told everything in the order of the log.

    The recorded run goes on whatever a detector says (open loop). One that withholds a call leaves that call's
    outcome uncounted itself.
    """

    def on_turn(self, turn: SeenTurn) -> None:
        """Take a human message or a new process."""
        ...

    def on_call(self, call: SeenCall) -> Sequence[Finding]:
        """Take a call, before its outcome is known."""
        ...

    def on_outcome(self, call: SeenCall, outcome: SeenOutcome) -> Sequence[Finding]:
        """Take what became of a call."""
        ...


@runtime_checkable
class StepDetector(Protocol):
    """A detector that also counts steps."""

    def on_step(self, step: SeenStep) -> Sequence[Finding]:
        """Take the begin of a step."""
        ...


DetectorFactory: TypeAlias = Callable[[Mapping[str, object]], Detector]
"""Takes settings by name, merged over nothing, and returns a new detector.

It raises `ValueError` (`DetectorSettingsError` in this package) for a setting it does not know or cannot use. An
attribute `settings` of the detector, a mapping, is shown as its effective settings.
"""
