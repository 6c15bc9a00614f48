"""No room for an output: exit 2, one line that names the place, and nothing half-written under any name."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from tests.analysis.logs import LogWriter
from tests.cli.commands import COMMAND, PATIENCE

NO_SPACE = "No space left on device"
TOO_LARGE = "File too large"

FILES: dict[str, tuple[str, ...]] = {
    "export": ("export", "{corpus}", "--jobs", "2", "--out", "{out}/tables"),
    "csv": ("export", "{corpus}", "--format", "csv", "--out", "{out}/tables"),
    "report": ("report", "{corpus}", "--format", "json", "--out", "{out}/page.json"),
    "sweep": ("sweep", "{corpus}", "--grid", "warnAt=2..40", "--out", "{out}/sweep.csv"),
    "parquet": ("sweep", "{corpus}", "--grid", "warnAt=2..40", "--out", "{out}/sweep.parquet"),
}
PRINTED: dict[str, tuple[str, ...]] = {
    "table": ("replay", "{corpus}"),
    "json": ("replay", "{corpus}", "--events", "--format", "json"),
    "lines": ("replay", "{corpus}", "--set", "warnAt=2", "--format", "jsonl"),
    "sweep": ("sweep", "{corpus}", "--grid", "warnAt=2..40", "--format", "csv"),
    "report": ("report", "{corpus}", "--format", "json"),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return sessions whose tables are of several kilobytes."""
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(4):
        log = LogWriter(f"session-{number}")
        log.user()
        for step in range(150):
            log.bash(f"make {step}", "fine")
            log.bash("make", "out\n[exit code: 1]")
        log.write(folder)
    return folder


def filled(words: tuple[str, ...], corpus: Path, out: Path) -> list[str]:
    return [word.replace("{corpus}", str(corpus)).replace("{out}", str(out)) for word in words]


@pytest.mark.parametrize("room", [pytest.param(0, marks=pytest.mark.slow), 700])
@pytest.mark.parametrize(
    "verb", ["export", "sweep", *(pytest.param(one, marks=pytest.mark.slow) for one in ("csv", "report", "parquet"))]
)
def test_an_output_for_which_there_is_no_room_leaves_nothing(
    corpus: Path, tmp_path: Path, verb: str, room: int
) -> None:
    """A limit on the size of files stands for a full disk: some tables fit, a later one does not."""
    out = tmp_path / "out"

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    done = subprocess.run(
        [COMMAND, *filled(FILES[verb], corpus, out)],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    (place,) = [word for word in filled(FILES[verb], corpus, out) if word.startswith(str(out))]
    assert (done.returncode, done.stderr) == (2, f"breaker: error: {place}: cannot write: {TOO_LARGE}\n")
    assert done.stdout == ""
    assert list(out.rglob("*")) == []


@pytest.mark.parametrize(
    "verb", ["json", "table", *(pytest.param(one, marks=pytest.mark.slow) for one in ("lines", "sweep", "report"))]
)
def test_standard_output_without_room_is_one_line(corpus: Path, tmp_path: Path, verb: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [COMMAND, *filled(PRINTED[verb], corpus, tmp_path)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, f"breaker: error: standard output: cannot write: {NO_SPACE}\n")


def test_a_device_is_not_replaced(corpus: Path, tmp_path: Path) -> None:
    device = tmp_path / "device"
    os.mkfifo(device)
    done = subprocess.run(
        [COMMAND, "report", corpus, "--format", "json", "--out", device, "--force"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    told = f"breaker: error: {device}: is no file; only a file can be replaced by one\n"
    assert (done.returncode, done.stderr) == (2, told)
    assert device.is_fifo()


def test_a_reader_of_several_processes_output_that_goes_away_is_no_error(corpus: Path) -> None:
    shell = (
        f"'{COMMAND}' replay '{corpus}' --jobs 2 --format jsonl --set warnAt=2 | head -1; echo ${{PIPESTATUS[0]}} >&2"
    )
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stdout.count("\n") == 1
    assert done.stderr == "0\n"
