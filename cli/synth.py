"""`breaker synth`: write a corpus whose every answer is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.exits import USAGE, Failed
from cli.output_options import output_faults

__all__ = ["synth"]


def synth(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where to write; must be empty or new.")],
    recipe: Annotated[str, typer.Option("--recipe", help="What to write: demo, calibrated, labelled or scale.")],
    sessions: Annotated[
        int | None,
        typer.Option(
            "--sessions",
            metavar="N",
            help="How many sessions (recipes labelled and scale; demo and calibrated have a fixed size).",
            show_default="the recipe's own number",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same bytes.")] = 0,
    version: Annotated[int, typer.Option("--version", help="Session format version: 4, 3 or 0.")] = 4,
    plain: Annotated[bool, typer.Option("--plain", help="Write plain .jsonl instead of zstd frames.")] = False,
    calls: Annotated[int | None, typer.Option("--calls", metavar="N", help="Calls per session (recipe scale).")] = None,
    result_bytes: Annotated[
        int | None, typer.Option("--result-bytes", metavar="N", help="Bytes of log per call (recipe scale).")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Use a folder that is not empty; sessions an earlier run left are removed.")
    ] = False,
) -> None:
    """Write sessions as the harness does, with planted truth beside them in truth.json."""
    from analysis.synth import TRUTH_NAME, SynthError, write_corpus
    from cli.text import counted

    try:
        with output_faults(out):
            truth = write_corpus(
                out,
                recipe,
                sessions=sessions,
                seed=seed,
                version=version,
                plain=plain,
                force=force,
                calls=calls,
                result_bytes=result_bytes,
            )
    except SynthError as error:
        raise Failed(USAGE, str(error)) from None
    print(f"{counted(len(truth.sessions), 'session')} of recipe {recipe} (format {version}, seed {seed}) in {out}")
    print(f"what they hold is in {out / TRUTH_NAME}")
