"""Arrow, as far as the tables need it, behind signatures that say what goes in and out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, BinaryIO, cast

import pyarrow as pa

__all__ = [
    "batch_of",
    "batch_rows",
    "dictionary_batches",
    "plain_schema",
    "read_batch",
    "rechunked",
    "serialized",
    "with_constants",
    "with_metadata",
    "write_arrow",
    "write_parquet",
]

_arrow: Any = import_module("pyarrow")
_compute: Any = import_module("pyarrow.compute")
"""The same modules, for the calls whose published types say nothing."""

_MERGED = 64
"""Batches that are put together while more is waited for: many of a few rows take several times the memory of one."""


def _types(schema: pa.Schema) -> list[Any]:
    return [field.type for field in cast("Any", schema)]


def plain_schema(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """Return some fields of a schema without dictionaries and metadata, as rows are kept in between."""
    given: Any = schema
    fields: list[object] = []
    for name in names:
        kind = given.field(name).type
        fields.append(_arrow.field(name, kind.value_type if _arrow.types.is_dictionary(kind) else kind))
    return cast("pa.Schema", _arrow.schema(fields))


def batch_of(schema: pa.Schema, columns: Sequence[Sequence[object]]) -> pa.RecordBatch:
    """Build a batch from columns in the schema's order."""
    arrays = [_arrow.array(column, type=kind) for column, kind in zip(columns, _types(schema), strict=True)]
    return cast("pa.RecordBatch", _arrow.RecordBatch.from_arrays(arrays, schema=schema))


def batch_rows(batch: pa.RecordBatch) -> list[dict[str, object]]:
    """Return a batch's rows as mappings."""
    return cast("Any", batch).to_pylist()


def serialized(batch: pa.RecordBatch) -> bytes:
    """Return a batch as bytes, without its schema; it must hold no dictionaries."""
    return cast("Any", batch).serialize().to_pybytes()


def read_batch(data: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """Read what `serialized` gave."""
    return cast("pa.RecordBatch", _arrow.ipc.read_record_batch(_arrow.py_buffer(data), schema))


def with_constants(batch: pa.RecordBatch, schema: pa.Schema, constants: Mapping[str, object]) -> pa.RecordBatch:
    """Return a batch in another schema: columns of that name cast, the others filled with one value each."""
    given: Any = batch
    arrays: list[object] = []
    for name, kind in zip(schema.names, _types(schema), strict=True):
        if name in constants:
            arrays.append(_arrow.array([constants[name]] * batch.num_rows, type=kind))
        else:
            arrays.append(given.column(name).cast(kind))
    return cast("pa.RecordBatch", _arrow.RecordBatch.from_arrays(arrays, schema=schema))


def rechunked(batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    """Give out the rows of batches in tables of a fixed number of rows, the last one smaller; none where none are.

    How the batches were cut does not show in what comes out.
    """
    waiting: list[pa.RecordBatch] = []
    few: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        rest = batch
        while held + rest.num_rows >= rows:
            cut = rows - held
            yield _combined([*waiting, *few, rest.slice(0, cut)], schema)
            waiting, few, held = [], [], 0
            rest = rest.slice(cut)
        if rest.num_rows:
            few.append(rest)
            held += rest.num_rows
        if len(few) == _MERGED:
            waiting.append(_merged(few))
            few = []
    if held:
        yield _combined([*waiting, *few], schema)


def _merged(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return cast("pa.RecordBatch", _arrow.concat_batches(batches))


def _combined(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Put batches together so that every column is one piece, its dictionary in order of first appearance."""
    table = _arrow.Table.from_batches(batches, schema=schema)
    columns: list[object] = []
    for column, kind in zip(table.columns, _types(schema), strict=True):
        if _arrow.types.is_dictionary(kind):
            columns.append(column.cast(kind.value_type).combine_chunks().dictionary_encode().cast(kind))
        else:
            columns.append(column.combine_chunks())
    return cast("pa.Table", _arrow.Table.from_arrays(columns, schema=schema))


def dictionary_batches(
    tables: Iterable[pa.Table], schema: pa.Schema, words: Mapping[str, Sequence[object]]
) -> Iterator[pa.RecordBatch]:
    """Give out tables as batches that share one dictionary per column, as an Arrow file needs them.

    Args:
        tables: pieces of one table.
        schema: their schema.
        words: for every column with a dictionary, all its values.
    """
    dictionaries = {name: _arrow.array(values, type=_arrow.string()) for name, values in words.items()}
    for table in tables:
        arrays: list[object] = []
        for name, kind, column in zip(schema.names, _types(schema), cast("Any", table).columns, strict=True):
            flat = column.combine_chunks()
            if name in dictionaries:
                places = _compute.index_in(flat.cast(kind.value_type), dictionaries[name])
                flat = _arrow.DictionaryArray.from_arrays(places, dictionaries[name])
            arrays.append(flat)
        yield cast("pa.RecordBatch", _arrow.RecordBatch.from_arrays(arrays, schema=schema))


def with_metadata(schema: pa.Schema, metadata: Mapping[str, str]) -> pa.Schema:
    """Return a schema that carries what belongs to a run."""
    return cast("Any", schema).with_metadata(dict(metadata))


def write_parquet(file: BinaryIO, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
    """Write pieces of a table as the row groups of a parquet file: zstd, dictionary pages, no times."""
    parquet: Any = import_module("pyarrow.parquet")
    with parquet.ParquetWriter(file, schema, compression="zstd", use_dictionary=True, store_schema=True) as writer:
        for table in tables:
            writer.write_table(table, row_group_size=max(table.num_rows, 1))


def write_arrow(
    file: BinaryIO, tables: Iterable[pa.Table], schema: pa.Schema, words: Mapping[str, Sequence[object]]
) -> None:
    """Write pieces of a table as an Arrow file, zstd inside.

    Args:
        file: where to.
        tables: the pieces.
        schema: their schema.
        words: for every column with a dictionary, all its values.
    """
    options = _arrow.ipc.IpcWriteOptions(compression="zstd")
    with _arrow.ipc.new_file(file, schema, options=options) as writer:
        for batch in dictionary_batches(tables, schema, words):
            writer.write_batch(batch)
