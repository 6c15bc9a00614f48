"""The schemas: documented column by column, kept in the files, and the same for every reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.synth import write_corpus
from analysis.tables import SCHEMA_VERSION, TABLES, Table, tables_document
from breaker.settings import Settings
from breaker.version import __version__
from tests.analysis.logs import LogWriter
from tests.analysis.tables.exports import Gathered, export

DOCUMENT = Path(__file__).parents[3] / "docs" / "tables.md"
_PARQUET: Any = pq
_ARROW: Any = pa


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus, out = tmp_path_factory.mktemp("demo"), tmp_path_factory.mktemp("out")
    write_corpus(corpus, "demo")
    export(corpus, out=out)
    return out


def test_the_documentation_is_made_from_the_schemas() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == tables_document()


def test_the_tables_are_the_documented_eight() -> None:
    assert [table.name for table in TABLES] == [
        "sessions",
        "turns",
        "calls",
        "events",
        "measures",
        "streaks",
        "histogram",
        "read_report",
    ]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_column_is_described_and_named_once(table: Table) -> None:
    assert len({column.name for column in table.columns}) == len(table.columns)
    assert [column.name for column in table.columns if not column.description.endswith((".", "…"))] == []
    assert [column.name for column in table.columns if "|" in column.description + column.null] == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_what_is_null_is_said_to_be_nullable(table: Table, tables: Path) -> None:
    read = _PARQUET.read_table(tables / f"{table.name}.parquet")
    for column in table.columns:
        field = read.schema.field(column.name)
        assert field.nullable is bool(column.null)
        if not column.null:
            assert read.column(column.name).null_count == 0, column.name


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_file_has_the_documented_schema(table: Table, tables: Path) -> None:
    read = _PARQUET.read_schema(tables / f"{table.name}.parquet")
    assert read.equals(table.schema())
    for column in table.columns:
        metadata = read.field(column.name).metadata
        assert metadata[b"description"].decode() == column.description
        assert metadata.get(b"unit", b"").decode() == column.unit
        assert metadata.get(b"null", b"").decode() == column.null


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_polars_pyarrow_and_duckdb_read_the_same(table: Table, tables: Path) -> None:
    path = tables / f"{table.name}.parquet"
    by_arrow = _PARQUET.read_table(path)
    by_polars = pl.read_parquet(path)
    by_duckdb = duckdb.connect().execute(f"SELECT * FROM '{path}'")
    names = [column.name for column in table.columns]
    assert by_arrow.column_names == by_polars.columns == [one[0] for one in by_duckdb.description] == names
    rows = [tuple(row.values()) for row in by_arrow.to_pylist()]
    assert rows == by_polars.rows()
    assert len(rows) > 0
    numbers = [name for name, column in zip(names, table.columns, strict=True) if column.type == _ARROW.int64()]
    places = [names.index(name) for name in numbers]
    assert [[row[place] for place in places] for row in by_duckdb.fetchall()] == [
        [row[place] for place in places] for row in rows
    ]


def test_strings_that_repeat_are_dictionaries_and_pages_are_zstd(tables: Path) -> None:
    file = _PARQUET.ParquetFile(tables / "calls.parquet")
    group = file.metadata.row_group(0)
    columns = {group.column(place).path_in_schema: group.column(place) for place in range(group.num_columns)}
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert "RLE_DICTIONARY" in columns["tool"].encodings
    assert _ARROW.types.is_dictionary(file.schema_arrow.field("tool").type)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_file_says_how_it_was_made(table: Table, tables: Path) -> None:
    settings = Settings.from_config()
    metadata = {
        key.decode(): value.decode()
        for key, value in _PARQUET.read_schema(tables / f"{table.name}.parquet").metadata.items()
    }
    assert metadata["breaker.table"] == table.name
    assert metadata["breaker.schema"] == SCHEMA_VERSION
    assert metadata["breaker.version"] == __version__
    assert (metadata["breaker.ruleset"], metadata["breaker.policy"]) == ("0.8", "unattended")
    assert json.loads(metadata["breaker.settings"]) == settings.as_config
    assert metadata["breaker.settings_hash"] == settings.digest
    assert (metadata["breaker.privacy"], metadata["breaker.short_line"]) == ("shape", "40")


def session(tmp_path: Path, name: str, calls: int, failing_from: int) -> Path:
    log = LogWriter(f"session-{name}")
    log.user()
    for number in range(calls):
        log.bash(f"make {number}", "[exit code: 1]" if number >= failing_from else "done")
    log.write(tmp_path / name)
    return tmp_path / name


def test_a_column_whose_first_value_comes_late_has_its_type_all_the_same(tmp_path: Path) -> None:
    export(session(tmp_path, "late", 160, 150), out=tmp_path / "out")
    read = pl.read_parquet(tmp_path / "out" / "calls.parquet")
    assert read["reason"].null_count() == 150
    assert read["reason"][150:].cast(pl.String).to_list() == ["exit"] * 10


def test_shards_whose_columns_are_all_null_scan_together_with_others(tmp_path: Path) -> None:
    export(session(tmp_path, "clean", 3, 99), out=tmp_path / "out" / "one")
    export(session(tmp_path, "failing", 3, 0), out=tmp_path / "out" / "two")
    (tmp_path / "none").mkdir()
    export(tmp_path / "none", out=tmp_path / "out" / "three")
    for table in TABLES:
        pattern = str(tmp_path / "out" / "*" / f"{table.name}.parquet")
        rows = pl.scan_parquet(pattern).collect().height
        assert rows == duckdb.connect().execute(f"SELECT count(*) FROM '{pattern}'").fetchall()[0][0]
        dataset: Any = pytest.importorskip("pyarrow.dataset")
        paths = sorted(str(path) for path in (tmp_path / "out").glob(f"*/{table.name}.parquet"))
        assert dataset.dataset(paths, schema=table.schema()).to_table().num_rows == rows
    assert pl.scan_parquet(str(tmp_path / "out" / "*" / "calls.parquet")).collect()["reason"].null_count() == 3


def test_a_corpus_without_sessions_gives_empty_tables_of_the_same_schemas(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    gathered = Gathered(tmp_path / "none")
    written = gathered.export(tmp_path / "out")
    assert [table.rows for table in written] == [0] * len(TABLES)
    for table in TABLES:
        assert _PARQUET.read_schema(tmp_path / "out" / f"{table.name}.parquet").equals(table.schema())
