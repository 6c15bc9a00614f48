"""A folder of entries that stand for work done before: whole or not there, checked when read, bounded.

An entry is a file `v1/<2 hex>/<key>.<kind>`: a magic, a digest over kind, key and payload, and the payload in one zstd
frame. Whatever is not that, for any reason, counts as missing. Nothing in an entry is ever executed.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Final, Self

import msgspec
import zstandard

__all__ = [
    "DEFAULT_LIMIT",
    "FACTS",
    "KINDS",
    "LARGEST_ENTRY",
    "REPLAY",
    "SEEN",
    "SWEEP",
    "Kept",
    "PruneLock",
    "Store",
    "sealed",
]

FACTS: Final = "facts"
"""A session's facts."""
REPLAY: Final = "replay"
"""What one replay came to in a session."""
SWEEP: Final = "sweep"
"""What one sweep came to in a session."""
SEEN: Final = "seen"
"""What a file holds that was looked at before."""
KINDS: Final = (FACTS, REPLAY, SWEEP, SEEN)
"""Every kind of entry."""

DEFAULT_LIMIT: Final = 2 * 1024**3
"""Bytes on disk that a cache may take."""
LARGEST_ENTRY: Final = 32 * 1024**2
"""Bytes of payload, expanded, of one entry; more is not kept."""

_BLOCK: Final = 512
_LAYOUT: Final = "v1"
_MAGIC: Final = b"breaker\x01"
_DIGEST_BYTES: Final = 20
_HEAD: Final = len(_MAGIC) + _DIGEST_BYTES
_LEVEL: Final = 1
_NAME: Final = re.compile(rf"[0-9a-f]{{40}}\.(?:{'|'.join(KINDS)})")
_PART: Final = re.compile(r"\.[0-9a-f]{16}\.part")
_SHELF: Final = re.compile(r"[0-9a-f]{2}")
_LOCK: Final = "prune.lock"
_TOUCHED_AFTER: Final = 3600
"""Seconds after which an entry that is read is marked as used again."""
_STALE_AFTER: Final = 3600
"""Seconds after which a temporary file is nobody's any more."""
_KEPT_SHARE: Final = 0.9
"""What pruning leaves of the limit, so that not every run prunes."""
_OPENING: Final = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


class Kept(msgspec.Struct, frozen=True):
    """One entry as it lies on disk."""

    path: Path
    kind: str
    size: int
    """Bytes it takes on disk."""
    used: float
    """When it was last of use, in epoch seconds, to the hour."""


class Store:
    """The entries in one folder. Holds no open files, so it can be sent to other processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._root = folder / _LAYOUT

    @property
    def is_elsewhere(self) -> bool:
        """Tell whether the entries lie behind a symbolic link, which pruning never follows."""
        return self._root.is_symlink()

    # -- single entries ------------------------------------------------------------------------------------------

    def has(self, kind: str, key: bytes) -> bool:
        """Tell whether there is a file for an entry; what it holds is only known when it is read."""
        try:
            return stat.S_ISREG(os.lstat(self._path(kind, key)).st_mode)
        except OSError:
            return False

    def get(self, kind: str, key: bytes) -> bytes | None:
        """Return an entry's payload; None where it is missing or not as it was written."""
        path = self._path(kind, key)
        try:
            descriptor = os.open(path, os.O_RDONLY | _OPENING)
        except (OSError, ValueError):
            return None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or not _HEAD < status.st_size <= LARGEST_ENTRY:
                return None
            data = _read(descriptor, status.st_size)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        payload = _opened(kind, key, data)
        if payload is not None and time.time() - status.st_mtime > _TOUCHED_AFTER:
            with suppress(OSError):
                os.utime(path)
        return payload

    def put(self, kind: str, key: bytes, payload: bytes) -> bool:
        """Keep a payload, in place of what is there. Tell whether it is kept: one that is too large is not.

        Raises:
            OSError: it cannot be written.
        """
        if len(payload) > LARGEST_ENTRY:
            return False
        packed = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=False).compress(payload)
        path = self._path(kind, key)
        part = path.parent / f".{token_hex(8)}.part"
        try:
            descriptor = self._new(part)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_MAGIC + sealed(kind, key, packed) + packed)
            part.replace(path)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise
        return True

    def _new(self, part: Path) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPENING
        try:
            return os.open(part, flags, 0o600)
        except FileNotFoundError:
            self._make_shelf(part.parent)
            return os.open(part, flags, 0o600)

    def _make_shelf(self, shelf: Path) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self._root, shelf):
            folder.mkdir(mode=0o700, exist_ok=True)

    def _path(self, kind: str, key: bytes) -> Path:
        name = key.hex()
        return self._root / name[:2] / f"{name}.{kind}"

    # -- all of them ---------------------------------------------------------------------------------------------

    def entries(self) -> Iterator[Kept]:
        """Give out every entry, in no order. Files of other names or places are none."""
        for folder in _folders(self._root):
            for entry in _listed(folder):
                if _NAME.fullmatch(entry.name) and entry.name.startswith(folder.name):
                    with suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            kind = entry.name.partition(".")[2]
                            yield Kept(Path(entry.path), kind, _on_disk(status), status.st_mtime)

    def prune(self, limit: int, *, older_than: float | None = None) -> list[Kept]:
        """Remove temporary files nobody writes any more, old entries, and of the rest the least recently used.

        Args:
            limit: bytes that may stay; where there are more, pruning goes some way below.
            older_than: seconds; entries not used for longer go.

        Returns:
            What was removed; nothing where another process prunes.
        """
        with PruneLock(self._root / _LOCK) as lock:
            if not lock.held:
                return []
            self._remove_parts()
            now = time.time()
            kept = sorted(self.entries(), key=lambda entry: (entry.used, entry.path))
            total = sum(entry.size for entry in kept)
            bound = limit if total <= limit else limit * _KEPT_SHARE
            removed: list[Kept] = []
            for entry in kept:
                old = older_than is not None and now - entry.used > older_than
                if (total > bound or old) and _removed(entry.path):
                    removed.append(entry)
                    total -= entry.size
            return removed

    def clear(self) -> list[Kept]:
        """Remove every entry, and the folders that are empty then. Return what was removed."""
        removed = [entry for entry in self.entries() if _removed(entry.path)]
        self._remove_parts(stale_after=0)
        _removed(self._root / _LOCK)
        for folder in (*_folders(self._root), self._root):
            with suppress(OSError):
                folder.rmdir()
        return removed

    def _remove_parts(self, stale_after: float = _STALE_AFTER) -> None:
        now = time.time()
        for folder in _folders(self._root):
            for entry in _listed(folder):
                if _PART.fullmatch(entry.name):
                    with suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode) and now - status.st_mtime >= stale_after:
                            _removed(Path(entry.path))


class PruneLock:
    """A lock that is taken or not, without waiting; the system lets go of it with the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self.held = False

    def __enter__(self) -> Self:
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | _OPENING, 0o600)
        except OSError:
            return self
        self.held = _locked(self._descriptor)
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self.held = False


def _locked(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:  # where the system has no such locks two may prune at once: each removes whole entries only
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _on_disk(status: os.stat_result) -> int:
    """Tell what a file takes: whole blocks, where the system counts them."""
    return max(status.st_size, getattr(status, "st_blocks", 0) * _BLOCK)


def _read(descriptor: int, size: int) -> bytes:
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        return file.read(size)


def sealed(kind: str, key: bytes, packed: bytes) -> bytes:
    """Return the digest that binds a payload to its place: an entry under another's name is no entry."""
    digest = blake2b(kind.encode() + b"\0" + key + b"\0", digest_size=_DIGEST_BYTES)
    digest.update(packed)
    return digest.digest()


def _opened(kind: str, key: bytes, data: bytes) -> bytes | None:
    packed = data[_HEAD:]
    if data[:_HEAD] != _MAGIC + sealed(kind, key, packed):
        return None
    try:
        size = zstandard.get_frame_parameters(packed).content_size
        if not 0 <= size <= LARGEST_ENTRY:
            return None
        return zstandard.ZstdDecompressor().decompress(packed, max_output_size=size)
    except (zstandard.ZstdError, MemoryError):
        return None


def _folders(root: Path) -> list[Path]:
    return [Path(entry.path) for entry in _listed(root) if _SHELF.fullmatch(entry.name) and _is_folder(entry)]


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    try:
        if folder.is_symlink():
            return []
        with os.scandir(folder) as listing:
            return list(listing)
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return entry.is_dir(follow_symlinks=False)
    return False


def _removed(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
