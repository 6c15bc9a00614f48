"""Print what a replay costs: against a bare decode of the same files, in two processes, and as the corpus grows.

Targets: one process within 4 bare decodes; two at least 1.7 times faster than one; growth as the bytes grow.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.corpora import scale_corpus, shown_size
from tests.bench.timing import PYTHON, Command, comparison, gain, growth, in_turns, without_cache

SESSIONS = 116
"""About 300 MB."""
LARGE_SESSIONS = 20
CALLS = 300
"""Calls a session, of the smallest size: as many as the recipe's middle session has."""
ROUNDS = 3
PAIRS = 15
"""How often two processes are held against one: of what they gain, the machine's drift is a large part."""
FACTORS = (1, 2, 4)
DECODE = """
import sys, zstandard
from pathlib import Path
for path in sorted(Path(sys.argv[1]).rglob("session*.zstd")):
    with path.open("rb") as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        while reader.read(1 << 20):
            pass
"""


BOTH = """
import json, subprocess, sys
running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in json.loads(sys.argv[1])]
sys.exit(any([one.wait() for one in running]))
"""


def replay(folder: str, jobs: int) -> Command:
    """Return the replay of a folder in so many processes."""
    return without_cache("replay", folder, "--format", "json", "--jobs", str(jobs))


def against_decode(folder: str, sessions: int, rounds: int, pairs: int) -> None:
    """Hold a replay against a bare decode, and two processes against one."""
    costs = in_turns(
        {
            "bare decode": Command((PYTHON, "-c", DECODE, folder)),
            "replay --jobs 1": replay(folder, 1),
            "replay --jobs 2": replay(folder, 2),
        },
        rounds,
    )
    comparison(f"Replay of {shown_size(folder, sessions)}", costs, "bare decode")
    print(f"\nTwo processes are faster than one: {gain(replay(folder, 1), replay(folder, 2), pairs)}.", flush=True)


def side_by_side(halves: tuple[str, str], whole: str, pairs: int) -> None:
    """Hold two replays that run at the same time, of half the sessions each, against one of all.

    They share nothing and wait for nobody, so this is as much as the machine lets two processes gain here.
    """
    commands = [replay(half, 1).arguments for half in halves]
    both = Command((PYTHON, "-c", BOTH, json.dumps(commands)))
    print(
        f"\nTwo separate replays of a half each, at once, are faster than one: {gain(replay(whole, 1), both, pairs)}."
    )


def as_sessions_grow(folder: Path, sessions: int, rounds: int) -> None:
    """Replay once, twice and four times the sessions, and see what two processes gain over each."""
    numbers = {f"{factor} x the sessions": factor * sessions for factor in FACTORS}
    folders = {name: scale_corpus(folder / str(number), number) for name, number in numbers.items()}
    costs = in_turns({name: replay(each, 1) for name, each in folders.items()}, rounds)
    growth("Replay as sessions grow", costs, {name: shown_size(folders[name], numbers[name]) for name in folders})
    print()
    for name, each in folders.items():
        print(f"Two processes over {name} are faster than one: {gain(replay(each, 1), replay(each, 2), rounds)}.")


def as_size_grows(folder: Path, sessions: int, rounds: int) -> None:
    """Replay as many sessions of once, twice and four times the calls."""
    calls = {f"{factor} x the session size": factor * CALLS for factor in FACTORS}
    folders = {name: scale_corpus(folder / str(number), sessions, calls=number) for name, number in calls.items()}
    costs = in_turns({name: replay(each, 1) for name, each in folders.items()}, rounds)
    growth("Replay as sessions get longer", costs, {name: shown_size(each, sessions) for name, each in folders.items()})


def main() -> None:
    """Write the corpora and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=SESSIONS, help="of the corpus held against a decode")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    given = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        whole = scale_corpus(folder / "whole", given.sessions)
        against_decode(whole, given.sessions, given.rounds, given.pairs)
        half = max(given.sessions // 2, 1)
        halves = (scale_corpus(folder / "left", half), scale_corpus(folder / "right", half))
        side_by_side(halves, whole, given.pairs)
        as_sessions_grow(folder / "sessions", max(given.sessions // 2, 1), given.rounds)
        as_size_grows(folder / "size", LARGE_SESSIONS, given.rounds)


if __name__ == "__main__":
    main()
