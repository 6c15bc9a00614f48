"""TOML with the lines its keys stand on, which the parser does not tell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from analysis.regress._faults import CheckError, Origin, shown
from analysis.toml_faults import toml_fault

__all__ = ["KeyPath", "TomlFile", "read_toml"]

KeyPath = tuple[str | int, ...]

_LARGEST_FILE = 16 * 1024 * 1024
_PART = r"""(?:"[^"\n]*"|'[^'\n]*'|[A-Za-z0-9_-]+)"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_TABLE = re.compile(rf"\s*\[\s*({_DOTTED})\s*\]")
_TABLES = re.compile(rf"\s*\[\[\s*({_DOTTED})\s*\]\]")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")
_PARTS = re.compile(_PART)


class TomlFile:
    """A parsed file. Numbers with a fraction are decimals, exactly as written."""

    def __init__(self, path: Path, text: str, document: Mapping[str, object]) -> None:
        self.path = path
        self.document = document
        self._lines = _lines(text)

    def origin(self, path: KeyPath) -> Origin:
        """Return where a key stands; the nearest table above it where the key itself cannot be found."""
        key = ".".join(part if isinstance(part, str) else str(part + 1) for part in path)
        for end in range(len(path), 0, -1):
            line = self._lines.get(path[:end])
            if line is not None:
                return Origin(shown(self.path), line, key)
        return Origin(shown(self.path), None, key)


def read_toml(path: Path) -> TomlFile:
    """Read and parse a file.

    Raises:
        CheckError: it cannot be read or does not parse, with its line.
    """
    try:
        if path.stat().st_size > _LARGEST_FILE:
            message = f"{shown(path)}: too large for a configuration"
            raise CheckError(message)
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        message = f"{shown(path)}: cannot read the configuration: {error.strerror or error}"
        raise CheckError(message) from None
    except UnicodeDecodeError as error:
        message = f"{shown(path)}: cannot read the configuration: not UTF-8 at byte {error.start}"
        raise CheckError(message) from None
    try:
        document: dict[str, object] = tomllib.loads(text, parse_float=Decimal)
    except RecursionError:
        message = f"{shown(path)}: nested too deeply"
        raise CheckError(message) from None
    except (ValueError, ArithmeticError) as error:
        line, said = toml_fault(text, error)
        message = f"{shown(path)}{'' if line is None else f':{line}'}: not TOML: {said}"
        raise CheckError(message) from None
    return TomlFile(path, text, document)


def _lines(text: str) -> dict[KeyPath, int]:
    """Find on which line each key and table begins. What only looks like one, inside a long text, is found too."""
    lines: dict[KeyPath, int] = {}
    tables: dict[KeyPath, int] = {}
    current: KeyPath = ()
    for number, line in enumerate(text.split("\n"), start=1):
        if several := _TABLES.match(line):
            array = _resolve(_parts(several[1]), tables)
            tables[array] = tables.get(array, -1) + 1
            current = (*array, tables[array])
            lines.setdefault(array, number)
            lines.setdefault(current, number)
        elif table := _TABLE.match(line):
            current = _resolve(_parts(table[1]), tables)
            lines.setdefault(current, number)
        elif key := _KEY.match(line):
            parts = _parts(key[1])
            for end in range(1, len(parts) + 1):
                lines.setdefault((*current, *parts[:end]), number)
    return lines


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part[1:-1] if part[0] in "\"'" else part for part in _PARTS.findall(dotted))


def _resolve(parts: tuple[str, ...], tables: Mapping[KeyPath, int]) -> KeyPath:
    """Insert, after every part that names an array of tables, the number of its last one."""
    path: KeyPath = ()
    for position, part in enumerate(parts):
        path = (*path, part)
        if position < len(parts) - 1 and path in tables:
            path = (*path, tables[path])
    return path
