"""Globs over sessions: by id, by path, by a tail of the path."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache

from analysis.spreadsheet import literal_cell
from analysis.text import plain

__all__ = ["glob_fault", "literal_glob", "session_matches"]

_REMEMBERED = 1024
_OBEYED = frozenset("*?[")


def glob_fault(glob: str) -> str | None:
    """Say what is wrong with a glob, None where nothing is."""
    if not glob:
        return "an empty session or glob"
    position = 0
    while (opened := glob.find("[", position)) >= 0:
        # A `]` that comes first in a set, after its `!` too, is one of its characters.
        first = opened + (2 if glob.startswith("[!", opened) else 1)
        closed = glob.find("]", first + 1)
        if closed < 0:
            return f"bad glob {glob!r}: `[` is never closed (write `[[]` for the character)"
        position = closed + 1
    return None


def literal_glob(text: str) -> str:
    """Return a glob that matches a text and can be shown: what a glob or a spreadsheet obeys is put into a set.

    Invisible characters become `?`, which matches others too.
    """
    characters = [_literal(character) for character in text]
    if characters and literal_cell(characters[0]) != characters[0]:
        characters[0] = f"[{characters[0]}]"
    return "".join(characters)


def _literal(character: str) -> str:
    if plain(character) != character:
        return "?"
    return f"[{character}]" if character in _OBEYED else character


@lru_cache(maxsize=_REMEMBERED)
def _expression(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob.rstrip("/")))


def session_matches(glob: str, session_id: str | None, path: str) -> bool:
    """Tell whether a glob speaks of a session: by its id, its path, or a tail of its path.

    `*` takes any characters, `/` too. A glob that names a folder takes what is in it.
    """
    expression = _expression(glob)
    if session_id is not None and expression.match(session_id):
        return True
    parts = path.replace("\\", "/").split("/")
    for end in range(len(parts), 0, -1):
        for start in range(end):
            if expression.match("/".join(parts[start:end])):
                return True
    return False
