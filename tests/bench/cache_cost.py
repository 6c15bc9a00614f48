"""Print what the facts cache saves (target: a second replay or sweep costs at most a tenth of the first).

The corpus is replayed without a cache, with an empty one, unchanged, under other settings, and with one session of it
changed; then the same sweep is made twice. Everything in one process.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

import zstandard

from tests.bench.corpora import scale_corpus, shown_size
from tests.bench.timing import BREAKER, Command, Cost, comparison, cost_of, median_cost, without_cache

SESSIONS = 300
ROUNDS = 2
GRID = ("--grid", "warnAt=3..12", "--grid", "summarizeAt=4..22..2")
"""100 configurations."""


class OneSession:
    """One session of a corpus, which loses its last row each time it is changed."""

    def __init__(self, folder: Path) -> None:
        self._path = min(folder.rglob("session*.zstd"))

    def change(self) -> None:
        """Write it anew, one row shorter."""
        with self._path.open("rb") as file:
            reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            text = reader.read()
        kept = text.rstrip(b"\n").rpartition(b"\n")[0] + b"\n"
        self._path.write_bytes(zstandard.ZstdCompressor().compress(kept))


def commands_over(folder: str, cache: Path) -> dict[str, Command]:
    """Return the commands in the order in which they are run: each finds what those before it have left."""
    session = OneSession(Path(folder))
    cleared = partial(rmtree, cache, ignore_errors=True)

    def cached(*arguments: str, before: Callable[[], object] | None = None) -> Command:
        return Command((BREAKER, *arguments, "--format", "json", "--cache", str(cache)), before=before)

    replay = ("replay", folder, "--jobs", "1")
    sweep = ("sweep", folder, *GRID, "--jobs", "1")
    return {
        "first replay": cached(*replay, before=cleared),
        "second replay": cached(*replay),
        "other thresholds": cached(*replay, "--set", "warnAt=5"),
        "one session changed": cached(*replay, before=session.change),
        "no cache: replay": without_cache(*replay, "--format", "json"),
        "first sweep": cached(*sweep, before=cleared),
        "second sweep": cached(*sweep),
        "no cache: sweep": without_cache(*sweep, "--format", "json"),
    }


def main() -> None:
    """Write the corpus and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = scale_corpus(Path(name) / "corpus", given.sessions)
        size = shown_size(folder, given.sessions)
        commands = commands_over(folder, Path(name) / "cache")
        taken: dict[str, list[Cost]] = {each: [] for each in commands}
        for _ in range(given.rounds):
            for each, command in commands.items():
                taken[each].append(cost_of(command))
        costs = {each: median_cost(several) for each, several in taken.items()}
    for verb in ("replay", "sweep"):
        shown = {each: cost for each, cost in costs.items() if ("sweep" in each) == (verb == "sweep")}
        comparison(f"Cache: {verb} of {size}", shown, f"first {verb}")


if __name__ == "__main__":
    main()
