"""What is wrong with a check's own files, and where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["CheckError", "Origin"]


class CheckError(ValueError):
    """A configuration, a baseline or an option that cannot be used; the message names file, line and key."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where something was written down."""

    file: str
    line: int | None = None
    key: str = ""

    def __str__(self) -> str:
        """Return `file:line`."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def error(self, message: str) -> CheckError:
        """Return a fault at this place."""
        key = f"`{self.key}` " if self.key else ""
        return CheckError(f"{self}: {key}{message}")


def shown(path: Path) -> str:
    """Return a path as people write it: relative to the working folder where it lies below."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
