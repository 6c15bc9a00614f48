"""A detector told of one call after the other, and what it answers to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from breaker.detectors import Detector, Finding, SeenCall, SeenOutcome, SeenStep, SeenTurn, StepDetector
from breaker.detectors.protocol import OutcomeKind
from breaker.failure import Failure
from breaker.measures import Call

EXIT_1 = Failure("exit", "1", "rebuilt")
Said = list[tuple[str, int]]


@dataclass
class Trace:
    """Keeps the place in a session. Every method returns what was said there, as (stage, count)."""

    detector: Detector
    found: list[Finding] = field(default_factory=list[Finding])
    calls: int = 0
    turns: int = 0
    steps: int = 0

    def human(self) -> None:
        self.turns += 1
        self.detector.on_turn(SeenTurn("human", self.turns))

    def resume(self) -> None:
        self.detector.on_turn(SeenTurn("resume", self.turns))

    def step(self) -> Said:
        assert isinstance(self.detector, StepDetector)
        self.steps += 1
        return self._said(self.detector.on_step(SeenStep(self.steps - 1, self.turns, self.calls)))

    def offer(self, name: str = "read", arguments: object = None, *, step: int = 0, nested: bool = False) -> SeenCall:
        given = {"path": "a"} if arguments is None else arguments
        call = SeenCall(self.calls, Call(name, given), self.turns, step, nested)
        self.calls += 1
        return call

    def offered(self, call: SeenCall) -> Said:
        return self._said(self.detector.on_call(call))

    def settled(
        self,
        call: SeenCall,
        kind: OutcomeKind = "ok",
        text: str = "done",
        *,
        is_error: bool | None = None,
        exit_code: float | None = None,
        rebuilt: bool = False,
        closer: bool = False,
    ) -> Said:
        outcome = SeenOutcome(
            kind=kind,
            settles=kind in {"ok", "failed"},
            failure=EXIT_1 if kind == "failed" else None,
            is_error=kind == "failed" and exit_code is None if is_error is None else is_error,
            exit_code=exit_code,
            exit_code_rebuilt=rebuilt,
            text=text,
            closer=closer,
        )
        return self._said(self.detector.on_outcome(call, outcome))

    def made(
        self,
        name: str = "read",
        arguments: object = None,
        kind: OutcomeKind = "ok",
        text: str = "done",
        *,
        step: int = 0,
        nested: bool = False,
    ) -> Said:
        """Offer a call and settle it at once."""
        call = self.offer(name, arguments, step=step, nested=nested)
        return self.offered(call) + self.settled(call, kind, text)

    def _said(self, findings: Sequence[Finding]) -> Said:
        self.found += findings
        return [(finding.stage, finding.count) for finding in findings]


def arguments(letter: str) -> Mapping[str, object]:
    """Return arguments that differ by letter."""
    return {"path": letter}


def run_of(trace: Trace, letters: str, *, kind: OutcomeKind = "ok") -> list[Said]:
    """Make one call for each letter: the same letter is the same call."""
    return [trace.made("read", arguments(letter), kind) for letter in letters]
