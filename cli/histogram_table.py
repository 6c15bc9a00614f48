"""Histograms as bars in a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from analysis.corpus import CorpusReplay
from analysis.report import Histogram
from cli.console import output_console
from cli.tables import left_out_line
from cli.text import counted

__all__ = ["print_histograms"]

_TITLES = {
    "next": "calls by their next count",
    "peak": "sessions by their peak",
    "streak": "failure streaks by their length",
}
_LOG_FROM = 50
"""Ratio of the longest bar to the shortest from which bars are logarithmic."""
_LEAST_BAR = 10
_MOST_BAR = 60
_BLOCKS = " ▏▎▍▌▋▊▉█"
_EIGHTHS = 8
_EDGES = 2


def print_histograms(histograms: Sequence[Histogram], corpus: CorpusReplay, *, log: bool | None) -> None:
    """Print histograms one under another, a line for every threshold where it lies.

    Args:
        histograms: what to print.
        corpus: whose they are.
        log: whether bars are logarithmic; None: where it helps.
    """
    console = output_console()
    for histogram in histograms:
        _print_histogram(histogram, console.width, log=log)
    if not histograms:
        console.print("no values: no call met the guard with such a measure")
    plan = corpus.plan
    console.print(f"{counted(len(corpus.sessions), 'session')} · policy {plan.policy} · ruleset {plan.ruleset.name}")
    console.print(f"settings {plan.settings.digest}", soft_wrap=True)


def _print_histogram(histogram: Histogram, width: int, *, log: bool | None) -> None:
    labels = list(histogram.counts)
    totals: dict[int, int] = {}
    for values in histogram.counts.values():
        for value, count in values.items():
            totals[value] = totals.get(value, 0) + count
    most, least = max(totals.values()), min(totals.values())
    logarithmic = most >= _LOG_FROM * least if log is None else log
    lines = sorted(histogram.thresholds.items(), key=lambda item: item[1])
    told = [_threshold(stage, threshold) for stage, threshold in lines]
    least_bar = max(_LEAST_BAR, *map(len, told))
    ends = [max(len("value"), len(str(max(totals)))), max(len("count"), len(str(most)))]
    by_label = [max(len(label), len(str(most))) for label in labels] if labels != ["unknown"] else []
    widths, padding = _layout((ends, by_label), width - least_bar)
    several = len(widths) > len(ends)
    taken = _taken(widths, padding)
    bar_width = min(max(width - taken, least_bar), _MOST_BAR)
    scale = " (log)" if logarithmic else ""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, padding), title_justify="left")
    table.title = Text(f"{histogram.kind}: {_TITLES[histogram.what]}{scale}", style="bold")
    for heading in ("value", *(labels if several else []), "count"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, width=bar_width)
    for value in sorted(totals):
        while lines and value >= lines[0][1]:
            _add_threshold(table, *lines.pop(0), columns=len(widths))
        cells = [str(histogram.counts[label].get(value, 0) or "·") for label in labels if several]
        bar = _bar(totals[value], most, bar_width, logarithmic=logarithmic)
        table.add_row(str(value), *cells, str(totals[value]), bar)
    for stage, threshold in lines:
        _add_threshold(table, stage, threshold, columns=len(widths))
    output_console(least=taken + bar_width).print(table)
    if by_label and not several:
        output_console().print(left_out_line(labels, "--format json has all"))


def _layout(columns: tuple[list[int], list[int]], room: int) -> tuple[list[int], int]:
    """Return the widths of the columns before the bar and the space beside a cell: closer, then without the labels."""
    ends, by_label = columns
    for widths in ([ends[0], *by_label, ends[1]], ends):
        for padding in (1, 0):
            if _taken(widths, padding) <= room:
                return widths, padding
    return ends, 0


def _taken(widths: Sequence[int], padding: int) -> int:
    """Return what columns take beside the bar, the edges of the table among it."""
    return sum(widths) + len(widths) * (1 + 2 * padding) + _EDGES


def _threshold(stage: str, threshold: float) -> str:
    return f"┄┄ {stage} at {threshold:g}"


def _add_threshold(table: Table, stage: str, threshold: float, *, columns: int) -> None:
    table.add_row(*([""] * columns), Text(_threshold(stage, threshold), style="dim"))


def _bar(count: int, most: int, room: int, *, logarithmic: bool) -> str:
    share = math.log1p(count) / math.log1p(most) if logarithmic else count / most
    eighths = max(round(share * room * _EIGHTHS), 1)
    return _BLOCKS[-1] * (eighths // _EIGHTHS) + _BLOCKS[eighths % _EIGHTHS].strip()
