"""Interrupted, terminated or killed in the middle: no process is left, nothing half-written, the next run is right."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.analysis.logs import LogWriter
from tests.cli.commands import breaker_process
from tests.cli.hooks import STOP, Hook, started

READING: dict[str, tuple[tuple[str, ...], Hook]] = {
    "replay": (("replay", "{corpus}", "--jobs", "2"), Hook(STOP, "session-4")),
    "replay alone": (("replay", "{corpus}", "--jobs", "1"), Hook(STOP, "session-4", "main", skip=1)),
    "export": (("export", "{corpus}", "--jobs", "2", "--out", "{out}/tables"), Hook(STOP, "session-4")),
    "report": (("report", "{corpus}", "--jobs", "2", "--out", "{out}/page.html"), Hook(STOP, "session-4")),
    "sweep": (
        ("sweep", "{corpus}", "--grid", "warnAt=2,4", "--out", "{out}/sweep.csv"),
        Hook(STOP, "session-4", "main", skip=1),
    ),
}
"""Verbs that stop in the middle of a session."""
WRITING: dict[str, tuple[tuple[str, ...], Hook]] = {
    "export": (("export", "{corpus}", "--out", "{out}/tables"), Hook(STOP, ".part/calls", "main")),
    "report": (
        ("report", "{corpus}", "--format", "json", "--out", "{out}/page.json"),
        Hook(STOP, ".page.json.", "main", "os.rename"),
    ),
    "sweep": (
        ("sweep", "{corpus}", "--grid", "warnAt=2,4", "--out", "{out}/sweep.csv"),
        Hook(STOP, ".sweep.csv.", "main", "os.rename"),
    ),
}
"""Verbs that stop in the middle of what they write: with half of it there, or all of it under its first name."""
TOLD = {signal.SIGINT: (130, "breaker: error: interrupted\n"), signal.SIGTERM: (-signal.SIGTERM, "")}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a few small sessions."""
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(6):
        log = LogWriter(f"session-{number}")
        log.user()
        for step in range(8):
            log.bash(f"make {step % 2}", "out\n[exit code: 1]" if number % 2 else "fine")
        log.write(folder)
    return folder


def filled(words: tuple[str, ...], corpus: Path, out: Path) -> list[str]:
    return [word.replace("{corpus}", str(corpus)).replace("{out}", str(out)) for word in words]


def written(out: Path) -> list[str]:
    """Return everything below a folder."""
    return sorted(str(path.relative_to(out)) for path in out.rglob("*"))


@pytest.mark.parametrize(
    ("verb", "number", "whole_group"),
    [
        ("replay", signal.SIGINT, True),
        ("export", signal.SIGTERM, True),
        ("replay", signal.SIGTERM, False),
        pytest.param("sweep", signal.SIGINT, True, marks=pytest.mark.slow),
        pytest.param("replay", signal.SIGINT, False, marks=pytest.mark.slow),
        pytest.param("replay alone", signal.SIGINT, True, marks=pytest.mark.slow),
        pytest.param("replay alone", signal.SIGTERM, False, marks=pytest.mark.slow),
        pytest.param("export", signal.SIGINT, True, marks=pytest.mark.slow),
        pytest.param("report", signal.SIGINT, True, marks=pytest.mark.slow),
    ],
)
def test_stopped_while_reading(
    corpus: Path, tmp_path: Path, verb: str, number: signal.Signals, whole_group: bool
) -> None:
    """As a terminal does, to every process of the group, or as somebody does who knows the command's number."""
    words, hook = READING[verb]
    out = tmp_path / "out"
    out.mkdir()
    with started(*filled(words, corpus, out), hook=hook, folder=tmp_path / "hook") as run:
        run.wait_until_reached()
        assert len(run.others()) == (2 if "2" in words else 0)
        (os.killpg if whole_group else os.kill)(run.process.pid, number)
        done = run.end()
    assert (done.returncode, done.stderr) == TOLD[number]
    assert done.stdout == ""
    assert written(out) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_while_the_program_is_still_loaded(corpus: Path, tmp_path: Path, number: signal.Signals) -> None:
    """The processes that will read are there already."""
    words = ("replay", str(corpus), "--jobs", "2", "--cache", "off")
    with started(*words, hook=Hook(STOP, "/corpus.", "main"), folder=tmp_path / "hook") as run:
        run.wait_until_reached()
        assert len(run.others()) == 2
        os.killpg(run.process.pid, number)
        done = run.end()
    assert (done.returncode, done.stderr) == TOLD[number]
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("verb", "number"),
    [
        ("export", signal.SIGINT),
        ("sweep", signal.SIGTERM),
        pytest.param("export", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("report", signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_stopped_while_writing(corpus: Path, tmp_path: Path, verb: str, number: signal.Signals) -> None:
    words, hook = WRITING[verb]
    out = tmp_path / "out"
    out.mkdir()
    with started(*filled(words, corpus, out), hook=hook, folder=tmp_path / "hook") as run:
        run.wait_until_reached()
        assert [name for name in written(out) if ".part" in name]
        run.process.send_signal(number)
        done = run.end()
    assert (done.returncode, done.stderr) == TOLD[number]
    assert done.stdout == ""
    assert written(out) == []


def test_killed_while_reading_the_workers_end_by_themselves(corpus: Path, tmp_path: Path) -> None:
    words, hook = READING["export"]
    out = tmp_path / "out"
    out.mkdir()
    with started(*filled(words, corpus, out), hook=hook, folder=tmp_path / "hook") as run:
        run.wait_until_reached()
        assert len(run.others()) == 2
        run.process.kill()
        assert run.end().returncode == -signal.SIGKILL
    assert written(out) == []


@pytest.mark.parametrize(
    "verb", ["export", *(pytest.param(one, marks=pytest.mark.slow) for one in ("report", "sweep"))]
)
def test_killed_while_writing_the_next_run_is_right_and_leaves_nothing_else(
    corpus: Path, tmp_path: Path, verb: str
) -> None:
    words, hook = WRITING[verb]
    out, clean = tmp_path / "out", tmp_path / "clean"
    for folder in (out, clean):
        folder.mkdir()
    with started(*filled(words, corpus, out), hook=hook, folder=tmp_path / "hook") as run:
        run.wait_until_reached()
        run.process.kill()
        assert run.end().returncode == -signal.SIGKILL
    left = written(out)
    assert [name for name in left if ".part" in name]
    assert [name for name in left if ".part" not in name] == (["tables"] if verb == "export" else [])
    for folder in (out, clean):
        done = breaker_process(*filled(words, corpus, folder))
        assert (done.returncode, done.stderr) == (0, "")
    assert written(out) == written(clean)
    for name in written(clean):
        assert not (clean / name).is_file() or (out / name).stat().st_size > 0


def test_stopped_while_the_workers_start(corpus: Path, tmp_path: Path) -> None:
    words, _ = READING["replay"]
    with started(*filled(words, corpus, tmp_path), hook=Hook(STOP, "/analysis/"), folder=tmp_path / "hook") as run:
        run.wait_until_reached()
        os.killpg(run.process.pid, signal.SIGINT)
        done = run.end()
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "breaker: error: interrupted\n")


@pytest.mark.slow
def test_a_second_interrupt_changes_nothing(corpus: Path, tmp_path: Path) -> None:
    words, hook = READING["export"]
    out = tmp_path / "out"
    out.mkdir()
    with started(*filled(words, corpus, out), hook=hook, folder=tmp_path / "hook") as run:
        run.wait_until_reached()
        for _ in range(3):
            os.killpg(run.process.pid, signal.SIGINT)
        done = run.end()
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert written(out) == []


def test_a_terminal_that_goes_away_ends_it(corpus: Path, tmp_path: Path) -> None:
    words, hook = READING["replay"]
    with started(*filled(words, corpus, tmp_path), hook=hook, folder=tmp_path / "hook") as run:
        run.wait_until_reached()
        run.process.send_signal(signal.SIGHUP)
        done = run.end()
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGHUP, "", "")
