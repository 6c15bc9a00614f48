"""`breaker histogram`: how counts, peaks and failure streaks are spread, with the thresholds drawn in."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.corpus_options import CorpusOptions, corpus_command, judge
from cli.exits import USAGE, Failed
from cli.output_options import AllowEmptyOption, ForceOption, output_faults, refuse_corpus

if TYPE_CHECKING:
    from analysis.corpus import CorpusReplay
    from analysis.report import Histogram, PlotFormat

__all__ = ["HistogramFormat", "WhatName", "histogram"]


class WhatName(StrEnum):
    """What is counted."""

    next = "next"
    peak = "peak"
    streak = "streak"


class HistogramFormat(StrEnum):
    """How histograms are printed."""

    table = "table"
    json = "json"


@corpus_command
def histogram(
    options: CorpusOptions,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="Only this measure kind; repeatable.")
    ] = None,
    what: Annotated[
        list[WhatName] | None,
        typer.Option(
            "--what",
            help="Only calls by their next count, sessions by their peak, or failure streaks by their length; "
            "repeatable.",
        ),
    ] = None,
    output: Annotated[HistogramFormat, typer.Option("--format", help="Bars, or one JSON document.")] = (
        HistogramFormat.table
    ),
    log: Annotated[
        bool | None,
        typer.Option("--log/--linear", help="Scale of the bars.", show_default="log where it helps"),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Also draw them: .png, .svg or .pdf.")
    ] = None,
    force: ForceOption = False,
    allow_empty: AllowEmptyOption = False,
) -> int:
    """Show, for every enabled measure kind, how often each count was reached, and where the thresholds lie.

    A call counts with the highest next count of the kind's measures, a session with its highest; streaks are runs of
    failures of one measure in the record. Limits of kinds that are off can be tried with --set limits.KIND=N.
    """
    kinds = _kinds(kind)
    plan = options.plan()
    suffix = _plot_format(plot)
    if plot is not None:
        refuse_corpus(plot, options.roots)
    from analysis.report import histograms_of
    from analysis.tables import HistogramObservation

    observation = HistogramObservation()
    corpus = options.replay(plan, observation)
    sums = observation.histograms((row.path, row.label) for row in corpus.sessions)
    wanted = {name.value for name in what} if what else {name.value for name in WhatName}
    found = [one for one in histograms_of(sums, plan) if one.kind in kinds and one.what in wanted]
    if plot is not None:
        _plot(plot, suffix, found, corpus, force=force)
    if output is HistogramFormat.json:
        from analysis.documents import head
        from analysis.report import histogram_document
        from cli.jsonlines import print_json

        print_json({**head("histogram", plan, corpus), "histograms": [histogram_document(one) for one in found]})
    else:
        from cli.histogram_table import print_histograms

        print_histograms(found, corpus, log=log)
    return judge(corpus, strict=options.strict, needs_calls=True, allow_empty=allow_empty)


def _kinds(given: list[str] | None) -> Sequence[str]:
    from breaker.kinds import KINDS

    for kind in given or []:
        if kind not in KINDS:
            raise Failed(USAGE, f"--kind {kind}: no measure kind; known: {', '.join(KINDS)}")
    return given or KINDS


def _plot_format(plot: Path | None) -> str:
    if plot is None:
        return ""
    from analysis.report import PLOT_FORMATS

    suffix = plot.suffix.lower().removeprefix(".")
    if suffix not in PLOT_FORMATS:
        raise Failed(USAGE, f"--plot {plot}: must end in .png, .svg or .pdf")
    return suffix


def _plot(plot: Path, suffix: str, found: Sequence[Histogram], corpus: CorpusReplay, *, force: bool) -> None:
    from analysis.files import atomic_file
    from analysis.report import PLOT_FORMATS, histogram_sheet, write_figure
    from cli.text import counted

    plan = corpus.plan
    title = f"{counted(len(corpus.sessions), 'session')} · ruleset {plan.ruleset.name} · policy {plan.policy}"
    title += f" · settings {plan.settings.digest[: len('sha256:') + 12]}"
    formats: dict[str, PlotFormat] = {known: known for known in PLOT_FORMATS}
    with output_faults(), atomic_file(plot, force=force) as file:
        write_figure(histogram_sheet(found, title), file, formats[suffix])
