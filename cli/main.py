"""The command `breaker`: what happens before anything is parsed.

A host waits for the first answer of `breaker guard`, so without options that verb runs past the command-line parser,
which takes many times as long to load as the engine. Nothing here may import the parser.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper

from cli.exits import report_bug, run_guarded

__all__ = ["main", "run"]

_UNPARSED = ["guard"]
"""The arguments that need no parser: there is nothing in them to parse."""


def _act() -> object:
    arguments = sys.argv[1:]
    if arguments == _UNPARSED:
        from cli.guard_process import serve

        return serve()
    from cli.early import started_early

    with started_early(arguments, os.environ):
        from cli.app import invoke

        return invoke(arguments)


def _ready_streams() -> None:
    """Let a stream show its escape for a character it lacks, and stand in for one the caller has closed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream: object = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
        elif mode == "w" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def main() -> None:
    """Be the command: run it, and end the process.

    Nothing is taken apart object by object on the way out. That takes as long as a good part of a start, and gives back
    only what the system takes back anyway.
    """
    try:
        run()
    except SystemExit as leaving:
        if not isinstance(leaving.code, int):
            raise
        with suppress(OSError, ValueError):  # what could not be written has been told
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(leaving.code)


def run() -> None:
    """Run the command and exit with its code."""
    sys.excepthook = report_bug
    _ready_streams()
    sys.exit(run_guarded(_act))
