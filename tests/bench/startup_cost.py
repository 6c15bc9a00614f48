"""Print what starting costs, and what a guard's first answer is made of.

Targets: `breaker --help` within twice `import typer`; a guard's first line within twice `import ada_url, json`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.corpora import scale_corpus
from tests.bench.timing import BREAKER, PYTHON, Command, comparison, in_turns, markdown, without_cache

ROUNDS = 15
LEAST = 0.4
"""Milliseconds from which on a module has a row of its own."""
CALLS = {
    "first line of guard, a curl": "curl -s https://api.example.com/items?page=2",
    "first line of guard, no address": "make test",
}
ENGINE = "import ada_url, json"


def question(command: str) -> bytes:
    """Return the line that asks a guard about a shell command."""
    return json.dumps({"kind": "call", "id": 1, "name": "bash", "arguments": {"command": command}}).encode() + b"\n"


def imports_of(arguments: list[str], given: bytes) -> dict[str, float]:
    """Return the milliseconds each module took by itself, as the interpreter tells them."""
    done = subprocess.run([PYTHON, "-X", "importtime", *arguments], input=given, capture_output=True, check=True)
    told = [line.removeprefix("import time:").split("|") for line in done.stderr.decode().splitlines()]
    return {
        name.strip(): int(own) / 1000
        for own, _, name in (row for row in told if len(row) == 3)
        if own.strip().isdigit()
    }


def print_imports(rounds: int) -> None:
    """Print the modules a guard loads beyond the yardstick's, each at its quickest."""
    given = question("make test")
    yardstick = imports_of(["-c", f"import re, {ENGINE.removeprefix('import ')}"], b"")
    runs = [imports_of([BREAKER, "guard"], given) for _ in range(rounds)]
    taken = {name: min(run[name] for run in runs) for name in runs[0] if name not in yardstick}
    large = {name: taken[name] for name in sorted(taken, key=lambda name: -taken[name]) if taken[name] >= LEAST}
    rows = [(f"`{name}`", f"{own:.2f}") for name, own in large.items()]
    rest = sum(taken.values()) - sum(large.values())
    rows += [(f"{len(taken) - len(large)} others", f"{rest:.2f}"), ("together", f"{sum(taken.values()):.2f}")]
    markdown(f"What a guard loads beyond `{ENGINE}`", ("module", "own time, ms"), rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    bare = Command((PYTHON, "-c", "pass"))
    with TemporaryDirectory() as name:
        small = scale_corpus(Path(name) / "corpus", 1, calls=10)
        commands = {
            "`python -c pass`": bare,
            "`import typer`": Command((PYTHON, "-c", "import typer")),
            "`breaker --help`": Command((BREAKER, "--help")),
            f"`{ENGINE}`": Command((PYTHON, "-c", ENGINE)),
            **{each: Command((BREAKER, "guard"), question=question(told)) for each, told in CALLS.items()},
            "`breaker replay` of one small session": without_cache("replay", small, "--format", "json", "--jobs", "1"),
        }
        costs = in_turns(commands, given.rounds, warm=True)
    parser_only = ("`python -c pass`", "`import typer`", "`breaker --help`")
    comparison("Start: help", {each: costs[each] for each in parser_only}, "`import typer`", milliseconds=True)
    engine = ("`python -c pass`", f"`{ENGINE}`", *CALLS)
    comparison("Start: guard", {each: costs[each] for each in engine}, f"`{ENGINE}`", milliseconds=True)
    replayed = ("`breaker --help`", "`breaker replay` of one small session")
    comparison("Start: replay", {each: costs[each] for each in replayed}, "`breaker --help`", milliseconds=True)
    print_imports(given.rounds)


if __name__ == "__main__":
    main()
