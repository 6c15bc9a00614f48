"""Write what a check makes: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, text: str) -> None:
    """Write a file so that its name never shows half of it; what is no regular file (a pipe) is written to directly.

    Raises:
        OSError: it cannot be written; what was there before is untouched.
    """
    content = text.encode("utf-8", "backslashreplace")
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    target = Path(os.path.realpath(path))
    staging = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        staging.write_bytes(content)
        staging.replace(target)
    finally:
        staging.unlink(missing_ok=True)
