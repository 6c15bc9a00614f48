"""How long work tells how far it is; library code never touches the terminal."""

from __future__ import annotations

from typing import Protocol

__all__ = ["NO_PROGRESS", "Progress"]


class Progress(Protocol):
    """Receives how many bytes of the input have been read."""

    def start(self, total_bytes: int) -> None:
        """Begin work on that many bytes."""
        ...

    def advance(self, read_bytes: int) -> None:
        """Take note that so many more bytes were read."""
        ...


class _NoProgress:
    def start(self, total_bytes: int) -> None:
        """Ignore it."""

    def advance(self, read_bytes: int) -> None:
        """Ignore it."""


NO_PROGRESS: Progress = _NoProgress()
