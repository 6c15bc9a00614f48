"""What is kept of a session besides its facts: its row of the read report, what is known of it, a replay of it."""

from __future__ import annotations

from collections import Counter
from typing import Protocol, TypeVar

import msgspec

from analysis.cache.keys import key_of
from analysis.cache.store import REPLAY
from analysis.cache.values import Number
from analysis.replay import (
    FailureKey,
    FirstTrip,
    MeasureCount,
    ReplayEvent,
    ReplayPlan,
    SessionReplay,
    StageName,
)
from analysis.sessions.header import Header
from analysis.sessions.outcome_kinds import OutcomeKind
from analysis.sessions.report import ReadDefect, ReadReport, ReadState
from analysis.sessions.session_facts import SessionFacts
from breaker.failure import Failure

__all__ = [
    "UNDECODABLE",
    "UNWRITABLE",
    "AboutSession",
    "Answers",
    "ReplayAnswers",
    "StoredHeader",
    "about",
    "header_of",
    "report_of",
    "session_of",
    "stored_header",
]

UNWRITABLE = (msgspec.MsgspecError, ValueError, OverflowError, TypeError, RecursionError)
"""What writing raises for a value that has no exact form: it is not kept then."""
UNDECODABLE = (msgspec.MsgspecError, ValueError, TypeError, RecursionError, LookupError, MemoryError)
"""What reading raises for bytes of another shape: they count as missing then."""

Made = TypeVar("Made")


class Answers(Protocol[Made]):
    """How what one run makes of a session is written down."""

    @property
    def kind(self) -> str:
        """The kind of its entries."""
        ...

    @property
    def key(self) -> bytes:
        """Stands for everything that decides it beside the session's facts."""
        ...

    def encode(self, made: Made) -> bytes:
        """Write it down.

        Raises:
            one of `UNWRITABLE`: it has no exact form.
        """
        ...

    def decode(self, data: bytes) -> Made:
        """Read it.

        Raises:
            one of `UNDECODABLE`: it is not of that shape.
        """
        ...


# -- the read report and the session -----------------------------------------------------------------------------------


class StoredHeader(msgspec.Struct, array_like=True):
    """A header as it is written down."""

    version: int
    session_id: str | None
    created_at: Number | None
    cwd: str | None
    parent: str | None
    subagent: bool
    seeded: bool
    seed_length: int | None


def stored_header(header: Header) -> StoredHeader:
    """Return a header as it is written down."""
    return StoredHeader(
        header.version,
        header.session_id,
        header.created_at,
        header.cwd,
        header.parent,
        header.subagent,
        header.seeded,
        header.seed_length,
    )


def header_of(stored: StoredHeader) -> Header:
    """Return a header as it was."""
    return Header(
        stored.version,
        stored.session_id,
        stored.created_at,
        stored.cwd,
        stored.parent,
        stored.subagent,
        stored.seeded,
        stored.seed_length,
    )


class _Defect(msgspec.Struct, array_like=True):
    kind: str
    message: str
    line: int | None
    byte: int | None
    frame: int | None
    lost_bytes: int
    seq: int | None


class _Report(msgspec.Struct, array_like=True):
    state: ReadState
    session_id: str | None
    version: int | None
    expanded: int
    lines: int
    rows: int
    lost_rows: int
    lost_bytes: int
    defects: list[_Defect]
    defects_untold: int
    notes: list[str]


class _Session(msgspec.Struct, array_like=True):
    header: StoredHeader
    turns: int
    calls: int
    not_started: int
    first_time: Number | None
    last_time: Number | None
    models: list[str]
    recorded_under_breaker: bool
    offers_fetch_file: bool
    fork: bool
    imported: bool
    digests: list[bytes]


class AboutSession(msgspec.Struct, array_like=True):
    """A file's row of the read report and what is known of its session, as written down."""

    report: _Report
    session: _Session | None


def about(report: ReadReport, session: SessionFacts | None) -> AboutSession:
    """Return what is written down of a file that has been read; where it lies is no part of it."""
    return AboutSession(
        _Report(
            report.state,
            report.session_id,
            report.version,
            report.expanded,
            report.lines,
            report.rows,
            report.lost_rows,
            report.lost_bytes,
            [
                _Defect(one.kind, one.message, one.line, one.byte, one.frame, one.lost_bytes, one.seq)
                for one in report.defects
            ],
            report.defects_untold,
            report.notes,
        ),
        None
        if session is None
        else _Session(
            stored_header(session.header),
            session.turns,
            session.calls,
            session.not_started,
            session.first_time,
            session.last_time,
            session.models,
            session.recorded_under_breaker,
            session.offers_fetch_file,
            session.fork,
            session.imported,
            session.digests,
        ),
    )


def report_of(stored: AboutSession, shown: str, size: int) -> ReadReport:
    """Return a row of the read report for the file at hand."""
    report = stored.report
    return ReadReport(
        shown=shown,
        state=report.state,
        session_id=report.session_id,
        version=report.version,
        size=size,
        expanded=report.expanded,
        lines=report.lines,
        rows=report.rows,
        lost_rows=report.lost_rows,
        lost_bytes=report.lost_bytes,
        defects=[
            ReadDefect(one.kind, one.message, one.line, one.byte, one.frame, one.lost_bytes, one.seq)
            for one in report.defects
        ],
        defects_untold=report.defects_untold,
        notes=list(report.notes),
    )


def session_of(stored: AboutSession) -> SessionFacts | None:
    """Return what was known of the session at its end."""
    session = stored.session
    if session is None:
        return None
    return SessionFacts(
        header=header_of(session.header),
        turns=session.turns,
        calls=session.calls,
        not_started=session.not_started,
        first_time=session.first_time,
        last_time=session.last_time,
        models=list(session.models),
        recorded_under_breaker=session.recorded_under_breaker,
        offers_fetch_file=session.offers_fetch_file,
        fork=session.fork,
        imported=session.imported,
        digests=list(session.digests),
    )


# -- the plain replay --------------------------------------------------------------------------------------------------


class _Trip(msgspec.Struct, array_like=True):
    seq: int
    turn: int
    call: int
    seconds: Number | None
    tokens: int | None
    calls_after: int
    seconds_after: Number | None
    tokens_after: int | None


class _Event(msgspec.Struct, array_like=True):
    seq: int
    turn: int
    call: int
    tool: str
    stage: StageName
    track: str
    measure: str
    count: int
    threshold: Number
    decision: str
    failure: tuple[str, str, str] | None
    message: str | None
    false_rejection: bool
    position: int


class _Replay(msgspec.Struct, array_like=True):
    shell_http: bool
    turns: int
    calls: int
    tracked: int
    outcomes: dict[OutcomeKind, int]
    failed_text_only: int
    clipped: int
    truncated: int
    not_started: int
    failed_by: list[tuple[str, str, str, str, int]]
    stages: dict[StageName, int]
    stages_by_kind: dict[str, dict[StageName, int]]
    asks: int
    denials: int
    false_rejections: int
    peak: tuple[str, int] | None
    longest_streak: tuple[str, int] | None
    gate_margin: Number | None
    first_trips: dict[StageName, _Trip]
    events: list[_Event]
    first_calls: list[tuple[str, str, int]]


REPLAYS = msgspec.msgpack.Decoder(_Replay)


class ReplayAnswers:
    """Writes down what a plan's replay of one session saw. For plans without other detectors: their code may change."""

    def __init__(self, plan: ReplayPlan) -> None:
        self.kind = REPLAY
        self.key = key_of(self.kind, plan)

    def encode(self, made: SessionReplay) -> bytes:
        """Write down a replay that nothing watched."""
        return msgspec.msgpack.encode(
            _Replay(
                made.shell_http,
                made.turns,
                made.calls,
                made.tracked,
                dict(made.outcomes),
                made.failed_text_only,
                made.clipped,
                made.truncated,
                made.not_started,
                [(key.tool, key.reason, key.detail, key.evidence, times) for key, times in made.failed_by.items()],
                dict(made.stages),
                {kind: dict(stages) for kind, stages in made.stages_by_kind.items()},
                made.asks,
                made.denials,
                made.false_rejections,
                _pair(made.peak),
                _pair(made.longest_streak),
                made.gate_margin,
                {stage: _stored_trip(trip) for stage, trip in made.first_trips.items()},
                [_stored_event(event) for event in made.events],
                [(stage, kind, call) for (stage, kind), call in made.first_calls.items()],
            )
        )

    def decode(self, data: bytes) -> SessionReplay:
        """Read a replay."""
        stored = REPLAYS.decode(data)
        return SessionReplay(
            shell_http=stored.shell_http,
            turns=stored.turns,
            calls=stored.calls,
            tracked=stored.tracked,
            outcomes=Counter(stored.outcomes),
            failed_text_only=stored.failed_text_only,
            clipped=stored.clipped,
            truncated=stored.truncated,
            not_started=stored.not_started,
            failed_by=Counter({FailureKey(*key): times for *key, times in stored.failed_by}),
            stages=Counter(stored.stages),
            stages_by_kind={kind: Counter(stages) for kind, stages in stored.stages_by_kind.items()},
            asks=stored.asks,
            denials=stored.denials,
            false_rejections=stored.false_rejections,
            peak=_count(stored.peak),
            longest_streak=_count(stored.longest_streak),
            gate_margin=stored.gate_margin,
            first_trips={stage: _trip(trip) for stage, trip in stored.first_trips.items()},
            events=[_event(event) for event in stored.events],
            first_calls={(stage, kind): call for stage, kind, call in stored.first_calls},
        )


def _pair(count: MeasureCount | None) -> tuple[str, int] | None:
    return None if count is None else (count.measure, count.count)


def _count(pair: tuple[str, int] | None) -> MeasureCount | None:
    return None if pair is None else MeasureCount(*pair)


def _stored_trip(trip: FirstTrip) -> _Trip:
    return _Trip(
        trip.seq,
        trip.turn,
        trip.call,
        trip.seconds,
        trip.tokens,
        trip.calls_after,
        trip.seconds_after,
        trip.tokens_after,
    )


def _trip(stored: _Trip) -> FirstTrip:
    return FirstTrip(
        stored.seq,
        stored.turn,
        stored.call,
        stored.seconds,
        stored.tokens,
        stored.calls_after,
        stored.seconds_after,
        stored.tokens_after,
    )


def _stored_event(event: ReplayEvent) -> _Event:
    failure = event.failure
    return _Event(
        event.seq,
        event.turn,
        event.call,
        event.tool,
        event.stage,
        event.track,
        event.measure,
        event.count,
        event.threshold,
        event.decision,
        None if failure is None else (failure.reason, failure.detail, failure.evidence),
        event.message,
        event.false_rejection,
        event.position,
    )


def _event(stored: _Event) -> ReplayEvent:
    return ReplayEvent(
        seq=stored.seq,
        turn=stored.turn,
        call=stored.call,
        tool=stored.tool,
        stage=stored.stage,
        track=stored.track,
        measure=stored.measure,
        count=stored.count,
        threshold=stored.threshold,
        decision=stored.decision,
        failure=None if stored.failure is None else Failure(*stored.failure),
        message=stored.message,
        false_rejection=stored.false_rejection,
        position=stored.position,
    )
