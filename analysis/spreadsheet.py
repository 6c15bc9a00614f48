"""Comma-separated text that a spreadsheet shows and does not run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from analysis.text import plain

__all__ = ["csv_line", "literal_cell"]

# The wide forms count as their narrow ones in spreadsheets of some languages.
_FORMULA_BEGINNINGS: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_TEXT_MARK: Final = "'"
_NEEDS_QUOTES: Final = frozenset(',"')


def literal_cell(text: str) -> str:
    """Return text as a cell that shows it: an apostrophe stands before what would be a formula.

    Control and other invisible characters, line ends among them, are written out.
    """
    shown = plain(text)
    return f"{_TEXT_MARK}{shown}" if shown.startswith(_FORMULA_BEGINNINGS) else shown


def csv_line(cells: Iterable[object]) -> str:
    """Return one line of comma-separated text with its line feed; None is an empty cell, numbers stay numbers."""
    return ",".join(map(_cell, cells)) + "\n"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value) if isinstance(value, float) else str(value)
    text = literal_cell(value)
    if _NEEDS_QUOTES.isdisjoint(text):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'
