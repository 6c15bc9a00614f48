"""Exit codes, and the one place that maps faults to them."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import cast

__all__ = [
    "BUG",
    "CHECK_FAILED",
    "FINE",
    "INTERRUPTED",
    "NOT_ENOUGH",
    "UNREADABLE",
    "USAGE",
    "Failed",
    "report_bug",
    "run_guarded",
    "warn",
]

FINE = 0
CHECK_FAILED = 1
USAGE = 2
UNREADABLE = 3
NOT_ENOUGH = 4
BUG = 70
"""A fault of the program itself, which no documented outcome stands for."""
INTERRUPTED = 130
"""Of a signal that ends it otherwise the process dies, once it has tidied up: a shell shows 128 and its number."""

_ENDING = [number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
_NO_ROOM = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})
_PARSER_PREFIX = "Value error, "
"""What the library that checks options says before what is wrong."""


class Failed(Exception):
    """A command cannot go on: one line for the person, one exit code for the machine."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)


class _Ended(BaseException):
    """A signal ends the process."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


def warn(message: str) -> None:
    """Tell the person something on standard error."""
    _say("warning", message)


def _say(kind: str, message: str) -> None:
    from cli.text import plain

    with suppress(OSError, ValueError):  # where nobody can be told, the exit code tells
        print(f"breaker: {kind}: {plain(message)}", file=sys.stderr, flush=True)


def run_guarded(action: Callable[[], object]) -> int:
    """Run a command and return its exit code; every expected fault becomes one line on standard error.

    A signal that ends the process is felt like an interrupt, so that nothing half-written and no process is left.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_ENDING)}
    try:
        for number in _ENDING:
            if before[number] is signal.SIG_DFL:
                _handle(number, _end)
        return _guarded(action)
    except _Ended as end:
        _handle(end.number, signal.SIG_DFL)
        os.kill(os.getpid(), end.number)
        return end.number
    finally:
        for number, handler in before.items():
            _handle(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    _handle(number, signal.SIG_IGN)
    raise _Ended(number)


def _handle(number: int, handler: Callable[[int, FrameType | None], object] | int | signal.Handlers | None) -> None:
    """Say what is done at a signal, where that is this thread's to say."""
    with suppress(ValueError, TypeError):
        signal.signal(number, handler)


def _guarded(action: Callable[[], object]) -> int:
    try:
        code = action()
        sys.stdout.flush()
    except Failed as failure:
        _say("error", str(failure))
        return failure.code
    except _Ended:
        raise  # here, before anything is loaded to tell other faults apart
    except KeyboardInterrupt:
        _handle(signal.SIGINT, signal.SIG_IGN)
        _say("error", "interrupted")
        return INTERRUPTED
    except MemoryError:
        _say("error", "there is not enough memory for that")
        return UNREADABLE
    except BrokenPipeError:
        _silence_stdout()
        return FINE
    except OSError as error:
        if error.filename is None and error.errno in _NO_ROOM:  # files that are written are named where they are
            _say("error", f"standard output: cannot write: {error.strerror}")
            return USAGE
        _say("error", f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return UNREADABLE
    except _parser_faults() as fault:
        return _parser_code(fault)
    return code if isinstance(code, int) else FINE


def report_bug(kind: type[BaseException], fault: BaseException, trace: TracebackType | None) -> None:
    """Show a fault of the program itself, and end with a code that no check and no input can give."""
    sys.__excepthook__(kind, fault, trace)
    sys.stderr.flush()
    os._exit(BUG)


def _parser_faults() -> tuple[type[Exception], ...]:
    """Return what the command-line parser raises; loaded when there is a fault to tell apart, for it is heavy."""
    import typer

    usage = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
    return typer.Exit, typer.Abort, cast("type[Exception]", usage)


def _parser_code(fault: Exception) -> int:
    import typer

    if isinstance(fault, typer.Abort):
        _say("error", "interrupted")
        return INTERRUPTED
    describe = getattr(fault, "format_message", None)
    if callable(describe):
        _say("error", str(describe()).replace(_PARSER_PREFIX, ""))
    code = getattr(fault, "exit_code", USAGE)
    return code if isinstance(code, int) else USAGE


def _silence_stdout() -> None:
    """Point standard output nowhere, so that closing it at exit does not complain about a reader that left."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
