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
from cli.exits import USAGE, report_bug, run_guarded

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
app.command("replay", short_help="Replay sessions and tell what the guard would say.")(replay.replay)
app.command("sweep", short_help="Try many settings over the same sessions.")(sweep.sweep)
app.command("lint", short_help="Find stages and caps that can do nothing.")(lint.lint)
app.command("explain", short_help="Explain one decision, and what would change it.")(explain.explain)
app.add_typer(label.app, name="label")
app.command("export", short_help="Write tables and a manifest.")(export.export)
app.command("histogram", short_help="Show counts, peaks and streaks per measure kind.")(histogram.histogram)
app.command("report", short_help="Write one self-contained HTML page.")(report.report)
app.command("reproduce", short_help="Run an export again from its manifest.")(reproduce.reproduce)
app.command("compare", short_help="Compare two guards, session by session.")(compare.compare)
app.command("detectors", short_help="List the rules the guard can be compared with.")(detectors.detectors)
app.command("guard", short_help="Run the engine as a process, JSON lines in and out.")(guard.guard)
app.command("measure", short_help="Show a shell command's measures.")(measure.measure)
app.command("classify", short_help="Tell whether a result counts as a failure.")(classify.classify)
app.command("shell-http", short_help="Explain the shell-HTTP policy's verdict.")(shell_http.shell_http)
app.command("rulesets", short_help="List the releases that can be replayed.")(rulesets.rulesets)
app.command("doctor", short_help="Tell what is wrong with logs.")(doctor.doctor)
app.command("schema", short_help="Print the JSON Schema of a document.")(schema.schema)
app.command("check", short_help="Hold known-good sessions in CI.")(check.check)
app.command("approve", short_help="Write the baseline that check holds.")(approve.approve)
app.command("demo", short_help="See it work on a corpus of every behaviour.")(demo.demo)
app.command("synth", short_help="Write sessions whose every answer is known.")(synth.synth)


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
    sys.excepthook = report_bug
    _ready_streams()
    sys.exit(run_guarded(_invoke))
