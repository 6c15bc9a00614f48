"""Several processes over many files: one file at a time each, results in the order of the files.

A worker that dies, killed or out of memory, loses the file it had. The file is tried once more, in a fresh process
while no other works: what killed the worker from outside, or memory that several took together, costs nothing. A file
that ends that process too is given up, and the run goes on without it.

Workers end with the process that began them, however that ended.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.resource_tracker
import os
import pickle
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from threading import Thread
from types import ModuleType
from typing import Generic, Protocol, TypeVar, cast

import msgspec

__all__ = ["FileWork", "Lost", "WorkerFault", "available_processors", "is_sendable", "run_files"]

Item = TypeVar("Item")
Result = TypeVar("Result")
ItemIn = TypeVar("ItemIn", contravariant=True)
ResultOut = TypeVar("ResultOut", covariant=True)

_AHEAD = 32
"""How far, per worker, work may be ahead of the first file whose result is still missing; it bounds what is kept."""
_AHEAD_BYTES = 64 * 1024 * 1024
"""How many bytes of files, per worker, it may be ahead."""
_LARGE_SHARE = 8
"""A file of more than one part in so many, per worker, of all bytes is begun early; the rest would end before it."""
_TOLD_AT_ONCE = 1024 * 1024
"""Bytes a worker reads before it tells of them."""
_LAST_WORDS = 10
"""Seconds a worker that has closed its connection has to end by itself, and so to tell how it ended."""
_MOST_KILLED_STARTS = 3
"""Processes killed in a row before they did anything; then none can be had here."""

_TOO_LARGE = "it took more memory than there is"
_ENDING_SIGNALS = {signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}


class FileWork(Protocol[ItemIn, ResultOut]):
    """What is done with one file; it is sent to the workers once and must be picklable."""

    def __call__(self, item: ItemIn, on_bytes: Callable[[int], None]) -> ResultOut:
        """Work on one item and tell how many bytes were read."""
        ...


class Lost(msgspec.Struct, frozen=True):
    """Stands for the result of an item that ended its worker, twice."""

    why: str


class WorkerFault(RuntimeError):
    """A worker met a fault that is nobody's input; the message is its traceback."""


class _ParentGone(BaseException):
    """Nobody is left to tell anything to."""


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

    The largest is begun first: of the items near at hand, and of those that are a large part of the whole wherever
    they stand. Results that wait for an earlier one are bounded in number and, near at hand, by the bytes of their
    files. Closing the iterator, or an interrupt, ends all workers.

    Raises:
        WorkerFault: the work raised what it should not, or no process can be started.
    """
    pool = _Pool(items, work, sizes, jobs, on_bytes)
    try:
        yield from pool.results()
    finally:
        pool.end()


@contextmanager
def _startable() -> Generator[None]:
    """Make this process one that others can be started from.

    The program is hidden: a process that is started would run it again to find names it does not need. Signals that
    end this process are held back until it has taken note of the new one. That begins with them held back too.
    """
    main = sys.modules["__main__"]
    # What this starts would let the signals through again, were it started later.
    multiprocessing.resource_tracker.ensure_running()
    held = _mask("SIG_BLOCK", _ENDING_SIGNALS)
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        _mask("SIG_SETMASK", held)


def _mask(how: str, signals: Iterable[int]) -> set[int]:
    """Hold signals back or let them through, and return what was held back before; nothing where no system can."""
    if not hasattr(signal, "pthread_sigmask"):
        return set()
    return set(map(int, signal.pthread_sigmask(getattr(signal, how), signals)))


class _Worker(Generic[Item, Result]):
    def __init__(self, context: SpawnContext, work: FileWork[Item, Result]) -> None:
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_serve, args=(theirs, work), daemon=True)
        try:
            self.process.start()
        finally:
            theirs.close()
        self.began = False
        self.used = False
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
        self._jobs = jobs
        self._waiting = set(range(len(items)))
        large = sum(sizes) / (_LARGE_SHARE * jobs)
        self._large = sorted((index for index, size in enumerate(sizes) if size > large), key=self._rank)
        self._again: deque[int] = deque()
        """Items that ended a worker once."""
        self._alone: int | None = None
        """The one of them that is being tried again."""
        self._ready: dict[int, Result | Lost] = {}
        self._next = 0
        self._killed_starts = 0
        self._workers: list[_Worker[Item, Result]] = []

    def results(self) -> Iterator[Result | Lost]:
        for _ in range(min(self._jobs, len(self._items))):
            with _startable():
                self._workers.append(_Worker(self._context, self._work))
        while self._next < len(self._items):
            self._give_work()
            self._take_answers()
            while self._next in self._ready:
                yield self._ready.pop(self._next)
                self._next += 1

    def end(self) -> None:
        for worker in self._workers:
            worker.end()

    # -- what is begun -------------------------------------------------------------------------------------------

    def _give_work(self) -> None:
        for worker in self._workers:
            if worker.index is None:
                index = self._choose()
                if index is None:
                    return
                self._give(self._replace(worker) if index == self._alone and worker.used else worker, index)

    def _choose(self) -> int | None:
        """Return what is begun next, None where nothing may be."""
        if self._alone is not None:
            return None
        if self._again:
            if any(worker.index is not None for worker in self._workers):
                return None
            self._alone = self._again.popleft()
            return self._alone
        near = [*self._near(), *(index for index in self._large if index in self._waiting)]
        return min(near, key=self._rank, default=None)

    def _near(self) -> Iterator[int]:
        """Give the items that wait and are not too far ahead of the first one without a result; that one always."""
        room = _AHEAD_BYTES * self._jobs
        for index in range(self._next, min(self._next + _AHEAD * self._jobs, len(self._items))):
            if index in self._waiting:
                yield index
            room -= self._sizes[index]
            if room <= 0:
                return

    def _rank(self, index: int) -> tuple[int, int]:
        return -self._sizes[index], index

    def _give(self, worker: _Worker[Item, Result], index: int) -> None:
        worker.index = index
        worker.used = True
        self._waiting.discard(index)
        try:
            worker.connection.send((index, self._items[index]))
        except OSError:
            self._mourn(worker)

    # -- what is answered ----------------------------------------------------------------------------------------

    def _take_answers(self) -> None:
        busy = [worker for worker in self._workers if worker.index is not None]
        if not busy:
            return
        ready = wait([worker.connection for worker in busy])
        for worker in (one for one in busy if one.connection in ready):
            try:
                kind, content = cast("tuple[str, object]", worker.connection.recv())
            except (EOFError, OSError):
                self._mourn(worker)
                continue
            if kind == "began":
                worker.began = True
                self._killed_starts = 0
            elif kind == "bytes":
                self._on_bytes(cast("int", content))
            elif kind == "fault":
                raise WorkerFault(str(content))
            elif kind == "lost":
                self._lose(worker, str(content))
            else:
                self._answer(worker, cast("Result", content))

    def _answer(self, worker: _Worker[Item, Result], result: Result | Lost) -> None:
        if worker.index is not None:
            self._ready[worker.index] = result
            if worker.index == self._alone:
                self._alone = None
        worker.index = None

    def _mourn(self, worker: _Worker[Item, Result]) -> None:
        """See to a worker that died, or says no more."""
        worker.process.join(_LAST_WORDS)
        worker.end()
        how = _how(worker.process.exitcode)
        if worker.began:
            self._lose(worker, f"the process that read it died ({how})")
            return
        self._killed_starts += 1
        if not _was_killed(worker.process.exitcode) or self._killed_starts >= _MOST_KILLED_STARTS:
            message = f"a process to read with cannot be started ({how})"
            raise WorkerFault(message)
        self._give(self._replace(worker), cast("int", worker.index))

    def _lose(self, worker: _Worker[Item, Result], why: str) -> None:
        """Set aside the item that ended a worker to be tried again, or give it up where it was; go on with another.

        A worker that ran out of memory is let go as well: what it still holds nobody else gets.
        """
        if worker.index is not None and worker.index != self._alone:
            self._again.append(worker.index)
        else:
            self._answer(worker, Lost(why))
        self._replace(worker)

    def _replace(self, worker: _Worker[Item, Result]) -> _Worker[Item, Result]:
        worker.end()
        with _startable():
            fresh = _Worker(self._context, self._work)
            self._workers[self._workers.index(worker)] = fresh
        return fresh


def _was_killed(code: int | None) -> bool:
    return code is not None and code < 0


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return f"exit code {code}"


# -- in a worker ---------------------------------------------------------------------------------------------------


def _serve(connection: Connection, work: FileWork[object, object]) -> None:
    """Be a worker: an interrupt is the parent's to handle, and a parent that is gone ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _mask("SIG_UNBLOCK", _ENDING_SIGNALS)
    Thread(target=_end_with_parent, daemon=True).start()
    untold = 0

    def on_bytes(count: int) -> None:
        nonlocal untold
        untold += count
        if untold >= _TOLD_AT_ONCE:
            _tell(connection, ("bytes", untold))
            untold = 0

    try:
        _tell(connection, ("began", None))
        while True:
            _, item = cast("tuple[int, object]", connection.recv())
            _answer(connection, work, item, on_bytes)
    except (EOFError, OSError, _ParentGone):
        return


def _end_with_parent() -> None:
    """Wait for the end of the parent, and end: it may be long before there is anything to tell it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _tell(connection: Connection, message: tuple[str, object]) -> None:
    try:
        connection.send(message)
    except OSError:
        raise _ParentGone from None


def _answer(
    connection: Connection, work: FileWork[object, object], item: object, on_bytes: Callable[[int], None]
) -> None:
    try:
        _tell(connection, ("done", work(item, on_bytes)))
    except MemoryError:
        _tell(connection, ("lost", _TOO_LARGE))
    except Exception:  # noqa: BLE001
        _tell(connection, ("fault", traceback.format_exc()))
