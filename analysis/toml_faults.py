"""Where TOML does not parse, as the parser's message tells it."""

from __future__ import annotations

import re

__all__ = ["toml_fault"]

_AT_END = " (at end of document)"
_PLACE = re.compile(r"(.*) \(at line ([0-9]+), column ([0-9]+)\)", re.DOTALL)


def toml_fault(text: str, error: BaseException) -> tuple[int | None, str]:
    """Return the line of a fault and what is wrong there; no line where the parser names no place.

    Args:
        text: what was parsed.
        error: what the parser raised.
    """
    said = str(error)
    if said.endswith(_AT_END):
        return text.rstrip().count("\n") + 1, f"{said.removesuffix(_AT_END)} (at the end)"
    placed = _PLACE.fullmatch(said)
    return (None, said) if placed is None else (int(placed[2]), f"{placed[1]} (column {placed[3]})")
