"""The ECMAScript semantics the released guard rests on, where Python's differ.

Strings are sequences of UTF-16 units there, numbers are doubles, object keys have an order of their own, and white
space is another set. Everything here is exact to what Node prints.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from json.encoder import encode_basestring
from typing import TypeAlias, cast

__all__ = [
    "LINE_TERMINATORS",
    "WHITESPACE",
    "JsonValue",
    "canonical_json",
    "is_number",
    "join_surrogates",
    "number_text",
    "object_keys",
    "parse_json",
    "preview",
    "replace_lone_surrogates",
    "sort_by_units",
    "string_text",
    "trim",
    "units_length",
    "units_prefix",
]

JsonValue: TypeAlias = "Mapping[str, JsonValue] | Sequence[JsonValue] | str | float | bool | None"
"""A JSON value as decoded: mappings, sequences, text, numbers, booleans and null."""

LINE_TERMINATORS = "\n\r\u2028\u2029"
"""What ends a line for `^`, `$` and `.`; Python knows only LF."""

WHITESPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
r"""What `\s` and `trim` take: without U+001C-U+001F and U+0085, with U+FEFF."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_INDEX_KEY = re.compile(r"(?:0|[1-9][0-9]{0,9})\Z")
_LARGEST_INDEX = 4294967294
_EXPONENT_FROM = 21
"""Decimal exponent from which a number is printed with an exponent."""
_EXPONENT_BELOW = -7
"""Decimal exponent up to which a small number is printed with an exponent."""


def trim(text: str) -> str:
    """Strip white space from both ends as `String.prototype.trim` does."""
    return text.strip(WHITESPACE)


def has_surrogates(text: str) -> bool:
    """Tell whether the text holds surrogate code points (never part of well-formed text)."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def join_surrogates(text: str) -> str:
    """Join neighbouring surrogates into the character they form; lone ones stay.

    In UTF-16 a high unit followed by a low one *is* the character, however the two came together.
    """
    if not has_surrogates(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def replace_lone_surrogates(text: str) -> str:
    """Return the text with every lone surrogate replaced by U+FFFD, as the URL parser receives it."""
    if not has_surrogates(text):
        return text
    return _SURROGATE.sub("\ufffd", join_surrogates(text))


def units_length(text: str) -> int:
    """Return the length in UTF-16 units."""
    if text.isascii():
        return len(text)
    return len(text) + sum(character > "\uffff" for character in text)


def units_prefix(text: str, units: int) -> str:
    """Return the first `units` UTF-16 units; a pair cut in the middle leaves its high surrogate."""
    if text.isascii() or len(text) <= units // 2:
        return text[:units]
    encoded = text[:units].encode("utf-16-le", "surrogatepass")[: 2 * units]
    return encoded.decode("utf-16-le", "surrogatepass")


def preview(text: str, units: int) -> str:
    """Cut a text at `units` UTF-16 units and say how many are missing: `… (+N more chars)`."""
    length = units_length(text)
    if length <= units:
        return text
    return f"{units_prefix(text, units)}… (+{length - units} more chars)"


def _units_key(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def sort_by_units(texts: Iterable[str]) -> list[str]:
    """Sort texts by UTF-16 units (so U+1F600 stands before U+FFFF)."""
    listed = list(texts)
    if all(text.isascii() for text in listed):
        return sorted(listed)
    return sorted(listed, key=_units_key)


def _is_index(key: str) -> bool:
    return _INDEX_KEY.match(key) is not None and int(key) <= _LARGEST_INDEX


def object_keys(keys: Iterable[str]) -> list[str]:
    """Order keys as an object does: canonical array indices ascending, then the others as they came."""
    listed = list(keys)
    indices = [key for key in listed if key[:1].isdigit() and _is_index(key)]
    if not indices:
        return listed
    known = set(indices)
    return [*sorted(indices, key=int), *(key for key in listed if key not in known)]


def is_number(value: object) -> bool:
    """Tell whether a value is a number (`typeof value === 'number'`): booleans are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _as_double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def number_text(value: float) -> str:
    """Print a number as `String(value)` does: shortest digits, `1e+21`, `1e-7`, no `-0` and no trailing `.0`."""
    double = _as_double(value)
    if math.isnan(double):
        return "NaN"
    if math.isinf(double):
        return "Infinity" if double > 0 else "-Infinity"
    if double == 0:
        return "0"
    sign = "-" if double < 0 else ""
    mantissa, _, exponent = repr(abs(double)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    point = len(whole) + (int(exponent) if exponent else 0)
    all_digits = whole + fraction
    digits = all_digits.lstrip("0")
    point -= len(all_digits) - len(digits)
    digits = digits.rstrip("0")
    if point > _EXPONENT_FROM or point - 1 < _EXPONENT_BELOW + 1:
        power = point - 1
        shown = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{sign}{shown}e{'+' if power > 0 else '-'}{abs(power)}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"


class _Piece(str):
    """Text that is already written, among the values still to be written."""

    __slots__ = ()


_CLOSE_OBJECT, _CLOSE_LIST, _COMMA = _Piece("}"), _Piece("]"), _Piece(",")
_CYCLE = '"[cycle]"'


def _push_items(pending: list[object], items: Sequence[object]) -> None:
    """Push a list's items, the first on top, with commas between them."""
    for position in range(len(items) - 1, -1, -1):
        pending.append(items[position])
        if position:
            pending.append(_COMMA)


def string_text(value: object) -> str:
    """Convert a value as `String(value)` does: lists join with commas, objects are `[object Object]`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value)
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return _list_text(cast("Sequence[object]", value))
    if isinstance(value, Mapping):
        return "[object Object]"
    return str(value)


def _list_text(items: Sequence[object]) -> str:
    pieces: list[str] = []
    pending: list[object] = [items]
    path: list[int] = []
    opened: set[int] = set()
    while pending:
        item = pending.pop()
        if item is _CLOSE_LIST:
            opened.remove(path.pop())
        elif item is _COMMA:
            pieces.append(_COMMA)
        elif isinstance(item, list | tuple):
            listed = cast("Sequence[object]", item)
            if id(listed) not in opened:
                path.append(id(listed))
                opened.add(id(listed))
                pending.append(_CLOSE_LIST)
                _push_items(pending, listed)
        elif item is not None:
            pieces.append(string_text(item))
    return "".join(pieces)


def _quoted(text: str) -> str:
    encoded = encode_basestring(text)
    if not has_surrogates(encoded):
        return encoded
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", join_surrogates(encoded))


def _sorted_keys(keys: Iterable[str]) -> list[str]:
    return object_keys(sort_by_units(key for key in keys if key != "__proto__"))


def _scalar(value: object) -> str | None:
    if isinstance(value, str):
        return _quoted(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value) if math.isfinite(_as_double(value)) else "null"
    return None


def _flat_json(mapping: dict[str, object]) -> str | None:
    """Write an object that holds no list and no object, as most arguments do not; None for any other."""
    pieces: list[str] = []
    for key in _sorted_keys(mapping):
        scalar = _scalar(mapping[key])
        if scalar is None:
            return None
        pieces.append(f"{_quoted(key)}:{scalar}")
    return f"{{{','.join(pieces)}}}"


def canonical_json(value: object) -> str:
    """Write a value as compact JSON with object keys sorted at every depth, as the released guard does.

    Keys sort by UTF-16 units, then array-index keys move to the front in numeric order; a key `__proto__` vanishes;
    numbers are doubles; lone surrogates are escaped; a value inside itself is `[cycle]`. Nesting costs no stack.

    Raises:
        TypeError: a value JSON has no word for.
    """
    if isinstance(value, dict):
        flat = _flat_json(cast("dict[str, object]", value))
        if flat is not None:
            return flat
    pieces: list[str] = []
    pending: list[object] = [value]
    path: list[object] = []
    opened: set[int] = set()
    while pending:
        item = pending.pop()
        if isinstance(item, _Piece):
            pieces.append(item)
            if item is _CLOSE_OBJECT or item is _CLOSE_LIST:
                opened.remove(id(path.pop()))
            continue
        scalar = _scalar(item)
        if scalar is not None:
            pieces.append(scalar)
            continue
        if id(item) in opened:
            pieces.append(_CYCLE)
            continue
        path.append(item)
        opened.add(id(item))
        if isinstance(item, Mapping):
            mapping = cast("Mapping[str, object]", item)
            pieces.append("{")
            pending.append(_CLOSE_OBJECT)
            keys = _sorted_keys(mapping)
            for position in range(len(keys) - 1, -1, -1):
                key = keys[position]
                pending.append(mapping[key])
                pending.append(_Piece(f"{',' if position else ''}{_quoted(key)}:"))
        elif isinstance(item, list | tuple):
            items = cast("Sequence[object]", item)
            pieces.append("[")
            pending.append(_CLOSE_LIST)
            _push_items(pending, items)
        else:
            message = f"not a JSON value: {type(item).__name__}"
            raise TypeError(message)
    return "".join(pieces)


def _refuse_constant(name: str) -> float:
    message = f"{name} is not JSON"
    raise ValueError(message)


_DECODER = json.JSONDecoder(parse_int=float, parse_constant=_refuse_constant)


def parse_json(text: str) -> JsonValue:
    """Parse strict JSON as `JSON.parse` does: doubles only, no `NaN` or `Infinity`, the last of equal keys wins.

    Raises:
        ValueError: the text is not JSON, or is nested deeper than the interpreter's stack allows.
    """
    try:
        return cast("JsonValue", _DECODER.decode(text))
    except RecursionError:
        message = "nested too deeply"
        raise ValueError(message) from None
