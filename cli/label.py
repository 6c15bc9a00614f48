"""`breaker label`: help with saying which sessions are good and which are stuck."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from cli.corpus_options import CorpusOptions, corpus_command, judge, require_sessions
from cli.exits import USAGE, Failed, warn

if TYPE_CHECKING:
    from analysis.suggest import Suggestions

__all__ = ["app", "suggest"]

app = typer.Typer(invoke_without_command=True)


@app.callback()
def label(context: typer.Context) -> None:
    """Help with saying which sessions are good and which are stuck."""
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(USAGE)


_DEFAULT_LONG_TURN = 100


class SuggestFormat(StrEnum):
    """How the proposals are printed."""

    table = "table"
    csv = "csv"
    json = "json"


@app.command("suggest")
@partial(corpus_command, without=("jobs", "config", "sets", "policy", "shell_http", "machine", "cache"))
def suggest(
    options: CorpusOptions,
    long_turn: Annotated[
        int, typer.Option("--long-turn", min=1, help="Calls from which on a turn is very long.")
    ] = _DEFAULT_LONG_TURN,
    output: Annotated[
        SuggestFormat,
        typer.Option("--format", help="A table; a labels file whose lines are comments until confirmed; JSON."),
    ] = SuggestFormat.table,
) -> int:
    """Propose labels from simple signs, for a person to confirm. Nothing is labelled.

    stuck: the session ended in an error or with a call that has no result, or has a very long turn. good: its last
    call succeeded and the model closed with an answer. Sessions that carry a label, or show signs of both, are left
    out.
    """
    from analysis.labels import LabelConflict
    from analysis.sessions.find import PathMissing
    from analysis.suggest import suggest_labels
    from cli.progress import byte_progress

    plan, labels, period = options.plan(), options.label_rules(), options.period()
    limits = options.limits()
    with byte_progress("reading sessions") as progress:
        try:
            found = suggest_labels(
                options.roots,
                plan,
                labels=labels,
                period=period,
                long_turn=long_turn,
                limits=limits,
                progress=progress,
            )
        except (PathMissing, LabelConflict) as error:
            raise Failed(USAGE, str(error)) from None
    for message in found.corpus.warnings:
        warn(message)
    require_sessions(found.corpus)
    _print(found, output)
    return judge(found.corpus, strict=options.strict)


def _print(found: Suggestions, output: SuggestFormat) -> None:
    from analysis.suggest import proposals_csv

    if output is SuggestFormat.csv:
        sys.stdout.write(proposals_csv(found))
    elif output is SuggestFormat.json:
        from analysis.suggest_document import suggest_document
        from cli.jsonlines import print_json

        print_json(suggest_document(found))
    else:
        from cli.tables import print_rows
        from cli.text import counted

        rows = [(one.session_id, one.label, "; ".join(one.signs)) for one in found.proposals]
        print_rows(("session", "proposed", "signs"), rows)
        labelled = counted(found.labelled, "session carries", "sessions carry")
        left_out = f"{labelled} a label, {counted(found.unsigned, 'shows', 'show')} no sign or signs of both"
        print(f"{counted(len(rows), 'proposal')}; {left_out}")
        print("nothing is labelled: --format csv gives a labels file in which each line waits to be confirmed")
