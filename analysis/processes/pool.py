"""Several processes over many files: one file after another each, results in the order of the files.

A worker that dies, killed or out of memory, loses the file it had. The file is tried once more, in a fresh process
while no other works: what killed the worker from outside, or memory that several took together, costs nothing. A file
that ends that process too is given up, and the run goes on without it.

Workers end with the process that began them, however that ended.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Generic, Protocol, TypeVar, cast

import msgspec

from analysis.processes.serving import TOO_LARGE, Telling
from analysis.processes.worker import (
    Told,
    Worker,
    WorkerFault,
    cannot_start,
    end_ahead,
    end_all,
    held_back,
    how_it_ended,
)

__all__ = ["FileWork", "Lost", "WorkerFault", "is_sendable", "run_files"]

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
_SOON_DONE = 4 * 1024 * 1024
"""Bytes of files up to which one can be given to a worker that still has another."""
_SHORT = 0.5
"""Seconds."""
_MOST_KILLED_STARTS = 3
"""Processes killed in a row before they did anything; then none can be had here."""


class FileWork(Protocol[ItemIn, ResultOut]):
    """What is done with one file; it is sent to the workers once and must be picklable."""

    def __call__(self, item: ItemIn, on_bytes: Callable[[int], None]) -> ResultOut:
        """Work on one item and tell how many bytes were read."""
        ...


class Lost(msgspec.Struct, frozen=True):
    """Stands for the result of an item that ended its worker, twice."""

    why: str


def is_sendable(work: object) -> bool:
    """Tell whether work can be handed to another process, which knows nothing of the program that runs in this one."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        pickle.dumps(work)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    finally:
        sys.modules["__main__"] = main
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
        self._module = cast("str", getattr(work, "loads", work.__module__))
        self._work = pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
        self._sizes = sizes
        self._on_bytes = on_bytes
        self._jobs = jobs
        self._waiting = set(range(len(items)))
        self._near: list[tuple[int, int]] = []
        """A heap of what is near at hand, the largest first, with what has been begun meanwhile."""
        self._near_end = 0
        self._near_bytes = 0
        large = sum(sizes) / (_LARGE_SHARE * jobs)
        self._large = sorted(self._rank(index) for index, size in enumerate(sizes) if size > large)
        """Another, of what is large wherever it stands."""
        self._again: deque[int] = deque()
        """Items that ended a worker once."""
        self._alone: int | None = None
        """The one of them that is being tried again."""
        self._ready: dict[int, Result | Lost] = {}
        self._next = 0
        self._killed_starts = 0
        self._workers: list[Worker] = []
        self._told = SimpleQueue[Told]()

    def results(self) -> Iterator[Result | Lost]:
        for _ in range(min(self._jobs, len(self._items))):
            try:
                with held_back():
                    self._workers.append(Worker.ready(self._module))
            except WorkerFault:
                if not self._workers:
                    raise
                break  # fewer do it, too
        end_ahead(self._module)
        for worker in self._workers:
            self._instruct(worker)
        while self._next < len(self._items):
            self._give_work()
            self._hear()
            while self._next in self._ready:
                yield self._ready.pop(self._next)
                self._near_bytes -= self._sizes[self._next]
                self._next += 1

    def end(self) -> None:
        end_all(self._workers)

    # -- what is begun -------------------------------------------------------------------------------------------

    def _give_work(self) -> None:
        for worker in self._workers:
            if not worker.items:
                index = self._choose()
                if index is None:
                    return
                # One that died while it waited costs nothing, and what is tried alone gets a process of its own.
                stale = (worker.silent and worker.began) or (worker.used and index == self._alone)
                self._give(self._replace(worker) if stale else worker, index)
        for worker in self._workers:
            index = self._choose_ahead(worker) if len(worker.items) == 1 else None
            if index is not None:
                self._give(worker, index)

    def _choose(self) -> int | None:
        """Return what is begun next, None where nothing may be."""
        if self._alone is not None:
            return None
        if self._again:
            if any(worker.items for worker in self._workers):
                return None
            self._alone = self._again.popleft()
            return self._alone
        self._widen()
        for begun_first in (self._near, self._large):
            while begun_first and begun_first[0][1] not in self._waiting:
                heappop(begun_first)
        firsts = [begun_first[0] for begun_first in (self._near, self._large) if begun_first]
        return min(firsts)[1] if firsts else None

    def _choose_ahead(self, worker: Worker) -> int | None:
        """Return what a worker goes on with after what it has, None where that is to be seen then.

        It need not wait for the next item, but nobody else can take that over from it: so only where both are done
        soon, and nobody will be out of work before.
        """
        if len(self._waiting) <= 2 * len(self._workers) or self._sizes[worker.items[0]] > _SOON_DONE:
            return None
        index = self._choose()
        return None if index is None or self._sizes[index] > _SOON_DONE else index

    def _widen(self) -> None:
        """Take in what is not too far ahead of the first item without a result; that one always."""
        end = min(self._next + _AHEAD * self._jobs, len(self._items))
        while self._near_end < end and self._near_bytes < _AHEAD_BYTES * self._jobs:
            heappush(self._near, self._rank(self._near_end))
            self._near_bytes += self._sizes[self._near_end]
            self._near_end += 1

    def _rank(self, index: int) -> tuple[int, int]:
        return -self._sizes[index], index

    def _give(self, worker: Worker, index: int) -> None:
        worker.items.append(index)
        worker.used = True
        self._waiting.discard(index)
        if worker.silent or not worker.send(pickle.dumps(self._items[index], pickle.HIGHEST_PROTOCOL)):
            self._mourn(worker)

    # -- what is told --------------------------------------------------------------------------------------------

    def _hear(self) -> None:
        worker, frame = _next_of(self._told)
        if worker not in self._workers:
            return
        if frame is None:
            worker.silent = True
            if worker.items:
                self._mourn(worker)
            return
        try:
            if isinstance(frame, MemoryError):
                raise frame
            what, content = cast("tuple[Telling, object]", pickle.loads(frame))  # noqa: S301
        except MemoryError:
            what, content = "lost", TOO_LARGE
        if what == "began":
            worker.began = True
            self._killed_starts = 0
        elif what == "bytes":
            self._on_bytes(cast("int", content))
        elif what == "done":
            untold, result = cast("tuple[int, Result]", content)
            if untold:
                self._on_bytes(untold)
            self._answer(worker, result)
        elif what == "lost":
            self._lose(worker, str(content))
        else:
            raise WorkerFault(str(content))

    def _answer(self, worker: Worker, result: Result | Lost) -> None:
        index = worker.items.popleft()
        self._ready[index] = result
        if index == self._alone:
            self._alone = None

    def _mourn(self, worker: Worker) -> None:
        """See to a worker that died, or says no more."""
        code = worker.mourn()
        how = how_it_ended(code)
        if worker.began:
            self._lose(worker, f"the process that read it died ({how})")
            return
        self._killed_starts += 1
        if code is None or code >= 0 or self._killed_starts >= _MOST_KILLED_STARTS:
            raise cannot_start(how)
        self._replace(worker)

    def _lose(self, worker: Worker, why: str) -> None:
        """Set aside the item that ended a worker to be tried again, or give it up where it was; go on with another.

        A worker that ran out of memory is let go as well: what it still holds nobody else gets.
        """
        if worker.items and worker.items[0] == self._alone:
            self._answer(worker, Lost(why))
        elif worker.items:
            self._again.append(worker.items.popleft())
        self._replace(worker)

    def _replace(self, worker: Worker) -> Worker:
        """Put a fresh worker in the place of one; what that had not begun waits again."""
        worker.end()
        for index in worker.items:
            if index == self._alone:
                self._alone = None
                self._again.appendleft(index)
            else:
                self._waiting.add(index)
                heappush(self._near, self._rank(index))
        with held_back():
            fresh = Worker.ready(self._module)
            self._workers[self._workers.index(worker)] = fresh
        self._instruct(fresh)
        return fresh

    def _instruct(self, worker: Worker) -> None:
        worker.listen(self._told)
        worker.send(self._work)


def _next_of(told: SimpleQueue[Told]) -> Told:
    """Wait for the next. An interrupt ends the waiting: on Windows only between two short ones."""
    if os.name != "nt":
        return told.get()
    while True:
        with suppress(Empty):
            return told.get(timeout=_SHORT)
