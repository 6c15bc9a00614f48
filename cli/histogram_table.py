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


def print_histograms(histograms: Sequence[Histogram], corpus: CorpusReplay, *, log: bool | None) -> None:
    """Print histograms one under another, a line for every threshold where it lies.

    Args:
        histograms: what to print.
        corpus: whose they are.
        log: whether bars are logarithmic; None: where it helps.
    """
    console = output_console()
    width = console.width
    for histogram in histograms:
        console.print(_table(histogram, width, log=log))
    if not histograms:
        console.print("no values: no call met the guard with such a measure")
    plan = corpus.plan
    console.print(f"{len(corpus.sessions)} sessions · policy {plan.policy} · ruleset {plan.ruleset.name}")
    console.print(f"settings {plan.settings.digest}", soft_wrap=True)


def _table(histogram: Histogram, width: int, *, log: bool | None) -> Table:
    labels = list(histogram.counts)
    totals: dict[int, int] = {}
    for values in histogram.counts.values():
        for value, count in values.items():
            totals[value] = totals.get(value, 0) + count
    most, least = max(totals.values()), min(totals.values())
    logarithmic = most >= _LOG_FROM * least if log is None else log
    several = labels != ["unknown"]
    columns = [len("value"), *(max(len(label), len(str(most))) for label in labels if several), len(str(most))]
    room = min(max(width - sum(columns) - 2 * len(columns) - len("summarize at 99"), _LEAST_BAR), _MOST_BAR)
    scale = " (log)" if logarithmic else ""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), title_justify="left")
    table.title = Text(f"{histogram.kind}: {_TITLES[histogram.what]}{scale}", style="bold")
    table.add_column("value", justify="right")
    for label in labels if several else []:
        table.add_column(label, justify="right")
    table.add_column("count", justify="right")
    table.add_column("")
    lines = sorted(histogram.thresholds.items(), key=lambda item: item[1])
    for value in sorted(totals):
        while lines and value >= lines[0][1]:
            _add_threshold(table, *lines.pop(0), columns=len(columns))
        cells = [str(histogram.counts[label].get(value, 0) or "·") for label in labels if several]
        bar = _bar(totals[value], most, room, logarithmic=logarithmic)
        table.add_row(str(value), *cells, str(totals[value]), bar)
    for stage, threshold in lines:
        _add_threshold(table, stage, threshold, columns=len(columns))
    return table


def _add_threshold(table: Table, stage: str, threshold: float, *, columns: int) -> None:
    table.add_row(*([""] * columns), Text(f"┄┄ {stage} at {threshold:g}", style="dim"))


def _bar(count: int, most: int, room: int, *, logarithmic: bool) -> str:
    share = math.log1p(count) / math.log1p(most) if logarithmic else count / most
    eighths = max(round(share * room * _EIGHTHS), 1)
    return _BLOCKS[-1] * (eighths // _EIGHTHS) + _BLOCKS[eighths % _EIGHTHS].strip()
