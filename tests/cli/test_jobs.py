"""`--jobs`: several processes give, byte for byte, what one gives."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from analysis.synth import write_corpus
from tests.cli.commands import breaker, breaker_process

TABLES = (
    "sessions",
    "turns",
    "calls",
    "events",
    "measures",
    "streaks",
    "histogram",
    "read_report",
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    write_corpus(folder, "demo")
    return folder


def test_two_processes_print_what_one_prints(demo: Path) -> None:
    one = breaker_process("replay", str(demo), "--format", "json", "--events", "--jobs", "1")
    two = breaker_process("replay", str(demo), "--format", "json", "--events", "--jobs", "2")
    assert (one.returncode, two.returncode, two.stderr) == (0, 0, "")
    assert one.stdout == two.stdout


def test_the_tables_have_the_same_bytes(demo: Path, tmp_path: Path) -> None:
    for jobs in ("1", "2"):
        done = breaker_process("export", str(demo), "--out", str(tmp_path / jobs), "--jobs", jobs)
        assert done.returncode == 0
    for table in TABLES:
        name = f"{table}.parquet"
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_detectors_work_in_several_processes_too(demo: Path) -> None:
    arguments = ("replay", str(demo), "--detector", "fail-guard", "--detector", "openhands", "--format", "json")
    one = breaker_process(*arguments, "--jobs", "1")
    two = breaker_process(*arguments, "--jobs", "2")
    assert one.returncode == 0
    assert one.stdout == two.stdout


def test_torn_and_unreadable_files_are_reported_alike(demo: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    shutil.copytree(demo, corpus)
    (corpus / "session.jsonl").write_text("no header\n")
    one = breaker("replay", str(corpus), "--format", "json", "--jobs", "1")
    two = breaker("replay", str(corpus), "--format", "json", "--jobs", "2")
    assert '"corrupt": 1' in one.stdout
    assert one.stdout == two.stdout


@pytest.mark.parametrize("jobs", ["0", "-1", "two", "1.5", "99999", ""])
def test_a_number_of_processes_that_is_none_is_a_usage_error(demo: Path, jobs: str) -> None:
    done = breaker("replay", str(demo), "--jobs", jobs)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"breaker: error: --jobs {jobs}: not a number of processes from 1 to 999, nor auto\n"
