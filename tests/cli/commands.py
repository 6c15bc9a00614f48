"""Run the command, in this process or in one of its own, and look at JSON text without reading numbers anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from io import BytesIO, TextIOWrapper
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator

from analysis.schemas import schema_text
from cli.main import run

COMMAND = Path(sys.executable).parent / "breaker"
"""The installed command."""

PATIENCE = 60
"""Seconds after which a process that should have ended is given up."""

Ran = CompletedProcess[str]
Json = dict[str, Any]


def breaker(*arguments: str | Path, stdin: bytes = b"") -> Ran:
    """Run the command in this process, with streams of its own."""
    given = [str(argument) for argument in arguments]
    out, err = BytesIO(), BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["breaker", *given])
        patch.setattr(sys, "stdin", TextIOWrapper(BytesIO(stdin), encoding="utf-8"))
        patch.setattr(sys, "stdout", stdout := TextIOWrapper(out, encoding="utf-8", newline="\n"))
        patch.setattr(sys, "stderr", stderr := TextIOWrapper(err, encoding="utf-8", newline="\n"))
        with pytest.raises(SystemExit) as ended:
            run()
    stdout.flush()
    stderr.flush()
    code = cast("int", ended.value.code)
    return CompletedProcess(given, code, out.getvalue().decode(), err.getvalue().decode())


def breaker_process(*arguments: str | Path, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Ran:
    """Run the installed command in a process of its own."""
    given = [str(COMMAND), *map(str, arguments)]
    done = subprocess.run(
        given, input=stdin, capture_output=True, env={**os.environ, **(env or {})}, timeout=PATIENCE, check=False
    )
    return CompletedProcess(given, done.returncode, done.stdout.decode(), done.stderr.decode())


def replay_document(*arguments: str | Path) -> Json:
    """Replay and return the document; the run must be fine and say nothing."""
    done = breaker("replay", *arguments, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def json_lines(text: str) -> list[Any]:
    """Read JSON lines, split on line feeds only."""
    return [json.loads(line) for line in text.split("\n") if line]


def lines_of(records: Sequence[object]) -> bytes:
    """Write JSON lines."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def violations(schema: str, document: Any) -> list[str]:
    """Return what a document breaks of the schema of that name, as shipped."""
    return [f"{error.json_path}: {error.message}" for error in validator_of(schema).iter_errors(document)]


@cache
def validator_of(schema: str) -> Any:
    """Return the validator of the schema of that name, as shipped."""
    return Draft202012Validator(json.loads(schema_text(schema)))


def raw_members(text: str) -> dict[str, str]:
    """Return the members of an object in JSON text, each as the text it is, so that numbers keep their spelling."""
    return {json.loads(key): value for key, value in _pairs(text)}


def raw_items(text: str) -> list[str]:
    """Return the items of an array in JSON text, each as the text it is."""
    items: list[str] = []
    at = _past_space(text, 1)
    while text[at] != "]":
        end = _end(text, at)
        items.append(text[at:end])
        at = _past_space(text, end)
        if text[at] == ",":
            at = _past_space(text, at + 1)
    return items


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    at = _past_space(text, 1)
    while text[at] != "}":
        key_end = _end(text, at)
        start = _past_space(text, text.index(":", key_end) + 1)
        end = _end(text, start)
        yield text[at:key_end], text[start:end]
        at = _past_space(text, end)
        if text[at] == ",":
            at = _past_space(text, at + 1)


def _end(text: str, start: int) -> int:
    return json.JSONDecoder().raw_decode(text, start)[1]


def _past_space(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def vector_lines(shared: Path, release: str, name: str) -> list[str]:
    """Return the lines of a file of recorded answers."""
    text = (shared / "vectors" / release / name).read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line]
