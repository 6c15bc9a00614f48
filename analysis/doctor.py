"""The read report by itself: what is wrong with recorded sessions, where, and what it means for every count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from analysis.corpus import DUPLICATE, MISSING_PARENT, SHARED_ID, SUPERSEDED, CorpusReplay, Period, replay_corpus
from analysis.documents import JsonObject, head
from analysis.labels import LabelRules
from analysis.progress import NO_PROGRESS, Progress
from analysis.replay import ReplayPlan, SessionReplay
from analysis.sessions import decode, facts
from analysis.sessions.decode import Limits
from analysis.sessions.header import Header
from analysis.sessions.report import ReadDefect, ReadReport
from analysis.sessions.session import CHOICE, NO_ID, VERSION_DIFFERS, SessionReader

__all__ = ["DEFECTS", "MEANINGS", "Checkup", "FileCheckup", "Finding", "Fork", "check_up", "doctor_document"]

Severity = Literal["defect", "note"]

NOT_SEARCHED: Final = "not-searched"
"""A file or folder that could not be looked into."""
EMPTY: Final = "empty"
"""A file without a single line."""
MEANINGS: Final[Mapping[str, str]] = {
    decode.TORN: "The writer was stopped in the middle of its last write; all that stands before it counts.",
    decode.FRAME: "These bytes cannot be decompressed; their rows are lost, the frames around them count.",
    decode.CUT_LINE: "The row reaches into a damaged frame and is lost.",
    decode.LINE_TOO_LONG: "The row is longer than --max-line allows and was left out.",
    decode.EXPANDED_TOO_FAR: "The file holds more text than --max-expanded allows; what comes after is not counted.",
    decode.IO_FAULT: "The system did not deliver the rest of the file.",
    decode.BOM: "An editor put a byte order mark there; nothing is lost.",
    decode.SINGLE_FRAME: "Somebody compressed the log anew; the harness would not open it, here nothing is lost.",
    decode.GROWING: "The session was being written; look again for the rest.",
    decode.ENCODING: "Somebody renamed, packed or unpacked the file; nothing is lost.",
    "row": "The line is no row that can be used and counts nowhere.",
    "header": "Without its header a log says neither whose it is nor what of it is its own: nothing of it counts.",
    "version": "The format is newer than this tool; nothing of the file counts.",
    "worker": "The process that read it ended; nothing of the file counts.",
    "unreadable": "The file cannot be opened; nothing of it counts.",
    facts.GAP: "Rows were lost, or a writer skipped numbers; what is there counts.",
    facts.LATE: "Rows were moved, or two processes wrote at once; the row counts where it stands.",
    facts.REPEATED: "Two processes wrote at once, or rows were copied; the first of a number counts.",
    facts.ORPHAN: "Its call is lost or was never written; the result counts nowhere.",
    facts.SECOND_RESULT: "The first result of a call counts.",
    facts.INHERITED_RESULT: "The call stands in the part copied from the parent, and counts there.",
    facts.UNKNOWN_EVENT: "A plugin or a newer harness wrote it; no count needs it.",
    facts.MARKER: "The log says it inherits nothing, so all of it counts as its own.",
    facts.ENDLESS_PREFIX: "The log says it inherits rows, not where they end; none is taken for its own.",
    facts.IMPORT: "There is no parent file, so the whole log counts here.",
    CHOICE: "The others are passed over, so that nothing counts twice.",
    NO_ID: "The session is named by its folder.",
    VERSION_DIFFERS: "Somebody renamed the file; what the header says is read.",
    SUPERSEDED: "The harness leaves it behind when it writes a newer one; the newest alone counts.",
    DUPLICATE: "It holds the same rows, or the first of them; so that nothing counts twice, only the longer counts.",
    facts.RESUME: "The live guard's state is gone with its process, so the replay's is cleared too.",
    SHARED_ID: "Their contents differ, so each counts; results tell them apart by path.",
    MISSING_PARENT: "What the fork copied counts in its parent's file, so here it counts nowhere.",
    NOT_SEARCHED: "What is in there counts nowhere.",
    EMPTY: "There is no header and no row: nothing to count.",
}
"""What each kind of finding means for the numbers, in words."""

DEFECTS: Final = frozenset(
    {
        *(decode.KINDS - decode.NOTES),
        "row",
        "header",
        "version",
        "unreadable",
        "worker",
        facts.GAP,
        facts.LATE,
        facts.REPEATED,
        facts.ORPHAN,
        facts.SECOND_RESULT,
        facts.MARKER,
        facts.ENDLESS_PREFIX,
        SHARED_ID,
        NOT_SEARCHED,
        EMPTY,
    }
)
"""The kinds that say something is wrong; the others are normal, and told."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing there is to say of a file, with its place as far as there is one."""

    path: str
    kind: str
    severity: Severity
    message: str
    line: int | None = None
    """1-based."""
    byte: int | None = None
    """0-based; of the file, or of its text where `byte_of` says so."""
    byte_of: Literal["file", "text"] | None = None
    frame: int | None = None
    """0-based zstd frame."""
    seq: int | None = None
    lost_bytes: int = 0

    @property
    def meaning(self) -> str:
        """What it means for the numbers."""
        return MEANINGS[self.kind]


@dataclass(frozen=True, slots=True)
class FileCheckup:
    """One file: what was read of it, and what there is to say."""

    report: ReadReport
    findings: tuple[Finding, ...]
    untold: int
    """Findings beyond the ones listed."""

    @property
    def resumes(self) -> int:
        """How often a process opened the session again."""
        return self.report.remark_counts.get(facts.RESUME, 0)


@dataclass(frozen=True, slots=True)
class Fork:
    """A session that begins with a copy of its parent's rows."""

    path: str
    session_id: str | None
    parent: str
    parent_here: bool


@dataclass(frozen=True)
class Checkup:
    """All there is to say of a corpus as a set of files."""

    corpus: CorpusReplay
    limits: Limits
    files: tuple[FileCheckup, ...]
    not_searched: tuple[Finding, ...]
    forks: tuple[Fork, ...]

    @property
    def findings(self) -> list[Finding]:
        """Everything, file by file."""
        return [*(finding for file in self.files for finding in file.findings), *self.not_searched]

    @property
    def defective(self) -> bool:
        """Tell whether anything is wrong."""
        return any(finding.severity == "defect" for finding in self.findings)

    @property
    def generations(self) -> dict[str, list[str]]:
        """The files that count, each with the older generations of its session."""
        return self._set_aside("superseded")

    @property
    def duplicates(self) -> dict[str, list[str]]:
        """The files that count, each with the copies of its session."""
        return self._set_aside("duplicate")

    def _set_aside(self, state: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for file in self.files:
            report = file.report
            if report.state == state and report.counts_instead is not None:
                found.setdefault(report.counts_instead, []).append(report.shown)
        return found


def check_up(
    paths: Sequence[Path],
    plan: ReplayPlan,
    *,
    labels: LabelRules | None = None,
    period: Period | None = None,
    limits: Limits | None = None,
    progress: Progress = NO_PROGRESS,
) -> Checkup:
    """Read every session found under the given paths to its end and tell what is wrong with each. Nothing is written.

    Args:
        paths: sessions roots, projects, session folders, files, exported archives, in any mix.
        plan: says what the document's head says; nothing is replayed.
        labels: what a person knows of the sessions.
        period: only sessions created in it.
        limits: bounds on what one file may take.
        progress: told how many bytes were read.

    Raises:
        PathMissing: a given path does not exist.
        LabelConflict: two labels for one session.
    """
    headers: dict[str, Header] = {}

    def take(reader: SessionReader) -> SessionReplay | None:
        for _ in reader.facts():
            pass
        session = reader.session
        if session is None or not reader.report.used:
            return None
        headers[reader.file.shown] = session.header
        return SessionReplay(turns=session.turns, calls=session.calls)

    bounds = Limits() if limits is None else limits
    corpus = replay_corpus(
        paths,
        plan,
        labels=LabelRules() if labels is None else labels,
        period=period,
        limits=bounds,
        progress=progress,
        replayer=take,
        closely=True,
    )
    ids = {header.session_id for header in headers.values()}
    forks = tuple(
        Fork(path, header.session_id, header.parent, parent_here=header.parent in ids)
        for path, header in headers.items()
        if header.is_fork and header.parent is not None
    )
    return Checkup(
        corpus=corpus,
        limits=bounds,
        files=tuple(_file(report) for report in corpus.reports),
        not_searched=tuple(_finding(one.shown, NOT_SEARCHED, one.message) for one in corpus.problems),
        forks=forks,
    )


def _finding(path: str, kind: str, message: str) -> Finding:
    return Finding(path, kind, "defect" if kind in DEFECTS else "note", message)


def _file(report: ReadReport) -> FileCheckup:
    found = [_placed(report.shown, one) for one in (*report.defects, *report.remarks)]
    found.sort(key=lambda one: (one.line is None, one.line or 0, one.byte or 0))
    if report.state == EMPTY:
        found.append(_finding(report.shown, EMPTY, "the file holds no line"))
    told = len(report.remarks)
    return FileCheckup(report, tuple(found), report.defects_untold + sum(report.remark_counts.values()) - told)


def _placed(path: str, one: ReadDefect) -> Finding:
    in_text = one.frame is not None and one.kind not in decode.KINDS
    return Finding(
        path=path,
        kind=one.kind,
        severity="defect" if one.kind in DEFECTS else "note",
        message=one.message,
        line=one.line,
        byte=one.byte,
        byte_of=None if one.byte is None else "text" if in_text else "file",
        frame=one.frame,
        seq=one.seq,
        lost_bytes=one.lost_bytes,
    )


def doctor_document(checkup: Checkup) -> JsonObject:
    """Return the whole checkup as one JSON-ready document."""
    corpus = checkup.corpus
    counts: dict[str, int] = {}
    for finding in checkup.findings:
        counts[finding.kind] = counts.get(finding.kind, 0) + 1
    return {
        **head("doctor", corpus.plan, corpus),
        "limits": {"max_line": checkup.limits.max_line, "max_expanded": checkup.limits.max_expanded},
        "defective": checkup.defective,
        "findings_by_kind": {kind: counts[kind] for kind in sorted(counts)},
        "files": [_file_object(file) for file in checkup.files],
        "not_searched": [_finding_object(finding) for finding in checkup.not_searched],
        "generations": [{"path": path, "older": older} for path, older in checkup.generations.items()],
        "duplicates": [{"path": path, "copies": copies} for path, copies in checkup.duplicates.items()],
        "forks": [
            {"path": fork.path, "id": fork.session_id, "parent": fork.parent, "parent_here": fork.parent_here}
            for fork in checkup.forks
        ],
        "resumes": [
            {"path": file.report.shown, "id": file.report.session_id, "times": file.resumes}
            for file in checkup.files
            if file.resumes
        ],
        "warnings": list(corpus.warnings),
    }


def _file_object(file: FileCheckup) -> JsonObject:
    report = file.report
    return {
        "path": report.shown,
        "state": report.state,
        "id": report.session_id,
        "version": report.version,
        "bytes": report.size,
        "expanded_bytes": report.expanded,
        "lines": report.lines,
        "rows": report.rows,
        "lost_rows": report.lost_rows,
        "lost_bytes": report.lost_bytes,
        "findings": [_finding_object(finding) for finding in file.findings],
        "findings_untold": file.untold,
    }


def _finding_object(finding: Finding) -> JsonObject:
    return {
        "path": finding.path,
        "kind": finding.kind,
        "severity": finding.severity,
        "message": finding.message,
        "meaning": finding.meaning,
        "line": finding.line,
        "byte": finding.byte,
        "byte_of": finding.byte_of,
        "frame": finding.frame,
        "seq": finding.seq,
        "lost_bytes": finding.lost_bytes,
    }
