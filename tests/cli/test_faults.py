"""Disk full, a failing read, a process killed at any moment: no half file under a final name, the next run is right."""

from __future__ import annotations

import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from analysis.sessions import decode
from analysis.synth import write_corpus
from tests.analysis.logs import LogWriter
from tests.cli.commands import COMMAND, PATIENCE, breaker, breaker_process

VERBS: dict[str, tuple[str, ...]] = {
    "export": ("export", "{corpus}", "--out", "{out}/tables", "--format", "csv", "--force"),
    "report": ("report", "{corpus}", "--out", "{out}/page.json", "--format", "json", "--force"),
    "sweep": ("sweep", "{corpus}", "--grid", "warnAt=2,4", "--out", "{out}/sweep.csv", "--force"),
    "approve": ("approve", "{corpus}", "--config", "{out}/breaker.toml", "--baseline", "{out}/base.json"),
    "check": ("check", "{corpus}", "--config", "{out}/breaker.toml", "--report", "junit={out}/junit.xml"),
    "synth": ("synth", "--recipe", "demo", "--out", "{out}/synth", "--force"),
}
KILLS = 50
"""Processes killed at a moment drawn by lot."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a few small sessions."""
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(4):
        log = LogWriter(f"session-{number}")
        log.user()
        for step in range(9):
            log.bash(f"make {step % 2}", "out\n[exit code: 1]" if number % 2 else "fine")
        log.write(folder)
    return folder


def ready(out: Path) -> Path:
    """Return a folder in which a check can be run."""
    out.mkdir()
    (out / "breaker.toml").write_text("[check]\nsessions = ['.']\n[check.limits]\nwarn = 99\n", encoding="utf-8")
    return out


def arguments(verb: str, corpus: Path, out: Path) -> list[str]:
    return [word.replace("{corpus}", str(corpus)).replace("{out}", str(out)) for word in VERBS[verb]]


def written(out: Path) -> dict[str, bytes]:
    """Return the files under final names; what is being written has a name of its own."""
    files = (path for path in sorted(out.rglob("*")) if path.is_file())
    named = {str(path.relative_to(out)): path for path in files}
    return {name: path.read_bytes() for name, path in named.items() if not is_temporary(name)}


def is_temporary(name: str) -> bool:
    return any(part.startswith(".") or part.endswith((".tmp", ".part")) for part in name.split("/"))


def without_time(files: dict[str, bytes]) -> dict[str, bytes]:
    """Leave out what tells where or when a run was: the same run gives the same other bytes."""
    return {name: b"" if name.endswith("manifest.json") else data for name, data in files.items()}


# Disk full


@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(corpus: Path, tmp_path: Path, verb: str) -> None:
    out = ready(tmp_path / "out")
    before = written(out)

    def fill() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    done = subprocess.run(
        [COMMAND, *arguments(verb, corpus, out)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        preexec_fn=fill,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.split("\n") if line.startswith("breaker: error:")]
    assert "File too large" in line
    assert f"{out}/" in line
    assert written(out) == before
    assert [path for path in out.rglob("*") if path.is_file() and is_temporary(str(path.relative_to(out)))] == []
    again = breaker_process(*arguments(verb, corpus, out))
    assert again.returncode == 0
    assert written(out) != before


# A read that fails


@pytest.mark.parametrize("compressed", [False, True])
def test_a_read_that_fails_in_the_middle_keeps_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compressed: bool
) -> None:
    log = LogWriter()
    log.user()
    for number in range(3000):
        log.bash(f"make {number}", os.urandom(300).hex())
    path = log.write(tmp_path, compressed=compressed)
    assert path.stat().st_size > 1_100_000

    class Failing(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 1_000_000:
                raise OSError(5, "Input/output error")
            return super().read(size) or b""

    monkeypatch.setattr(decode, "io", SimpleNamespace(FileIO=Failing))
    done = breaker("doctor", tmp_path, "--format", "json")
    document = json.loads(done.stdout)
    (file,) = document["files"]
    assert (done.returncode, file["state"]) == (1, "partial")
    (finding,) = [one for one in file["findings"] if one["kind"] == "io"]
    assert "Input/output error" in finding["message"]
    assert finding["byte"] + finding["lost_bytes"] == path.stat().st_size
    assert 500 < json.loads(breaker("replay", tmp_path, "--format", "json").stdout)["totals"]["calls"] < 3000


# Killed


def in_a_child(work: Callable[[], None]) -> int:
    """Do something in a fork of this process and return what it ended with."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def steps_of(work: Callable[[], object], folder: Path, stop: int | None) -> int:
    """Do something, counting each change of a folder, and die just before the one of that number."""
    changes = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "shutil.rmtree")
    count = 0

    def watch(event: str, given: tuple[object, ...]) -> None:
        nonlocal count
        if event in changes and given and str(given[0]).startswith(str(folder)):
            count += 1
            if count == stop:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    work()
    return count


@pytest.mark.parametrize("verb", [pytest.param("export", marks=pytest.mark.slow), "approve"])
@pytest.mark.parametrize("standing", [False, True], ids=["new", "replacing"])
def test_killed_before_any_change_of_the_output_every_file_is_whole(
    corpus: Path, tmp_path: Path, verb: str, standing: bool
) -> None:
    old_corpus = tmp_path / "old"
    log = LogWriter("session-old")
    log.user()
    log.bash()
    log.write(old_corpus)
    clean = ready(tmp_path / "clean")
    assert breaker(*arguments(verb, corpus, clean)).returncode == 0
    new = without_time(written(clean))
    for stop in range(1, 200):
        out = ready(tmp_path / str(stop))
        if standing:
            assert breaker(*arguments(verb, old_corpus, out)).returncode == 0
        old = without_time(written(out))

        def work(out: Path = out, stop: int = stop) -> None:
            steps_of(lambda: breaker(*arguments(verb, corpus, out)), out, stop)

        ended = in_a_child(work)
        for name, data in without_time(written(out)).items():
            assert data in {old.get(name), new.get(name)}, f"{name} is half written (step {stop})"
        if not os.WIFSIGNALED(ended):
            assert ended == 0
            assert stop > 3
            assert without_time(written(out)) == new
            return
        assert breaker(*arguments(verb, corpus, out)).returncode == 0
        assert without_time(written(out)) == new
    pytest.fail("the work never came to its end")


@pytest.mark.slow
def test_killed_at_a_moment_drawn_by_lot_no_file_is_half_written(corpus: Path, tmp_path: Path) -> None:
    draw = random.Random(11)
    verbs = sorted(VERBS)
    clean: dict[str, dict[str, bytes]] = {}
    taken: dict[str, float] = {}
    for verb in verbs:
        out = ready(tmp_path / f"clean-{verb}")
        begun = time.monotonic()
        assert breaker_process(*arguments(verb, corpus, out)).returncode == 0
        taken[verb] = time.monotonic() - begun
        clean[verb] = without_time(written(out))
    killed = 0
    for number in range(KILLS):
        verb = verbs[number % len(verbs)]
        out = ready(tmp_path / str(number))
        process = subprocess.Popen(
            [COMMAND, *arguments(verb, corpus, out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(draw.uniform(0.3, 1.1) * taken[verb])
        process.kill()
        killed += process.wait(PATIENCE) == -signal.SIGKILL
        left = without_time(written(out))
        assert {name: data for name, data in left.items() if clean[verb][name] != data} == {}
        assert breaker_process(*arguments(verb, corpus, out)).returncode == 0
        assert without_time(written(out)) == clean[verb]
    assert killed > KILLS // 3


def test_a_corpus_is_written_whole_or_its_truth_is_not_there(tmp_path: Path) -> None:
    def work() -> None:
        steps_of(lambda: write_corpus(tmp_path / "out", "demo"), tmp_path / "out", 30)

    assert os.WIFSIGNALED(in_a_child(work))
    assert not (tmp_path / "out" / "truth.json").exists()
    assert write_corpus(tmp_path / "out", "demo", force=True).sessions
