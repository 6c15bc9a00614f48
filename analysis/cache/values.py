"""Which values survive being written down, exactly: types, order, every digit."""

from __future__ import annotations

from typing import cast

__all__ = ["Inexact", "Number", "require_exact"]

Number = int | float
"""A number that comes back as it was written, whole or not."""

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_DEEPEST = 200


class Inexact(ValueError):
    """A value that would not come back as it is."""


def require_exact(value: object, depth: int = 0) -> None:
    """Refuse a JSON value that would not come back as it is.

    Raises:
        Inexact: it holds what is no JSON value, a whole number too large, a lone surrogate, or is too deep.
    """
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return
    if kind is int and _SMALLEST <= cast("int", value) <= _LARGEST:
        return
    if kind is str and _is_writable(cast("str", value)):
        return
    if depth < _DEEPEST:
        if kind is list:
            for item in cast("list[object]", value):
                require_exact(item, depth + 1)
            return
        if kind is dict:
            for key, item in cast("dict[object, object]", value).items():
                if type(key) is not str or not _is_writable(key):
                    raise Inexact
                require_exact(item, depth + 1)
            return
    raise Inexact


def _is_writable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
