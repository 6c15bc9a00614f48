"""What is known of a session as a whole."""

from __future__ import annotations

from typing import Literal

import msgspec

from analysis.sessions.header import Header

__all__ = ["ResultSource", "SessionFacts"]

ResultSource = Literal["rebuilt", "log"]


class SessionFacts(msgspec.Struct):
    """What is known of a session besides its facts; complete when the facts have been read to their end."""

    header: Header
    turns: int = 0
    calls: int = 0
    not_started: int = 0
    """Calls the model requested that the harness never recorded as started."""
    first_time: float | None = None
    last_time: float | None = None
    models: list[str] = msgspec.field(default_factory=list[str])
    recorded_under_breaker: bool = False
    offers_fetch_file: bool = False
    """The tool that replaces shell HTTP was offered or used."""
    fork: bool = False
    imported: bool = False
    digests: list[bytes] = msgspec.field(default_factory=list[bytes])
    """One digest per own message, call and result, where asked for: what stays the same through a migration."""
