"""Inputs made to be slow cost work that grows with their size, not with its square.

Lines of Python that run are counted, at two small sizes. What runs below Python is not seen by that: a process that
does every input at a large size has an amount of processor time that linear work comes nowhere near, and that the
square of the size goes far beyond.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.bench.growth_inputs import INPUTS, What, work

ROOT = Path(__file__).parents[1]
GROUPS: tuple[What, ...] = ("result", "command", "arguments", "log")
SMALL = {"result": 3000, "command": 3000, "arguments": 150, "log": 200}
"""The largest size at which work is counted first; then at twice that."""
SMALL_PART = 200
"""Part of the large size that is the small one, where that is less."""
MOST_GROWTH = 2.2
LIMIT = 30
"""Seconds of processor time for one input, many times what it takes."""
LIMIT_OF_A_MILLION = 120
PATIENCE = 1200


def lines_of(act: Callable[[], None]) -> int:
    """Return how many lines of Python run, calls and turns of loops counted."""
    count = 0

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return local

    before = sys.gettrace()
    sys.settrace(local)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", INPUTS)
def test_twice_the_size_is_twice_the_work(tmp_path: Path, name: str) -> None:
    growing = INPUTS[name]
    size = min(SMALL[growing.what], growing.size // SMALL_PART)
    for _, act in work(growing, 1, tmp_path):
        act()  # what is done once, at the first time, is no part of it
    once, twice = ({place: lines_of(act) for place, act in work(growing, factor * size, tmp_path)} for factor in (1, 2))
    for place, lines in once.items():
        assert twice[place] < MOST_GROWTH * lines


def within_limits(what: str, part: int, *places: str) -> None:
    """Do all that is done with the inputs of a kind, each at a part of its size and within a limit."""
    import tempfile

    most = LIMIT_OF_A_MILLION if part == 1 else LIMIT
    for growing in INPUTS.values():
        if growing.what != what:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for place, act in work(growing, growing.size // part, Path(folder)):
                if place in places:
                    print(f"{growing.name}, {place}", flush=True)
                    used = resource.getrusage(resource.RUSAGE_SELF)
                    limit = int(used.ru_utime + used.ru_stime) + (LIMIT if what == "log" else most)
                    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
                    act()


def last_of(what: What, part: int, *places: str) -> str:
    """Do the same in a process of its own; return what it came to last where it went beyond a limit, else nothing."""
    code = f"from tests.test_growth import within_limits; within_limits({what!r}, {part}, *{places})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.stderr == ""
    return "" if done.returncode == 0 else done.stdout.strip().split("\n")[-1]


@pytest.mark.parametrize("what", ["result", pytest.param("command", marks=pytest.mark.slow), "arguments"])
def test_a_large_one_is_replayed_within_a_limit(what: What) -> None:
    assert last_of(what, 5, "replay") == ""


@pytest.mark.slow
@pytest.mark.parametrize("what", GROUPS)
def test_the_largest_goes_through_everything_within_a_limit(what: What) -> None:
    assert last_of(what, 1, "engine", "replay") == ""
