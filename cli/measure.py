"""`breaker measure`: what the guard recognises a call by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from cli.exits import USAGE, Failed
from cli.jsonlines import answer_lines
from cli.settings import DEFAULT_RULESET_NAME, ConfigOption, RulesetOption, SetOption, load_settings

if TYPE_CHECKING:
    from breaker import Measurer, Ruleset, Settings

__all__ = ["measure"]


def measure(
    command: Annotated[str | None, typer.Argument(help="A shell command.", show_default=False)] = None,
    tool: Annotated[str, typer.Option("--tool", help="The shell tool that would run it.")] = "bash",
    jsonl: Annotated[
        bool,
        typer.Option("--jsonl", help='Read {"name","arguments"} lines and print {"measures","local","tracked"} lines.'),
    ] = False,
    config: ConfigOption = None,
    sets: SetOption = None,
    ruleset: RulesetOption = DEFAULT_RULESET_NAME,
) -> None:
    """Show a shell command's measures, their caps, and how they came about."""
    from breaker import Call, Measurer
    from breaker.measures import SHELL_TOOLS, is_shell_tool

    settings, rules = load_settings(config, sets, ruleset)
    measurer = Measurer(settings, rules)
    if jsonl:
        if command is not None:
            raise Failed(USAGE, "--jsonl reads standard input; give either it or a command")

        def reply(record: Mapping[str, object]) -> object:
            measured = measurer.measure(Call.from_host(record))
            return {"measures": list(measured.measures), "local": measured.local, "tracked": measured.tracked}

        answer_lines(reply)
        return
    if command is None:
        raise Failed(USAGE, "give a command, or --jsonl to read calls from standard input")
    if not is_shell_tool(tool):
        raise Failed(USAGE, f"--tool {tool}: no shell; known: {', '.join(sorted(SHELL_TOOLS))}")
    _explain(command, tool, measurer, settings, rules)


def _explain(command: str, tool: str, measurer: Measurer, settings: Settings, rules: Ruleset) -> None:
    from breaker import Call
    from breaker.shell import first_verb, output_sink, stripped_command, tokenize
    from breaker.urls import extract_urls, normalise_url
    from cli.text import plain

    measured = measurer.measure(Call(tool, {"command": command}))
    tokens = tokenize(command)
    print("words     " + " ".join(f"[{plain(token)}]" for token in tokens))
    print(f"verb      {plain(first_verb(tokens)) or '(none)'}")
    print(f"stripped  {plain(stripped_command(tokens)) or '(nothing)'}")
    for text in extract_urls(command, rules):
        address = normalise_url(text, settings.host_aliases, rules)
        told = "not a URL the guard can read" if address is None else f"{plain(address.href)}"
        told += " (local)" if address is not None and address.is_local else ""
        print(f"url       {plain(text)} -> {told}")
    print(f"sink      {plain(output_sink(tokens) or '(none)')}")
    print(f"tracked   {'yes' if measured.tracked else 'no'}; ruleset {rules.name}")
    print("measures")
    for name in measured.measures:
        cap = settings.cap(name)
        print(f"  {'off' if cap is None else f'cap {cap}':<7} {plain(name)}")
