"""`breaker explain`: one decision of the guard, taken apart."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.corpus_options import CorpusOptions, corpus_command
from cli.exits import FINE, NOT_ENOUGH, UNREADABLE, USAGE, Failed

if TYPE_CHECKING:
    from analysis.explain import Explanation

__all__ = ["explain"]


class ExplainFormat(StrEnum):
    """How the explanation is printed."""

    text = "text"
    json = "json"


class StageChoice(StrEnum):
    """The stages a call can reach."""

    warn = "warn"
    summarize = "summarize"
    gate = "gate"
    fail_warn = "fail-warn"
    fail_gate = "fail-gate"
    shell_http = "shell-http"


@partial(corpus_command, without=("paths", "jobs", "label", "labels", "since", "until", "strict", "cache"))
def explain(
    options: CorpusOptions,
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="A session's id, how it begins, as a table shows it, or its path.")
    ],
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH…", help="Where to look for it.", show_default="$DSH_HOME/sessions"),
    ] = None,
    call: Annotated[int | None, typer.Option("--call", min=0, help="Explain the call of that index, from 0.")] = None,
    seq: Annotated[int | None, typer.Option("--seq", min=0, help="Explain the call of that sequence number.")] = None,
    stage: Annotated[
        StageChoice | None, typer.Option("--stage", help="Explain the first call that reaches a stage.")
    ] = None,
    output: Annotated[
        ExplainFormat, typer.Option("--format", help="Text for a person, or one JSON document.")
    ] = ExplainFormat.text,
) -> int:
    """Take one decision apart: what was counted, why this was said, what it rests on, what would have avoided it.

    Without --call, --seq or --stage it is the first call that reaches the session's worst stage.
    """
    from analysis.explain import (
        ExplainError,
        NoSessions,
        SessionUnreadable,
        Target,
        explain_session,
        find_session,
    )
    from analysis.sessions.find import PathMissing

    if sum(choice is not None for choice in (call, seq, stage)) > 1:
        raise Failed(USAGE, "give one of --call, --seq and --stage")
    plan = options.plan()
    target = Target(call=call, seq=seq, stage=None if stage is None else stage.value)
    roots = paths or ([Path(session)] if Path(session).exists() else options.roots)
    try:
        explanation = explain_session(find_session(session, roots), plan, target, options.limits())
    except NoSessions as error:
        raise Failed(NOT_ENOUGH, str(error)) from None
    except SessionUnreadable as error:
        raise Failed(UNREADABLE, str(error)) from None
    except (PathMissing, ExplainError) as error:
        raise Failed(USAGE, str(error)) from None
    _print(explanation, output)
    return FINE


def _print(explanation: Explanation, output: ExplainFormat) -> None:
    if output is ExplainFormat.json:
        from analysis.explain_document import explain_document
        from cli.jsonlines import print_json

        print_json(explain_document(explanation))
    else:
        from cli.explain_text import print_explanation

        print_explanation(explanation)
