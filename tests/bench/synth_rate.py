"""Print how many megabytes of log a second the recipe `scale` writes on one core (target: at least 50)."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import zstandard

from analysis.synth import write_corpus

SESSIONS = 60
MEGABYTE = 1_000_000


def expanded_size(folder: Path) -> int:
    """Return the bytes of text in every log below a folder."""
    total = 0
    for path in folder.rglob("session*.zstd"):
        with path.open("rb") as file:
            reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            while piece := reader.read(MEGABYTE):
                total += len(piece)
    return total


def main() -> None:
    """Write the corpus once to warm up, then measure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder / "warm", "scale", sessions=2)
        start = time.process_time()
        write_corpus(folder / "corpus", "scale", sessions=SESSIONS)
        seconds = time.process_time() - start
        size = expanded_size(folder / "corpus")
    print(f"{size / MEGABYTE:.0f} MB of log in {seconds:.2f} s of processor time: {size / MEGABYTE / seconds:.0f} MB/s")


if __name__ == "__main__":
    main()
