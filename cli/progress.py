"""A progress bar for long work: on standard error, and only where somebody looks."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from analysis.progress import NO_PROGRESS

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from analysis.progress import Progress

__all__ = ["byte_progress"]

_WIDE = 90
"""Columns from which the speed and the time that is left are shown, too."""
_MOST_BAR = 40
_LEAST_BAR = 8
_BESIDE_BAR = 40
"""Columns the words and the bytes beside the bar take."""


class _BarProgress:
    def __init__(self, bar: Bar, task: TaskID) -> None:
        self._bar = bar
        self._task = task

    def start(self, total_bytes: int) -> None:
        """Show the bar for that many bytes."""
        self._bar.update(self._task, total=total_bytes, visible=True)

    def advance(self, read_bytes: int) -> None:
        """Move the bar."""
        self._bar.advance(self._task, read_bytes)


@contextmanager
def byte_progress(what: str) -> Generator[Progress]:
    """Give a progress that draws a bar of bytes; silent when standard error is no terminal."""
    if not sys.stderr.isatty():
        yield NO_PROGRESS
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    console = Console(stderr=True)
    bar_width = min(max(console.width - _BESIDE_BAR, _LEAST_BAR), _MOST_BAR)
    columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn(bar_width), DownloadColumn()]
    if console.width >= _WIDE:
        columns += [TransferSpeedColumn(), TimeRemainingColumn()]
    try:
        with Progress(*columns, console=console, transient=True) as bar:
            yield _BarProgress(bar, bar.add_task(what, total=None, visible=False))
    finally:
        console.show_cursor()  # also where an interrupt came while the bar was being set up
