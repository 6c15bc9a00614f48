"""Files of an export: whole, the same every time, refused where they would harm, and run again from their manifest."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.corpus import replay_corpus
from analysis.files import OutputError
from analysis.labels import LabelRules
from analysis.replay import ReplayPlan
from analysis.sessions.decode import Limits
from analysis.spreadsheet import literal_cell
from analysis.synth import write_corpus
from analysis.tables import (
    FORMATS,
    TABLE_NAMES,
    FileFormat,
    Manifest,
    ManifestError,
    Privacy,
    TablesObservation,
    export_tables,
    read_manifest,
    reproduce,
)
from breaker.settings import Settings
from tests.analysis.logs import LogWriter
from tests.analysis.tables.exports import Gathered, export

_ARROW: Any = pa
_PARQUET: Any = pq
SALT = b"0" * 32


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = tmp_path_factory.mktemp("demo")
    write_corpus(corpus, "demo")
    return corpus


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def manifest_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "manifest.json").read_text())


def small(tmp_path: Path, name: str = "a", calls: int = 2) -> Path:
    log = LogWriter(f"session-{name}")
    log.user()
    for _ in range(calls):
        log.bash("make")
    log.write(tmp_path / "corpus" / name)
    return tmp_path / "corpus"


# The same bytes


@pytest.mark.parametrize("file_format", FORMATS)
def test_two_runs_give_the_same_bytes(demo: Path, tmp_path: Path, file_format: FileFormat) -> None:
    for name in ("one", "two"):
        export(demo, out=tmp_path / name, file_format=file_format)
    one = contents(tmp_path / "one")
    assert sorted(one) == sorted([*(f"{name}.{file_format}" for name in TABLE_NAMES), "manifest.json"])
    assert one == contents(tmp_path / "two")


def test_hashed_texts_give_the_same_bytes_under_the_same_salt(demo: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        export(demo, out=tmp_path / name, privacy=Privacy("hash", SALT))
    export(demo, out=tmp_path / "other", privacy="hash")
    one, two, other = (contents(tmp_path / name) for name in ("one", "two", "other"))
    assert one == two
    assert one["calls.parquet"] != other["calls.parquet"]
    assert one["histogram.parquet"] == other["histogram.parquet"]


def test_the_order_of_the_input_does_not_show_in_the_tables(tmp_path: Path) -> None:
    root = small(tmp_path, "a")
    small(tmp_path, "b", calls=3)
    export(root / "a", root / "b", out=tmp_path / "one")
    export(root / "b", root / "a", out=tmp_path / "two")
    one, two = contents(tmp_path / "one"), contents(tmp_path / "two")
    assert {name: data for name, data in one.items() if name != "manifest.json"} == {
        name: data for name, data in two.items() if name != "manifest.json"
    }


def test_how_rows_wait_does_not_show_in_the_tables(demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(demo, out=tmp_path / "memory")
    monkeypatch.setattr("analysis.tables.collect._SPOOL_MEMORY", 1)
    monkeypatch.setattr("analysis.tables.collect._SEAL_ROWS", 2)
    export(demo, out=tmp_path / "file")
    assert contents(tmp_path / "memory") == contents(tmp_path / "file")


def test_row_groups_have_a_fixed_size_whatever_the_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = small(tmp_path, "a", 7)
    small(tmp_path, "b", 5)
    monkeypatch.setattr("analysis.tables.export._ROW_GROUP", 5)
    for file_format in ("parquet", "arrow"):
        export(root, out=tmp_path / file_format, file_format=file_format)
    metadata = _PARQUET.ParquetFile(tmp_path / "parquet" / "calls.parquet").metadata
    assert [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)] == [5, 5, 2]
    by_arrow = _ARROW.ipc.open_file(tmp_path / "arrow" / "calls.arrow").read_all()
    assert by_arrow.to_pylist() == _PARQUET.read_table(tmp_path / "parquet" / "calls.parquet").to_pylist()


# The formats


def test_every_format_holds_the_same_rows(demo: Path, tmp_path: Path) -> None:
    for file_format in FORMATS:
        export(demo, out=tmp_path / file_format, file_format=file_format, privacy="full")
    for name in TABLE_NAMES:
        table = _PARQUET.read_table(tmp_path / "parquet" / f"{name}.parquet")
        rows: list[dict[str, Any]] = table.to_pylist()
        by_arrow = _ARROW.ipc.open_file(tmp_path / "arrow" / f"{name}.arrow").read_all()
        assert by_arrow.to_pylist() == rows
        assert by_arrow.schema.equals(table.schema)
        told = json.loads(json.dumps(rows, default=lambda value: value.isoformat().replace("+00:00", "Z")))
        lines = (tmp_path / "ndjson" / f"{name}.ndjson").read_text().splitlines()
        assert [json.loads(line) for line in lines] == told
        with (tmp_path / "csv" / f"{name}.csv").open(newline="") as file:
            cells = list(csv.DictReader(file))
        assert cells == [{key: cell(value) for key, value in row.items()} for row in told]


def cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return literal_cell(value)
    return json.dumps(value) if isinstance(value, list) else str(value)


def test_only_the_tables_asked_for_are_written(tmp_path: Path) -> None:
    gathered = Gathered(small(tmp_path))
    gathered.export(tmp_path / "out", tables=["calls", "sessions"])
    assert sorted(contents(tmp_path / "out")) == ["calls.parquet", "manifest.json", "sessions.parquet"]


# What stands there already, what cannot be written


def test_files_that_stand_are_only_replaced_by_force_and_no_stale_table_stays(tmp_path: Path) -> None:
    root = small(tmp_path)
    export(root, out=tmp_path / "out", file_format="csv")
    (tmp_path / "out" / "mine.txt").write_text("kept")
    before = contents(tmp_path / "out")
    with pytest.raises(OutputError, match=r"holds manifest\.json already"):
        export(root, out=tmp_path / "out")
    assert contents(tmp_path / "out") == before
    export(root, out=tmp_path / "out", force=True)
    assert sorted(contents(tmp_path / "out")) == sorted(
        [*(f"{name}.parquet" for name in TABLE_NAMES), "manifest.json", "mine.txt"]
    )


def test_a_manifest_cannot_have_other_files_removed(tmp_path: Path) -> None:
    root = small(tmp_path)
    (tmp_path / "precious").write_text("kept")
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious").write_text("kept")
    files = [{"file": "../precious"}, {"file": "precious"}]
    (out / "manifest.json").write_text(json.dumps({"tables": files}))
    export(root, out=out, force=True)
    assert (tmp_path / "precious").exists()
    assert (out / "precious").exists()


def test_a_run_that_breaks_leaves_no_file_under_a_final_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gathered = Gathered(small(tmp_path))

    def broken(self: TablesObservation, name: str, corpus: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(TablesObservation, "batches", broken)
    with pytest.raises(OutputError, match="out: cannot write: No space left on device"):
        gathered.export(tmp_path / "out")
    assert not (tmp_path / "out").exists()


# The manifest


def test_the_manifest_says_what_was_read_how_and_what_came_of_it(tmp_path: Path) -> None:
    root = small(tmp_path)
    gathered = Gathered(root, labels=["stuck=session-a"], warnAt=2)
    gathered.export(tmp_path / "out")
    said = manifest_of(tmp_path / "out")
    (log,) = root.rglob("*.jsonl")
    assert said["inputs"] == [
        {
            "path": str(log),
            "bytes": log.stat().st_size,
            "sha256": hashlib.sha256(log.read_bytes()).hexdigest(),
            "state": "ok",
        }
    ]
    assert said["settings"] == gathered.plan.settings.as_config
    assert said["settings"]["warnAt"] == 2
    assert said["settings_hash"] == gathered.plan.settings.digest
    assert (said["ruleset"], said["policy"], said["privacy"], said["seed"]) == ("0.8", "unattended", "full", None)
    assert said["labels"] == [{"label": "stuck", "glob": "session-a"}]
    assert said["counts"]["sessions"] == 1
    assert said["counts"]["calls"] == 2
    for table in said["tables"]:
        data = (tmp_path / "out" / table["file"]).read_bytes()
        assert (table["bytes"], table["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert {table["table"]: table["rows"] for table in said["tables"]}["calls"] == 2


def test_the_manifest_names_no_file_where_paths_are_private(tmp_path: Path) -> None:
    export(small(tmp_path), out=tmp_path / "out", privacy="shape")
    (said,) = manifest_of(tmp_path / "out")["inputs"]
    assert "session" not in said["path"]
    assert len(said["sha256"]) == 64


# Run again


def again(folder: Path, **options: Any) -> Any:
    return reproduce(read_manifest(folder / "manifest.json"), **options)


@pytest.mark.parametrize("file_format", FORMATS)
def test_an_export_run_again_is_the_same(demo: Path, tmp_path: Path, file_format: FileFormat) -> None:
    plan = ReplayPlan(
        settings=Settings.from_config({"warnAt": 3, "limits": {"exact": 5}}), policy="approve", shell_http="on"
    )
    gathered = Gathered(demo, plan=plan, labels=["good=session-3*"], short_line=10)
    gathered.export(tmp_path / "out", file_format=file_format)
    outcome = again(tmp_path / "out")
    assert (outcome.differences, outcome.rows_only, outcome.notes) == ((), (), ())
    assert sorted(outcome.same) == sorted(f"{name}.{file_format}" for name in TABLE_NAMES)


def test_bounds_on_what_is_read_are_kept_for_the_next_time(tmp_path: Path) -> None:
    root = small(tmp_path)
    limits = Limits(max_line=10_000, max_expanded=500)
    plan, privacy = ReplayPlan(), Privacy("full")
    observation = TablesObservation(plan, privacy, TABLE_NAMES, 40)
    corpus = replay_corpus([root], plan, limits=limits, observation=observation)
    export_tables(observation, corpus, tmp_path / "out", paths=[root], labels=LabelRules(), period=None, limits=limits)
    assert corpus.read_counts["ok"] == 0
    said = manifest_of(tmp_path / "out")
    assert (said["max_line"], said["max_expanded"]) == (10_000, 500)
    assert again(tmp_path / "out").differences == ()


def test_what_privacy_kept_out_of_the_manifest_has_to_be_given_again(tmp_path: Path) -> None:
    root = small(tmp_path)
    config: dict[str, Any] = {"warnAt": 2, "limits": {"exact:bash:{}": 4}}
    gathered = Gathered(root, privacy="shape", labels=["good=session-a"], **config)
    gathered.export(tmp_path / "out")
    given: dict[str, Any] = {}
    for name, value, told in (
        ("paths", [root], r"where the sessions are \(privacy shape\): give their PATHs"),
        ("settings", Settings.from_config(config), r"the settings whole \(privacy shape\): give them by --config"),
        ("labels", gathered.labels, r"which sessions were labelled \(privacy shape\): give the labels by --label"),
    ):
        with pytest.raises(ManifestError, match=told):
            again(tmp_path / "out", **given)
        given[name] = value
    assert again(tmp_path / "out", **given).differences == ()
    wrong = again(tmp_path / "out", **{**given, "settings": Settings.from_config({"warnAt": 2})})
    assert wrong.differences[0].what == "settings"


def test_settings_that_hold_no_text_of_a_person_need_not_be_given_again(tmp_path: Path) -> None:
    root = small(tmp_path)
    Gathered(root, privacy="counts", warnAt=2, limits={"host": 9}).export(tmp_path / "out")
    assert again(tmp_path / "out", paths=[root]).differences == ()


def test_a_corpus_that_changed_is_told(tmp_path: Path) -> None:
    root = small(tmp_path)
    export(root, out=tmp_path / "out", privacy="full")
    small(tmp_path, "b")
    outcome = again(tmp_path / "out")
    told = {difference.what: difference.told for difference in outcome.differences}
    assert told["inputs"] == "0 of 1 files are gone or changed, 1 are new"
    assert told["calls.parquet"] == "2 rows became 4"


def test_a_corpus_that_moved_can_be_named(tmp_path: Path) -> None:
    root = small(tmp_path)
    export(root, out=tmp_path / "out", privacy="counts")
    shutil.move(root, tmp_path / "moved")
    assert again(tmp_path / "out", paths=[tmp_path / "moved"]).differences == ()


def test_hashed_texts_are_compared_by_rows_without_their_salt_and_by_bytes_with_it(tmp_path: Path) -> None:
    root = small(tmp_path)
    export(root, out=tmp_path / "out", privacy=Privacy("hash", SALT))
    without, with_salt = again(tmp_path / "out", paths=[root]), again(tmp_path / "out", paths=[root], salt=SALT)
    assert without.differences == with_salt.differences == ()
    assert "calls.parquet" in without.rows_only
    assert "histogram.parquet" in without.same
    assert with_salt.rows_only == ()


def test_other_tables_than_the_manifest_says_are_a_difference(tmp_path: Path) -> None:
    export(small(tmp_path), out=tmp_path / "out", privacy="full")
    said = manifest_of(tmp_path / "out")
    said["tables"][0]["sha256"] = "0" * 64
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(said))
    (difference,) = again(tmp_path / "out").differences
    assert (difference.what, difference.told) == ("sessions.parquet", "other bytes, as many rows")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not a manifest"),
        ("[]", "not a manifest"),
        ("{}", "not a manifest"),
        ("\ud800", "not a manifest"),
    ],
)
def test_what_is_no_manifest_is_told(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "m.json").write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(ManifestError, match=told):
        read_manifest(tmp_path / "m.json")
    with pytest.raises(ManifestError, match="cannot read"):
        read_manifest(tmp_path / "absent.json")


def test_a_manifest_of_settings_nobody_knows_is_refused(tmp_path: Path) -> None:
    export(small(tmp_path), out=tmp_path / "out", privacy="full")
    said = read_manifest(tmp_path / "out" / "manifest.json")
    for change in ({"ruleset": "9.9"}, {"settings": {"warnAt": "often"}}):
        other = msgspec.structs.replace(said, **change)
        assert isinstance(other, Manifest)
        with pytest.raises(ManifestError, match="cannot be run again"):
            reproduce(other)
