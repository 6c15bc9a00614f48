"""JSON lines in, JSON lines out: a bad line is answered in place, and the stream goes on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import cast

__all__ = ["BadLine", "answer_lines", "echoed", "print_json", "print_line"]


class BadLine(ValueError):
    """A line that cannot be answered; the message says why."""


def print_line(value: object) -> None:
    """Print one value as one line of JSON, at once."""
    _print_text(_line(value))


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


def _print_text(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()


def print_json(value: object) -> None:
    """Print one document, indented, as ASCII: whatever a log holds, the output is valid anywhere."""
    from msgspec import DecodeError
    from msgspec.json import format as indented

    text = json.dumps(value)
    try:
        # The standard encoder takes ten times as long where it indents.
        sys.stdout.write(indented(text, indent=2) + "\n")
    except (DecodeError, RecursionError):
        sys.stdout.write(json.dumps(value, indent=2) + "\n")


def echoed(value: object) -> object:
    """Return a value that was read so that it prints as JavaScript prints it: whole numbers without a fraction."""
    from breaker.ecmascript import canonical_json

    return value if value is None or isinstance(value, str) else cast("object", json.loads(canonical_json(value)))


def _lines() -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(sys.stdin.buffer, start=1):
        if line.strip():
            yield number, line


def answer_lines(answer: Callable[[Mapping[str, object]], object | None]) -> None:
    """Read objects from standard input and print what `answer` returns for each; None prints nothing.

    A line that is no JSON object, or that `answer` refuses with `BadLine`, gives `{"error", "line"}`.
    """
    from breaker.ecmascript import parse_json

    for number, line in _lines():
        try:
            record = parse_json(line.decode("utf-8"))
            if not isinstance(record, Mapping):
                message = "not a JSON object"
                raise BadLine(message)
            reply = answer(cast("Mapping[str, object]", record))
            text = "" if reply is None else _line(reply)
        except UnicodeDecodeError as error:
            text = _line({"error": f"not UTF-8: {error.reason} at byte {error.start}", "line": number})
        except json.JSONDecodeError as error:
            text = _line({"error": f"not JSON: {error.msg} at character {error.pos}", "line": number})
        except RecursionError:
            text = _line({"error": "nested too deeply", "line": number})
        except ValueError as error:
            text = _line({"error": str(error), "line": number})
        if text:
            _print_text(text)
