"""A session's facts as an entry: all but the texts of results, so that other settings need no log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from analysis.cache.answers import UNDECODABLE, AboutSession, about, report_of, session_of
from analysis.cache.store import LARGEST_ENTRY
from analysis.cache.values import Inexact, Number, require_exact
from analysis.replay import FactsReader
from analysis.sessions.facts import (
    UNTOLD,
    CallFact,
    Fact,
    MessageFact,
    SessionFacts,
    SettleFact,
    StepFact,
    TurnFact,
    arguments_of,
)
from analysis.sessions.find import SessionFile
from analysis.sessions.outcome_kinds import OutcomeKind
from analysis.sessions.outcomes import Outcome
from analysis.sessions.report import ReadReport
from breaker.failure import Failure
from breaker.measures import Call

__all__ = ["EntryDamaged", "FactsRecorder", "RecordingReader", "StoredReader"]

_FACTS_AT_ONCE = 512
"""Facts written down together, so that memory holds what is written and not what it was made of."""
_LENGTH_BYTES = 4
_ORDER: Literal["little"] = "little"


class EntryDamaged(Exception):
    """An entry that was whole does not hold what it should; the log is read in its place."""


class _Call(msgspec.Struct, array_like=True, tag=0):
    index: int
    seq: int
    time: Number | None
    turn: int
    recorded_turn: int | None
    step: int | None
    name: str
    raw_arguments: str | None
    arguments: object
    """Of a call whose arguments were no text; else they are read from it again."""
    call_id: str
    nested: bool
    outcome: int
    """A place in the outcomes told so far."""
    other_outcomes: list[int]


class _Settle(msgspec.Struct, array_like=True, tag=1):
    call: int
    """Its index."""
    seq: int
    time: Number | None
    is_error: bool
    closer: bool
    length: int


class _Turn(msgspec.Struct, array_like=True, tag=2):
    seq: int
    time: Number | None
    cause: Literal["human", "resume", "import"]
    turn: int


class _Message(msgspec.Struct, array_like=True, tag=3):
    seq: int
    time: Number | None
    tokens: int | None
    lines: int | None
    short_lines: int | None


class _Step(msgspec.Struct, array_like=True, tag=4):
    seq: int
    time: Number | None
    recorded_turn: int | None
    step: int | None


class _Outcome(msgspec.Struct, array_like=True):
    kind: OutcomeKind
    commits: bool
    settles: bool
    failure: tuple[str, str, str] | None
    evidence: str
    rule: str
    words: str
    clipped: bool
    truncated: bool
    exit_code: Number | None
    exit_code_rebuilt: bool


class _Chunk(msgspec.Struct, array_like=True):
    outcomes: list[_Outcome]
    """Those met first in this chunk."""
    facts: list[_Call | _Settle | _Turn | _Message | _Step]


_ENCODER = msgspec.msgpack.Encoder()
_CHUNKS = msgspec.msgpack.Decoder(_Chunk)
_ABOUT = msgspec.msgpack.Decoder(AboutSession)


class FactsRecorder:
    """Writes a session's facts down as they pass. One that has no exact form, or is too large, is given up."""

    def __init__(self) -> None:
        self._given_up = False
        self._written = bytearray()
        self._outcomes: dict[tuple[Outcome, str], int] = {}
        self._chunk = _Chunk([], [])

    def take(self, fact: Fact) -> None:
        """Take one fact."""
        if self._given_up:
            return
        try:
            self._chunk.facts.append(self._stored(fact))
            if len(self._chunk.facts) >= _FACTS_AT_ONCE:
                self._write(_ENCODER.encode(self._chunk))
                self._chunk = _Chunk([], [])
        except (Inexact, msgspec.MsgspecError, ValueError, OverflowError, TypeError, RecursionError):
            self._give_up()

    def finish(self, told: AboutSession) -> bytes | None:
        """Return the entry's payload; None where there is none to keep."""
        if self._given_up:
            return None
        try:
            self._write(_ENCODER.encode(self._chunk))
            self._write(_ENCODER.encode(told))
        except (msgspec.MsgspecError, ValueError, OverflowError, TypeError, RecursionError):
            return None
        return None if self._given_up else bytes(self._written)

    def _write(self, data: bytes) -> None:
        if len(self._written) + len(data) > LARGEST_ENTRY:
            self._give_up()
            return
        self._written += len(data).to_bytes(_LENGTH_BYTES, _ORDER)
        self._written += data

    def _give_up(self) -> None:
        self._given_up = True
        self._written.clear()
        self._chunk = _Chunk([], [])
        self._outcomes.clear()

    def _stored(self, fact: Fact) -> _Call | _Settle | _Turn | _Message | _Step:
        match fact:
            case CallFact():
                return self._stored_call(fact)
            case SettleFact():
                return _Settle(fact.fact.index, fact.seq, fact.time, fact.is_error, fact.closer, fact.length)
            case TurnFact():
                return _Turn(fact.seq, fact.time, fact.cause, fact.turn)
            case MessageFact():
                return _Message(fact.seq, fact.time, fact.tokens, fact.lines, fact.short_lines)
            case StepFact():
                return _Step(fact.seq, fact.time, fact.recorded_turn, fact.step)

    def _stored_call(self, fact: CallFact) -> _Call:
        arguments = None
        if fact.raw_arguments is None:
            arguments = fact.call.arguments
            require_exact(arguments)
        return _Call(
            fact.index,
            fact.seq,
            fact.time,
            fact.turn,
            fact.recorded_turn,
            fact.step,
            fact.call.name,
            fact.raw_arguments,
            arguments,
            fact.call_id,
            fact.nested,
            self._place(fact.outcome),
            [self._place(outcome) for outcome in fact.other_outcomes],
        )

    def _place(self, outcome: Outcome) -> int:
        key = (outcome, repr(outcome.exit_code))  # 1 and 1.0 are equal, and not the same
        place = self._outcomes.get(key)
        if place is None:
            place = self._outcomes[key] = len(self._outcomes)
            failure = outcome.failure
            self._chunk.outcomes.append(
                _Outcome(
                    outcome.kind,
                    outcome.commits,
                    outcome.settles,
                    None if failure is None else (failure.reason, failure.detail, failure.evidence),
                    outcome.evidence,
                    outcome.rule,
                    outcome.words,
                    outcome.clipped,
                    outcome.truncated,
                    outcome.exit_code,
                    outcome.exit_code_rebuilt,
                )
            )
        return place


class RecordingReader:
    """Reads a session with another reader and has its facts written down."""

    def __init__(self, reader: FactsReader) -> None:
        self._reader = reader
        self._recorder = FactsRecorder()
        self._ended = False

    @property
    def session(self) -> SessionFacts | None:
        """What is known of the session so far."""
        return self._reader.session

    @property
    def report(self) -> ReadReport:
        """How the reading went."""
        return self._reader.report

    def facts(self) -> Iterator[Fact]:
        """Give out the facts in order."""
        take = self._recorder.take
        for fact in self._reader.facts():
            take(fact)
            yield fact
        self._ended = True

    def again(self) -> FactsReader:
        """Return a reader of the same session that has read nothing yet; nothing more is written down."""
        return self._reader.again()

    def payload(self) -> bytes | None:
        """Return the entry; None where there is none to keep."""
        return self._recorder.finish(about(self._reader.report, self._reader.session)) if self._ended else None


class StoredReader:
    """Gives out a session's facts from an entry. Their results have no texts: asking for one is a fault.

    Raises:
        EntryDamaged: the payload is not of that shape.
    """

    def __init__(self, file: SessionFile, payload: bytes) -> None:
        self._file = file
        self._payload = payload
        self._chunks = _chunks(payload)
        if not self._chunks:
            raise EntryDamaged
        start, end = self._chunks[-1]
        try:
            told = _ABOUT.decode(memoryview(payload)[start:end])
        except UNDECODABLE:
            raise EntryDamaged from None
        self.report = report_of(told, file.shown, file.size)
        self.session = session_of(told)

    def facts(self) -> Iterator[Fact]:
        """Give out the facts in order.

        Raises:
            EntryDamaged: they are not of the right shape.
        """
        outcomes: list[Outcome] = []
        calls: dict[int, CallFact] = {}
        view = memoryview(self._payload)
        for start, end in self._chunks[:-1]:
            try:
                chunk = _CHUNKS.decode(view[start:end])
                outcomes.extend(map(_outcome, chunk.outcomes))
                facts = [_fact(stored, outcomes, calls) for stored in chunk.facts]
            except UNDECODABLE:
                raise EntryDamaged from None
            yield from facts

    def again(self) -> StoredReader:
        """Return a reader of the same entry that has read nothing yet."""
        return StoredReader(self._file, self._payload)


def _chunks(payload: bytes) -> list[tuple[int, int]]:
    """Return where each part of a payload lies; nothing where it is cut."""
    places: list[tuple[int, int]] = []
    at = 0
    while at < len(payload):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(payload[at:start], _ORDER)
        places.append((start, at))
    return places if at == len(payload) else []


def _outcome(stored: _Outcome) -> Outcome:
    return Outcome(
        kind=stored.kind,
        commits=stored.commits,
        settles=stored.settles,
        failure=None if stored.failure is None else Failure(*stored.failure),
        evidence=stored.evidence,
        rule=stored.rule,
        words=stored.words,
        clipped=stored.clipped,
        truncated=stored.truncated,
        exit_code=stored.exit_code,
        exit_code_rebuilt=stored.exit_code_rebuilt,
    )


def _fact(
    stored: _Call | _Settle | _Turn | _Message | _Step, outcomes: Sequence[Outcome], calls: dict[int, CallFact]
) -> Fact:
    match stored:
        case _Call():
            fact = _call(stored, outcomes)
            calls[fact.index] = fact
            return fact
        case _Settle():
            call = calls.pop(stored.call)
            return SettleFact(call, stored.seq, stored.time, stored.is_error, UNTOLD, stored.closer, stored.length)
        case _Turn():
            return TurnFact(stored.seq, stored.time, stored.cause, stored.turn)
        case _Message():
            return MessageFact(stored.seq, stored.time, stored.tokens, stored.lines, stored.short_lines)
        case _Step():
            return StepFact(stored.seq, stored.time, stored.recorded_turn, stored.step)


def _call(stored: _Call, outcomes: Sequence[Outcome]) -> CallFact:
    raw = stored.raw_arguments
    return CallFact(
        index=stored.index,
        seq=stored.seq,
        time=stored.time,
        turn=stored.turn,
        recorded_turn=stored.recorded_turn,
        step=stored.step,
        call=Call(stored.name, stored.arguments if raw is None else arguments_of(raw)),
        raw_arguments=raw,
        call_id=stored.call_id,
        nested=stored.nested,
        outcome=outcomes[stored.outcome],
        resolved=True,
        other_outcomes=tuple(outcomes[place] for place in stored.other_outcomes),
    )
