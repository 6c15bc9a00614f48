"""`breaker guard`: the engine as a process."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from cli.settings import (
    DEFAULT_RULESET_NAME,
    ConfigOption,
    MachineOption,
    RulesetOption,
    SetOption,
    load_settings,
)

__all__ = ["Answer", "guard"]


class Answer(StrEnum):
    """What becomes of an ask."""

    approve = "approve"
    decline = "decline"


def guard(
    config: ConfigOption = None,
    sets: SetOption = None,
    ruleset: RulesetOption = DEFAULT_RULESET_NAME,
    answer: Annotated[
        Answer, typer.Option("--answer", help="What becomes of an ask whose call carries no answer of its own.")
    ] = Answer.decline,
    shell_http: Annotated[
        bool,
        typer.Option("--shell-http", help="The guard's own fetch tool is there: engage the shell-HTTP policy."),
    ] = False,
    machine: MachineOption = None,
    messages: Annotated[bool, typer.Option("--messages", help="Say what the guard would say, in `message`.")] = False,
) -> None:
    """Run the engine as a process: JSON lines in, JSON lines out, flushed at once.

    In: {"kind":"user"}, {"kind":"notice"}, {"kind":"call","id","name","arguments","answer"?} and
    {"kind":"result","id","result"}; each may name an "agent". Out: one line for a call, and one for a result that
    was settled. A bad line is answered with {"error","line"} and the stream goes on.
    """
    from cli.guard_process import serve

    settings, rules = load_settings(config, sets, ruleset)
    serve(settings, rules, answer=answer.value, shell_http=shell_http, machine=machine or (), messages=messages)
