"""One session file, from bytes to facts, with its row of the read report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from analysis.sessions.decode import NOTES, TORN, Defect, Limits, Line, LineReader, Lines, Unreadable, is_blank
from analysis.sessions.events import UsualRow, read_rows
from analysis.sessions.facts import Fact, FactBuilder, MarkerScan
from analysis.sessions.find import SessionFile
from analysis.sessions.header import NEWEST_VERSION, HeaderError, parse_header
from analysis.sessions.report import ReadDefect, ReadReport, ReadState
from analysis.sessions.rows import BadRowError
from analysis.sessions.session_facts import ResultSource, SessionFacts
from breaker.rulesets import DEFAULT_RULESET, Ruleset

__all__ = ["CHOICE", "NO_ID", "VERSION_DIFFERS", "SessionReader"]

CHOICE = "choice"
"""Of several files that could be this session's log, one was chosen."""
NO_ID = "no-id"
"""The header names no session."""
VERSION_DIFFERS = "version-differs"
"""The header and the file name tell different format versions."""

_DEFAULT_LIMITS = Limits()


def _stands_before(defect: Defect, line: int) -> bool:
    """Tell whether bytes before a line are lost. The reader may be ahead, and know of later lines' defects."""
    return defect.kind not in NOTES and (defect.line is None or defect.line <= line)


class SessionReader:
    """Reads one session file: iterate `facts()` to its end, then look at `session` and `report`.

    Args:
        file: the log.
        ruleset: the release whose classifier decides outcomes.
        source: what results are classified from.
        digests: keep a digest of every own message, call and result, to tell copies of a session apart.
        short_line: count the lines of the model's own text, and those of at most that many characters.
        limits: bounds on what the file may take.
        on_bytes: told how many bytes were read.
        closely: remark where every oddity stands.
        keep_texts: give out what results said; else only how long it was, so that nothing of it waits in memory.
    """

    def __init__(
        self,
        file: SessionFile,
        ruleset: Ruleset = DEFAULT_RULESET,
        *,
        source: ResultSource = "rebuilt",
        digests: bool = False,
        short_line: int | None = None,
        limits: Limits = _DEFAULT_LIMITS,
        on_bytes: Callable[[int], None] | None = None,
        closely: bool = False,
        keep_texts: bool = True,
    ) -> None:
        self.file = file
        self.report = ReadReport(shown=file.shown, size=file.size, close=closely)
        self.session: SessionFacts | None = None
        """None until the header has been read, and where it cannot be."""
        self._ruleset = ruleset
        self._source: ResultSource = source
        self._digests = digests
        self._keep_texts = keep_texts
        self._short_line = short_line
        self.other_rulesets: tuple[Ruleset, ...] = ()
        """Further releases under which every call's outcome is decided in the same pass; set before reading."""
        self._limits = limits
        self._current: Line | None = None
        self._own_part: int | None = None
        self._usual = True
        self._lines = LineReader(file, limits=limits, on_bytes=on_bytes)

    def again(self) -> SessionReader:
        """Return a reader of the same file with the same options that has read nothing yet; it tells no progress."""
        twin = SessionReader(
            self.file,
            self._ruleset,
            source=self._source,
            digests=self._digests,
            short_line=self._short_line,
            limits=self._limits,
            closely=self.report.close,
            keep_texts=self._keep_texts,
        )
        twin.other_rulesets = self.other_rulesets
        return twin

    def facts(self) -> Iterator[Fact]:
        """Give out the session's facts in order. Never raises for what is in the file; the report tells."""
        if self.file.note is not None:
            self.report.note(CHOICE, self.file.note)
        builder: FactBuilder | None = None
        refused = False
        try:
            for lines in self._lines.batches():
                if builder is None:
                    first = next(iter(lines), None)
                    if first is None:
                        continue
                    builder = self._begin(first)
                    if builder is None:
                        refused = True
                        break
                    yield from self._take(builder, lines, first.number + 1)
                else:
                    yield from self._take(builder, lines, lines.first)
        except Unreadable as error:
            self.report.add(ReadDefect("unreadable", error.message, lost_bytes=self.file.size))
            refused = True
            self.report.state = "corrupt"
        if builder is not None:
            yield from builder.finish()
        self._conclude(refused=refused)

    def _take(self, builder: FactBuilder, lines: Lines, start: int) -> Iterable[Fact]:
        """Have the builder take the lines from a number on, and give out what becomes known."""
        rows = read_rows(lines) if self._usual and start == lines.first else None
        if rows is not None:
            return self._take_rows(builder, lines, rows)
        # What is unusual in one place is so in many: the rest of the file is read row by row.
        self._usual = self._usual and start != lines.first
        return self._take_lines(builder, lines, start)

    def _take_lines(self, builder: FactBuilder, lines: Lines, start: int) -> Iterator[Fact]:
        report = self.report
        data = lines.data if start == lines.first else lines.data[start - lines.first :]
        for number, line in enumerate(data, start):
            if is_blank(line):
                continue
            report.lines = number
            if report.close:
                self._current = lines.line(number)
            try:
                builder.add(line)
            except BadRowError as error:
                self._report_bad_row(lines.line(number), error, builder.seq)
            if number == self._own_part:
                builder.end_prefix()
            if builder.queue:
                yield from builder.drain()

    def _take_rows(self, builder: FactBuilder, lines: Lines, rows: list[UsualRow]) -> Sequence[Fact]:
        first, start = lines.first, 0

        def on_bad(place: int, error: BadRowError) -> None:
            self._report_bad_row(lines.line(first + start + place), error, builder.seq)

        for end in self._stops(first, len(rows)):
            if self.report.close:
                self._current = lines.line(first + start)
            builder.add_rows(rows if end - start == len(rows) else rows[start:end], on_bad)
            if first + end - 1 == self._own_part:
                builder.end_prefix()
            start = end
        self.report.lines = first + len(rows) - 1
        return builder.drain()

    def _stops(self, first: int, count: int) -> Sequence[int]:
        """Return after how many of the rows from a line on something is to be done, and after all of them."""
        if self.report.close:
            return range(1, count + 1)
        marked = 0 if self._own_part is None else self._own_part - first + 1
        return (marked, count) if 0 < marked < count else (count,)

    def _report_bad_row(self, line: Line, error: BadRowError, seq: int) -> None:
        self.report.lost_rows += 1
        number, offset, frame, data = line
        self.report.add(ReadDefect("row", str(error), number, offset, frame, len(data), seq))

    def _marker_line(self) -> int | None:
        """Return the line of the marker that ends what a fork inherits; None where there is none.

        The log is read once more for it: which marker is the last shows only at the end, and a fork is no reason to
        keep a file in memory.
        """
        scan = MarkerScan()
        found: int | None = None
        try:
            lines = iter(LineReader(self.file, limits=self._limits))
            next(lines, None)
            for line in lines:
                if scan.ends_prefix(line.data):
                    found = line.number
        except Unreadable:
            return None
        return found

    def _begin(self, line: Line) -> FactBuilder | None:
        report = self.report
        number, offset, frame, data = line
        report.lines = number
        self._current = line
        try:
            header = parse_header(data)
        except HeaderError as error:
            report.state = "corrupt"
            report.add(ReadDefect("header", str(error), number, offset, frame, self.file.size))
            return None
        if any(_stands_before(defect, number) for defect in self._lines.defects):
            report.state = "corrupt"
            message = "what stood before the first readable line is lost, and the header with it"
            report.add(ReadDefect("header", message, number, offset, frame))
            return None
        report.session_id = header.session_id
        report.version = header.version
        if header.version > NEWEST_VERSION:
            report.state = "unsupported"
            report.add(ReadDefect("version", f"format version {header.version} is newer than this tool reads", number))
            return None
        if header.session_id is None:
            report.note(NO_ID, "the header has no session id")
        if self.file.generation is not None and self.file.generation != header.version:
            message = (
                f"the header says version {header.version}, the file name {self.file.generation}; the header holds"
            )
            report.note(VERSION_DIFFERS, message)
        builder = FactBuilder(
            header,
            report,
            self._ruleset,
            source=self._source,
            digests=self._digests,
            short_line=self._short_line,
            other_rulesets=self.other_rulesets,
            on_remark=self._remark if report.close else None,
            keep_texts=self._keep_texts,
        )
        self.session = builder.session
        self._own_part = self._marker_line() if builder.awaits_marker else None
        return builder

    def _remark(self, kind: str, message: str, seq: int) -> None:
        line = self._current
        if line is not None:
            self.report.remark(ReadDefect(kind, message, line.number, line.offset, line.frame, seq=seq))

    def _conclude(self, *, refused: bool) -> None:
        report = self.report
        report.expanded = self._lines.expanded_bytes
        torn = lost = False
        for defect in self._lines.defects:
            if defect.kind in NOTES:
                if report.close:
                    report.remark(ReadDefect(defect.kind, defect.message, defect.line, defect.byte, defect.frame))
                else:
                    report.note(defect.kind, defect.message)
                continue
            torn = torn or defect.kind == TORN
            lost = lost or defect.kind != TORN
            report.add(
                ReadDefect(defect.kind, defect.message, defect.line, defect.byte, defect.frame, defect.lost_bytes)
            )
        if refused:
            return
        report.state = self._state(torn=torn, lost=lost or report.lost_rows > 0)

    def _state(self, *, torn: bool, lost: bool) -> ReadState:
        if self.session is None:
            return "corrupt" if torn or lost else "empty"
        if lost:
            return "partial"
        return "torn" if torn else "ok"
