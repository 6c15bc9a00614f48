"""Tables to files, with a manifest of what they were made from and how, and the run repeated and compared."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO, Literal, cast

import msgspec
import pyarrow as pa

from analysis.corpus import CorpusReplay, Period
from analysis.files import atomic_folder
from analysis.labels import LabelRules
from analysis.replay import ReplayPlan
from analysis.sessions.decode import Limits
from analysis.sessions.find import SessionFile, find_sessions
from analysis.spreadsheet import csv_line
from analysis.tables.arrow import batch_rows, rechunked, with_metadata, write_arrow, write_parquet
from analysis.tables.collect import TABLE_NAMES, TablesObservation
from analysis.tables.privacy import Privacy, private_settings
from analysis.tables.schemas import SCHEMA_VERSION, table_named
from breaker.version import __version__

__all__ = [
    "FORMATS",
    "MANIFEST_NAME",
    "MANIFEST_SCHEMA",
    "FileFormat",
    "WrittenTable",
    "export_tables",
    "run_metadata",
]

FileFormat = Literal["parquet", "csv", "ndjson", "arrow"]
FORMATS: tuple[FileFormat, ...] = ("parquet", "csv", "ndjson", "arrow")

MANIFEST_NAME = "manifest.json"
MANIFEST_SCHEMA = "breaker/manifest/1"

_ROW_GROUP = 16 * 1024
"""Rows of a row group: what is in memory at once, whatever the sessions' sizes."""
_HASH_CHUNK = 1024 * 1024
_HASH = "sha256"
_DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """One file of an export."""

    table: str
    file: str
    rows: int
    bytes: int
    sha256: str


def run_metadata(plan: ReplayPlan, privacy: Privacy, short_line: int) -> dict[str, str]:
    """Return what every file of a run says of it; nothing in it depends on when or where it ran."""
    return {
        "breaker.schema": SCHEMA_VERSION,
        "breaker.version": __version__,
        "breaker.ruleset": plan.ruleset.name,
        "breaker.ruleset_note": plan.ruleset.note,
        "breaker.policy": plan.policy,
        "breaker.result_source": plan.result_source,
        "breaker.shell_http": plan.shell_http,
        "breaker.settings": json.dumps(private_settings(plan.settings, plan.ruleset, privacy)),
        "breaker.settings_hash": plan.settings.digest,
        "breaker.short_line": str(short_line),
        "breaker.privacy": privacy.mode,
    }


def export_tables(
    observation: TablesObservation,
    corpus: CorpusReplay,
    out: Path,
    *,
    paths: Sequence[Path],
    labels: LabelRules,
    period: Period | None,
    limits: Limits = _DEFAULT_LIMITS,
    tables: Sequence[str] = TABLE_NAMES,
    file_format: FileFormat = "parquet",
    force: bool = False,
) -> tuple[WrittenTable, ...]:
    """Write tables and their manifest into a folder; all of them appear together, the manifest last.

    Args:
        observation: what watched the replay.
        corpus: the replay.
        out: the folder; made where it does not exist.
        paths: what was read, for the manifest.
        labels: the label rules used, for the manifest.
        period: the stretch of time used, for the manifest.
        limits: the bounds on what one file may take, for the manifest.
        tables: their names.
        file_format: of the files.
        force: replace files that stand there.

    Raises:
        OutputError: something stands there already, or cannot be written.
    """
    chosen = [name for name in TABLE_NAMES if name in tables]
    files = [f"{name}.{file_format}" for name in chosen]
    written: list[WrittenTable] = []
    with atomic_folder(out, [*files, MANIFEST_NAME], force=force, replaced=_earlier_files(out, files)) as work:
        for name, file_name in zip(chosen, files, strict=True):
            rows = _write_table(work / file_name, name, file_format, observation, corpus)
            written.append(
                WrittenTable(name, file_name, rows, (work / file_name).stat().st_size, _file_hash(work / file_name))
            )
        manifest = _manifest(observation, corpus, written, paths, labels, period, limits, file_format)
        (work / MANIFEST_NAME).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return tuple(written)


def _earlier_files(out: Path, files: Sequence[str]) -> list[str]:
    """Return the tables an earlier export left that this one does not replace, so that nothing stale stands beside."""
    known = {f"{name}.{extension}" for name in TABLE_NAMES for extension in FORMATS}
    try:
        earlier = msgspec.json.decode((out / MANIFEST_NAME).read_bytes(), type=_EarlierManifest)
    except (OSError, msgspec.DecodeError):
        return []
    return [table.file for table in earlier.tables if table.file in known and table.file not in files]


class _EarlierTable(msgspec.Struct):
    file: str


class _EarlierManifest(msgspec.Struct):
    tables: list[_EarlierTable] = msgspec.field(default_factory=list[_EarlierTable])


# -- files ---------------------------------------------------------------------------------------------------------


def _write_table(
    path: Path, name: str, file_format: FileFormat, observation: TablesObservation, corpus: CorpusReplay
) -> int:
    short_line = observation.short_line or 0
    metadata = {"breaker.table": name} | run_metadata(corpus.plan, observation.privacy, short_line)
    schema = with_metadata(table_named(name).schema(), metadata)
    counted = _Counted(rechunked(observation.batches(name, corpus), table_named(name).schema(), _ROW_GROUP))
    with path.open("wb") as file:
        if file_format == "parquet":
            write_parquet(file, counted, schema)
        elif file_format == "arrow":
            words = _words(name, observation.batches(name, corpus))
            write_arrow(file, counted, schema, words)
        elif file_format == "ndjson":
            _write_ndjson(file, counted)
        else:
            _write_csv(file, counted, schema.names)
    return counted.rows


@dataclass
class _Counted:
    """Passes tables on and counts their rows."""

    tables: Iterable[pa.Table]
    rows: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[pa.Table]:
        for table in self.tables:
            self.rows += table.num_rows
            yield table


def _words(name: str, batches: Iterable[pa.RecordBatch]) -> dict[str, list[object]]:
    """Return every value of the columns that are kept as dictionaries, in order of first appearance."""
    schema = table_named(name).schema()
    seen: dict[str, dict[object, None]] = {
        column: {}
        for column, kind in zip(schema.names, cast("list[object]", schema.types), strict=True)
        if str(kind).startswith("dictionary")
    }
    for batch in batches:
        for row in batch_rows(batch.select(list(seen))):
            for column, value in row.items():
                if value is not None:
                    seen[column].setdefault(value)
    return {column: list(values) for column, values in seen.items()}


def _rows(table: pa.Table) -> Iterator[dict[str, object]]:
    for batch in table.to_batches():
        yield from batch_rows(batch)


def _told(value: object) -> object:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value


def _write_ndjson(file: BinaryIO, tables: Iterable[pa.Table]) -> None:
    for table in tables:
        lines = (json.dumps({name: _told(value) for name, value in row.items()}) for row in _rows(table))
        file.writelines(line.encode() + b"\n" for line in lines)


def _write_csv(file: BinaryIO, tables: Iterable[pa.Table], names: Sequence[str]) -> None:
    """Write comma-separated text: null and empty text are both empty, lists are JSON, nothing acts in a spreadsheet."""
    file.write(csv_line(names).encode())
    for table in tables:
        file.writelines(csv_line(map(_cell, row.values())).encode() for row in _rows(table))


def _cell(value: object) -> object:
    value = _told(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, list) else value


# -- the manifest --------------------------------------------------------------------------------------------------


def _manifest(
    observation: TablesObservation,
    corpus: CorpusReplay,
    written: Sequence[WrittenTable],
    paths: Sequence[Path],
    labels: LabelRules,
    period: Period | None,
    limits: Limits,
    file_format: FileFormat,
) -> dict[str, object]:
    plan, privacy, totals = corpus.plan, observation.privacy, corpus.totals
    return {
        "schema": MANIFEST_SCHEMA,
        "tool": {"name": "breaker", "version": __version__},
        "libraries": {name: version(name) for name in ("pyarrow", "zstandard", "ada-url")},
        "tables_schema": SCHEMA_VERSION,
        "ruleset": plan.ruleset.name,
        "ruleset_note": plan.ruleset.note,
        "policy": plan.policy,
        "result_source": plan.result_source,
        "shell_http": plan.shell_http,
        "machine": sorted(plan.machine),
        "settings": private_settings(plan.settings, plan.ruleset, privacy),
        "settings_hash": plan.settings.digest,
        "labels": [{"label": rule.label, "glob": privacy.shown(rule.glob, "path")} for rule in labels.rules],
        "since": None if period is None else period.since,
        "until": None if period is None else period.until,
        "max_line": limits.max_line,
        "max_expanded": limits.max_expanded,
        "short_line": observation.short_line,
        "privacy": privacy.mode,
        "salt_sha256": privacy.salt_digest,
        "seed": None,
        "format": file_format,
        "roots": privacy.shown_all([str(path) for path in paths], "path"),
        "inputs": _inputs(paths, corpus, privacy),
        "problems": [
            {"path": privacy.shown(problem.shown, "path"), "message": privacy.shown(problem.message, "text")}
            for problem in corpus.problems
        ],
        "counts": {
            "files": len(corpus.reports),
            "sessions": len(corpus.sessions),
            "left_out_by_time": corpus.filtered,
            "read": corpus.read_counts,
            "turns": totals.turns,
            "calls": totals.calls,
            "events": sum(totals.stages.values()),
        },
        "tables": [
            {"table": one.table, "file": one.file, "rows": one.rows, "bytes": one.bytes, "sha256": one.sha256}
            for one in written
        ],
    }


def _inputs(paths: Sequence[Path], corpus: CorpusReplay, privacy: Privacy) -> list[Mapping[str, object]]:
    """Return path, size, hash and read state of every file, sorted by path."""
    states = {report.shown: report.state for report in corpus.reports}
    files = sorted(find_sessions(paths).files, key=lambda file: file.shown)
    return [
        {
            "path": privacy.shown(file.shown, "path"),
            "bytes": file.size,
            _HASH: _session_hash(file),
            "state": states[file.shown],
        }
        for file in files
        if file.shown in states
    ]


def _session_hash(file: SessionFile) -> str | None:
    """Hash a session file's bytes, as unpacked where it is in an archive; None where it cannot be read."""
    try:
        if file.member is None:
            return _file_hash(file.path)
        with zipfile.ZipFile(file.path) as archive, archive.open(file.member) as member:
            return _hash(cast("BinaryIO", member))
    except (OSError, zipfile.BadZipFile, KeyError, NotImplementedError, EOFError, ValueError):
        return None


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return _hash(file)


def _hash(file: BinaryIO) -> str:
    digest = hashlib.new(_HASH)
    while chunk := file.read(_HASH_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()
