"""Print how many megabytes of log a second the recipe `scale` writes on one core (target: at least 50)."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.corpora import MEGABYTE, expanded_size, scale_corpus
from tests.bench.timing import markdown

SESSIONS = 60


def main() -> None:
    """Write the corpus once to warm up, then measure."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        scale_corpus(folder / "warm", 2)
        start = time.process_time()
        scale_corpus(folder / "corpus", SESSIONS)
        seconds = time.process_time() - start
        size = expanded_size(folder / "corpus") / MEGABYTE
    row = (f"{SESSIONS} sessions", f"{size:.0f}", f"{seconds:.2f}", f"{size / seconds:.0f}")
    markdown("Writing sessions", ("", "MB of log", "processor, s", "MB a second"), [row])


if __name__ == "__main__":
    main()
