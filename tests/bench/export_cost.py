"""Print what an export of every table to parquet costs, in plain replays of the same sessions, and as they grow."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from tests.bench.corpora import scale_corpus, shown_size
from tests.bench.timing import Command, comparison, growth, in_turns, without_cache

SESSIONS = 100
ROUNDS = 3
FACTORS = (1, 2, 4)


def export(folder: str, out: Path) -> Command:
    """Return the export of a folder, each time to a new one."""
    told = without_cache("export", folder, "--jobs", "1", "--out", str(out))
    return told._replace(before=partial(rmtree, out, ignore_errors=True))


def main() -> None:
    """Write the corpora and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    with TemporaryDirectory() as name:
        out = Path(name) / "out"
        numbers = {f"{factor} x the sessions": factor * max(given.sessions // 2, 1) for factor in FACTORS}
        folders = {each: scale_corpus(Path(name) / str(number), number) for each, number in numbers.items()}
        whole = scale_corpus(Path(name) / "whole", given.sessions)
        commands = {
            "replay --jobs 1": without_cache("replay", whole, "--format", "json", "--jobs", "1"),
            "export --jobs 1": export(whole, out),
        }
        title = f"Export to parquet of {shown_size(whole, given.sessions)}"
        comparison(title, in_turns(commands, given.rounds), "replay --jobs 1")
        costs = in_turns({each: export(folder, out) for each, folder in folders.items()}, given.rounds)
        sizes = {each: shown_size(folders[each], numbers[each]) for each in folders}
        growth("Export as sessions grow", costs, sizes)


if __name__ == "__main__":
    main()
