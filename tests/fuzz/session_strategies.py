"""Hypothesis strategies for sessions, and for the many ways one session can be written down."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import cast

import zstandard
from hypothesis import strategies as st

from tests.analysis.logs import LogWriter

__all__ = ["ACTS", "Spelling", "compose", "sessions", "spellings", "write_as"]

Act = tuple[str, int]
"""What happens, and a small number that varies it."""

ACTS = (
    "user",
    "notice",
    "says",
    "bash",
    "fails",
    "pool",
    "fetch",
    "nested",
    "open",
    "denied",
    "aborted",
    "resume",
    "plugin",
    "odd-arguments",
    "orphan",
)
VERSIONS = (1, 2, 3, 4)
"""Versions whose rows differ in shape and not in what they can say."""


def sessions(most: int = 14) -> st.SearchStrategy[list[Act]]:
    """Give what happens in a session."""
    return st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 3)), max_size=most)


def compose(acts: Sequence[Act], *, version: int = 4, stripped: bool = False) -> LogWriter:
    """Write down what happens in a session."""
    log = LogWriter("session-composed", version=version)
    log.stripped = stripped
    for act, number in acts:
        _write(log, act, number)
    return log


def _write(log: LogWriter, act: str, number: int) -> None:
    match act:
        case "user":
            log.user(f"go on {number}")
        case "notice":
            log.user("a notice", kind="time-context")
        case "says":
            log.says("well\nthen", tokens=10 * number)
        case "bash":
            log.bash(f"make {number}", "fine \u2028 \x85")
        case "fails":
            log.bash("make", f"no\n[exit code: {number + 1}]")
        case "pool":
            calls = [log.call(f"read {one}", call_id=f"call_{one}") for one in range(number + 2)]
            for call in reversed(calls):
                log.result(call, f"x\n[exit code: {number}]" if number else "x")
        case "fetch":
            arguments = json.dumps({"url": f"https://a.example/x?page={number}"})
            log.result(log.call(name="web_fetch", arguments=arguments), meta={"statusCode": 200 + 100 * number})
        case "nested":
            outer = log.call(name="run_code", arguments='{"code":"1"}', call_id=f"o{log.next}")
            inner = log.nested({"command": f"make {number}"}, sub_id=f"s{log.next}", parent="o")
            log.result(inner, "done")
            log.result(outer, "done")
        case "open":
            log.call(f"sleep {number}")
        case "denied":
            call = log.call("rm x")
            log.hook("PreToolUse", "block")
            log.result(call, "Error: no", is_error=True)
        case "aborted":
            error = {"name": "AbortError", "code": "ABORTED_BEFORE_DISPATCH"}
            log.result(log.call("make"), "Error", is_error=True, error=error)
        case "resume":
            log.marker(inherited=False)
        case "plugin":
            log.add("plugin/event", {"type": "tool/call", "n": number})
        case "odd-arguments":
            log.result(log.call(arguments=('{"a":', "", "[1]", '{"command":"\\ud800","n":1e400}')[number]), "x")
        case _:
            log.result(999, "whose?", call_id="nobody", sources=[])


@dataclass(frozen=True)
class Spelling:
    """One way to write a session down: what it says is the same in all of them."""

    shuffled: int | None
    """Seed by which the members of every object are put in another order."""
    spaced: bool
    ending: bytes
    blank: int
    """A blank line after every so many rows; 0 for none."""
    frames: tuple[int, ...] | None
    """Where the text is cut into frames; None for a plain log."""
    checksum: bool
    older: bool
    """An older generation stands beside it."""
    mark: bool
    """A byte order mark opens it."""
    last_feed: bool


def spellings() -> st.SearchStrategy[Spelling]:
    """Give the ways to write a session down."""
    return st.builds(
        Spelling,
        shuffled=st.none() | st.integers(0, 1000),
        spaced=st.booleans(),
        ending=st.sampled_from([b"\n", b"\r\n", b" \t\n"]),
        blank=st.integers(0, 3),
        frames=st.none() | st.lists(st.integers(0, 9000), max_size=12).map(tuple),
        checksum=st.booleans(),
        older=st.booleans(),
        mark=st.booleans(),
        last_feed=st.booleans(),
    )


def write_as(log: LogWriter, spelling: Spelling, folder: Path) -> Path:
    """Write a session down in one of its ways; returns the log's path."""
    text = _text(log, spelling)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _name(log.version)
    if spelling.older and log.version:
        old = LogWriter("session-composed", version=log.version - 1)
        old.bash("older")
        (folder / _name(old.version)).write_bytes(old.text)
    if spelling.frames is None:
        path.write_bytes(text)
        return path
    path = path.with_name(path.name + ".zstd")
    compressor = zstandard.ZstdCompressor(write_checksum=spelling.checksum)
    edges = [0, *sorted(cut for cut in spelling.frames if cut < len(text)), len(text)]
    path.write_bytes(b"".join(compressor.compress(text[start:end]) for start, end in itertools.pairwise(edges)))
    return path


def _name(version: int) -> str:
    return f"session.v{version}.jsonl" if version else "session.jsonl"


def _text(log: LogWriter, spelling: Spelling) -> bytes:
    random = None if spelling.shuffled is None else Random(spelling.shuffled)
    rows = [json.dumps(log.header).encode(), *log.lines]
    text = b"\xef\xbb\xbf" if spelling.mark else b""
    for number, row in enumerate(rows):
        text += _spelled(row, random, spaced=spelling.spaced) + spelling.ending
        if spelling.blank and number % spelling.blank == 0:
            text += spelling.ending
    return text if spelling.last_feed else text.rstrip(b" \t\r\n")


def _spelled(row: bytes, random: Random | None, *, spaced: bool) -> bytes:
    value = cast("object", json.loads(row))
    value = _shuffled(value, random) if random is not None else value
    return json.dumps(value, separators=(" , ", " :  ") if spaced else (",", ":")).encode()


def _shuffled(value: object, random: Random) -> object:
    if isinstance(value, dict):
        members = list(cast("dict[str, object]", value).items())
        random.shuffle(members)
        return {key: _shuffled(one, random) for key, one in members}
    if isinstance(value, list):
        return [_shuffled(one, random) for one in cast("list[object]", value)]
    return value
