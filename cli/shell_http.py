"""`breaker shell-http`: what the shell-HTTP policy makes of a command, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from cli.exits import USAGE, Failed
from cli.jsonlines import BadLine, answer_lines
from cli.settings import (
    DEFAULT_RULESET_NAME,
    ConfigOption,
    MachineOption,
    RulesetOption,
    SetOption,
    load_settings,
)

__all__ = ["shell_http"]


def shell_http(
    command: Annotated[str | None, typer.Argument(help="A shell command.", show_default=False)] = None,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help='Read {"command"} lines and print {"refused","why"} lines.')
    ] = False,
    machine: MachineOption = None,
    config: ConfigOption = None,
    sets: SetOption = None,
    ruleset: RulesetOption = DEFAULT_RULESET_NAME,
) -> None:
    """Explain the shell-HTTP policy's verdict on a command: the candidates it looked at and what decided.

    Whether the policy is switched on (blockShellHttp) plays no part here.
    """
    from breaker.shellhttp import ShellHttpPolicy, this_machine
    from cli.text import plain

    settings, rules = load_settings(config, sets, ruleset)
    if rules.shell_http is None:
        raise Failed(USAGE, f"ruleset {rules.name} has no shell-HTTP policy; it came with 0.6")
    policy = ShellHttpPolicy(settings, rules, this_machine(machine or []))
    if jsonl:
        if command is not None:
            raise Failed(USAGE, "--jsonl reads standard input; give either it or a command")

        def reply(record: Mapping[str, object]) -> object:
            given = record.get("command")
            if not isinstance(given, str):
                message = "command must be text"
                raise BadLine(message)
            verdict = policy.verdict(given)
            return {"refused": verdict.refused, "why": verdict.why}

        answer_lines(reply)
        return
    if command is None:
        raise Failed(USAGE, "give a command, or --jsonl to read commands from standard input")
    verdict = policy.verdict(command)
    print(f"{'refused' if verdict.refused else 'allowed'}: {plain(verdict.why)} (ruleset {rules.name})")
    for candidate in verdict.candidates:
        mark = "*" if candidate.decides else " "
        print(f"{mark} {plain(candidate.text)}")
        print(f"      {plain(candidate.found)}: {plain(candidate.what)}")
