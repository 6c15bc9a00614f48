"""Rows of text as a terminal table or as Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cli.text import plain, shortened

__all__ = ["left_out_line", "markdown_lines", "markdown_text", "print_markdown", "print_rows"]


def print_rows(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers_from: int | None = None,
    numbers_to: int | None = None,
    cut: Collection[int] = (),
    first_out: Sequence[tuple[str, ...]] = (),
    widest: int | None = None,
) -> list[str]:
    """Print rows as a table in which no number is ever broken, and return the headings of the columns left out.

    Where the width does not hold it, columns move together, headings stand in several lines, texts are folded between
    words, and then whole columns are left out. What must stay stands whole, on a terminal too narrow for it as well.

    Args:
        headings: the heads of the columns.
        rows: a cell for every column; those that a row lacks at its end are empty.
        numbers_from: columns from there on hold numbers: they are set to the right and never folded.
        numbers_to: columns from there on are text again.
        cut: columns of text that are cut in their middle rather than folded.
        first_out: headings of the columns that may be left out, those that go together in one; the first of them first.
        widest: the most a column of text takes.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from cli.console import output_console, terminal_width

    cells = [[*map(plain, row), *[""] * (len(headings) - len(row))] for row in rows]
    numbers = range(len(headings))[numbers_from:numbers_to] if numbers_from is not None else range(0)
    columns = _columns(headings, cells, numbers, cut, widest)
    layout = _layout(columns, terminal_width(), first_out)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, layout.padding))
    for position in layout.shown:
        column, width = columns[position], layout.widths[position]
        heading = column.stacked if layout.stacked else column.heading
        is_folded = column.is_text and not column.cut
        table.add_column(
            Text(heading),
            justify="left" if column.is_text else "right",
            width=width,
            no_wrap=not is_folded,
            overflow="fold" if is_folded else "crop",
        )
    for row in cells:
        shown = [(row[at], columns[at].cut, layout.widths[at]) for at in layout.shown]
        table.add_row(*(Text(shortened(cell, width) if is_cut else cell) for cell, is_cut, width in shown))
    output_console(least=layout.total).print(table)
    return [heading for position, heading in enumerate(headings) if position not in layout.shown]


def least_width(headings: Sequence[str], rows: Sequence[Sequence[str]], *, texts: Collection[int] = ()) -> int:
    """Return the width at which such a table still stands whole; the columns of `texts` are cut, the others numbers."""
    numbers = [position for position in range(len(headings)) if position not in texts]
    columns = _columns(headings, rows, numbers, texts, None)
    return sum(column.least(stacked=True) for column in columns) + 1 + len(columns)


def left_out_line(left_out: Sequence[str], where: str) -> str:
    """Return what to say of columns that are left out: which, and where all of them are."""
    return f"left out, as the terminal is narrow: {', '.join(left_out)}; {where}"


_LEAST_TEXT = 32
"""A word up to this width is not broken."""
_LEAST_CUT = 12
"""What is cut keeps that much."""
_ARRANGEMENTS = (
    (False, False, 1),
    (False, False, 0),
    (False, True, 1),
    (False, True, 0),
    (True, False, 0),
    (True, True, 0),
)
"""Whether headings are stacked, whether text gives way, and the space beside a cell: the best arrangement first."""


@dataclass(frozen=True)
class _Column:
    heading: str
    cells: Sequence[str]
    is_text: bool
    cut: bool
    widest: int | None

    @cached_property
    def stacked(self) -> str:
        """The heading with every word in a line of its own; that of text that is folded is folded with it."""
        return self.heading if self.is_text and not self.cut else self.heading.replace(" ", "\n")

    @cached_property
    def _cells_width(self) -> int:
        return max(map(_width, self.cells), default=0)

    @cached_property
    def _widest_word(self) -> int:
        return max(map(_widest_word, self.cells), default=0)

    def whole(self, *, stacked: bool) -> int:
        """Return the width at which nothing is folded."""
        heading = _widest_word(self.heading) if stacked else _width(self.heading)
        most = self._cells_width if self.widest is None or not self.is_text else min(self._cells_width, self.widest)
        return max(heading, most)

    def least(self, *, stacked: bool) -> int:
        """Return the width that must be left to it."""
        whole = self.whole(stacked=stacked)
        if not self.is_text:
            return whole
        heading = _widest_word(self.heading) if stacked else _width(self.heading)
        word = _LEAST_CUT if self.cut else min(self._widest_word, _LEAST_TEXT)
        return min(whole, max(heading, word))


def _columns(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Collection[int],
    cut: Collection[int],
    widest: int | None,
) -> list[_Column]:
    return [
        _Column(
            heading=plain(heading),
            cells=[row[position] for row in rows],
            is_text=position not in numbers,
            cut=position in cut,
            widest=widest,
        )
        for position, heading in enumerate(headings)
    ]


@dataclass(frozen=True, slots=True)
class _Layout:
    shown: Sequence[int]
    widths: Mapping[int, int]
    padding: int
    stacked: bool
    total: int


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _widest_word(text: str) -> int:
    return max(map(_width, text.split(" ")), default=0)


def _layout(columns: Sequence[_Column], width: int, first_out: Sequence[tuple[str, ...]]) -> _Layout:
    """Return the first arrangement that the width holds; the tightest where none is held."""
    shown = list(range(len(columns)))
    cuts = any(column.cut for column in columns)
    for out in ((), *first_out):
        shown = [position for position in shown if columns[position].heading not in out]
        for stacked, take_least, padding in _ARRANGEMENTS:
            if cuts and take_least and padding:
                continue  # what would be space holds more of the text
            edges = 2 + (len(shown) - 1) * (1 + 2 * padding)
            least = {at: columns[at].least(stacked=stacked) for at in shown}
            whole = {at: columns[at].whole(stacked=stacked) for at in shown}
            if sum((least if take_least else whole).values()) + edges <= width:
                widths = _spread(least, whole, width - edges)
                return _Layout(shown, widths, padding, stacked, sum(widths.values()) + edges)
    least = {at: columns[at].least(stacked=True) for at in shown}
    return _Layout(shown, least, 0, stacked=True, total=sum(least.values()) + 1 + len(shown))


def _spread(least: Mapping[int, int], whole: Mapping[int, int], room: int) -> dict[int, int]:
    """Give every column its least width, then what is left of the room to those that lack most."""
    widths = dict(least)
    left = room - sum(widths.values())
    while left > 0:
        lacking = max(widths, key=lambda at: whole[at] / max(widths[at], 1))
        if widths[lacking] >= whole[lacking]:
            break
        widths[lacking] += 1
        left -= 1
    return widths


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
