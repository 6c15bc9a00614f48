"""`breaker export` and `breaker reproduce`, as a person runs them."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.analysis.logs import LogWriter
from tests.cli.commands import COMMAND, PATIENCE, breaker, breaker_process, violations

TABLES = ("sessions", "turns", "calls", "events", "measures", "streaks", "histogram", "read_report")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def manifest(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "manifest.json").read_text())


def log_of(root: Path, calls: int) -> Path:
    log = LogWriter()
    log.user()
    for _ in range(calls):
        log.bash("make")
    log.write(root)
    return root


def test_a_demo_that_is_kept_can_be_exported_and_run_again(tmp_path: Path) -> None:
    assert breaker("demo", "--keep", tmp_path / "demo").returncode == 0
    done = breaker("export", tmp_path / "demo", "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert names(tmp_path / "out") == sorted([*(f"{name}.parquet" for name in TABLES), "manifest.json"])
    assert [line.split()[0] for line in done.stdout.splitlines()[:-1]] == [f"{name}.parquet" for name in TABLES]
    again = breaker("reproduce", tmp_path / "out" / "manifest.json", tmp_path / "demo")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.splitlines() == [f"same     {name}.parquet" for name in TABLES]


def test_rows_are_those_of_the_replay(demo: Path, tmp_path: Path) -> None:
    breaker("export", demo, "--out", tmp_path / "out", "--policy", "deny", "--set", "warnAt=3")
    totals = json.loads(breaker("replay", demo, "--policy", "deny", "--set", "warnAt=3", "--format", "json").stdout)[
        "totals"
    ]
    calls = pl.read_parquet(tmp_path / "out" / "calls.parquet")
    assert calls.height == totals["calls"]
    assert calls["withheld"].sum() == totals["denials"]
    events = pl.read_parquet(tmp_path / "out" / "events.parquet")
    assert events.filter(pl.col("stage") == "warn").height == totals["events"]["warn"]
    assert manifest(tmp_path / "out")["settings"]["warnAt"] == 3


@pytest.mark.parametrize("privacy", ["full", "shape", "hash", "counts"])
def test_the_manifest_is_as_described(demo: Path, tmp_path: Path, privacy: str) -> None:
    label = ("--label", "good=session-3*", "--since", "2026-01-02")
    breaker("export", demo, "--out", tmp_path / "out", "--privacy", privacy, *label)
    document = manifest(tmp_path / "out")
    assert violations("manifest", document) == []
    assert document["privacy"] == privacy
    assert document["counts"]["left_out_by_time"] > 0
    given = () if privacy == "full" else (demo, "--label", "good=session-3*")
    again = breaker("reproduce", tmp_path / "out" / "manifest.json", *given)
    assert again.returncode == 0
    assert ("same" in again.stdout, "rows " in again.stdout) == (True, privacy == "hash")


def test_a_salt_that_is_kept_lets_hashes_be_compared(demo: Path, tmp_path: Path) -> None:
    salt = ("--privacy", "hash", "--salt-file", tmp_path / "salt")
    for name in ("one", "two"):
        assert breaker("export", demo, "--out", tmp_path / name, *salt).returncode == 0
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two
    again = breaker("reproduce", tmp_path / "one" / "manifest.json", demo, "--salt-file", tmp_path / "salt")
    assert again.stdout.count("same ") == len(TABLES)
    assert (tmp_path / "salt").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "no salt", "00ff", "é"])
def test_a_file_that_is_no_salt_is_refused(demo: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "salt").write_text(text, encoding="utf-8")
    done = breaker("export", demo, "--out", tmp_path / "out", "--privacy", "hash", "--salt-file", tmp_path / "salt")
    assert done.returncode == 2
    assert "salt" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_salt_needs_hashes(demo: Path, tmp_path: Path) -> None:
    done = breaker("export", demo, "--out", tmp_path / "out", "--salt-file", tmp_path / "salt")
    assert (done.returncode, done.stderr) == (2, "breaker: error: --salt-file belongs to --privacy hash\n")


def test_files_are_not_replaced_without_force(demo: Path, tmp_path: Path) -> None:
    breaker("export", demo, "--out", tmp_path, "--tables", "calls,sessions", "--tables", "events")
    assert names(tmp_path) == ["calls.parquet", "events.parquet", "manifest.json", "sessions.parquet"]
    done = breaker("export", demo, "--out", tmp_path, "--tables", "calls")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("holds calls.parquet, manifest.json already; --force replaces them\n")
    assert breaker("export", demo, "--out", tmp_path, "--tables", "calls", "--force").returncode == 0
    assert names(tmp_path) == ["calls.parquet", "manifest.json"]


def test_an_unknown_table_lists_the_known_ones(demo: Path, tmp_path: Path) -> None:
    done = breaker("export", demo, "--out", tmp_path / "out", "--tables", "calls,cals")
    known = ", ".join(TABLES)
    assert (done.returncode, done.stderr) == (2, f"breaker: error: --tables cals: no such table; known: {known}\n")


def test_nothing_is_written_inside_the_corpus(tmp_path: Path) -> None:
    root = log_of(tmp_path / "corpus", 1)
    done = breaker("export", root, "--out", root / "out")
    assert done.returncode == 2
    assert "lies inside the corpus" in done.stderr
    assert names(root) == ["--p--"]


# Little or nothing to tell


def test_a_corpus_without_calls_gives_empty_tables_and_is_not_enough(tmp_path: Path) -> None:
    root = log_of(tmp_path / "corpus", 0)
    done = breaker("export", root, "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (4, "breaker: error: the 1 session holds no calls\n")
    assert pl.read_parquet(tmp_path / "out" / "calls.parquet").height == 0
    assert pl.read_parquet(tmp_path / "out" / "sessions.parquet").height == 1
    assert breaker("export", root, "--out", tmp_path / "fine", "--allow-empty").returncode == 0


def test_a_folder_without_sessions_is_not_enough_unless_that_is_fine(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    done = breaker("export", tmp_path / "none", "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (4, f"breaker: error: no sessions found in {tmp_path}/none\n")
    assert not (tmp_path / "out").exists(), "what is not written need not be replaced"
    assert breaker("export", tmp_path / "none", "--out", tmp_path / "more", "--allow-empty").returncode == 0
    assert pl.read_parquet(tmp_path / "more" / "read_report.parquet").height == 0


def test_files_that_cannot_be_read_are_told_and_exit_3(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "session.v4.jsonl").write_bytes(b"no log\n")
    done = breaker("export", tmp_path / "corpus", "--out", tmp_path / "out", "--allow-empty")
    assert done.returncode == 3
    assert pl.read_parquet(tmp_path / "out" / "read_report.parquet")["state"].to_list() == ["corrupt"]


def test_a_path_that_does_not_exist_writes_nothing(tmp_path: Path) -> None:
    done = breaker("export", tmp_path / "absent", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert not (tmp_path / "out").exists()


# What goes wrong while writing


def test_a_folder_that_cannot_be_made_is_told(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    done = breaker("export", demo, "--out", tmp_path / "file" / "out")
    told = f"breaker: error: {tmp_path / 'file' / 'out'}: cannot write: Not a directory\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_a_full_disk_leaves_no_file_and_one_line(demo: Path, tmp_path: Path) -> None:
    def few_bytes() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    command = [COMMAND, "export", demo, "--out", tmp_path / "out", "--privacy", "full"]
    done = subprocess.run(command, capture_output=True, preexec_fn=few_bytes, timeout=PATIENCE, check=False, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"breaker: error: {tmp_path / 'out'}: cannot write: File too large\n"
    assert not (tmp_path / "out").exists()


def test_an_interrupted_run_leaves_no_file(tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    scale = ("--recipe", "scale", "--sessions", "10", "--calls", "400", "--result-bytes", "64")
    assert breaker("synth", *scale, "--out", root).returncode == 0
    out = tmp_path / "out"
    process = subprocess.Popen(
        [COMMAND, "export", root, "--out", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + PATIENCE
    while not out.exists() and time.monotonic() < until and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE)
    assert (process.returncode, told) == (130, "breaker: error: interrupted\n")
    assert not out.exists()


# Running it again


def test_what_differs_is_told_and_fails(tmp_path: Path) -> None:
    root = log_of(tmp_path / "corpus", 1)
    breaker("export", root, "--out", tmp_path / "out", "--tables", "calls,histogram", "--privacy", "full")
    log_of(root, 2)
    done = breaker("reproduce", tmp_path / "out" / "manifest.json")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "differs  inputs: 1 of 1 files are gone or changed, 1 are new",
        "differs  calls.parquet: 1 rows became 2",
        "differs  histogram.parquet: 4 rows became 6",
    ]


def test_bounds_on_what_is_read_are_those_of_the_export(demo: Path, tmp_path: Path) -> None:
    bounds = ("--max-line", "2KiB", "--max-expanded", "8KiB", "--privacy", "full")
    assert breaker("export", demo, "--out", tmp_path / "out", *bounds).returncode == 0
    document = manifest(tmp_path / "out")
    assert (document["max_line"], document["max_expanded"]) == (2048, 8192)
    assert document["counts"]["read"]["partial"] + document["counts"]["read"]["torn"] > 1
    again = breaker("reproduce", tmp_path / "out" / "manifest.json")
    assert (again.returncode, again.stdout.count("same ")) == (0, len(TABLES))


def test_what_privacy_left_out_is_asked_for(demo: Path, tmp_path: Path) -> None:
    settings = ("--set", "warnAt=3", "--set", "limits.verb:make=5", "--set", 'hostAliases={"a.example": "b.example"}')
    breaker("export", demo, "--out", tmp_path / "out", "--label", "good=session-3*", *settings)
    said = tmp_path / "out" / "manifest.json"
    assert violations("manifest", manifest(tmp_path / "out")) == []
    for given, told in (
        ((), "where the sessions are (privacy shape): give their PATHs"),
        ((demo,), "the settings whole (privacy shape): give them by --config or --set"),
        ((demo, *settings), "which sessions were labelled (privacy shape): give the labels by --label or --labels"),
    ):
        done = breaker("reproduce", said, *given)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"breaker: error: the manifest does not hold {told}\n"
    done = breaker("reproduce", said, demo, *settings, "--label", "good=session-3*")
    assert (done.returncode, done.stdout.count("same ")) == (0, len(TABLES))


def test_what_cannot_be_run_again_is_told(tmp_path: Path) -> None:
    root = log_of(tmp_path / "corpus", 1)
    breaker("export", root, "--out", tmp_path / "out")
    said = tmp_path / "out" / "manifest.json"
    assert breaker("reproduce", said, tmp_path / "absent").returncode == 2
    assert breaker("reproduce", said, "--salt-file", tmp_path / "absent").returncode == 2
    assert breaker("reproduce", tmp_path / "absent.json").returncode == 2
    done = breaker("reproduce", root / "--p--")
    assert done.returncode == 2
    assert "cannot read the manifest: Is a directory" in done.stderr


def test_the_installed_command_exports(demo: Path, tmp_path: Path) -> None:
    done = breaker_process("export", demo, "--out", tmp_path / "out", "--format", "ndjson")
    assert (done.returncode, done.stderr) == (0, "")
    lines = (tmp_path / "out" / "sessions.ndjson").read_text().splitlines()
    assert [json.loads(line)["session_index"] for line in lines] == list(range(len(lines)))
