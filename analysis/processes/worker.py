"""A worker seen from its parent: a process for one kind of work, started afresh.

Nothing of the parent comes along but the environment and where modules are found; the program that runs in the parent
does not, either.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from io import RawIOBase
from queue import SimpleQueue
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Thread
from typing import TypeAlias, cast

from analysis.processes.serving import ENDING_SIGNALS, mask, read_frame, skip_to, write_frame

__all__ = [
    "Told",
    "Worker",
    "WorkerFault",
    "are_ahead",
    "cannot_start",
    "end_ahead",
    "end_all",
    "held_back",
    "how_it_ended",
    "workers_ahead",
]

_SERVE = (
    "import sys; module, parent, mark, *sys.path[:] = sys.argv[1:]; del sys.argv[1:]; "
    "from analysis.processes.serving import serve; serve(module, int(parent), mark)"
)
_LAST_BREATH = 0.2
"""Seconds until the end of its pipe is met, once a worker is gone."""
_MARK_BYTES = 16
_LAST_WORDS = 10
"""Seconds a worker that has closed its pipe has to end by itself, and so to tell how it ended."""

_ahead: list[Worker] = []
"""Those that were started before it was known what for."""


class WorkerFault(RuntimeError):
    """A worker met a fault that is nobody's input, or there can be none; the message says what."""


class Worker:
    """One process, and what its pool knows of it.

    Args:
        module: what the work is made of; it is loaded while the work is still awaited.

    Raises:
        WorkerFault: no process can be started.
    """

    def __init__(self, module: str) -> None:
        self.items: deque[int] = deque()
        """The item it works on, and the one it goes on with."""
        self.began = False
        """It has its work."""
        self.used = False
        """It was given an item."""
        self.silent = False
        """It says no more."""
        self.module = module
        self._listener: Thread | None = None
        self._mark = os.urandom(_MARK_BYTES).hex()
        command = [sys.executable, *_flags(), "-c", _SERVE, module, str(os.getpid()), self._mark, *sys.path]
        with held_back():
            try:
                self._process = Popen(command, stdin=PIPE, stdout=PIPE, bufsize=0)  # noqa: S603
            except OSError as error:
                raise cannot_start(error.strerror or str(error)) from None

    @classmethod
    def ready(cls, module: str) -> Worker:
        """Return one that was started ahead for such work, else start one."""
        one = next((worker for worker in _ahead if worker.module == module), None)
        if one is None:
            return cls(module)
        _ahead.remove(one)
        return one

    def listen(self, told: SimpleQueue[Told]) -> None:
        """Put all it tells there from now on."""
        listener = Thread(target=self._listen, args=(told,), daemon=True)
        try:
            with held_back():  # the thread begins so: what ends this process is for the main thread
                listener.start()
        except RuntimeError as error:
            raise cannot_start(str(error)) from None
        self._listener = listener

    def send(self, payload: bytes) -> bool:
        """Give it its work, or the next item, and tell whether it could be given: not where it is no more."""
        try:
            write_frame(cast("RawIOBase", self._process.stdin), payload)
        except OSError:
            return False
        return True

    def mourn(self) -> int | None:
        """Return the exit code of one that says no more, after it is gone; negative for a signal."""
        with suppress(TimeoutExpired):
            self._process.wait(_LAST_WORDS)
        self.end()
        return self._process.returncode

    def kill(self) -> None:
        """End it now, whatever it does."""
        self._process.kill()

    def end(self) -> None:
        """End it, and wait until it is gone."""
        self.kill()
        self._process.wait()
        cast("RawIOBase", self._process.stdin).close()
        if self._listener is None:
            cast("RawIOBase", self._process.stdout).close()
        else:
            # What work has started and left running holds the pipe open; then the listener waits until that ends.
            self._listener.join(_LAST_BREATH)

    def _listen(self, told: SimpleQueue[Told]) -> None:
        pipe = cast("RawIOBase", self._process.stdout)
        try:
            before = skip_to(pipe, self._mark)
            if before:
                with suppress(OSError, ValueError):
                    sys.stderr.write(before.decode("utf-8", "backslashreplace"))
            while before is not None and (frame := read_frame(pipe)) is not None:
                told.put((self, frame))
        except ValueError:
            self.kill()  # it is not what was started
        except MemoryError as fault:
            told.put((self, fault))
        finally:
            pipe.close()
            told.put((self, None))


Told: TypeAlias = tuple[Worker, bytearray | MemoryError | None]
"""What a worker told, or that there is no memory to hear it; None for that it says no more."""


def cannot_start(why: str) -> WorkerFault:
    """Return the fault of there being no worker."""
    return WorkerFault(f"a process to read with cannot be started ({why})")


def _flags() -> list[str]:
    """Return what this interpreter was told that decides how Python runs, not what it shows."""
    flags = sys.flags
    given = [f"-Xutf8={flags.utf8_mode}", *(f"-W{text}" for text in sys.warnoptions)]
    wanted = {
        "-I": flags.isolated,
        "-E": flags.ignore_environment,
        "-s": flags.no_user_site,
        "-S": flags.no_site,
        "-P": flags.safe_path,
        "-B": flags.dont_write_bytecode,
        "-O": flags.optimize,
    }
    return given + [flag for flag, times in wanted.items() for _ in range(times)]


def how_it_ended(code: int | None) -> str:
    """Tell an exit code in words."""
    if code is not None and code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return f"exit code {code}"


def are_ahead(module: str) -> bool:
    """Tell whether some were started ahead for such work."""
    return any(worker.module == module for worker in _ahead)


@contextmanager
def workers_ahead(module: str, count: int) -> Generator[None]:
    """Start workers before there is work for them, so that they get ready while the parent does; none is left at last.

    Where the system has no process to spare now, whoever needs one later will tell.
    """
    started: list[Worker] = []
    try:
        with suppress(WorkerFault):
            for _ in range(count):
                with held_back():
                    started.append(Worker(module))
                    _ahead.append(started[-1])
        yield
    finally:
        _end_ahead([worker for worker in started if worker in _ahead])


def end_ahead(module: str) -> None:
    """End those that were started ahead for such work and are too many."""
    _end_ahead([worker for worker in _ahead if worker.module == module])


def _end_ahead(workers: list[Worker]) -> None:
    end_all(workers)
    for worker in workers:
        _ahead.remove(worker)


def end_all(workers: list[Worker]) -> None:
    """End many at the same time."""
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.end()


@contextmanager
def held_back() -> Generator[None]:
    """Hold back the signals that end this process: around starting another and taking note of it, so that none is left.

    That one begins with them held back too, until it is ready for them.
    """
    held = mask("SIG_BLOCK", ENDING_SIGNALS)
    try:
        yield
    finally:
        mask("SIG_SETMASK", held)
