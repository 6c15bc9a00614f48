"""Print what a grid of a thousand settings costs, in plain replays of the same sessions (target: at most 3).

Whole processes, side by side: the two commands run in turns, several times each, and the medians are compared. A sweep
reads in one process, so the replay it is held against does too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from analysis.synth import write_corpus

SESSIONS = 1000
ROUNDS = 3
COMMAND = Path(sys.executable).parent / "breaker"
GRID = (
    "warnAt=3..12",
    "summarizeAt=4..22..2",
    "limits.host=9,10,11,12,13,14,15,16,17,null",
)
"""10 values of `warnAt`, 10 of `summarizeAt`, 10 caps: 1000 configurations."""


def seconds_of(*arguments: str) -> float:
    """Return how long one run of the command takes, start and end included."""
    start = time.perf_counter()
    subprocess.run([str(COMMAND), *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Write the corpus, then run the two commands in turns; arguments: sessions and rounds, where others are wanted."""
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else SESSIONS
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    grid = [part for axis in GRID for part in ("--grid", axis)]
    plain: list[float] = []
    swept: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "corpus"
        write_corpus(folder, "scale", sessions=sessions)
        for turn in range(rounds):
            plain.append(seconds_of("replay", str(folder), "--format", "json", "--jobs", "1"))
            swept.append(seconds_of("sweep", str(folder), *grid, "--format", "json"))
            print(f"round {turn + 1}: replay {plain[-1]:.1f} s, sweep {swept[-1]:.1f} s", flush=True)
    ratio = median(swept) / median(plain)
    print(f"{sessions} sessions, 1000 configurations: {ratio:.2f} plain replays")


if __name__ == "__main__":
    main()
