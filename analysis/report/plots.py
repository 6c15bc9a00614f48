"""Pictures of the numbers: histograms with their thresholds, stages, timelines, turns. Readable in grey."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from io import BytesIO
from typing import Any, BinaryIO, Literal

from analysis.labels import LABELS, Label
from analysis.report.data import GATES, CallMark, Histogram, StageLine, TurnLine
from analysis.tables import What

__all__ = [
    "BARS",
    "CALM",
    "COLUMN_WIDTH",
    "FAINT",
    "HATCHES",
    "INK",
    "PAPER",
    "PLOT_FORMATS",
    "STAGE_LINES",
    "Figure",
    "PlotFormat",
    "histogram_figure",
    "histogram_sheet",
    "inline_svg",
    "new_figure",
    "stages_figure",
    "styled",
    "timeline_figure",
    "turns_figure",
    "write_figure",
]

PlotFormat = Literal["png", "svg", "pdf"]
PLOT_FORMATS: tuple[PlotFormat, ...] = ("png", "svg", "pdf")

Figure = Any
"""A matplotlib figure; its published types say nothing."""

INK = "#1a1a1a"
FAINT = "#8a8a8a"
BARS: dict[Label, str] = {"good": "#cfe0ef", "stuck": "#b3541e", "unknown": "#5b7fa6"}
HATCHES: dict[Label, str] = {"good": "", "stuck": "////", "unknown": ""}
_FAILED = "#b3541e"
CALM = "#5b7fa6"
PAPER = "#ffffff"
_THEME = {
    INK: "--ink",
    FAINT: "--faint",
    "#cfe0ef": "--bar-good",
    _FAILED: "--bar-stuck",
    CALM: "--bar",
    PAPER: "--paper",
}
"""Colours of the pictures, and the style sheet's names for them where a picture is part of a page."""

STAGE_LINES = {"warn": ":", "summarize": "-.", "gate": "-", "fail-warn": ":", "fail-gate": "-"}
"""How each stage's threshold is drawn."""
_WHAT_TITLES: dict[What, str] = {
    "next": "Calls by their count",
    "peak": "Sessions by their peak",
    "streak": "Failure streaks by their length",
}
_WHAT_AXES: dict[What, tuple[str, str]] = {
    "next": ("next count of the measure [calls]", "calls"),
    "peak": ("highest count in the session [calls]", "sessions"),
    "streak": ("failures in a row [calls]", "streaks"),
}
COLUMN_WIDTH = 4.3
"""Inches: a picture is readable at the width of a column."""
_PANEL_HEIGHT = 2.35
_NAME_HEIGHT = 11
"""Points a threshold's name takes above the picture."""
_MOST_BARS = 60
_LOG_FROM = 50
"""Ratio of the highest bar to the lowest from which the axis is logarithmic."""
_MOST_MARKS = 600
_TIMELINE_PLACE = (0.25, 0.29, 0.73, 0.69)
"""Left, bottom, width and height of a timeline in its picture."""
_DPI = 160
_SETTINGS = {
    "font.size": 10.0,
    "font.family": "sans-serif",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "hatch.linewidth": 0.6,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "breaker",
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "savefig.facecolor": PAPER,
}


@dataclass(frozen=True, slots=True)
class _Lane:
    """One row of a timeline: what it shows, by which mark."""

    name: str
    marker: str
    filled: bool
    colour: str
    size: float


_LANES = (
    _Lane("ok", "o", filled=False, colour=CALM, size=13),
    _Lane("failed", "x", filled=True, colour=_FAILED, size=17),
    _Lane("other", "|", filled=True, colour=FAINT, size=22),
    _Lane("warned", "^", filled=False, colour=INK, size=18),
    _Lane("gated", "s", filled=True, colour=INK, size=15),
    _Lane("refused", "D", filled=False, colour=INK, size=13),
)
_MESSAGES = frozenset({"warn", "summarize", "fail-warn"})


def _matplotlib() -> Any:
    matplotlib: Any = import_module("matplotlib")
    matplotlib.use("Agg")
    return matplotlib


def _matplotlib_figure(**options: object) -> Figure:
    return import_module("matplotlib.figure").Figure(**options)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure; sizes in inches."""
    return _matplotlib_figure(figsize=(width, height), layout="constrained")


def styled() -> Any:
    """Return a context in which figures are made and written in the house's style."""
    return _matplotlib().rc_context(_SETTINGS)


# -- histograms ----------------------------------------------------------------------------------------------------


def histogram_figure(histograms: Sequence[Histogram]) -> Figure:
    """Draw the histograms of one measure kind under each other, with their thresholds and by label."""
    with styled():
        figure = new_figure(COLUMN_WIDTH, _PANEL_HEIGHT * len(histograms) + 0.3)
        for axes, histogram in zip(figure.subplots(len(histograms), 1, squeeze=False)[:, 0], histograms, strict=True):
            _draw_histogram(axes, histogram)
        _add_legend(figure, histograms)
        return figure


def histogram_sheet(histograms: Sequence[Histogram], title: str) -> Figure:
    """Draw all histograms on one sheet: a row for every kind, a column for what is counted."""
    kinds = list(dict.fromkeys(histogram.kind for histogram in histograms))
    whats = list(dict.fromkeys(histogram.what for histogram in histograms))
    with styled():
        figure = new_figure(COLUMN_WIDTH * max(len(whats), 1), _PANEL_HEIGHT * max(len(kinds), 1) + 0.7)
        figure.suptitle(title, x=0.01, ha="left", fontsize=9)
        if not histograms:
            figure.text(0.5, 0.4, "no values: no call met the guard", ha="center")
            return figure
        panels = figure.subplots(len(kinds), len(whats), squeeze=False)
        by_place = {(histogram.kind, histogram.what): histogram for histogram in histograms}
        for row, kind in zip(panels, kinds, strict=True):
            for axes, what in zip(row, whats, strict=True):
                histogram = by_place.get((kind, what))
                if histogram is None:
                    axes.set_axis_off()
                    axes.text(0.0, 0.95, f"{kind}: no values", transform=axes.transAxes, va="top", color=FAINT)
                else:
                    _draw_histogram(axes, histogram)
        _add_legend(figure, histograms)
        return figure


def _draw_histogram(axes: Any, histogram: Histogram) -> None:
    width = max(math.ceil(histogram.highest / _MOST_BARS), 1)
    labels = list(histogram.counts)
    room = 0.84 * width / len(labels)
    heights: list[int] = []
    for place, label in enumerate(labels):
        bars: dict[int, int] = {}
        for value, count in histogram.counts[label].items():
            bars[(value - 1) // width] = bars.get((value - 1) // width, 0) + count
        heights += bars.values()
        left = 1 + (width - 1) / 2 - 0.42 * width + room * place
        axes.bar(
            [start * width + left + room / 2 for start in bars],
            list(bars.values()),
            width=room,
            color=BARS[label],
            edgecolor=INK,
            linewidth=0.5,
            hatch=HATCHES[label],
            zorder=2,
        )
    logarithmic = max(heights) >= _LOG_FROM * min(heights)
    if logarithmic:
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.6)
        axes.yaxis.set_major_formatter(_plain_tick)
        axes.yaxis.set_minor_formatter(_no_tick)
    x_axis, y_axis = _WHAT_AXES[histogram.what]
    axes.set_xlabel(x_axis if width == 1 else f"{x_axis}, in steps of {width}")
    axes.set_ylabel(f"{y_axis} [number{', log' if logarithmic else ''}]")
    axes.set_title(
        f"{histogram.kind}: {_WHAT_TITLES[histogram.what].lower()}", pad=6 + _NAME_HEIGHT * len(histogram.thresholds)
    )
    drawn = {stage: threshold for stage, threshold in histogram.thresholds.items() if math.isfinite(threshold)}
    right = max(histogram.highest + width, *(threshold + 1 for threshold in drawn.values()), 4)
    axes.set_xlim(0.3, right + 0.3)
    axes.xaxis.get_major_locator().set_params(integer=True)
    if not logarithmic:
        axes.yaxis.get_major_locator().set_params(integer=True)
    _draw_thresholds(axes, drawn)


def _add_legend(figure: Figure, histograms: Sequence[Histogram]) -> None:
    """Name the labels once, outside the panels, where any session has one."""
    shown = {label for histogram in histograms for label in histogram.counts}
    if not shown - {"unknown"}:
        return
    patch = import_module("matplotlib.patches").Patch
    handles = [
        patch(facecolor=BARS[label], edgecolor=INK, linewidth=0.5, hatch=HATCHES[label], label=f"{label} sessions")
        for label in LABELS
        if label in shown
    ]
    figure.legend(handles=handles, loc="outside lower left", ncols=len(handles), handlelength=1.2, columnspacing=1.2)


def _plain_tick(value: float, place: int | None) -> str:
    del place
    return f"{value:g}"


def _no_tick(value: float, place: int | None) -> str:
    del value, place
    return ""


def _draw_thresholds(axes: Any, drawn: Mapping[str, float]) -> None:
    """Draw each threshold before the bars it stops; the names stand above each other, so that none covers another."""
    for row, (stage, threshold) in enumerate(sorted(drawn.items(), key=lambda item: (-item[1], item[0]))):
        style = STAGE_LINES[stage]
        at = threshold - 0.5
        above = 3 + _NAME_HEIGHT * row
        axes.axvline(at, color=INK, linestyle=style, linewidth=1.2, zorder=3)
        axes.annotate(
            "",
            (at, 1.0),
            xycoords=axes.get_xaxis_transform(),
            xytext=(0, above + _NAME_HEIGHT - 2),
            textcoords="offset points",
            arrowprops={"arrowstyle": "-", "color": INK, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0},
        )
        axes.annotate(
            f"{stage} {threshold:g}",
            (at, 1.0),
            xycoords=axes.get_xaxis_transform(),
            xytext=(3, above),
            textcoords="offset points",
            ha="left",
            va="bottom",
            fontsize=9,
        )


# -- stages --------------------------------------------------------------------------------------------------------


def stages_figure(lines: Sequence[StageLine]) -> Figure:
    """Draw the share of sessions that reach each stage, with its interval."""
    with styled():
        figure = new_figure(COLUMN_WIDTH, 0.36 * len(lines) + 0.9)
        axes = figure.subplots()
        for place, line in enumerate(lines):
            share = line.sessions
            value = (share.value or 0) * 100
            axes.barh(place, value, height=0.6, color=CALM, edgecolor=INK, linewidth=0.5, zorder=2)
            end = value
            if share.low is not None and share.high is not None:
                low, high = share.low * 100, share.high * 100
                axes.plot([low, high], [place, place], color=INK, linewidth=1.4, zorder=3)
                axes.plot([low, high], [place, place], "|", color=INK, markersize=6, zorder=3)
                end = high
            axes.annotate(
                f"{share.part} of {share.whole}",
                (end, place),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
            )
        axes.set_yticks(range(len(lines)), [line.stage for line in lines])
        axes.invert_yaxis()
        highest = max((line.sessions.high or line.sessions.value or 0) * 100 for line in lines)
        axes.set_xlim(0, max(min(highest * 1.35, 125.0), 10.0))
        axes.set_xticks([tick for tick in axes.get_xticks() if tick <= 100])
        axes.set_xlabel("sessions that reach it [%]; line: 95 % interval")
        axes.set_title("Sessions by stage reached")
        return figure


# -- sessions ------------------------------------------------------------------------------------------------------


def _lanes_of(mark: CallMark) -> Iterable[str]:
    yield mark.outcome if mark.outcome in {"ok", "failed"} else "other"
    if any(stage in _MESSAGES for stage in mark.stages):
        yield "warned"
    if any(stage in GATES for stage in mark.stages):
        yield "gated"
    if "shell-http" in mark.stages:
        yield "refused"


def timeline_figure(marks: Sequence[CallMark]) -> Figure:
    """Draw a session's calls as marks in rows: how they ended in the record, and what the guard did."""
    step = max(math.ceil(len(marks) / _MOST_MARKS), 1)
    places: dict[str, list[float]] = {lane.name: [] for lane in _LANES}
    for start in range(0, len(marks), step):
        group = marks[start : start + step]
        for lane in {lane for mark in group for lane in _lanes_of(mark)}:
            places[lane].append(group[0].call + (step - 1) / 2)
    lanes = [lane for lane in _LANES if lane.name != "refused" or places["refused"]]
    with styled():
        figure = _matplotlib_figure(figsize=(COLUMN_WIDTH, 1.75))
        # Fixed margins: a report has many of these, and measuring texts takes most of a picture's time.
        axes = figure.add_axes(_TIMELINE_PLACE)
        for row, lane in enumerate(lanes):
            colour = lane.colour
            axes.scatter(
                places[lane.name],
                [row] * len(places[lane.name]),
                s=lane.size,
                marker=lane.marker,
                facecolors=colour if lane.filled else "none",
                **({"edgecolors": colour} if lane.marker not in {"x", "|"} else {"color": colour}),
                linewidths=1.1,
                zorder=3,
            )
        axes.axhline(2.5, color=FAINT, linewidth=0.6)
        before = marks[0].turn if marks else 0
        for mark in marks:
            if mark.turn != before:
                axes.axvline(mark.call - 0.5, color=FAINT, linewidth=0.7, linestyle="--", zorder=1)
                before = mark.turn
        axes.set_yticks(range(len(lanes)), [f"{lane.name} ({len(places[lane.name])})" for lane in lanes])
        if step > 1:
            axes.set_yticks(range(len(lanes)), [lane.name for lane in lanes])
        axes.set_ylim(-0.6, len(lanes) - 0.4)
        axes.set_xlim(-0.8, max(len(marks), 10) - 0.2)
        axes.xaxis.get_major_locator().set_params(integer=True)
        told = "" if step == 1 else f", {step} calls a mark"
        axes.set_xlabel(f"call [index{told}]; dashed: a new turn")
        return figure


def turns_figure(lines: Sequence[TurnLine], short_line: int) -> Figure:
    """Draw failures and the share of short phrases over the turns of a session."""
    turns = [line.turn for line in lines]
    with styled():
        figure = new_figure(COLUMN_WIDTH, 2.9)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1))
        shares = [math.nan if line.short_line_share is None else line.short_line_share * 100 for line in lines]
        upper.plot(turns, shares, color=INK, marker="o", markersize=4, linewidth=1.2)
        upper.set_ylim(-4, 104)
        upper.set_yticks([0, 50, 100])
        upper.set_ylabel("short lines [%]")
        upper.set_title(f"Short lines: at most {short_line} characters")
        lower.bar(turns, [line.calls for line in lines], color="none", edgecolor=INK, linewidth=0.7, label="calls")
        lower.bar(
            turns,
            [line.failed for line in lines],
            color=_FAILED,
            edgecolor=INK,
            linewidth=0.5,
            hatch="////",
            label="failed",
        )
        lower.set_ylabel("calls [number]")
        lower.set_xlabel("turn of the session [number]")
        lower.set_title("Calls and failures")
        lower.legend(loc="upper right", ncols=2, handlelength=1.2, borderaxespad=0.1, bbox_to_anchor=(1.0, 1.22))
        lower.xaxis.get_major_locator().set_params(integer=True)
        lower.yaxis.get_major_locator().set_params(integer=True)
        lower.set_xlim(min(turns) - 0.7, max(max(turns), min(turns) + 3) + 0.7)
        return figure


# -- out -----------------------------------------------------------------------------------------------------------


def write_figure(figure: Figure, file: BinaryIO, kind: PlotFormat) -> None:
    """Write a figure as a file of its own; the same figure gives the same bytes."""
    metadata: dict[PlotFormat, dict[str, object]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    }
    with styled():
        figure.savefig(file, format=kind, dpi=_DPI, metadata=metadata[kind])


_OPENING = re.compile(r"<svg\b[^>]*>")
_VIEW_BOX = re.compile(r'viewBox="([^"]*)"')


def inline_svg(figure: Figure, *, name: str, title: str, description: str) -> str:
    """Return a figure as SVG to stand in a page: with a text alternative, in the page's own colours.

    Args:
        figure: what to show.
        name: unique in the page; every id in the picture begins with it.
        title: what the picture is, for those who cannot see it.
        description: what it shows.
    """
    file = BytesIO()
    write_figure(figure, file, "svg")
    text = file.getvalue().decode()
    opening = _OPENING.search(text)
    if opening is None:
        message = "matplotlib wrote no SVG"
        raise RuntimeError(message)
    box = _VIEW_BOX.search(opening.group())
    body = re.sub(r"<metadata>.*?</metadata>", "", text[opening.end() :], flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'(xlink:href|href)="#', f'href="#{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    for colour, variable in _THEME.items():
        body = body.replace(colour, f"var({variable})")
    body = re.sub(r"font: ([0-9.]+)px[^;\"]*", r"font: \1px system-ui, sans-serif", body)
    head = (
        f'<svg role="img" aria-labelledby="{name}-title {name}-desc" viewBox="{box.group(1) if box else ""}" '
        f'xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>'
    )
    return head + body
