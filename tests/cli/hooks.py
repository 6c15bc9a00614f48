"""Let something happen inside the command, or in the processes it starts, when it comes to a certain file.

What happens is written in a `sitecustomize.py`, which Python runs before all else in every process of the run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess, Popen
from typing import Literal

from tests.cli.commands import COMMAND, PATIENCE, Ran

__all__ = ["KILL", "KILL_FIRST", "STARVE", "STOP", "Hook", "Running", "hooked", "started"]

_SITE = """
import os, resource, signal, sys, time

passed = 0

def watch(event, given):
    global passed
    if event != {event!r} or not given or not isinstance(given[0], (str, bytes)):
        return
    passed += {path!r} in os.fsdecode(given[0])
    if {path!r} in os.fsdecode(given[0]) and passed > {skip}:
        reached = os.open({reached!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(reached, b"here\\n")
        os.close(reached)
        {does}

if {where!r} == ("worker" if "analysis.processes.serving" in " ".join(sys.orig_argv) else "main"):
    sys.addaudithook(watch)
"""

STOP = "time.sleep(1000)"
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
KILL_FIRST = f"os.path.getsize({{reached!r}}) > len('here.') or {KILL}"
STARVE = (
    "held = int(open('/proc/self/statm').read().split()[0]) * os.sysconf('SC_PAGE_SIZE'); "
    "resource.setrlimit(resource.RLIMIT_AS, (held + (24 << 20),) * 2)"
)
"""Leave the process 24 MiB of memory more than it has."""


@dataclass(frozen=True)
class Hook:
    """What happens where."""

    does: str
    path: str
    """Part of the path of the file."""
    where: Literal["main", "worker"] = "worker"
    event: str = "open"
    """What is done with the file, as Python's audit events call it."""
    skip: int = 0
    """How many times it may be done before."""


def hooked(hook: Hook, folder: Path) -> dict[str, str]:
    """Return the environment of a run with a hook; `folder` takes its files, `reached` among them once it acted."""
    folder.mkdir(exist_ok=True)
    reached = str(folder / "reached")
    does = hook.does.replace("{reached!r}", repr(reached))
    site = _SITE.format(event=hook.event, path=hook.path, skip=hook.skip, reached=reached, does=does, where=hook.where)
    (folder / "sitecustomize.py").write_text(site, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}


class Running:
    """The command as a process that leads a session and a group of its own, and all it has started."""

    def __init__(self, process: Popen[bytes], reached: Path) -> None:
        self.process = process
        self._reached = reached

    def wait_until_reached(self) -> None:
        """Wait until the hook acts."""
        wait_for(lambda: self._reached.exists() or self.process.poll() is not None)
        assert self.process.returncode is None, self.process.communicate()

    def others(self) -> list[int]:
        """Return the processes of the session besides the command itself."""
        return [one for one in _processes_of_session(self.process.pid) if one != self.process.pid]

    def end(self) -> Ran:
        """Wait for the end of the command, and of all it has started."""
        out, err = self.process.communicate(timeout=PATIENCE)
        wait_for(lambda: not self.others())
        return CompletedProcess(self.process.args, self.process.returncode, out.decode(), err.decode())


@contextmanager
def started(*arguments: str | Path, hook: Hook, folder: Path) -> Generator[Running]:
    """Start the command with a hook; whatever is left of it at the end is killed."""
    process = Popen(
        [str(COMMAND), *map(str, arguments)],
        env=hooked(hook, folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    running = Running(process, folder / "reached")
    try:
        yield running
    finally:
        for one in [*running.others(), process.pid] if process.poll() is None else running.others():
            os.kill(one, signal.SIGKILL)
        process.communicate()


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something holds; a test that has to wait too long fails."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def _processes_of_session(leader: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    found: list[int] = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = status.read_text()
        except OSError:
            continue
        state, _, _, session = text.rpartition(")")[2].split()[:4]
        if int(session) == leader and state != "Z":
            found.append(int(status.parent.name))
    return found
