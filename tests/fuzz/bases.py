"""The sound logs that mutants are made of: planted ones of every version, hand-made ones, and recorded ones if any."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import zstandard

from analysis.sessions.decode import LineReader
from analysis.sessions.find import find_sessions
from analysis.synth import VERSIONS, write_corpus
from tests.analysis.logs import LogWriter
from tests.fuzz.mutations import Base

__all__ = ["gather"]

LONGEST = 12_000
"""Bytes of a base: small files make many mutants, and each mutation matters more."""


def gather(recorded: Path | None) -> list[Base]:
    """Return the bases, in a fixed order."""
    bases = [*_hand_made(), *_planted()]
    if recorded is not None:
        bases += _logs(recorded)
    return bases


def _cut(lines: list[bytes]) -> bytes:
    text = b""
    for number, line in enumerate(lines):
        if number > 3 and len(text) + len(line) > LONGEST:
            break
        text += line + b"\n"
    return text


def _logs(folder: Path) -> Iterator[Base]:
    for file in find_sessions([folder]).files:
        lines = [line.data for line in LineReader(file)]
        name = file.path.name.removesuffix(".zstd")
        if sum(map(len, lines[:4])) <= 4 * LONGEST:
            yield Base(file.path.parent.name, _cut(lines), name)


def _planted() -> Iterator[Base]:
    for version in VERSIONS:
        with TemporaryDirectory() as folder:
            write_corpus(Path(folder), "demo", version=version, plain=True)
            yield from _logs(Path(folder))


def _hand_made() -> Iterator[Base]:
    for version in range(5):
        yield _base("forms", _forms(version))
        yield _base("fork", _fork(version))
    yield _base("flat", _forms(0, flat=True))
    stripped = LogWriter("session-stripped")
    stripped.stripped = True
    stripped.user()
    stripped.bash()
    stripped.bash(text="x\n[exit code: 2]")
    yield _base("stripped", stripped)
    yield Base("header-alone", LogWriter("session-alone").text, "session.v4.jsonl")
    # A text that holds a whole frame in a string, and the bytes that begin one.
    inner = zstandard.ZstdCompressor().compress(b'{"type":"tool/call"}\n').hex()
    nested = LogWriter("session-nested")
    nested.bash(text=f"(µ/ý {inner}")
    yield _base("magic", nested)


def _base(origin: str, log: LogWriter) -> Base:
    tag = f".v{log.version}" if log.version else ""
    return Base(f"{origin}-{log.version}", log.text, f"session{tag}.jsonl")


def _forms(version: int, *, flat: bool = False) -> LogWriter:
    log = LogWriter(f"session-forms-{version}", version=version, flat=flat)
    log.user("do it")
    log.add("request/header", {"header": {"config": {"model": "m"}, "tools": [{"name": "web_fetch_file"}]}})
    log.says("well", tokens=40)
    first, second = log.call("make"), log.call("make -j")
    log.result(second, "no\n[exit code: 2]")
    log.result(first, "yes", sources=[first])
    outer = log.call(name="run_code", arguments='{"code":"1"}', call_id="c9")
    inner = log.nested({"command": "ls"}, sub_id="c9:1", parent="c9")
    log.result(inner, "a")
    log.result(outer, "done")
    asked = log.call("rm x")
    log.asked("a1", "dangerous", "call_x")
    log.decided("a1", "rejected")
    log.hook("PreToolUse", "block")
    log.result(asked, "Error: no", is_error=True)
    log.user("a notice", kind="plugin:some")
    log.marker(inherited=False)
    for _ in range(4):
        log.result(log.call(name="web_fetch", arguments='{"url":"https://a.example/x?b=1"}'), meta={"statusCode": 404})
    log.result(log.call("sleep 9"), error={"code": "ABORTED_BEFORE_DISPATCH", "name": "AbortError"}, is_error=True)
    log.add("roleplay/scene", {"a": 1}, ignorable=True)
    if version < 2:
        log.add("text-chunks", {"turn": 1, "step": 1, "index": 0, "dt": [1, 1], "texts": ["a", "b"]}, seq0=log.next)
    log.call("never settled")
    return log


def _fork(version: int) -> LogWriter:
    log = LogWriter(f"session-fork-{version}", version=version, parentSession="session-parent")
    log.header |= {"seedLength": 3} if version < 2 else {"isSeeded": True}
    log.user()
    log.bash()
    log.marker()
    log.user("and now")
    log.bash("ls", "x\n[exit code: 1]")
    log.bash("ls", "x\n[exit code: 1]")
    return log
