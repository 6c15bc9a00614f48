"""One session as a sweep holds it: what the engine needs of each call, once per way of measuring and of judging.

Results are not held, and arguments only as the measures they give; long measures are held as digests.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

from analysis.replay import CachedMeasurer
from analysis.sessions.facts import CallFact, Fact, MessageFact, SettleFact, TurnFact
from analysis.sessions.outcomes import Outcome
from analysis.sessions.session_facts import SessionFacts
from breaker.failure import Failure
from breaker.kinds import kind_of
from breaker.measures import MeasuredCall, Measurer

__all__ = ["CALL", "SETTLE", "TURN", "Judged", "ScriptRecorder", "SessionScript", "Step"]

CALL, SETTLE, TURN = 0, 1, 2
_LONGEST_MEASURE = 128
_DIGEST_BYTES = 16


class Step(NamedTuple):
    """One thing that happens in a session, in the order of the log."""

    kind: int
    """CALL, SETTLE or TURN."""
    call: int
    """The position of the call among the script's calls."""
    tokens: int
    """Used so far."""


class Judged(NamedTuple):
    """What the engine and the count need to know of a call's outcome."""

    commits: bool
    settles: bool
    ok: bool
    failure: Failure | None


MeasuredColumn: TypeAlias = "list[MeasuredCall | None]"
"""For each call its measures under one way of measuring; None where it is untracked there."""


@dataclass(slots=True)
class SessionScript:
    """A session's calls, its steps, and what is known at its end."""

    steps: list[Step] = field(default_factory=list[Step])
    indexes: list[int] = field(default_factory=list[int])
    """For each call its index over all call rows."""
    times: list[float | None] = field(default_factory=list["float | None"])
    measured: list[MeasuredColumn] = field(default_factory=list["MeasuredColumn"])
    judged: list[list[Judged]] = field(default_factory=list["list[Judged]"])
    calls: int = 0
    """All call rows."""
    last_time: float | None = None
    tokens: int | None = None
    """Used in the whole session; None where the log records no usage."""
    offers_fetch_file: bool = False

    def distinct(self) -> tuple[list[int], list[int]]:
        """Return, for each way of measuring and of judging, the first that gives the same for every call."""
        return _first_equal(self.measured), _first_equal(self.judged)


def _first_equal(columns: Sequence[list[object]] | Sequence[MeasuredColumn] | Sequence[list[Judged]]) -> list[int]:
    return [
        next(other for other in range(number + 1) if columns[other] == column) for number, column in enumerate(columns)
    ]


class ScriptRecorder:
    """Takes one session's facts in order and makes its script.

    Args:
        measurers: the distinct ways of measuring.
        judges: how many ways of judging outcomes there are: the reader's own ruleset and its further ones.
        keep_commands: keep the commands of shell calls, for the shell-HTTP policy.
        named: measures with a cap of their own, which are held as they are.
    """

    def __init__(
        self, measurers: Sequence[Measurer], judges: int, named: AbstractSet[str], *, keep_commands: bool
    ) -> None:
        self._measurers = [CachedMeasurer(measurer) for measurer in measurers]
        self._keep_commands = keep_commands
        self._named = named
        self._script = SessionScript(
            measured=[[] for _ in measurers],
            judged=[[] for _ in range(judges)],
        )
        self._positions: dict[int, int] = {}
        self._shared: dict[MeasuredCall, MeasuredCall] = {}
        self._tokens = 0
        self._tokens_known = False

    def take(self, fact: Fact) -> None:
        """Take one fact."""
        steps = self._script.steps
        match fact:
            case CallFact():
                self._call(fact)
            case SettleFact():
                position = self._positions.pop(fact.fact.index, None)
                if position is not None:
                    steps.append(Step(SETTLE, position, self._tokens))
            case TurnFact():
                steps.append(Step(TURN, 0, self._tokens))
            case MessageFact():
                if fact.tokens is not None:
                    self._tokens_known = True
                    self._tokens += fact.tokens
            case _:
                pass

    def finish(self, session: SessionFacts) -> SessionScript:
        """Close the script with what is known of the whole session."""
        script = self._script
        script.calls = session.calls
        script.last_time = session.last_time
        script.tokens = self._tokens if self._tokens_known else None
        script.offers_fetch_file = session.offers_fetch_file
        return script

    def _call(self, fact: CallFact) -> None:
        outcomes = (fact.outcome, *fact.other_outcomes)
        if not any(outcome.commits or outcome.settles for outcome in outcomes):
            return
        measured = [self._held(measurer.measure(fact)) for measurer in self._measurers]
        if all(call is None for call in measured):
            return
        script = self._script
        position = len(script.indexes)
        script.indexes.append(fact.index)
        script.times.append(fact.time)
        for column, call in zip(script.measured, measured, strict=True):
            column.append(call)
        for number, judged in enumerate(script.judged):
            judged.append(_judged(outcomes[number] if number < len(outcomes) else fact.outcome))
        if any(outcome.settles for outcome in outcomes):
            self._positions[fact.index] = position
        script.steps.append(Step(CALL, position, self._tokens))

    def _held(self, call: MeasuredCall) -> MeasuredCall | None:
        if not call.tracked:
            return None
        held = replace(
            call,
            measures=tuple(map(self._short, call.measures)),
            command=call.command if self._keep_commands else None,
        )
        return held if self._keep_commands else self._shared.setdefault(held, held)

    def _short(self, measure: str) -> str:
        if len(measure) <= _LONGEST_MEASURE or measure in self._named:
            return measure
        digest = blake2b(measure.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES)
        return f"{kind_of(measure)}:#{digest.hexdigest()}"


def _judged(outcome: Outcome) -> Judged:
    return Judged(outcome.commits, outcome.settles, outcome.kind == "ok", outcome.failure)
