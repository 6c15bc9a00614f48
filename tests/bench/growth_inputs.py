"""Print how the work on inputs made to be slow grows: processor seconds for 1, 2 and 4 times the size of each.

Linear work doubles with the size. Every input goes through the engine's functions and through a replay of a log that
holds it. All are printed, or those that are named.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from analysis.corpus import replay_corpus
from analysis.replay import ReplayPlan
from analysis.sessions.facts import arguments_of
from breaker.engine import Breaker
from breaker.kinds import KINDS
from breaker.measures import Call
from breaker.messages import Messages
from breaker.rulesets import RULESETS
from breaker.settings import Settings
from breaker.shellhttp import ShellHttpPolicy
from tests.analysis.logs import LogWriter

__all__ = ["INPUTS", "Growing", "What", "work"]

What: TypeAlias = Literal["result", "command", "arguments", "log"]

_MILLION = 1_000_000
_FACTORS = (1, 2, 4)
_PART = 10
"""Of its size, an input is tried at this part and its multiples here, so that the table is there in minutes."""
_RULESETS = ("0.5.1", "0.6.1", "0.8")
"""With the exception rule; the shell-HTTP policy by destination; and that by command, which opens what is nested."""
_SETTINGS = {"warnAt": 2, "failWarnAt": 2, "limits": dict.fromkeys(KINDS, 2)}
_CALLS = 2
"""How often the same call is made, so that the guard has something to say."""


@dataclass(frozen=True)
class Growing:
    """An input of any size."""

    name: str
    what: What
    size: int
    """What it is tried at: characters, lines, words, rows, whatever it has many of."""
    make: Callable[[int], str]
    """Makes the text of a size; of a log its rows."""


def _repeated(piece: str, *, first: str = "", last: str = "") -> Callable[[int], str]:
    """Return what makes a text of that many characters, but for its ends."""
    return lambda size: first + (piece * (size // len(piece) + 1))[:size] + last


def _times(piece: str, *, first: str = "", last: str = "", closed: str = "") -> Callable[[int], str]:
    """Return what makes a text of a piece so many times, and then of what closes each."""
    return lambda size: first + piece * size + last + closed * size


def _numbered(form: str, *, first: str = "", between: str = " ", last: str = "") -> Callable[[int], str]:
    return lambda size: first + between.join(form.format(number) for number in range(size)) + last


_RESULTS: dict[str, tuple[int, Callable[[int], str]]] = {
    "blank lines": (50_000, _times("\n")),
    "blank lines before an exception": (50_000, _times("\n", last="x Error: ")),
    "blank lines in a traceback": (50_000, _times(" \r\n", first="Traceback (most recent call last)", last="Error: ")),
    "white space before an exception": (_MILLION, _repeated(" ", last="Error: ")),
    "dotted words": (_MILLION, _repeated("a.b.c.d.", last=" Error: ")),
    "lines of dotted words": (_MILLION, _repeated("a.b.c.d\n", last="Error: ")),
    "one word of a result": (_MILLION, _repeated("a", last=" Error: ")),
    "short words of a result": (_MILLION, _repeated("a ", last="Error: ")),
    "exception names": (_MILLION, _repeated("Error", last=" Error: ")),
    "openings of an exit code": (_MILLION, _repeated("[exit code: ")),
    "openings of an exit code with a digit": (_MILLION, _repeated("[exit code: 1")),
    "openings of a signal": (_MILLION, _repeated("[killed by signal: ")),
    "openings of a time limit": (_MILLION, _repeated("[timed out after 1")),
    "openings of a status": (_MILLION, _repeated("(HTTP 40")),
    "one digit": (_MILLION, _repeated("4")),
    "an exit code of one digit": (_MILLION, _repeated("1", first="[exit code: ", last="]")),
    "marker lines": (_MILLION, _repeated("\n[stopped: x]")),
    "openings of a cut": (_MILLION, _repeated("\n(Omitted 1 bytes. Full formatted result stored at: )  ")),
    "openings of a background job": (_MILLION, _repeated("\n[still running after 1ms; moved to background job ")),
}
_COMMANDS: dict[str, tuple[int, Callable[[int], str]]] = {
    "single quotes": (_MILLION, _repeated("'")),
    "double quotes": (_MILLION, _repeated('"')),
    "quotes in turn": (_MILLION, _repeated("'\"")),
    "quotes after backslashes": (_MILLION, _repeated('\\"')),
    "backslashes in an open quote": (_MILLION, _repeated("\\a", first='"')),
    "quotes, backslashes, spaces": (_MILLION, _repeated("'\"\\ ", first="curl -d ")),
    "quoted words": (_MILLION, _repeated("'a b' ")),
    "addresses": (10_000, _numbered("http://h{0}.example/p{0}?q={0}", first="curl ")),
    "openings of an address": (_MILLION, _repeated("http://")),
    "an address with many dots": (_MILLION, _repeated("a.", first="curl http://")),
    "an address with many members": (_MILLION, _repeated("a=1&", first="curl http://a.example/?")),
    "short words": (100_000, _times("a ")),
    "different words": (100_000, _numbered("w{}")),
    "one word": (_MILLION, _repeated("a")),
    "dotted words of a command": (_MILLION, _repeated("a.b.c.d.")),
    "open substitutions": (_MILLION, _repeated("$(")),
    "closed substitutions": (_MILLION // 3, _times("$(", closed=")")),
    "substitutions of curl": (_MILLION, _repeated("$(curl ")),
    "backquotes": (_MILLION, _repeated("`")),
    "backquoted words": (_MILLION, _repeated("`a;b` ")),
    "heredocs in a line": (_MILLION, _repeated("<<EOF ")),
    "heredocs": (_MILLION, _repeated("cat <<EOF\n")),
    "separators": (_MILLION, _repeated("a;")),
    "brackets of a command": (_MILLION, _repeated("(")),
    "assignments": (_MILLION, _repeated("A=1 $A ")),
    "wrappers": (_MILLION, _repeated("env sudo -u ")),
    "commands that run others": (_MILLION, _repeated("eval a b;")),
    "data options": (_MILLION, _repeated("curl -d x ")),
    "outputs": (_MILLION, _repeated("tee -a | > | -o - ")),
}
_ARGUMENTS: dict[str, tuple[int, Callable[[int], str]]] = {
    "nested brackets": (100_000, _times("[", closed="]")),
    "unclosed brackets": (100_000, _times("[")),
    "nested objects": (100_000, _times('{"a":', last="1", closed="}")),
    "a long number": (_MILLION, _repeated("1", first='{"a":', last="}")),
    "members": (100_000, _numbered('"k{}":1', first="{", between=",", last="}")),
    "numbered members": (100_000, _numbered('"{}":1', first="{", between=",", last="}")),
    "quotes in an argument": (_MILLION, _repeated('\\"', first='{"a":"', last='"}')),
    "halves of characters": (_MILLION, _repeated("\\ud800", first='{"a":"', last='"}')),
}


# -- logs ----------------------------------------------------------------------------------------------------------


def _rows(build: Callable[[LogWriter, int], object]) -> Callable[[int], str]:
    """Return what makes the text of a log, to which something is added for each of so many numbers."""

    def make(size: int) -> str:
        log = LogWriter()
        log.user()
        for number in range(size):
            build(log, number)
        return log.text.decode()

    return make


def _after_calls(build: Callable[[LogWriter, int], object], call_id: str | None = None) -> Callable[[int], str]:
    """Return what makes the text of a log of so many open calls, and then something for each."""

    def make(size: int) -> str:
        log = LogWriter()
        log.user()
        for _ in range(size):
            log.call(call_id=call_id)
        for number in range(size):
            build(log, number)
        return log.text.decode()

    return make


def _late_rows(size: int) -> str:
    log = LogWriter()
    for seq in (*range(0, 2 * size, 2), *range(2 * size - 1, 0, -2)):
        log.add("step/start", {"turn": 1, "step": 1}, seq=seq)
    return log.text.decode()


def _deep_row(size: int) -> str:
    row = json.dumps({"type": "tool/call", "seq": 0, "data": "@"}).replace('"@"', "[" * size + "]" * size)
    return LogWriter().text.decode() + row + "\n"


_LOGS: dict[str, tuple[int, Callable[[int], str]]] = {
    "results without calls": (100_000, _rows(lambda log, number: log.result(-1, sources=[]))),
    "results of one call": (100_000, _rows(lambda log, number: log.result(1, sources=[1]) if number else log.call())),
    "open calls asked about": (100_000, _after_calls(lambda log, number: log.asked(f"a{number}", "why"))),
    "open calls asked about by another name": (
        100_000,
        _after_calls(lambda log, number: log.asked(f"a{number}", "why", tool="other")),
    ),
    "open calls asked about by an unknown id": (
        100_000,
        _after_calls(lambda log, number: log.asked(f"a{number}", "why", call_id="none")),
    ),
    "calls of one id, settled in order": (
        100_000,
        _after_calls(lambda log, number: log.result(number + 1, sources=[]), call_id="same"),
    ),
    "calls of one id, the last settled first": (
        100_000,
        _after_calls(lambda log, number: log.result(log.next - 1 - 2 * number), call_id="same"),
    ),
    "approvals of one call": (
        100_000,
        _rows(lambda log, number: log.asked(f"a{number}", "why") if number else log.call()),
    ),
    "models": (
        100_000,
        _rows(lambda log, number: log.add("request/header", {"header": {"config": {"model": f"m{number}"}}})),
    ),
    "unknown types": (100_000, _rows(lambda log, number: log.add(f"odd/{number}", {}))),
    "human messages": (100_000, _rows(lambda log, number: log.user())),
    "rows that are none": (100_000, _rows(lambda log, number: log.raw(b'{"type":5}'))),
    "late rows": (100_000, _late_rows),
    "a deep row": (100_000, _deep_row),
}

_GROUPS: dict[What, dict[str, tuple[int, Callable[[int], str]]]] = {
    "result": _RESULTS,
    "command": _COMMANDS,
    "arguments": _ARGUMENTS,
    "log": _LOGS,
}
INPUTS: dict[str, Growing] = {
    name: Growing(name, what, size, make) for what, group in _GROUPS.items() for name, (size, make) in group.items()
}
"""Every input by its name."""


# -- what is done with them ----------------------------------------------------------------------------------------


def _write(what: What, text: str, folder: Path) -> None:
    """Write a log that holds an input."""
    path = folder / "session.v4.jsonl"
    if what == "log":
        path.write_text(text, encoding="utf-8")
        return
    log = LogWriter()
    log.user()
    for number in range(_CALLS):
        name, arguments, result = _call(what, text, number)
        log.result(log.call(name=name, arguments=arguments), result)
    path.write_bytes(log.text)


def _replay(folder: Path, rulesets: Sequence[str]) -> None:
    """Replay the log under rulesets, with all that can be asked for."""
    for name in rulesets:
        rules = RULESETS[name]
        settings = Settings.from_config(_SETTINGS, rules)
        plan = ReplayPlan(settings, rules, keep_events=True, keep_messages=True, shell_http="on")
        replay_corpus([folder], plan)


def _engine(what: What, text: str) -> None:
    """Measure, guard, classify, settle and judge an input as a live host would, under every ruleset."""
    name, arguments, result = _call(what, text, 0)
    call = Call(name, arguments_of(arguments))
    for ruleset in _RULESETS:
        rules = RULESETS[ruleset]
        settings = Settings.from_config(_SETTINGS, rules)
        guard, words = Breaker(settings, rules), Messages(settings, rules)
        for _ in range(_CALLS):
            measured = guard.measure(call)
            ask = guard.ask(measured)
            decision = guard.guard(measured) if ask is None else guard.decline(measured, ask)
            words.decision(decision, name, guard.last_result)
            failure = guard.classify(call, {"content": [{"type": "text", "text": result}]}).failure
            words.settlement(guard.settle(measured, failure, result))
        ShellHttpPolicy(settings, rules).verdict(text)


def _call(what: What, text: str, number: int) -> tuple[str, str, str]:
    """Return the tool, the text of its arguments and the result of a call that holds an input.

    The number makes other arguments of the same command: what is known of short ones is not looked at again.
    """
    if what == "arguments":
        return "read", text, "done"
    command, result = (text, "done") if what == "command" else ("curl -w '%{http_code}' x", text)
    return "bash", json.dumps({"command": command, "number": number}), result


def work(growing: Growing, size: int, folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Make an input of a size and give what is to be done with it: for `engine` and for `replay`."""
    text = growing.make(size)
    _write(growing.what, text, folder)
    if growing.what != "log":
        yield "engine", partial(_engine, growing.what, text)
    yield "replay", partial(_replay, folder, _RULESETS[-1:] if growing.what == "log" else _RULESETS)


def main(names: Iterable[str]) -> None:
    """Print the table."""
    chosen = [INPUTS[name] for name in names] or list(INPUTS.values())
    print("| input | of | engine 1x, 2x, 4x [s] | growth | replay 1x, 2x, 4x [s] | growth |")
    print("| --- | ---: | --- | ---: | --- | ---: |")
    for growing in chosen:
        taken: dict[str, list[float]] = {"engine": [], "replay": []}
        for factor in _FACTORS:
            with tempfile.TemporaryDirectory() as folder:
                for place, act in work(growing, growing.size // _PART * factor, Path(folder)):
                    begun = time.process_time()
                    act()
                    taken[place].append(time.process_time() - begun)
        cells = " | ".join(f"{', '.join(f'{one:.2f}' for one in each)} | {_growth(each)}" for each in taken.values())
        print(f"| {growing.name} | {growing.size // _PART:,} | {cells} |", flush=True)


def _growth(taken: list[float]) -> str:
    """Return how much the last took of the first; 4 where it grows with the size."""
    return f"{taken[-1] / taken[0]:.1f}" if taken and taken[0] > 0 else ""


if __name__ == "__main__":
    main(sys.argv[1:])
