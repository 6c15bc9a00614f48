"""The rows of a sweep as files: CSV, JSON and parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from analysis.replay import STAGES
from analysis.spreadsheet import csv_line
from analysis.sweep.corpus import Sweep
from analysis.sweep.document import flat_rows, sweep_document
from analysis.sweep.held_out import HeldOut
from analysis.sweep.metrics import METRICS

if TYPE_CHECKING:
    from analysis.sweep.intervals import Uncertainty

__all__ = ["OUTPUT_SUFFIXES", "Writer", "csv_text", "writer_of"]

_WHOLE = {
    "window",
    "warnAt",
    "summarizeAt",
    "failWarnAt",
    "previewChars",
    "resultPreviewChars",
    *(metric.name for metric in METRICS if not metric.name.startswith("lead_")),
    *(f"events.{stage}" for stage in STAGES),
}
_TRUTHS = {"includeLocal", "blockShellHttp", "blockLocalHttp", "pareto", "recommended"}


def csv_text(sweep: Sweep, uncertainty: Uncertainty | None = None) -> str:
    """Return the rows as CSV with headings; null is an empty cell, truth is `true` and `false`."""
    rows = flat_rows(sweep, uncertainty)
    return csv_line(rows[0]) + "".join(csv_line(map(_cell, row.values())) for row in rows)


def _cell(value: object) -> object:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else value


def _write_csv(sweep: Sweep, file: BinaryIO, uncertainty: Uncertainty | None, held_out: HeldOut | None) -> None:
    del held_out
    file.write(csv_text(sweep, uncertainty).encode("utf-8", "surrogatepass"))


def _write_json(sweep: Sweep, file: BinaryIO, uncertainty: Uncertainty | None, held_out: HeldOut | None) -> None:
    document = sweep_document(sweep, uncertainty=uncertainty, held_out=held_out)
    file.write(json.dumps(document, indent=2).encode())


def _write_parquet(sweep: Sweep, file: BinaryIO, uncertainty: Uncertainty | None, held_out: HeldOut | None) -> None:
    del held_out
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = flat_rows(sweep, uncertainty)
    types = {"int64": pa.int64(), "bool": pa.bool_(), "float64": pa.float64(), "string": pa.string()}
    schema = pa.schema([pa.field(name, types[_column(name)]) for name in rows[0]])
    with pq.ParquetWriter(file, schema) as writer:
        writer.write_table(pa.Table.from_pylist(_typed(rows), schema=schema))


def _typed(rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    return [{name: _as_column(name, value) for name, value in row.items()} for row in rows]


def _as_column(name: str, value: object) -> object:
    return float(value) if isinstance(value, int) and _column(name) == "float64" else value


def _column(name: str) -> str:
    """Return the type of a column: the same in every sweep, also where all its values are null."""
    if name in _WHOLE:
        return "int64"
    if name in _TRUTHS:
        return "bool"
    if name.startswith(("limits.", "lead_")) or name == "failLimit" or name.endswith((".low", ".high")):
        return "float64"
    return "string"


Writer: TypeAlias = "Callable[[Sweep, BinaryIO, Uncertainty | None, HeldOut | None], None]"
"""Writes a sweep to a file, with its intervals and its cross-validation where there are any."""

_WRITERS: Mapping[str, Writer] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".json": _write_json,
}
OUTPUT_SUFFIXES = tuple(_WRITERS)
"""The endings of the files a sweep can be written to."""


def writer_of(path: Path) -> Writer | None:
    """Return what writes a sweep to a file, by the ending of its name; None for an unknown one."""
    return _WRITERS.get(path.suffix.lower())
