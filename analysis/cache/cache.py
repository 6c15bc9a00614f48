"""The cache as a run uses it: looks logs up by what they hold, keeps what was read, and never fails the run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from analysis.cache.answers import UNDECODABLE, UNWRITABLE, StoredHeader, header_of, stored_header
from analysis.cache.keys import Content, FileStamp, content_of, key_of, program_digest, stamp_of, vouches
from analysis.cache.store import DEFAULT_LIMIT, SEEN, Store
from analysis.sessions.decode import Limits
from analysis.sessions.find import SessionFile
from analysis.sessions.header import Header

__all__ = ["Cache", "Known", "Source", "Tally"]

Source = Literal["log", "facts", "answer"]
"""What a session was read from: its log, its facts, or what the same run came to before."""

_NANOSECONDS = 1_000_000_000


class _Seen(msgspec.Struct, array_like=True):
    content: bytes
    header: StoredHeader | None


_SEEN = msgspec.msgpack.Decoder(_Seen)


class Tally(msgspec.Struct):
    """How the sessions of a run were read."""

    log: int = 0
    facts: int = 0
    answer: int = 0
    stored: int = 0
    """Entries written."""


class Known(msgspec.Struct, frozen=True):
    """A log that is as it was when it was last looked at."""

    content: Content
    header: Header | None


class Cache:
    """What earlier runs came to. A copy of it works in every process that reads; who opened it closes it.

    Args:
        folder: where the entries lie; made when the first is written.
        limit: bytes that may stay after a run that wrote.
        clock: seconds since the epoch.
    """

    def __init__(self, folder: Path, *, limit: int = DEFAULT_LIMIT, clock: Callable[[], float] = time.time) -> None:
        self.store = Store(folder)
        self.limit = limit
        self.tally = Tally()
        """Complete in the process that runs, not in those that only read."""
        self.fault: str | None = None
        """Why nothing is written any more, for people; None where nothing went wrong."""
        self._clock = clock
        self._program = program_digest() or b""

    @property
    def usable(self) -> bool:
        """Tell whether entries can be told apart at all: not where the program cannot read its own sources."""
        return bool(self._program)

    def key(self, *parts: object) -> bytes:
        """Return a key that holds for this program only."""
        return key_of(self._program, *parts)

    # -- logs ----------------------------------------------------------------------------------------------------

    def recall(self, file: SessionFile, limits: Limits) -> Known | None:
        """Return what is known of a log that was looked at before and is untouched since; its bytes stay unread.

        None where that is not certain.
        """
        stamp = stamp_of(file)
        if stamp is None or not self._vouches(stamp):
            return None
        data = self.store.get(SEEN, self._seen_key(stamp, file, limits))
        if data is None:
            return None
        try:
            seen = _SEEN.decode(data)
        except UNDECODABLE:
            return None
        return Known(Content(seen.content, stamp), None if seen.header is None else header_of(seen.header))

    def look_at(
        self, file: SessionFile, header: Header | None, stamp: FileStamp | None, limits: Limits
    ) -> Content | None:
        """Read a log's bytes for what they are, and remember it where its times can vouch for it.

        None where there is no telling.

        Args:
            file: the log.
            header: its header; None where it has none that can be read.
            stamp: the file's before the header was read: the two belong together only where it still holds.
            limits: bounds the header was read under.
        """
        content = content_of(file)
        if content is not None and content.stamp == stamp and self._vouches(content.stamp):
            seen = _Seen(content.digest, None if header is None else stored_header(header))
            self.write(SEEN, self._seen_key(content.stamp, file, limits), lambda: msgspec.msgpack.encode(seen))
        return content

    def is_unchanged(self, file: SessionFile, content: Content) -> bool:
        """Tell whether a log is still what it was when it was looked at."""
        return stamp_of(file) == content.stamp

    def _vouches(self, stamp: FileStamp) -> bool:
        return vouches(stamp, int(self._clock() * _NANOSECONDS))

    def _seen_key(self, stamp: FileStamp, file: SessionFile, limits: Limits) -> bytes:
        return self.key(SEEN, stamp, file.member, file.compressed, limits)

    # -- entries -------------------------------------------------------------------------------------------------

    def write(self, kind: str, key: bytes, payload: Callable[[], bytes | None]) -> bool:
        """Keep what is worth keeping; the first fault of the disk ends that for this run. Tell whether it is kept."""
        if self.fault is not None:
            return False
        try:
            data = payload()
            return data is not None and self.store.put(kind, key, data)
        except OSError as error:
            self.fault = f"the cache {self.store.folder} cannot be written: {error.strerror or error}"
        except UNWRITABLE:
            pass
        return False

    def note(self, source: Source, stored: int, fault: str | None) -> None:
        """Count a session, and take over the fault of the process that read it."""
        tally = self.tally
        setattr(tally, source, getattr(tally, source) + 1)
        tally.stored += stored
        self.fault = self.fault or fault

    def close(self) -> None:
        """End a run: where it wrote, what is too much goes."""
        if self.tally.stored:
            self.store.prune(self.limit)
