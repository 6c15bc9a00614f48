"""The corpora the benchmarks run over: recipe `scale`, the same bytes for the same numbers."""

from __future__ import annotations

from pathlib import Path

import zstandard

from analysis.synth import write_corpus

__all__ = ["MEGABYTE", "expanded_size", "scale_corpus", "shown_size"]

MEGABYTE = 1_000_000
_PIECE = 1 << 20


def scale_corpus(folder: Path, sessions: int, *, calls: int | None = None) -> str:
    """Write sessions below a folder and return its name.

    Args:
        folder: where; it must be new.
        sessions: how many.
        calls: calls a session, the recipe's own mixture where none are given.
    """
    write_corpus(folder, "scale", sessions=sessions, calls=calls)
    return str(folder)


def expanded_size(folder: Path) -> int:
    """Return the bytes of text in every log below a folder."""
    total = 0
    for path in folder.rglob("session*.zstd"):
        with path.open("rb") as file:
            reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            while piece := reader.read(_PIECE):
                total += len(piece)
    return total


def shown_size(folder: str, sessions: int) -> str:
    """Say how large a corpus is: its sessions and megabytes of text."""
    return f"{sessions} sessions, {expanded_size(Path(folder)) / MEGABYTE:.0f} MB"
