"""The first record of a session log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec

from analysis.sessions.decode import Limits, LineReader, Unreadable
from analysis.sessions.find import SessionFile
from analysis.sessions.rows import BadRowError, decode_value, finite_number, whole_number

__all__ = ["NEWEST_VERSION", "Header", "HeaderError", "parse_header", "read_header"]

NEWEST_VERSION = 4
_DEFAULT_LIMITS = Limits()
_LONGEST = 32_767
"""Characters a path can have where paths can be longest. Of every session of a corpus these texts are kept."""
_FIRST_MARKED_VERSION = 2
"""From this version on an inherited part ends at a marker; before, the header gives its length."""


class HeaderError(ValueError):
    """A first line that is no session header; the message says why, without the place."""


class Header(msgspec.Struct, frozen=True):
    """A session's header, whatever its version."""

    version: int
    session_id: str | None
    created_at: float | None
    """Epoch milliseconds."""
    cwd: str | None
    parent: str | None
    subagent: bool
    seeded: bool
    """The log starts with rows it did not write itself."""
    seed_length: int | None
    """How many rows are inherited, in the versions that say it by number."""

    @property
    def is_fork(self) -> bool:
        """Tell whether the log begins with a copy of its parent's."""
        return self.seeded and self.parent is not None

    @property
    def is_import(self) -> bool:
        """Tell whether the log begins with history that has no parent."""
        return self.seeded and self.parent is None


def parse_header(data: bytes) -> Header:
    """Read the header line.

    Raises:
        HeaderError: it is no session header.
    """
    try:
        record = decode_value(data)
    except BadRowError as error:
        raise HeaderError(str(error)) from None
    if not isinstance(record, Mapping):
        message = "the first line is no object"
        raise HeaderError(message)
    members = cast("Mapping[str, object]", record)
    if members.get("type") != "session":
        message = "the first line is no session header"
        raise HeaderError(message)
    version = whole_number(members.get("version"))
    if version is None or version < 0:
        message = "the header has no version"
        raise HeaderError(message)
    for name in ("id", "cwd", "parentSession"):
        value = members.get(name)
        if isinstance(value, str) and len(value) > _LONGEST:
            message = f"the header's `{name}` has {len(value)} characters; more than {_LONGEST} are none"
            raise HeaderError(message)
    parent = _text(members.get("parentSession"))
    seed_length = whole_number(members.get("seedLength")) if version < _FIRST_MARKED_VERSION else None
    depth = whole_number(members.get("delegationDepth"))
    return Header(
        version=version,
        session_id=_text(members.get("id")),
        created_at=finite_number(members.get("createdAt")),
        cwd=_text(members.get("cwd")),
        parent=parent,
        subagent=members.get("origin") == "subagent" or bool(depth),
        seeded=bool(seed_length) if version < _FIRST_MARKED_VERSION else members.get("isSeeded") is True,
        seed_length=seed_length or None,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def read_header(file: SessionFile, limits: Limits = _DEFAULT_LIMITS) -> Header | None:
    """Read a file's header alone; None where it has none that can be read."""
    try:
        for line in LineReader(file, limits=limits):
            return parse_header(line.data)
    except (Unreadable, HeaderError):
        return None
    return None
