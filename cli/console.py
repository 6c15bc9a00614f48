"""The terminal as tables are printed to it."""

from __future__ import annotations

import os
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
    """Return the width to print at: that of `COLUMNS` where it is set, else the terminal's, else 120."""
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdecimal() and int(given) > 0:
        return int(given)
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL


def output_console(*, least: int = 0) -> Console:
    """Return what prints to standard output: text as it is, nothing in it highlighted or taken for markup.

    Args:
        least: columns it has at the least, for what must stay whole on any terminal.
    """
    width = max(terminal_width(), least)
    return _PipedConsole(file=sys.stdout, highlight=False, markup=False, emoji=False, width=width)
