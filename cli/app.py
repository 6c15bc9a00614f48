"""The verbs and the options of `breaker`. Each verb lives in a module of its own, loaded when it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, cast

import typer

from cli.exits import USAGE

__all__ = ["VERBS", "build_app", "invoke"]

_HELP = "Replay recorded DeepSeek Harness sessions call by call through the engine that would guard a live agent."

VERBS: dict[str, str] = {
    "replay": "Replay sessions and tell what the guard would say.",
    "sweep": "Try many settings over the same sessions.",
    "lint": "Find stages and caps that can do nothing.",
    "explain": "Explain one decision, and what would change it.",
    "export": "Write tables and a manifest.",
    "histogram": "Show counts, peaks and streaks per measure kind.",
    "report": "Write one self-contained HTML page.",
    "reproduce": "Run an export again from its manifest.",
    "compare": "Compare two guards, session by session.",
    "detectors": "List the rules the guard can be compared with.",
    "guard": "Run the engine as a process, JSON lines in and out.",
    "measure": "Show a shell command's measures.",
    "classify": "Tell whether a result counts as a failure.",
    "shell-http": "Explain the shell-HTTP policy's verdict.",
    "rulesets": "List the releases that can be replayed.",
    "doctor": "Tell what is wrong with logs.",
    "schema": "Print the JSON Schema of a document.",
    "check": "Hold known-good sessions in CI.",
    "approve": "Write the baseline that check holds.",
    "demo": "See it work on a corpus of every behaviour.",
    "synth": "Write sessions whose every answer is known.",
    "label": "Help with saying which sessions are good and which are stuck.",
    "cache": "See and empty what is kept of sessions read before.",
}
"""Every verb with its line in the help. A verb is the function of its name in the module of its name, or, where it has
verbs of its own, that module's `app`."""


def _print_version(wanted: bool) -> None:
    if wanted:
        from breaker.version import __version__

        print(f"breaker {__version__}")
        raise typer.Exit


def _main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Print the help where no verb is given."""
    del version
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(USAGE)


def _not_asked_for() -> None:
    """Stand for a verb that this run only names in its help and in its hints."""


def build_app(verb: str | None) -> typer.Typer:
    """Build the command line with all verbs, of which one is loaded; the others have a name and a line of help only.

    Args:
        verb: the verb to load; None, or what is no verb, loads none.
    """
    app = typer.Typer(
        name="breaker",
        help=_HELP,
        invoke_without_command=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_main)
    for name, told in VERBS.items():
        loaded = _load(name) if name == verb else _not_asked_for
        if isinstance(loaded, typer.Typer):
            app.add_typer(loaded, name=name, short_help=told)
        else:
            app.command(name, short_help=told)(loaded)
    return app


def _load(verb: str) -> typer.Typer | Callable[..., object]:
    name = verb.replace("-", "_")
    module = import_module(f"cli.{name}")
    return cast("typer.Typer | Callable[..., object]", getattr(module, "app", None) or getattr(module, name))


def invoke(arguments: Sequence[str]) -> object:
    """Parse and run. The parser's own main would swallow interrupts, and make a reader that left an error."""
    # Options of the command itself take no values, so the verb is the first argument that is none.
    verb = next((argument for argument in arguments if not argument.startswith("-")), None)
    command = typer.main.get_command(build_app(verb))
    with command.make_context("breaker", list(arguments)) as context:
        return command.invoke(context)
