"""A report as one HTML file: no network, no scripts, light and dark, on paper and on a phone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files

from analysis.replay import STAGES
from analysis.report.data import GATES, Histogram, ReportData, WorstSession
from analysis.report.near_miss import near_miss_figure, near_miss_told
from analysis.report.plots import histogram_figure, inline_svg, stages_figure, timeline_figure, turns_figure
from analysis.tables import PrivacyMode, What
from analysis.text import counted, plain, shortened

__all__ = ["render_page"]

_TEMPLATE = "report.html.j2"
_WHATS: dict[What, str] = {
    "next": "calls by their next count",
    "peak": "sessions by their highest count",
    "streak": "failure streaks by their length",
}
_MOST_TURNS_TOLD = 20
_PRIVACY: dict[PrivacyMode, str] = {
    "full": "all of them as they are",
    "shape": "of measures the kind, host, verb or tool and the length, of paths and free text the length",
    "hash": "measures, paths and free text as salted hashes",
    "counts": "none of them",
}


@dataclass(frozen=True, slots=True)
class _HistogramPicture:
    kind: str
    lines: tuple[str, ...]
    histograms: tuple[Histogram, ...]
    svg: str


@dataclass(frozen=True, slots=True)
class _SessionPictures:
    data: WorstSession
    timeline: str
    turns_picture: str | None


def render_page(data: ReportData) -> str:
    """Return a report as HTML. Whatever the logs hold is shown as text and cannot act."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True, finalize=_visible
    )
    template = environment.from_string(files(__package__ or __name__).joinpath(_TEMPLATE).read_text(encoding="utf-8"))
    return template.render(
        data=data,
        stages_picture=_stages_picture(data),
        near_miss_picture=_near_miss_picture(data),
        histogram_pictures=_histogram_pictures(data),
        sessions=[_session_pictures(one, data.short_line) for one in data.worst],
        STAGES=STAGES,
        WHATS=_WHATS,
        PRIVACY=_PRIVACY,
        percent=_percent,
        short=shortened,
        counted=counted,
        values_of=_values_of,
        told_json=_told_json,
    )


def _visible(value: object) -> object:
    """Write out control characters and lone surrogates of plain text; pictures pass as they are."""
    return plain(value) if type(value) is str else value


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def _told_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _values_of(histogram: Histogram) -> list[int]:
    return sorted({value for values in histogram.counts.values() for value in values})


def _stages_picture(data: ReportData) -> str:
    told = "; ".join(f"{line.stage}: {line.sessions.part} of {line.sessions.whole}" for line in data.stages)
    return inline_svg(
        stages_figure(data.stages),
        name="stages-picture",
        title="Sessions by stage reached",
        description=f"Bars with 95 % intervals. {told}.",
    )


def _near_miss_picture(data: ReportData) -> str | None:
    if not data.near_miss:
        return None
    good = data.labels["good"]
    return inline_svg(
        near_miss_figure(data.near_miss, f"{good} good runs"),
        name="near-miss-picture",
        title="How close good runs come to each stage",
        description=f"Calls left before each stage. {near_miss_told(data.near_miss)}.",
    )


def _histogram_pictures(data: ReportData) -> list[_HistogramPicture]:
    kinds: dict[str, list[Histogram]] = {}
    for histogram in data.histograms:
        kinds.setdefault(histogram.kind, []).append(histogram)
    pictures: list[_HistogramPicture] = []
    for kind, histograms in kinds.items():
        lines = tuple(_histogram_told(histogram) for histogram in histograms)
        svg = inline_svg(
            histogram_figure(histograms),
            name=f"histogram-{kind}",
            title=f"Histograms of the measure kind {kind}",
            description=". ".join(lines) + ".",
        )
        pictures.append(_HistogramPicture(kind, lines, tuple(histograms), svg))
    return pictures


def _histogram_told(histogram: Histogram) -> str:
    things = {"next": "calls", "peak": "sessions", "streak": "streaks"}[histogram.what]
    reached = ", ".join(
        f"{stage} {threshold:g}: {histogram.reached(threshold)}" for stage, threshold in histogram.thresholds.items()
    )
    told = f"{things}: {histogram.total}, highest {histogram.highest}"
    return f"{told}; at or above {reached}" if reached else told


def _session_pictures(one: WorstSession, short_line: int) -> _SessionPictures:
    gated = sum(any(stage in GATES for stage in mark.stages) for mark in one.marks)
    refused = sum("shell-http" in mark.stages for mark in one.marks)
    over_http = f", {refused} refused as requests of a shell" if refused else ""
    failed = sum(mark.outcome == "failed" for mark in one.marks)
    timeline = inline_svg(
        timeline_figure(one.marks),
        name=f"timeline-{one.index}",
        title="Timeline of the session's calls",
        description=f"{len(one.marks)} calls in order; {failed} failed, {gated} gated{over_http}.",
    )
    turns = None
    if len(one.turn_lines) > 1:
        told = "; ".join(
            f"turn {line.turn}: {line.failed} of {line.calls} calls failed, "
            + ("no text" if line.short_line_share is None else f"{_percent(line.short_line_share)} short lines")
            for line in one.turn_lines[:_MOST_TURNS_TOLD]
        )
        turns = inline_svg(
            turns_figure(one.turn_lines, short_line),
            name=f"turns-{one.index}",
            title="Failures and short lines over the session's turns",
            description=f"{told}.",
        )
    return _SessionPictures(one, timeline, turns)
