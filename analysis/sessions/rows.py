"""Lines to rows: the envelope every record of a session log shares, decoded typed and partially.

The fast decoder refuses some text JavaScript writes and reads without harm (lone surrogates, huge numbers); such lines
are decoded again by the slow one before a line is called bad.
"""

import math
from collections.abc import Mapping
from typing import Annotated, cast

import msgspec

from breaker.ecmascript import is_number, parse_json

__all__ = [
    "BadRowError",
    "Count",
    "Envelope",
    "Row",
    "decode_value",
    "finite_number",
    "parse_row",
    "whole_number",
]


class BadRowError(ValueError):
    """A line that is no usable record; the message says why, without the place."""


_LARGEST = 2**53
Count = Annotated[int, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]
"""A whole number a double holds exactly."""
_Time = Count | Annotated[float, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]


class Envelope(msgspec.Struct, kw_only=True):
    """What every record as the harness writes it bears; one with members of other kinds is decoded slowly."""

    seq: Count | None = None
    seq0: Count | None = None
    time: _Time | None = None
    time0: _Time | None = None
    surface_op: object = msgspec.field(default=None, name="surfaceOp")
    source_event_seqs: list[int | list[int]] | None = msgspec.field(default=None, name="sourceEventSeqs")

    @property
    def appended(self) -> bool:
        """It adds something; False for a rewrite of earlier rows."""
        return _is_append(self.surface_op)

    @property
    def sources(self) -> tuple[int, ...]:
        """The seqs it says it follows from, packed runs expanded."""
        return () if self.source_event_seqs is None else _expand(self.source_event_seqs)


class _RawRecord(Envelope, kw_only=True):
    type: str
    data: msgspec.Raw = msgspec.Raw()


_RECORDS = msgspec.json.Decoder(_RawRecord)
_VALUES = msgspec.json.Decoder()


class Row(msgspec.Struct):
    """One record after the header."""

    type: str
    seq: int | None
    """Its sequence number as written; None where it was stripped."""
    time: float | None
    """Epoch milliseconds as written; None where stripped."""
    appended: bool
    """It adds something; False for a rewrite of earlier rows."""
    sources: tuple[int, ...]
    """The seqs it says it follows from, packed runs expanded."""
    raw: msgspec.Raw | None
    value: object
    """The decoded data where `raw` is None."""

    def data(self) -> Mapping[str, object]:
        """Decode the row's data.

        Raises:
            BadRowError: it is not a JSON object.
        """
        value = self.value
        if self.raw is not None:
            value = decode_value(self.raw)
        if not isinstance(value, Mapping):
            message = f"{self.type} has no data object"
            raise BadRowError(message)
        return cast("Mapping[str, object]", value)


def decode_value(raw: bytes | msgspec.Raw) -> object:
    """Decode one JSON value, by the fast decoder or else by the lenient one.

    Raises:
        BadRowError: neither can read it.
    """
    try:
        return cast("object", _VALUES.decode(raw))
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return _decode_slowly(bytes(raw))


def _decode_slowly(data: bytes) -> object:
    try:
        return parse_json(data.decode("utf-8", "replace"))
    except ValueError as error:
        message = f"not JSON: {error}"
        raise BadRowError(message) from None


def parse_row(data: bytes) -> Row:
    """Decode one line's envelope; its data stays raw.

    Raises:
        BadRowError: it is not JSON, not an object, or has no type.
    """
    try:
        envelope = _RECORDS.decode(data)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return _parse_slowly(data)
    raw = envelope.data
    return Row(
        type=envelope.type,
        seq=envelope.seq0 if envelope.seq is None else envelope.seq,
        time=envelope.time0 if envelope.time is None else envelope.time,
        appended=envelope.appended,
        sources=envelope.sources,
        raw=raw if memoryview(raw) else None,
        value=None,
    )


def _parse_slowly(data: bytes) -> Row:
    record = _decode_slowly(data)
    if not isinstance(record, Mapping):
        message = "not a JSON object"
        raise BadRowError(message)
    members = cast("Mapping[str, object]", record)
    kind = members.get("type")
    if not isinstance(kind, str):
        message = "no type" if kind is None else "type is not text"
        raise BadRowError(message)
    return Row(
        type=kind,
        seq=whole_number(_first_given(members.get("seq"), members.get("seq0"))),
        time=finite_number(_first_given(members.get("time"), members.get("time0"))),
        appended=_is_append(members.get("surfaceOp")),
        sources=_expand(members.get("sourceEventSeqs")),
        raw=None,
        value=members.get("data"),
    )


def whole_number(value: object) -> int | None:
    """Return a number without a fraction as an integer, None for anything else."""
    if type(value) is int and -_LARGEST <= value <= _LARGEST:
        return value
    number = finite_number(value)
    return int(number) if number is not None and (isinstance(number, int) or number.is_integer()) else None


def finite_number(value: object) -> float | None:
    """Return a number a double can hold, None for anything else."""
    if not is_number(value):
        return None
    number = cast("float", value)
    try:
        return number if math.isfinite(number) else None
    except OverflowError:
        return None


def _first_given(*values: object) -> object:
    return next((value for value in values if value is not None), None)


def _is_append(surface_op: object) -> bool:
    """Tell an addition from a rewrite; old files say nothing, and mean an addition."""
    return surface_op is None or surface_op == "append"


_MOST_SOURCES = 1_000
"""No log's row follows from more; of a packed run beyond this only the ends are kept."""


def _expand(sources: object) -> tuple[int, ...]:
    if not isinstance(sources, list):
        return ()
    given = cast("list[object]", sources)
    if len(given) == 1 and type(given[0]) is int and -_LARGEST <= given[0] <= _LARGEST:
        return (given[0],)
    seqs: list[int] = []
    for item in given:
        single = whole_number(item)
        if single is not None:
            seqs.append(single)
        elif isinstance(item, list):
            ends = [whole_number(end) for end in cast("list[object]", item)]
            if len(ends) == 2 and ends[0] is not None and ends[1] is not None:
                first, last = ends[0], ends[1]
                fits = last - first < _MOST_SOURCES - len(seqs)
                seqs.extend(range(first, last + 1) if fits else (first, last))
    return tuple(seqs)
