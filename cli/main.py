"""The command `breaker`. Each verb lives in a file of its own and imports what it needs when it runs."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from cli import (
    approve,
    check,
    classify,
    compare,
    demo,
    detectors,
    doctor,
    explain,
    export,
    guard,
    histogram,
    label,
    lint,
    measure,
    replay,
    report,
    reproduce,
    rulesets,
    schema,
    shell_http,
    sweep,
    synth,
)
from cli.exits import USAGE, run_guarded

__all__ = ["app", "run"]

app = typer.Typer(
    name="breaker",
    help="Replay recorded DeepSeek Harness sessions call by call through the engine that would guard a live agent.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("replay")(replay.replay)
app.command("sweep")(sweep.sweep)
app.command("lint")(lint.lint)
app.command("explain")(explain.explain)
app.add_typer(label.app, name="label")
app.command("export")(export.export)
app.command("histogram")(histogram.histogram)
app.command("report")(report.report)
app.command("reproduce")(reproduce.reproduce)
app.command("compare")(compare.compare)
app.command("detectors")(detectors.detectors)
app.command("guard")(guard.guard)
app.command("measure")(measure.measure)
app.command("classify")(classify.classify)
app.command("shell-http")(shell_http.shell_http)
app.command("rulesets")(rulesets.rulesets)
app.command("doctor")(doctor.doctor)
app.command("schema")(schema.schema)
app.command("check")(check.check)
app.command("approve")(approve.approve)
app.command("demo")(demo.demo)
app.command("synth")(synth.synth)


def _print_version(wanted: bool) -> None:
    if wanted:
        from breaker.version import __version__

        print(f"breaker {__version__}")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Replay recorded DeepSeek Harness sessions call by call through the engine that would guard a live agent."""
    del version
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(USAGE)


def _invoke() -> object:
    """Parse and run. The parser's own main would swallow interrupts, and make a reader that left an error."""
    command = typer.main.get_command(app)
    with command.make_context("breaker", sys.argv[1:]) as context:
        return command.invoke(context)


def _ready_streams() -> None:
    """Let a stream show its escape for a character it lacks, and stand in for one the caller has closed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream: object = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
        elif mode == "w" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def run() -> None:
    """Run the command and exit with its code."""
    _ready_streams()
    sys.exit(run_guarded(_invoke))
