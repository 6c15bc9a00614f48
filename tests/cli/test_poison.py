"""A file that ends the process that reads it costs itself alone: the run goes on without it, and tells."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import zstandard

from tests.analysis.logs import LogWriter
from tests.cli.commands import COMMAND, PATIENCE, Json, Ran, breaker
from tests.cli.hooks import KILL, KILL_FIRST, STARVE, Hook, hooked

POISON = "session-4"
LINE = 48 << 20
AS_TEXT = ("--format", "ndjson", "--privacy", "full")
KILLED = "the process that read it died (killed by SIGKILL)"
STARVED = "it took more memory than there is"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return nine sessions."""
    return write_sessions(tmp_path / "corpus", line=99)


def write_sessions(folder: Path, *, line: int) -> Path:
    """Write nine sessions; the one that will be poison has a line of that length."""
    for number in range(9):
        log = LogWriter(f"session-{number}")
        log.user()
        for step in range(8 + number):
            log.bash(f"make {step % 3}", "out\n[exit code: 2]" if number % 2 else "fine")
        if log.header["id"] == POISON:
            log.bash("cat", "x" * line)
        path = log.write(folder)
        path.with_name(path.name + ".zstd").write_bytes(zstandard.compress(path.read_bytes()))
        path.unlink()
    return folder


def poisoned(does: str, folder: Path, *arguments: str | Path) -> Ran:
    """Run with two processes, one of which comes to a bad end at the poison file."""
    return subprocess.run(
        [COMMAND, *arguments, "--jobs", "2"],
        env=hooked(Hook(does, POISON), folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def without_poison(text: str) -> Json:
    """Leave out of a document what tells of the poison file, and what a file more adds to the head."""
    document: Json = json.loads(text)
    document["read_report"] = [one for one in document["read_report"] if POISON not in one["path"]]
    for key in ("files", "bytes", "read"):
        del document["corpus"][key]
    return document


@pytest.mark.parametrize(("does", "why"), [(KILL, KILLED), (STARVE, STARVED)], ids=["killed", "out of memory"])
def test_poison_is_told_and_the_rest_is_as_if_it_were_not_there(tmp_path: Path, does: str, why: str) -> None:
    corpus = write_sessions(tmp_path / "corpus", line=LINE if does == STARVE else 99)
    (path,) = corpus.rglob(f"{POISON}/*")
    done = poisoned(does, tmp_path / "hook", "replay", corpus, "--events", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "hook" / "reached").read_text().split() == ["here", "here"]
    document = json.loads(done.stdout)
    assert document["corpus"]["read"] | {"ok": 8, "corrupt": 1} == document["corpus"]["read"]
    (lost,) = [file for file in document["read_report"] if file["state"] != "ok"]
    size = path.stat().st_size
    assert (lost["path"], lost["state"], lost["bytes"], lost["lost_bytes"]) == (str(path), "corrupt", size, size)
    assert [(defect["kind"], defect["message"]) for defect in lost["defects"]] == [("worker", why)]
    shutil.rmtree(path.parent)
    sound = breaker("replay", corpus, "--events", "--format", "json", "--jobs", "1")
    assert without_poison(sound.stdout) == without_poison(done.stdout)


def test_poison_is_no_error_but_under_strict(corpus: Path, tmp_path: Path) -> None:
    done = poisoned(KILL, tmp_path / "hook", "replay", corpus)
    assert (done.returncode, done.stderr) == (0, "")
    assert KILLED in done.stdout
    done = poisoned(KILL, tmp_path / "hook", "replay", corpus, "--strict")
    told = "breaker: error: --strict: 1 of 9 session files did not read ok\n"
    assert (done.returncode, done.stderr) == (3, told)


@pytest.mark.slow
def test_a_corpus_of_poison_alone_is_unreadable(corpus: Path, tmp_path: Path) -> None:
    (path,) = corpus.rglob(f"{POISON}/*")
    shutil.copytree(path.parent, path.parent.with_name(f"{POISON}-again"))
    done = poisoned(KILL, tmp_path / "hook", "replay", *sorted(corpus.rglob(f"{POISON}*")))
    assert (done.returncode, done.stderr) == (3, "breaker: error: none of 2 session files could be read\n")


def test_a_process_killed_once_costs_nothing(corpus: Path, tmp_path: Path) -> None:
    sound = breaker("replay", corpus, "--events", "--format", "json", "--jobs", "1")
    done = poisoned(KILL_FIRST, tmp_path / "hook", "replay", corpus, "--events", "--format", "json")
    assert len((tmp_path / "hook" / "reached").read_text().split()) >= 2
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == sound.stdout


@pytest.mark.slow
def test_tables_without_the_poison_are_those_of_the_rest(corpus: Path, tmp_path: Path) -> None:
    done = poisoned(KILL, tmp_path / "hook", "export", corpus, *AS_TEXT, "--out", tmp_path / "with")
    assert (done.returncode, done.stderr) == (0, "")
    shutil.rmtree(next(corpus.rglob(POISON)))
    assert breaker("export", corpus, *AS_TEXT, "--out", tmp_path / "without").returncode == 0
    tables = {path.name: path.read_bytes() for path in sorted((tmp_path / "without").glob("*.ndjson"))}
    lost = (tmp_path / "with" / "read_report.ndjson").read_bytes().splitlines(keepends=True)
    assert [b"died (killed by SIGKILL)" in line for line in lost] == [number == 4 for number in range(9)]
    (tmp_path / "with" / "read_report.ndjson").write_bytes(b"".join(lost[:4] + lost[5:]))
    assert {path.name: path.read_bytes() for path in sorted((tmp_path / "with").glob("*.ndjson"))} == tables
    assert len(tables) == 8
