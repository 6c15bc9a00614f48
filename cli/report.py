"""`breaker report`: what a replay saw, for people who look."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.corpus_options import CorpusOptions, corpus_command, judge
from cli.exits import USAGE, Failed, warn
from cli.output_options import (
    DEFAULT_SHORT_LINE,
    AllowEmptyOption,
    ForceOption,
    PrivacyName,
    PrivacyOption,
    SaltFileOption,
    ShortLineOption,
    load_privacy,
    output_faults,
    refuse_corpus,
)

if TYPE_CHECKING:
    from analysis.report import ReportData

__all__ = ["ReportFormat", "report"]

_DEFAULT_TOP = 10


class ReportFormat(StrEnum):
    """What a report is rendered as."""

    html = "html"
    json = "json"


@corpus_command
def report(
    options: CorpusOptions,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The file to write; JSON goes to standard output without it."),
    ] = None,
    output: Annotated[
        ReportFormat, typer.Option("--format", help="One self-contained page, or the same numbers as JSON.")
    ] = ReportFormat.html,
    top: Annotated[int, typer.Option("--top", min=0, help="Sessions shown with their timelines.")] = _DEFAULT_TOP,
    privacy: PrivacyOption = PrivacyName.shape,
    salt_file: SaltFileOption = None,
    short_line: ShortLineOption = DEFAULT_SHORT_LINE,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    force: ForceOption = False,
    allow_empty: AllowEmptyOption = False,
) -> int:
    """Write what a replay saw as one page: headline, stages, histograms, worst sessions, failures, read report.

    The page needs no network and no scripts, prints, and can be read on a phone. Texts from logs are shown as the
    privacy allows, and escaped.
    """
    if output is ReportFormat.html and out is None:
        raise Failed(USAGE, "--out FILE: where shall the page go?")
    if show and (output is ReportFormat.json or out is None):
        raise Failed(USAGE, "--open shows a page; leave out --format json")
    plan = options.plan()
    shown = load_privacy(privacy, salt_file)
    if out is not None:
        refuse_corpus(out, options.roots)
    from analysis.report import REPORT_TABLES, build_report
    from analysis.tables import TablesObservation

    observation = TablesObservation(plan, shown, REPORT_TABLES, short_line)
    try:
        with output_faults():
            corpus = options.replay(plan, observation)
        data = build_report(observation, corpus, top=top)
    finally:
        observation.close()
    _write(data, output, out, force=force)
    if show and out is not None:
        _show(out)
    return judge(corpus, strict=options.strict, needs_calls=True, allow_empty=allow_empty)


def _write(data: ReportData, output: ReportFormat, out: Path | None, *, force: bool) -> None:
    import json

    from analysis.files import atomic_file
    from analysis.report import render_page, report_document
    from cli.jsonlines import print_json

    if out is None:
        print_json(report_document(data))
        return
    as_json = output is ReportFormat.json
    text = json.dumps(report_document(data), indent=2) + "\n" if as_json else render_page(data)
    with output_faults(), atomic_file(out, force=force) as file:
        file.write(text.encode())
    print(out)


def _show(page: Path) -> None:
    import webbrowser

    if not webbrowser.open(page.resolve().as_uri()):
        warn(f"no browser to open {page} with")
