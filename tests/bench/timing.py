"""Time whole processes, start and end included, in turns; and print what came out as Markdown."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

__all__ = [
    "BREAKER",
    "PYTHON",
    "Command",
    "Cost",
    "comparison",
    "cost_of",
    "growth",
    "in_turns",
    "markdown",
    "median_cost",
    "without_cache",
]

PYTHON = sys.executable
BREAKER = str(Path(sys.executable).parent / "breaker")
"""The installed command."""


class Cost(NamedTuple):
    """What one process took."""

    wall: float
    """Seconds until it ended, or until its first line where that was waited for."""
    cpu: float
    """Seconds of processor time, user and system, until it ended, of its own processes too."""


class Command(NamedTuple):
    """One command line to measure."""

    arguments: Sequence[str]
    question: bytes | None = None
    """Where it is to be timed until it answers: the line it is given. It ends when its input does."""
    before: Callable[[], object] | None = None
    """What is to be done before each run of it, untimed."""


def without_cache(*arguments: str) -> Command:
    """Return the command `breaker` with arguments, told to read everything anew."""
    return Command((BREAKER, *arguments, "--cache", "off"))


def _environment() -> dict[str, str]:
    """Return the environment of what is measured: bytecode is kept, as that of an installed copy is."""
    return {name: value for name, value in os.environ.items() if name not in {"PYTHONDONTWRITEBYTECODE", "COLUMNS"}}


def cost_of(command: Command) -> Cost:
    """Run a command to its end and return what it took.

    Raises:
        RuntimeError: it ended with another code than 0, or without an answer.
    """
    if command.before is not None:
        command.before()
    asked = command.question is not None
    start = time.perf_counter()
    process = subprocess.Popen(  # it is waited for below, where its processor time is told
        command.arguments,
        stdin=subprocess.PIPE if asked else subprocess.DEVNULL,
        stdout=subprocess.PIPE if asked else subprocess.DEVNULL,
        env=_environment(),
    )
    wall = _until_answer(process, command.question, start) if command.question is not None else None
    _, status, used = os.wait4(process.pid, 0)
    ended = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        message = f"{' '.join(command.arguments)} ended with {process.returncode}"
        raise RuntimeError(message)
    return Cost(ended if wall is None else wall, used.ru_utime + used.ru_stime)


def _until_answer(process: subprocess.Popen[bytes], question: bytes, start: float) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin as given, process.stdout as answers:
        given.write(question)
        given.flush()
        answer = answers.readline()
        taken = time.perf_counter() - start
    if not answer.endswith(b"\n"):
        message = f"no answer but {answer!r}"
        raise RuntimeError(message)
    return taken


def in_turns(commands: Mapping[str, Command], rounds: int, *, warm: bool = False) -> dict[str, Cost]:
    """Run commands in turns, forwards and backwards, and return the medians of each.

    Args:
        commands: the commands by name.
        rounds: how often each is run.
        warm: whether each is run once more, unmeasured, before.
    """
    taken: dict[str, list[Cost]] = {name: [] for name in commands}
    if warm:
        for command in commands.values():
            cost_of(command)
    for turn in range(rounds):
        for name in list(commands) if turn % 2 == 0 else reversed(list(commands)):
            taken[name].append(cost_of(commands[name]))
    return {name: median_cost(costs) for name, costs in taken.items()}


class Gain(NamedTuple):
    """How many times faster one command is than another: the middle of many pairs, and of its lower and upper half."""

    middle: float
    lower: float
    upper: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.middle:.2f} times ({self.pairs} pairs, half of them from {self.lower:.2f} to {self.upper:.2f})"


def gain(slow: Command, fast: Command, pairs: int) -> Gain:
    """Run two commands one right after the other, many times, and return how much faster one of them is.

    A machine's speed drifts by more than what is to be seen here; within a pair it hardly does.
    """
    ratios: list[float] = []
    for turn in range(pairs):
        if turn % 2:
            second, first = cost_of(fast), cost_of(slow)
        else:
            first, second = cost_of(slow), cost_of(fast)
        ratios.append(first.wall / second.wall)
    lower, _, upper = quantiles(ratios, n=4) if pairs > 1 else (ratios[0],) * 3
    return Gain(median(ratios), lower, upper, pairs)


def median_cost(costs: Sequence[Cost]) -> Cost:
    """Return the medians of several runs, that of each figure on its own."""
    return Cost(median(cost.wall for cost in costs), median(cost.cpu for cost in costs))


def markdown(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table under a title; the first column is words, the others figures."""
    print(f"\n### {title}\n")
    print(f"| {' | '.join(heads)} |")
    print(f"| --- |{' ---: |' * (len(heads) - 1)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def comparison(title: str, costs: Mapping[str, Cost], yardstick: str, *, milliseconds: bool = False) -> None:
    """Print what commands took, and that in times of a yardstick among them."""
    base = costs[yardstick]
    scale, unit, digits = (1000, "ms", 1) if milliseconds else (1, "s", 2)
    heads = ("", f"wall, {unit}", f"processor, {unit}", "wall, times", "processor, times")
    rows = [
        (
            name,
            f"{cost.wall * scale:.{digits}f}",
            f"{cost.cpu * scale:.{digits}f}",
            f"{cost.wall / base.wall:.2f}",
            f"{cost.cpu / base.cpu:.2f}",
        )
        for name, cost in costs.items()
    ]
    markdown(f"{title} (yardstick: {yardstick})", heads, rows)


def growth(title: str, costs: Mapping[str, Cost], sizes: Mapping[str, str]) -> None:
    """Print what commands took as what they are given grows, and that in times of the first."""
    first = next(iter(costs.values()))
    heads = ("", "size", "wall, s", "processor, s", "wall, times", "processor, times")
    rows = [
        (
            name,
            sizes[name],
            f"{cost.wall:.2f}",
            f"{cost.cpu:.2f}",
            f"{cost.wall / first.wall:.2f}",
            f"{cost.cpu / first.cpu:.2f}",
        )
        for name, cost in costs.items()
    ]
    markdown(title, heads, rows)
