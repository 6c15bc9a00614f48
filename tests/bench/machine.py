"""Print what the benchmarks run on: processors, the interpreter, and whether two processes have a processor each."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from statistics import median

from tests.bench.timing import PYTHON

ROUNDS = 5
LOOP = "total = 0\nfor number in range(8_000_000): total += number"


def seconds_of(loops: int) -> float:
    """Return how long loops take that run side by side."""
    start = time.perf_counter()
    started = [subprocess.Popen([PYTHON, "-c", LOOP]) for _ in range(loops)]
    for process in started:
        process.wait()
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    one: list[float] = []
    two: list[float] = []
    for _ in range(ROUNDS):
        one.append(seconds_of(1))
        two.append(seconds_of(2))
    print(f"{os.cpu_count()} processors, {platform.python_implementation()} {platform.python_version()}.")
    print(
        f"Two busy loops side by side take {median(two) / median(one):.2f} times as long as one"
        " (1: each has a processor of its own; 2: they share one)."
    )


if __name__ == "__main__":
    main()
