"""Print what a replay costs: against a bare decode of the same files, in one process and in two, and as sessions grow.

Whole processes, in turns, medians. Run it on a quiet machine.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from analysis.synth import write_corpus

SESSIONS = 100
ROUNDS = 3
GROWTH = (1, 2, 4)
COMMAND = Path(sys.executable).parent / "breaker"
DECODE = """
import sys, zstandard
from pathlib import Path
for path in sorted(Path(sys.argv[1]).rglob("session*.zstd")):
    with path.open("rb") as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        while reader.read(1 << 20):
            pass
"""


def seconds_of(*arguments: str) -> float:
    """Return how long one process takes, start and end included."""
    start = time.perf_counter()
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Write the corpora and measure; argument: sessions of the smallest, where another number is wanted."""
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else SESSIONS
    with tempfile.TemporaryDirectory() as name:
        folders = {factor: str(Path(name) / str(factor)) for factor in GROWTH}
        for factor, folder in folders.items():
            write_corpus(Path(folder), "scale", sessions=sessions * factor)
        smallest = folders[GROWTH[0]]
        decode: list[float] = []
        one: list[float] = []
        two: list[float] = []
        for _ in range(ROUNDS):
            decode.append(seconds_of(sys.executable, "-c", DECODE, smallest))
            one.append(seconds_of(str(COMMAND), "replay", smallest, "--format", "json", "--jobs", "1"))
            two.append(seconds_of(str(COMMAND), "replay", smallest, "--format", "json", "--jobs", "2"))
        print(f"bare decode {median(decode):.2f} s; replay --jobs 1 {median(one):.2f} s, --jobs 2 {median(two):.2f} s")
        ratio, gain = median(one) / median(decode), median(one) / median(two)
        print(f"one process: {ratio:.1f} bare decodes; two are {gain:.2f} times faster")
        for factor, folder in folders.items():
            taken = median(
                seconds_of(str(COMMAND), "replay", folder, "--format", "json", "--jobs", "1") for _ in range(ROUNDS)
            )
            print(f"{factor} x the sessions: {taken:.2f} s, {taken / median(one):.2f} times the smallest")


if __name__ == "__main__":
    main()
