"""`breaker explain`: one decision of the guard, taken apart."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.corpus_options import CorpusOptions, corpus_command
from cli.exits import USAGE, Failed

if TYPE_CHECKING:
    from analysis.explain import Explanation, Target

__all__ = ["explain"]


class ExplainFormat(StrEnum):
    """How the explanation is printed."""

    text = "text"
    json = "json"


class StageChoice(StrEnum):
    """The stages."""

    warn = "warn"
    summarize = "summarize"
    gate = "gate"
    fail_warn = "fail-warn"
    fail_gate = "fail-gate"
    shell_http = "shell-http"


def explain(
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="A session's id, the beginning of it, or its path.")
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
) -> int:
    """Explain."""
    return 0
