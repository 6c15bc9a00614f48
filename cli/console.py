"""The terminal as tables are printed to it."""

from __future__ import annotations

import shutil
import sys

from rich.console import Console

__all__ = ["output_console", "terminal_width"]

_WIDTH_WITHOUT_TERMINAL = 120


class _PipedConsole(Console):
    """A console that leaves it to the command what a reader that went away means."""

    def on_broken_pipe(self) -> None:
        """Pass the fault on."""
        raise BrokenPipeError


def terminal_width() -> int:
    """Return the width to print at."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL


def output_console() -> Console:
    """Return what prints to standard output: text as it is, nothing in it highlighted or taken for markup."""
    return _PipedConsole(file=sys.stdout, highlight=False, markup=False, emoji=False, width=terminal_width())
