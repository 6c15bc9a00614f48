"""Memory stays flat: more sessions and longer ones cost next to nothing, and no process takes 200 MB beyond a line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.sessions.decode import Limits
from analysis.synth import write_corpus
from tests.analysis.logs import LogWriter
from tests.cli.commands import COMMAND, PATIENCE

MEBI = 1 << 20
MOST = 200 * MEBI
NOISE = 4 * MEBI
"""What the same run may take more or less."""
KEPT_OF_A_SESSION = 10 * 1024
"""A session's row and its row of the read report are kept to the end; of its tables, where each lies."""
KEPT_OF_A_CALL = 512
"""Of a settled call its number and id are kept to the session's end: a second result must be known as one."""

PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


def peak_of(*arguments: str | Path) -> int:
    """Return the most bytes that the command, or any process it starts, had in memory at once."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, COMMAND, *arguments, "--cache", "off"],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=10 * PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return int(done.stdout)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sessions(tmp_path_factory.mktemp("few"), 100)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sessions(tmp_path_factory.mktemp("many"), 400)


def write_sessions(folder: Path, sessions: int) -> Path:
    write_corpus(folder, "scale", sessions=sessions, calls=12, result_bytes=1000)
    return folder


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_four_times_the_sessions_take_no_more_than_their_rows(few: Path, many: Path, jobs: str) -> None:
    once, four_times = (peak_of("replay", corpus, "--jobs", jobs) for corpus in (few, many))
    assert four_times < MOST
    assert four_times - once < 300 * KEPT_OF_A_SESSION + NOISE


@pytest.mark.slow
@pytest.mark.parametrize(
    "verb",
    [("sweep", "--grid", "warnAt=2,4"), ("histogram",)],
    ids=["sweep", "histogram"],
)
def test_so_it_is_where_sessions_are_compared_or_counted(few: Path, many: Path, verb: tuple[str, ...]) -> None:
    once, four_times = (peak_of(verb[0], corpus, *verb[1:]) for corpus in (few, many))
    assert four_times < MOST
    assert four_times - once < 300 * KEPT_OF_A_SESSION + NOISE


def test_four_times_the_session_takes_no_more_than_what_is_kept_of_its_calls(tmp_path: Path) -> None:
    for calls in (2_000, 8_000):
        write_corpus(tmp_path / str(calls), "scale", sessions=1, calls=calls, result_bytes=2000)
    once, four_times = (peak_of("replay", tmp_path / str(calls)) for calls in (2_000, 8_000))
    assert four_times < MOST
    assert four_times - once < 6_000 * KEPT_OF_A_CALL + NOISE


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_long_line_takes_no_more_than_it_is_long(tmp_path: Path, jobs: str) -> None:
    for number, length in enumerate((40 * MEBI, 10)):
        log = LogWriter(f"session-{number}")
        log.user()
        log.bash("cat", "x" * length)
        log.write(tmp_path)
    assert peak_of("replay", tmp_path, "--jobs", jobs) < MOST + 40 * MEBI


@pytest.mark.slow
@pytest.mark.parametrize("compressed", [False, True])
def test_the_longest_line_there_may_be_takes_no_more_than_it_is_long(tmp_path: Path, compressed: bool) -> None:
    log = LogWriter()
    log.user()
    log.bash("cat", "word\n" * (62 * MEBI // 6))
    log.write(tmp_path / "logs", compressed=compressed)
    longest = max(map(len, log.lines))
    assert 61 * MEBI < longest < Limits().max_line
    for verb in (("replay",), ("sweep", "--grid", "warnAt=2,4"), ("export", "--out", tmp_path / "tables")):
        assert peak_of(verb[0], tmp_path / "logs", *verb[1:]) < MOST + longest, verb[0]


@pytest.mark.slow
def test_tables_wait_on_disk_and_are_written_in_pieces(tmp_path: Path) -> None:
    peaks: list[int] = []
    for sessions in (600, 2400):
        write_corpus(tmp_path / str(sessions), "scale", sessions=sessions, calls=20, result_bytes=500)
        out = tmp_path / f"{sessions}-tables"
        peaks.append(peak_of("export", tmp_path / str(sessions), "--jobs", "2", "--out", out))
    assert peaks[1] < MOST
    assert peaks[1] - peaks[0] < 1_800 * (KEPT_OF_A_SESSION + 20 * KEPT_OF_A_CALL)
