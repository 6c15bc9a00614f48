"""Where the cache of a person lies, and whether a folder may be one."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["default_folder", "fault_of_default"]

_NAME = "breaker"
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def default_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path | None:
    """Return the platform's folder for the cache; None where nothing says whose it would be."""
    if platform == "win32":
        return _below(environ.get("LOCALAPPDATA"), _NAME, "Cache")
    if platform == "darwin":
        return _below(environ.get("HOME"), "Library", "Caches", _NAME)
    return _below(environ.get("XDG_CACHE_HOME"), _NAME) or _below(environ.get("HOME"), ".cache", _NAME)


def _below(base: str | None, *names: str) -> Path | None:
    """Return a folder below another; a base that is missing or relative is none."""
    if not base or not Path(base).is_absolute():
        return None
    return Path(base, *names)


def fault_of_default(folder: Path) -> str | None:
    """Say why the folder nobody chose must not be used: what others can change there could change numbers.

    None where it is fine, or not there yet.
    """
    try:
        status = os.lstat(folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{folder}: {error.strerror or error}"
    if stat.S_ISLNK(status.st_mode):
        return f"{folder}: is a symbolic link"
    if not stat.S_ISDIR(status.st_mode):
        return f"{folder}: is not a folder"
    if os.name == "posix":
        if status.st_uid != os.geteuid():
            return f"{folder}: belongs to another user"
        if status.st_mode & _OTHERS_MAY_WRITE:
            return f"{folder}: can be written by other users"
    return None
