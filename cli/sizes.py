"""Sizes as people write and read them."""

from __future__ import annotations

import re

from cli.exits import USAGE, Failed

__all__ = ["size_of", "size_text"]

_SIZE = re.compile(r"([0-9]{1,12})(B|KB|MB|GB|KiB|MiB|GiB)?", re.ASCII)
_UNITS = {
    None: 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
}


def size_of(option: str, text: str, least: int = 0) -> int:
    """Return the bytes an option's value stands for.

    Raises:
        Failed: it is no size, or too little.
    """
    match = _SIZE.fullmatch(text)
    if match is None or int(match[1]) < least:
        told = "a whole number, with KB, MB, GB, KiB, MiB or GiB for more than bytes"
        raise Failed(USAGE, f"{option} {text}: not a size ({told})")
    return int(match[1]) * _UNITS[match[2]]


def size_text(size: int) -> str:
    """Return a size in the unit it is best read in: `312 bytes`, `1.4 MiB`."""
    if size < _UNITS["KiB"]:
        return f"{size} byte{'' if size == 1 else 's'}"
    unit = next(unit for unit in ("GiB", "MiB", "KiB") if size >= _UNITS[unit])
    return f"{size / _UNITS[unit]:.1f} {unit}"
