"""Start the processes that read while the program that uses them is still being loaded.

Only a glance is taken at what there is to read, so that it is over before anything heavy is imported. Where it does not
tell, processes are started once the sessions have been found.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from analysis.processes.worker import are_ahead, workers_ahead

__all__ = ["WORTH_PROCESSES", "available_processors", "reading_ahead", "started_for_reading"]

WORTH_PROCESSES: Final = 8 * 1024 * 1024
"""Bytes on disk from which on several processes are quicker than one."""

_WORK: Final = "analysis.read_session"
"""What the work loads."""
_MOST_ENTRIES: Final = 2000
"""Entries of folders a glance takes in at most."""


def available_processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(len(os.sched_getaffinity(0)), 1)
    return os.cpu_count() or 1


@contextmanager
def reading_ahead(paths: Iterable[Path], jobs: int | None) -> Generator[None]:
    """Start as many processes as will read, where there is enough to read; the replay of a corpus in here uses them.

    Args:
        paths: what will be read.
        jobs: processes asked for; None for as many as are worth it.
    """
    count = 0 if jobs == 1 or are_ahead(_WORK) else _number_worth_it(paths, jobs)
    with started_for_reading(count):
        yield


@contextmanager
def started_for_reading(jobs: int) -> Generator[None]:
    """Start as many processes as asked for, but no more than there are processors; end those unused."""
    with workers_ahead(_WORK, min(jobs, available_processors())):
        yield


def _number_worth_it(paths: Iterable[Path], jobs: int | None) -> int:
    """Return for how many processes there are logs, as far as a glance can tell; 0 where they are not worth it."""
    least_bytes = WORTH_PROCESSES if jobs is None else 0
    most = min(jobs or available_processors(), available_processors())
    if jobs is None and most == 1:
        return 0
    size = number = 0
    for one in _glance(paths):
        size += one
        number += 1
        if number >= max(most, 2) and size >= least_bytes:
            break
    return min(number, most) if number > 1 and size >= least_bytes else 0


def _glance(paths: Iterable[Path]) -> Generator[int]:
    """Give the sizes of files that are logs by their names, until enough has been looked at."""
    folders: list[str] = []
    left = _MOST_ENTRIES
    for path in paths:
        try:
            if path.is_dir():
                folders.append(str(path))
            else:
                yield path.stat().st_size
        except (OSError, ValueError):
            continue
    while folders and left:
        try:
            with os.scandir(folders.pop()) as listing:
                for entry in listing:
                    left -= 1
                    if not left:
                        return
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.name.startswith("session") and ".jsonl" in entry.name:
                        yield entry.stat(follow_symlinks=False).st_size
        except (OSError, ValueError):
            continue
