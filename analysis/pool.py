"""Several processes over many files: one file at a time each, results in the order of the files.

A worker that dies, killed or out of memory, costs the file it had, not the run.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Generic, Protocol, TypeVar, cast

__all__ = ["FileWork", "Lost", "WorkerFault", "available_processors", "is_sendable", "run_files"]

Item = TypeVar("Item")
Result = TypeVar("Result")
ItemIn = TypeVar("ItemIn", contravariant=True)
ResultOut = TypeVar("ResultOut", covariant=True)

_AHEAD = 32
"""How far, per worker, work may be ahead of the first file whose result is still missing; it bounds what is kept."""
_TOLD_AT_ONCE = 1024 * 1024
"""Bytes a worker reads before it tells of them."""


class FileWork(Protocol[ItemIn, ResultOut]):
    """What is done with one file; it is sent to the workers once and must be picklable."""

    def __call__(self, item: ItemIn, on_bytes: Callable[[int], None]) -> ResultOut:
        """Work on one item and tell how many bytes were read."""
        ...


@dataclass(frozen=True, slots=True)
class Lost:
    """Stands for the result of an item whose worker died."""

    why: str


class WorkerFault(RuntimeError):
    """A worker met a fault that is nobody's input; the message is its traceback."""


def available_processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(len(os.sched_getaffinity(0)), 1)
    return os.cpu_count() or 1


def is_sendable(work: object) -> bool:
    """Tell whether work can be handed to another process."""
    try:
        pickle.dumps(work)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    return True


def run_files(
    items: Sequence[Item],
    work: FileWork[Item, Result],
    *,
    sizes: Sequence[int],
    jobs: int,
    on_bytes: Callable[[int], None],
) -> Generator[Result | Lost]:
    """Do the work on every item in `jobs` processes and give the results in the order of the items.

    Of the items near at hand the largest is begun first. Closing the iterator, or an interrupt, ends all workers.

    Raises:
        WorkerFault: the work raised what it should not, or no process can be started.
    """
    pool = _Pool(items, work, sizes, jobs, on_bytes)
    try:
        yield from pool.results()
    finally:
        pool.end()


@contextmanager
def _nameless_main() -> Generator[None]:
    """Hide the program from a process that is being started: it would run it again to find names it does not need."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class _Worker(Generic[Item, Result]):
    def __init__(self, context: SpawnContext, work: FileWork[Item, Result]) -> None:
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_serve, args=(theirs, work), daemon=True)
        with _nameless_main():
            self.process.start()
        theirs.close()
        self.began = False
        self.index: int | None = None

    def end(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join()


class _Pool(Generic[Item, Result]):
    def __init__(
        self,
        items: Sequence[Item],
        work: FileWork[Item, Result],
        sizes: Sequence[int],
        jobs: int,
        on_bytes: Callable[[int], None],
    ) -> None:
        self._items = items
        self._work = work
        self._sizes = sizes
        self._on_bytes = on_bytes
        self._context = multiprocessing.get_context("spawn")
        self._ahead = _AHEAD * jobs
        self._waiting = set(range(len(items)))
        self._ready: dict[int, Result | Lost] = {}
        self._next = 0
        self._workers: list[_Worker[Item, Result]] = []
        for _ in range(min(jobs, len(items))):
            self._workers.append(_Worker(self._context, work))

    def results(self) -> Iterator[Result | Lost]:
        while self._next < len(self._items):
            self._give_work()
            self._take_answers()
            while self._next in self._ready:
                yield self._ready.pop(self._next)
                self._next += 1

    def end(self) -> None:
        for worker in self._workers:
            worker.end()

    def _give_work(self) -> None:
        for worker in self._workers:
            if worker.index is not None:
                continue
            near = [index for index in range(self._next, self._next + self._ahead) if index in self._waiting]
            if not near:
                return
            index = max(near, key=lambda place: (self._sizes[place], -place))
            worker.index = index
            self._waiting.remove(index)
            try:
                worker.connection.send((index, self._items[index]))
            except OSError:
                self._replace(worker)

    def _take_answers(self) -> None:
        busy = [worker for worker in self._workers if worker.index is not None]
        ready = wait([worker.connection for worker in busy])
        for worker in (one for one in busy if one.connection in ready):
            try:
                kind, content = cast("tuple[str, object]", worker.connection.recv())
            except (EOFError, OSError):
                self._replace(worker)
                continue
            if kind == "began":
                worker.began = True
            elif kind == "bytes":
                self._on_bytes(cast("int", content))
            elif kind == "fault":
                raise WorkerFault(str(content))
            else:
                self._answer(worker, Lost(str(content)) if kind == "lost" else cast("Result", content))

    def _answer(self, worker: _Worker[Item, Result], result: Result | Lost) -> None:
        if worker.index is not None:
            self._ready[worker.index] = result
        worker.index = None

    def _replace(self, worker: _Worker[Item, Result]) -> None:
        """Give up the file a dead worker had, and put a new worker in its place."""
        worker.process.join()
        if not worker.began:
            message = f"a process to read with cannot be started ({_how(worker.process.exitcode)})"
            raise WorkerFault(message)
        self._answer(worker, Lost(f"the process that read it died ({_how(worker.process.exitcode)})"))
        worker.end()
        self._workers[self._workers.index(worker)] = _Worker(self._context, self._work)


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return f"exit code {code}"


def _serve(connection: Connection, work: FileWork[object, object]) -> None:
    """Be a worker: an interrupt is the parent's to handle, and a parent that is gone ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    untold = 0

    def on_bytes(count: int) -> None:
        nonlocal untold
        untold += count
        if untold >= _TOLD_AT_ONCE:
            connection.send(("bytes", untold))
            untold = 0

    try:
        connection.send(("began", None))
        while True:
            _, item = cast("tuple[int, object]", connection.recv())
            connection.send(_outcome(work, item, on_bytes))
    except (EOFError, OSError):
        return


def _outcome(work: FileWork[object, object], item: object, on_bytes: Callable[[int], None]) -> tuple[str, object]:
    try:
        return "done", work(item, on_bytes)
    except MemoryError:
        return "lost", "it took more memory than there is"
    except OSError:
        raise
    except Exception:  # noqa: BLE001
        return "fault", traceback.format_exc()
