"""Rows of the tables, gathered while the sessions are replayed and kept compactly until they are written."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from io import SEEK_END
from itertools import islice
from tempfile import SpooledTemporaryFile, gettempdir
from typing import Literal, cast

import msgspec
import pyarrow as pa

from analysis.corpus import CorpusReplay, SessionRow
from analysis.files import OutputError
from analysis.replay import STAGES, ReplayEvent, ReplayPlan
from analysis.sessions.facts import CallFact, MessageFact, SettleFact, TurnFact
from analysis.sessions.outcome_kinds import OutcomeKind
from analysis.sessions.report import ReadReport
from analysis.sessions.session_facts import SessionFacts
from analysis.tables.arrow import batch_of, batch_rows, plain_schema, read_batch, serialized, with_constants
from analysis.tables.histograms import WHATS, Bin, HistogramObserver, Histograms, What
from analysis.tables.privacy import Privacy
from analysis.tables.schemas import TABLES, Table, table_named
from breaker.ecmascript import canonical_json
from breaker.engine import Decision
from breaker.failure import Failure
from breaker.kinds import kind_of
from breaker.measures import MeasuredCall

__all__ = ["DEFAULT_SHORT_LINE", "TABLE_NAMES", "SessionCollector", "TablesObservation"]

TABLE_NAMES: tuple[str, ...] = tuple(table.name for table in TABLES)

DEFAULT_SHORT_LINE = 40
"""Characters up to which a line of the model's own text is a short phrase."""

_LARGEST = 2**63 - 1
_FIRST_YEAR = -62_135_596_800_000
_LAST_YEAR = 253_402_300_799_999
"""Epoch milliseconds a timestamp may have: the years 1 to 9999."""
_MILLISECONDS = 1000
_SEAL_ROWS = 8192
"""Rows after which a session's rows become Arrow memory."""
_SPOOL_MEMORY = 16 * 1024 * 1024
"""Bytes of rows kept in memory; what is more waits in a temporary file, already without what is private."""
_BATCH_ROWS = 256
_GATHERED = ("turns", "calls", "events", "measures", "streaks")
_CONSTANT = ("session_index", "session")
"""Columns that are known only when all sessions have been read."""
_BINS = pa.schema(
    [
        pa.field("kind", pa.string()),
        pa.field("what", pa.string()),
        pa.field("value", pa.int64()),
        pa.field("count", pa.int64()),
    ]
)
_WHATS: dict[str, What] = {what: what for what in WHATS}
_DETECTOR = "breaker"

StreakEnd = Literal["success", "reset", "end"]


def _integer(value: int | None) -> int | None:
    return value if value is not None and -_LARGEST <= value <= _LARGEST else None


def _capped(value: int) -> int:
    return min(value, _LARGEST)


def _time(value: float | None) -> int | None:
    return int(value) if value is not None and _FIRST_YEAR <= value <= _LAST_YEAR else None


def _seconds(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else max(end - start, 0) / _MILLISECONDS


class _Rows:
    """One session's rows of one table, as columns; sealed rows are Arrow memory."""

    def __init__(self, table: Table) -> None:
        self.names = [column.name for column in table.columns if column.name not in _CONSTANT]
        self.schema = plain_schema(table.schema(), self.names)
        self._columns: list[list[object]] = [[] for _ in self.names]
        self.sealed: list[pa.RecordBatch] = []
        self._first = 0

    def add(self, row: Sequence[object]) -> None:
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)

    def change(self, place: int, name: str, value: object) -> None:
        """Change one value of a row that is not sealed."""
        self._columns[self.names.index(name)][place - self._first] = value

    @property
    def unsealed(self) -> int:
        return len(self._columns[0])

    def seal(self) -> None:
        rows = self.unsealed
        if not rows:
            return
        self.sealed.append(batch_of(self.schema, self._columns))
        self._first += rows
        self._columns = [[] for _ in self.names]


@dataclass(slots=True)
class _Turn:
    number: int
    start: float | None = None
    end: float | None = None
    first_call: int | None = None
    calls: int = 0
    tracked: int = 0
    outcomes: Counter[OutcomeKind] = field(default_factory=Counter[OutcomeKind])
    text_only: int = 0
    stages: Counter[str] = field(default_factory=Counter[str])
    withheld: int = 0
    messages: int = 0
    tokens: int | None = None
    lines: int = 0
    short_lines: int = 0

    def at(self, time: float | None) -> None:
        if time is None:
            return
        if self.start is None:
            self.start = time
        self.end = time


@dataclass(slots=True)
class _Measure:
    index: int
    occurrences: int = 0
    peak: int | None = None
    failures: int = 0
    longest_streak: int = 0


@dataclass(slots=True)
class _Streak:
    index: int
    first_call: int
    first_time: float | None
    length: int
    turn: int
    last_call: int
    last_time: float | None
    failure: Failure


class SessionCollector:
    """Gathers one session's rows. What is private is left out before a row is kept. Use one per session."""

    def __init__(self, plan: ReplayPlan, privacy: Privacy, wanted: Collection[str]) -> None:
        self._plan = plan
        self._privacy = privacy
        self._everything = plan.result_source == "log"
        self._rows = {name: _Rows(table_named(name)) for name in _GATHERED if name in wanted}
        self._histogram = HistogramObserver()
        self._turn = _Turn(0)
        self._measures: dict[str, _Measure] = {}
        self._streaks: dict[str, _Streak] = {}
        self._streaks_begun = 0
        self._ended: dict[int, tuple[object, ...]] = {}
        self._streaks_written = 0
        self._events = 0
        self._calls = 0
        self._unsettled: set[int] = set()
        self._tokens: int | None = None
        self.tools: dict[str | None, Counter[str]] = {}
        """By tool: `calls`, its tracked calls' outcomes, `withheld`, `false-rejection`, and every stage's events."""
        self.seconds: float | None = None
        """How long the session lasted."""

    @property
    def tokens(self) -> int | None:
        """Tokens the session used, None where its log records none."""
        return self._tokens

    @property
    def bins(self) -> Counter[Bin]:
        """The session's histograms."""
        return self._histogram.bins

    def batches(self, table: str) -> list[pa.RecordBatch]:
        """Return the session's rows of a table, without the columns that name the session."""
        return self._rows[table].sealed if table in self._rows else []

    # -- what is seen --------------------------------------------------------------------------------------------

    def on_turn(self, fact: TurnFact, *, clears_streaks: bool) -> None:
        """Begin a turn, and end the streaks the record clears here."""
        self._histogram.on_turn(fact, clears_streaks=clears_streaks)
        if clears_streaks:
            for measure in list(self._streaks):
                self._end_streak(measure, "reset")
        if fact.turn != self._turn.number:
            self._end_turn()
            self._turn = _Turn(fact.turn)
        self._turn.at(fact.time)

    def on_message(self, fact: MessageFact) -> None:
        """Count what the model said."""
        turn = self._turn
        turn.at(fact.time)
        turn.messages += 1
        if fact.tokens is not None:
            turn.tokens = (turn.tokens or 0) + fact.tokens
            self._tokens = (self._tokens or 0) + fact.tokens
        turn.lines += fact.lines or 0
        turn.short_lines += fact.short_lines or 0

    def on_call(
        self, fact: CallFact, measured: MeasuredCall, counts: Mapping[str, int], decision: Decision | None
    ) -> None:
        """Take a call."""
        self._histogram.on_call(fact, measured, counts, decision)
        outcome = fact.outcome
        failure = outcome.failure if outcome.kind == "failed" else None
        tracked = measured.tracked or self._everything
        withheld = decision is not None and decision.withheld
        self._count_call(fact, failure, tracked=tracked, withheld=withheld)
        self._count_tool(measured.name, outcome.kind, tracked=tracked, withheld=withheld)
        for measure, count in counts.items():
            seen = self._measure(measure)
            seen.occurrences += 1
            seen.peak = max(seen.peak or 0, count)
        rows = self._rows.get("calls")
        if rows is None:
            return
        arguments = fact.raw_arguments if fact.raw_arguments is not None else canonical_json(fact.call.arguments)
        shown = self._privacy.shown
        rows.add(
            (
                fact.index,
                _integer(fact.seq),
                _time(fact.time),
                fact.turn,
                _integer(fact.recorded_turn),
                _integer(fact.step),
                shown(measured.name, "name"),
                fact.nested,
                tracked,
                outcome.kind,
                *self._failure(failure),
                outcome.evidence,
                outcome.rule,
                outcome.clipped,
                outcome.truncated,
                None,
                None,
                decision.action if decision is not None else None,
                withheld,
                withheld and outcome.kind == "ok",
                max(counts.values(), default=None),
                self._privacy.shown_all(measured.measures, "measure") if self._privacy.mode != "counts" else None,
                shown(arguments, "text") if self._privacy.mode in {"full", "hash"} else None,
                len(arguments),
            )
        )
        if outcome.kind != "open":
            self._unsettled.add(fact.index)

    def on_settle(self, fact: SettleFact, measured: MeasuredCall | None, streaks: Mapping[str, int]) -> None:
        """Take a call's result."""
        self._histogram.on_settle(fact, measured, streaks)
        self._turn.at(fact.time)
        call = fact.fact
        rows = self._rows.get("calls")
        if rows is not None and call.index in self._unsettled:
            self._unsettled.discard(call.index)
            rows.change(call.index, "seconds", _seconds(call.time, fact.time))
            rows.change(call.index, "result_length", fact.length)
        self._seal_when_large()
        if measured is None:
            return
        failure = call.outcome.failure
        if failure is None:
            for measure in measured.measures:
                if measure in self._streaks:
                    self._end_streak(measure, "success")
            return
        for measure, length in streaks.items():
            seen = self._measure(measure)
            seen.failures += 1
            seen.longest_streak = max(seen.longest_streak, length)
            self._lengthen(measure, length, fact, failure)

    def on_event(self, event: ReplayEvent) -> None:
        """Take an event."""
        self._turn.stages[event.stage] += 1
        self.tools.setdefault(self._privacy.shown(event.tool, "name"), Counter())[event.stage] += 1
        rows = self._rows.get("events")
        if rows is not None:
            named = bool(event.measure)
            rows.add(
                (
                    self._events,
                    _DETECTOR,
                    event.call,
                    _integer(event.seq),
                    event.turn,
                    self._privacy.shown(event.tool, "name"),
                    event.stage,
                    event.track,
                    self._privacy.shown(event.measure, "measure") if named else None,
                    kind_of(event.measure) if named else None,
                    event.count if named else None,
                    float(event.threshold) if named else None,
                    event.decision,
                    *self._failure(event.failure),
                    event.failure.evidence if event.failure is not None else None,
                )
            )
        self._events += 1

    def on_end(self, session: SessionFacts) -> None:
        """Close the session: its last turn, its streaks, its measures."""
        self._histogram.on_end(session)
        self.seconds = _seconds(session.first_time, session.last_time)
        self._end_turn()
        for measure in list(self._streaks):
            self._end_streak(measure, "end")
        rows = self._rows.get("measures")
        if rows is not None:
            for measure, seen in self._measures.items():
                cap = self._plan.settings.cap(measure)
                rows.add(
                    (
                        seen.index,
                        self._privacy.shown(measure, "measure"),
                        kind_of(measure),
                        None if cap is None else float(cap),
                        seen.occurrences,
                        seen.peak,
                        seen.failures,
                        seen.longest_streak,
                    )
                )
        for table in self._rows.values():
            table.seal()
        self._measures.clear()
        self._tokens = None if self._tokens is None else _capped(self._tokens)

    # -- rows ----------------------------------------------------------------------------------------------------

    def _count_call(self, fact: CallFact, failure: Failure | None, *, tracked: bool, withheld: bool) -> None:
        turn = self._turn
        turn.at(fact.time)
        if turn.first_call is None:
            turn.first_call = fact.index
        turn.calls += 1
        if tracked:
            turn.tracked += 1
            turn.outcomes[fact.outcome.kind] += 1
            turn.text_only += failure is not None and failure.evidence == "text"
        turn.withheld += withheld

    def _count_tool(self, name: str, outcome: OutcomeKind, *, tracked: bool, withheld: bool) -> None:
        counts = self.tools.setdefault(self._privacy.shown(name, "name"), Counter())
        counts["calls"] += 1
        counts[outcome] += tracked
        counts["withheld"] += withheld
        counts["false-rejection"] += withheld and outcome == "ok"

    def _failure(self, failure: Failure | None) -> tuple[str | None, str | None]:
        if failure is None:
            return None, None
        return failure.reason, self._privacy.shown(failure.detail, "name")

    def _measure(self, measure: str) -> _Measure:
        seen = self._measures.get(measure)
        if seen is None:
            seen = self._measures[measure] = _Measure(len(self._measures))
        return seen

    def _end_turn(self) -> None:
        turn = self._turn
        rows = self._rows.get("turns")
        if rows is None or (turn.number == 0 and not turn.calls and not turn.messages):
            return
        outcomes = turn.outcomes
        rows.add(
            (
                turn.number,
                _time(turn.start),
                _seconds(turn.start, turn.end),
                turn.first_call,
                turn.calls,
                turn.tracked,
                outcomes["ok"],
                outcomes["failed"],
                outcomes["undecidable"],
                outcomes["denied"],
                outcomes["not-run"],
                outcomes["open"],
                turn.text_only,
                *(turn.stages[stage] for stage in STAGES),
                turn.withheld,
                turn.messages,
                None if turn.tokens is None else _capped(turn.tokens),
                turn.lines,
                turn.short_lines,
                turn.short_lines / turn.lines if turn.lines else None,
            )
        )

    def _lengthen(self, measure: str, length: int, fact: SettleFact, failure: Failure) -> None:
        call = fact.fact
        streak = self._streaks.get(measure)
        if streak is None:
            self._streaks[measure] = _Streak(
                index=self._streaks_begun,
                first_call=call.index,
                first_time=fact.time,
                length=length,
                turn=call.turn,
                last_call=call.index,
                last_time=fact.time,
                failure=failure,
            )
            self._streaks_begun += 1
            return
        streak.length = length
        streak.turn = call.turn
        streak.last_call = call.index
        streak.last_time = fact.time
        streak.failure = failure

    def _end_streak(self, measure: str, ended_by: StreakEnd) -> None:
        streak = self._streaks.pop(measure)
        rows = self._rows.get("streaks")
        if rows is None:
            return
        self._ended[streak.index] = (
            streak.index,
            self._measure(measure).index,
            self._privacy.shown(measure, "measure"),
            kind_of(measure),
            streak.length,
            streak.turn,
            streak.first_call,
            streak.last_call,
            _seconds(streak.first_time, streak.last_time),
            ended_by,
            *self._failure(streak.failure),
            streak.failure.evidence,
        )
        while (row := self._ended.pop(self._streaks_written, None)) is not None:
            rows.add(row)
            self._streaks_written += 1

    def _seal_when_large(self) -> None:
        for name, rows in self._rows.items():
            if rows.unsealed >= _SEAL_ROWS and (name != "calls" or not self._unsettled):
                rows.seal()


_Place = tuple[int, int]
"""Offset and length in the spool."""


class _Kept(msgspec.Struct, array_like=True):
    """What is in the spool of one session; it lies there itself, so that in memory a session is one place."""

    places: dict[str, list[_Place]]
    """By table: where each batch of rows is."""
    seconds: float | None
    tokens: int | None
    tools: list[tuple[str | None, dict[str, int]]]


_KEPT = msgspec.msgpack.Decoder(_Kept)


@contextmanager
def _named_faults() -> Generator[None]:
    """Say where there was no room; a spool also writes what it still holds when it seeks."""
    try:
        yield
    except OSError as error:
        message = f"{gettempdir()}: cannot write: {error.strerror or error}"
        raise OutputError(message) from None


def _let_go(spool: SpooledTemporaryFile[bytes]) -> None:
    with suppress(OSError):  # what could not be written has been told
        spool.close()


class TablesObservation:
    """Watches a corpus for its tables.

    Args:
        plan: how the sessions are replayed.
        privacy: what may be kept.
        wanted: the tables to gather; `sessions` and `read_report` cost nothing.
        short_line: characters up to which a line of the model's own text is a short phrase.
    """

    needs_texts: bool = False
    """No table holds what a result said, only how long it is."""

    def __init__(
        self,
        plan: ReplayPlan,
        privacy: Privacy,
        wanted: Collection[str] = TABLE_NAMES,
        short_line: int = DEFAULT_SHORT_LINE,
    ) -> None:
        self.plan = plan
        self.privacy = privacy
        self.short_line: int | None = short_line
        self._wanted = frozenset(wanted)
        self._spool = SpooledTemporaryFile[bytes](max_size=_SPOOL_MEMORY)
        self._closing = weakref.finalize(self, _let_go, self._spool)
        self._kept: dict[str, _Place] = {}
        self._schemas = {name: _Rows(table_named(name)).schema for name in _GATHERED} | {"histogram": _BINS}

    def close(self) -> None:
        """Let go of the rows; done when nobody holds this any more, too."""
        self._closing()

    @property
    def make_observer(self) -> Callable[[], SessionCollector]:
        """What makes, for each session, that which gathers its rows."""
        return partial(SessionCollector, self.plan, self.privacy, self._wanted)

    def take(self, path: str, observer: object) -> None:
        """Keep one session's rows.

        Raises:
            OutputError: there is no room for them.
        """
        if not isinstance(observer, SessionCollector):
            return
        places = {name: self._put(observer.batches(name)) for name in _GATHERED}
        places["histogram"] = self._put([_bins_batch(observer.bins)])
        kept = _Kept(places, observer.seconds, observer.tokens, list(observer.tools.items()))
        self._kept[path] = self._write(msgspec.msgpack.encode(kept))

    def _put(self, batches: Sequence[pa.RecordBatch]) -> list[_Place]:
        return [self._write(serialized(batch)) for batch in batches]

    def _write(self, data: bytes) -> _Place:
        with _named_faults():
            place = (self._spool.seek(0, SEEK_END), len(data))
            self._spool.write(data)
        return place

    def _read(self, place: _Place) -> bytes:
        offset, length = place
        with _named_faults():
            self._spool.seek(offset)
            return self._spool.read(length)

    def _kept_of(self, path: str) -> _Kept:
        return _KEPT.decode(self._read(self._kept[path]))

    def _get(self, path: str, table: str) -> Iterator[pa.RecordBatch]:
        for place in self._kept_of(path).places[table]:
            yield read_batch(self._read(place), self._schemas[table])

    # -- tables --------------------------------------------------------------------------------------------------

    def histograms(self, corpus: CorpusReplay) -> Histograms:
        """Return the corpus' histograms."""
        histograms = Histograms()
        for row in corpus.sessions:
            histograms.add(row.label, self._bins(row.path))
        return histograms

    def tools(self, corpus: CorpusReplay) -> dict[str | None, Counter[str]]:
        """Return the corpus' counts by tool: `calls`, outcomes, `withheld`, `false-rejection`, and every stage."""
        found: dict[str | None, Counter[str]] = {}
        for row in corpus.sessions:
            for tool, counts in self._kept_of(row.path).tools:
                found.setdefault(tool, Counter()).update(counts)
        return found

    def _bins(self, path: str) -> Counter[Bin]:
        bins: Counter[Bin] = Counter()
        for batch in self._get(path, "histogram"):
            for row in batch_rows(batch):
                bins[Bin(str(row["kind"]), _WHATS[str(row["what"])], cast("int", row["value"]))] += cast(
                    "int", row["count"]
                )
        return bins

    def session_rows(self, path: str, table: str) -> list[dict[str, object]]:
        """Return one session's rows of a gathered table, without the columns that name the session."""
        return [row for batch in self._get(path, table) for row in batch_rows(batch)]

    def batches(self, name: str, corpus: CorpusReplay) -> Iterator[pa.RecordBatch]:
        """Give out a table in its order, in batches of its schema."""
        table = table_named(name)
        ordered = sorted(corpus.sessions, key=lambda row: row.path)
        if name == "sessions":
            yield from _in_batches(table.schema(), (self._session(index, row) for index, row in enumerate(ordered)))
        elif name == "read_report":
            indexes = {row.path: index for index, row in enumerate(ordered)}
            reports = sorted(corpus.reports, key=lambda report: report.shown)
            rows = (self._report(report, indexes.get(report.shown)) for report in reports)
            yield from _in_batches(table.schema(), rows)
        elif name == "histogram":
            yield _from_rows(table.schema(), [(*key, count) for key, count in self.histograms(corpus).rows()])
        else:
            schema = table.schema()
            for index, row in enumerate(ordered):
                session = self.privacy.shown(row.session_id, "identity")
                for batch in self._get(row.path, name):
                    yield with_constants(batch, schema, {"session_index": index, "session": session})

    def _session(self, index: int, row: SessionRow) -> tuple[object, ...]:
        replay = row.replay
        outcomes = replay.outcomes
        kept = self._kept_of(row.path) if row.path in self._kept else None
        near = replay.near_miss(self.plan.settings)
        peak, streak = replay.peak, replay.longest_streak
        shown = self.privacy.shown
        trips: list[object] = []
        for stage in STAGES:
            trip = replay.first_trips.get(stage)
            if trip is None:
                trips += [None] * 8
                continue
            trips += [trip.call, _integer(trip.seq), trip.turn, trip.seconds, _integer(trip.tokens)]
            trips += [trip.calls_after, trip.seconds_after, _integer(trip.tokens_after)]
        return (
            index,
            shown(row.session_id, "identity"),
            shown(row.path, "path"),
            row.label,
            row.agent,
            row.version,
            shown(row.project, "path"),
            self.privacy.shown_all(row.models, "name"),
            _time(row.created_at),
            None if kept is None else kept.seconds,
            None if kept is None else kept.tokens,
            row.recorded_under_breaker,
            row.read,
            self.privacy.shown_all(row.notes, "text"),
            replay.shell_http,
            replay.turns,
            replay.calls,
            replay.tracked,
            outcomes["ok"],
            outcomes["failed"],
            outcomes["undecidable"],
            outcomes["denied"],
            outcomes["not-run"],
            outcomes["open"],
            replay.failed_text_only,
            replay.not_started,
            replay.clipped,
            replay.truncated,
            shown(peak.measure, "measure") if peak is not None else None,
            kind_of(peak.measure) if peak is not None else None,
            peak.count if peak is not None else None,
            shown(streak.measure, "measure") if streak is not None else None,
            kind_of(streak.measure) if streak is not None else None,
            replay.streak_length,
            *(replay.stages[stage] for stage in STAGES),
            replay.asks,
            replay.denials,
            replay.false_rejections,
            *(near[stage] for stage in STAGES if stage != "shell-http"),
            *trips,
        )

    def _report(self, report: ReadReport, index: int | None) -> tuple[object, ...]:
        shown = self.privacy.shown
        defects = [
            {
                "kind": defect.kind,
                "message": shown(defect.message, "text"),
                "line": defect.line,
                "byte": defect.byte,
                "frame": defect.frame,
                "lost_bytes": defect.lost_bytes,
            }
            for defect in report.defects
        ]
        return (
            shown(report.shown, "path"),
            index,
            report.state,
            shown(report.session_id, "identity"),
            _integer(report.version),
            report.size,
            report.expanded,
            report.lines,
            report.rows,
            report.lost_rows,
            report.lost_bytes,
            defects,
            report.defects_untold,
            self.privacy.shown_all(report.notes, "text"),
        )


def _bins_batch(bins: Mapping[Bin, int]) -> pa.RecordBatch:
    return _from_rows(_BINS, [(*one, count) for one, count in sorted(bins.items())])


def _in_batches(schema: pa.Schema, rows: Iterator[Sequence[object]]) -> Iterator[pa.RecordBatch]:
    """Give out rows in batches, one at the least; as Arrow they take a fraction of the memory."""
    yield _from_rows(schema, list(islice(rows, _BATCH_ROWS)))
    while some := list(islice(rows, _BATCH_ROWS)):
        yield _from_rows(schema, some)


def _from_rows(schema: pa.Schema, rows: Sequence[Sequence[object]]) -> pa.RecordBatch:
    return batch_of(schema, [[row[place] for row in rows] for place in range(len(schema.names))])
