"""Rows of text as a terminal table or as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cli.text import plain

__all__ = ["markdown_lines", "markdown_text", "print_markdown", "print_rows"]


def print_rows(headings: Sequence[str], rows: Iterable[Sequence[str]], *, numbers_from: int | None = None) -> None:
    """Print rows as a table; columns from `numbers_from` on are set to the right, and what is too wide is folded."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from cli.console import output_console

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for position, heading in enumerate(headings):
        numeric = numbers_from is not None and position >= numbers_from
        table.add_column(Text(plain(heading)), justify="right" if numeric else "left", overflow="fold")
    for cells in rows:
        table.add_row(*(Text(plain(cell)) for cell in cells))
    output_console().print(table)


def markdown_lines(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows as the lines of a Markdown table; nothing in a cell can end it or act."""
    lines = [_markdown_row(headings), _markdown_row(["---"] * len(headings))]
    lines += [_markdown_row(row) for row in rows]
    return lines


def print_markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows as a Markdown table."""
    print("\n".join(markdown_lines(headings, rows)))


_MARKDOWN_ACTS = frozenset("\\`*_{}[]<>|~&")


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(markdown_text(cell) for cell in cells) + " |"


def markdown_text(cell: str) -> str:
    """Return text as Markdown that shows it and nothing else."""
    if cell == "---":
        return cell
    return "".join(f"\\{character}" if character in _MARKDOWN_ACTS else character for character in plain(cell))
