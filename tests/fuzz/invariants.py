"""What holds of every file, however damaged: nothing raised, nothing hidden, nothing counted that is not there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

import zstandard

from analysis.corpus import CorpusReplay, replay_corpus
from analysis.doctor import check_up, doctor_document
from analysis.documents import replay_document
from analysis.replay import ReplayPlan
from analysis.sessions.decode import EXPANDED_TOO_FAR, NOTES, Limits, LineReader
from analysis.sessions.events import is_known_type
from analysis.sessions.facts import REPEATED
from analysis.sessions.find import find_sessions
from analysis.sessions.header import NEWEST_VERSION
from analysis.sessions.report import READ_STATES, ReadReport
from breaker.ecmascript import parse_json

__all__ = ["ROOMY", "TIGHT", "hold"]

_SPACE = b" \t\r\n"
_MAGIC = b"\x28\xb5\x2f\xfd"
_MARK = b"\xef\xbb\xbf"
_CALL_TYPES = frozenset({"tool/call", "tool/ptc-dispatch-start", "tool/code-dispatch-start"})
_UNUSED = frozenset({"corrupt", "unsupported", "empty"})

PLAN = ReplayPlan(keep_events=True)
ROOMY = Limits()
TIGHT = Limits(max_line=1500, max_expanded=6000, max_window=1 << 17, max_held=700)
"""Limits that most logs run into."""


def hold(path: Path, limits: Limits = ROOMY, *, render: bool = True) -> str:
    """Replay the one log in a folder, hold that what is said of it is true, and return its read state.

    Args:
        path: the log; it is alone in its folder.
        limits: bounds it is read under.
        render: make the documents, too.

    Raises:
        AssertionError: it is not, and why.
    """
    before = path.read_bytes()
    corpus = replay_corpus([path.parent], PLAN, limits=limits)
    checkup = check_up([path.parent], PLAN, limits=limits)
    if render:
        json.dumps([replay_document(corpus, events=True), doctor_document(checkup)], allow_nan=False)
    assert checkup.defective == any(finding.severity == "defect" for finding in checkup.findings)
    close = checkup.corpus
    assert path.read_bytes() == before, "the log was changed"
    assert len(corpus.reports) == len(close.reports) == 1
    assert corpus.problems == ()
    _tell_the_same(corpus, close)
    report = close.reports[0]
    _states_agree(report)
    lines = _bytes_add_up(path, before, limits)
    if not before.startswith(_MAGIC):
        _header_is_enough(report, before, limits)
    rows = [record for record in map(_record, lines[1:]) if record is not None]
    _rows_add_up(report, lines, rows)
    _counts_are_held(corpus, rows)
    return report.state


def _tell_the_same(corpus: CorpusReplay, close: CorpusReplay) -> None:
    """A close reading finds the damage in rows nobody reads, too; where there is none of that, it counts the same."""
    assert [row.session_id for row in corpus.sessions] == [row.session_id for row in close.sessions]
    first, second = corpus.reports[0], close.reports[0]
    told = [report.rows + report.lost_rows + _repeated(report) for report in (first, second)]
    assert told[0] == told[1]
    assert first.lost_rows <= second.lost_rows
    if first.lost_rows == second.lost_rows:
        assert corpus.totals.calls == close.totals.calls
        assert corpus.totals.turns == close.totals.turns


def _states_agree(report: ReadReport) -> None:
    assert report.state in READ_STATES
    assert (report.state == "ok") <= (not report.defects)
    assert (report.state in {"torn", "partial", "corrupt", "unsupported"}) <= bool(report.defects)
    assert (report.lost_rows > 0) <= (report.state == "partial")
    assert (report.lost_bytes > 0) <= (report.state not in {"ok", "empty"}), "lost bytes in a file that is ok"
    for defect in report.defects:
        assert defect.message
        assert defect.lost_bytes >= 0
        assert defect.line is None or defect.line > 0
        assert defect.byte is None or defect.byte >= 0


def _bytes_add_up(path: Path, data: bytes, limits: Limits) -> list[bytes]:
    """Return the lines. Every byte of a plain log is in one, or blank, or lost; all text of a sound packed one is."""
    (file,) = find_sessions([path.parent]).files
    reader = LineReader(file, limits=limits)
    lines = [line.data for line in reader]
    faults = [defect for defect in reader.defects if defect.kind not in NOTES]
    if not reader.is_zstd:
        stop = next((defect for defect in faults if defect.kind == EXPANDED_TOO_FAR), None)
        if stop is not None and stop.byte is not None:
            assert stop.lost_bytes == len(data) - stop.byte
            data = data[: stop.byte]
            faults.remove(stop)
        pieces = data.split(b"\n")
        marks = len(_MARK) if any(defect.kind == "bom" for defect in reader.defects) else 0
        blank = sum(len(piece) for piece in pieces[1:] if not piece.strip(_SPACE))
        first = pieces[0][marks:]
        blank += len(first) if not first.strip(_SPACE) else 0
        lost = sum(defect.lost_bytes for defect in faults)
        used = sum(map(len, lines))
        assert used + lost + blank + marks + data.count(b"\n") == len(data), "bytes of a plain log unaccounted for"
    elif not faults:
        text = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
        expected = [piece for piece in text.split(b"\n") if piece.strip(_SPACE)]
        if expected:
            expected[0] = expected[0].removeprefix(_MARK)
        assert lines == [piece for piece in expected if piece], "a sound log did not give all its lines"
    return lines


def _header_is_enough(report: ReadReport, data: bytes, limits: Limits) -> None:
    """Whatever comes after it, a plain log whose first line is a header is used."""
    first = next((piece for piece in data.removeprefix(_MARK).split(b"\n") if piece.strip(_SPACE)), b"")
    record = _record(first) if len(first) <= limits.max_line else None
    version = None if record is None else record.get("version")
    known = type(version) is int and 0 <= version <= NEWEST_VERSION
    if record is not None and record["type"] == "session" and known and first[:2] == b'{"':
        assert report.used, "a log with a sound header is not used"


def _record(line: bytes) -> Mapping[str, object] | None:
    """Read a line as a plain reader would; None for what is no row."""
    try:
        value: object = parse_json(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    record = cast("dict[str, object]", value)
    return record if isinstance(record.get("type"), str) else None


def _repeated(report: ReadReport) -> int:
    if REPEATED in report.remark_counts:
        return report.remark_counts[REPEATED]
    note = next(
        (note for note in report.notes if "sequence number seen before" in note or "numbers seen before" in note), "0"
    )
    return int(note.split()[0])


def _rows_add_up(report: ReadReport, lines: list[bytes], rows: list[Mapping[str, object]]) -> None:
    """Every line after the header became a row, or a lost row, or one that had been there."""
    if report.state in _UNUSED:
        assert (report.rows, report.lost_rows) == (0, 0)
        return
    given = len(lines) - 1
    assert report.rows + report.lost_rows + _repeated(report) == given, "lines that are neither used nor told"
    assert report.rows + _repeated(report) <= len(rows), "rows used that are none"
    # A line that is a row is lost only where its type is known, and its shape is not.
    foreign = sum(not is_known_type(str(record["type"])) for record in rows)
    assert report.rows + _repeated(report) >= foreign - sum(_odd_data(record) for record in rows)


def _odd_data(record: Mapping[str, object]) -> bool:
    return not isinstance(record.get("data"), dict)


def _counts_are_held(corpus: CorpusReplay, rows: Iterable[Mapping[str, object]]) -> None:
    totals = corpus.totals
    calls = [record for record in rows if record["type"] in _CALL_TYPES]
    assert totals.calls <= len(calls), "more calls than the rows hold"
    assert totals.tracked <= totals.calls
    assert totals.untold == 0
    assert min(totals.outcomes.values(), default=0) >= 0
    assert totals.denials <= totals.tracked
    assert totals.false_rejections <= totals.denials
    for row in corpus.sessions:
        held = sum(event.stage in {"gate", "fail-gate"} for event in row.replay.events)
        assert held <= row.replay.calls
        assert row.replay.peak is None or row.replay.peak.count <= row.replay.calls
