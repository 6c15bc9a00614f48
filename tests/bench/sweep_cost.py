"""Print what grids of settings cost, in plain replays of the same sessions (target: 1000 within 3 replays).

The sweep and the replay it is held against each read in one process.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.corpora import scale_corpus, shown_size
from tests.bench.timing import Command, comparison, growth, in_turns, without_cache

SESSIONS = 100
ROUNDS = 3
FACTORS = (1, 2, 4)
AXES = (
    "warnAt=3..12",
    "summarizeAt=4..22..2",
    "limits.host=9,10,11,12,13,14,15,16,17,null",
)
"""Ten values each: one axis is 10 configurations, two are 100, three 1000."""


def sweep(folder: str, axes: int) -> Command:
    """Return the sweep of a folder over the first axes."""
    grid = [part for axis in AXES[:axes] for part in ("--grid", axis)]
    return without_cache("sweep", folder, *grid, "--format", "json", "--jobs", "1")


def main() -> None:
    """Write the corpora and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    with TemporaryDirectory() as name:
        numbers = {f"{factor} x the sessions": factor * max(given.sessions // 2, 1) for factor in FACTORS}
        folders = {each: scale_corpus(Path(name) / str(number), number) for each, number in numbers.items()}
        whole = scale_corpus(Path(name) / "whole", given.sessions)
        commands = {"replay --jobs 1": without_cache("replay", whole, "--format", "json", "--jobs", "1")}
        commands |= {f"{10**axes} configurations": sweep(whole, axes) for axes in range(1, len(AXES) + 1)}
        title = f"Sweep of {shown_size(whole, given.sessions)}"
        comparison(title, in_turns(commands, given.rounds), "replay --jobs 1")
        costs = in_turns({each: sweep(folder, 2) for each, folder in folders.items()}, given.rounds)
        sizes = {each: shown_size(folders[each], numbers[each]) for each in folders}
        growth("Sweep of 100 configurations as sessions grow", costs, sizes)


if __name__ == "__main__":
    main()
