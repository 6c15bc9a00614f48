"""Text on its way to a person: nothing out of a log may act, everything in it is shown."""

from __future__ import annotations

import unicodedata

__all__ = ["ELLIPSIS", "counted", "plain", "shortened"]

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
ELLIPSIS = "…"


def counted(count: int, one: str, several: str | None = None) -> str:
    """Return a number with its noun: `1 file`, `2 files`; `several` is the plural where an s does not make it."""
    return f"{count} {one if count == 1 else several or f'{one}s'}"


def plain(text: str) -> str:
    r"""Return the text with control, bidirectional and other invisible characters written out (`\x1b`, `\u202e`)."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN_CATEGORIES:
        return character
    named = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(character)
    if named is not None:
        return named
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def shortened(text: str, width: int) -> str:
    """Return the visible text, its middle cut out where it is wider than `width` characters."""
    visible = plain(text)
    if len(visible) <= width:
        return visible
    head = (width - 1) * 2 // 3
    return visible[:head] + ELLIPSIS + visible[len(visible) - (width - 1 - head) :]
