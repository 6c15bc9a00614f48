"""What an entry is found by: the bytes of the log, the program that read it, and everything else that decides."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import IO, Final, cast

import msgspec

from analysis.sessions.find import SessionFile

__all__ = ["Content", "FileStamp", "content_of", "key_of", "program_digest", "stamp_of", "vouches"]

_KEY_BYTES: Final = 20
_SLICE: Final = 1024 * 1024
_SETTLED_AFTER: Final = 2_000_000_000
"""Nanoseconds a file must have been left alone before its times vouch for it: clocks of file systems are coarse."""
_OPENING: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_SOURCES: Final = (".py", ".json", ".toml", ".j2")
_FAULTS: Final = (OSError, ValueError, EOFError, KeyError, RuntimeError)

# A member's header in an archive (APPNOTE 4.3.7): its length without name and extra field, and where theirs stand.
_LOCAL_HEADER: Final = 30
_NAME_LENGTH_AT: Final = 26
_EXTRA_LENGTH_AT: Final = 28

FileStamp = tuple[int, int, int, int, int]
"""Device, number, size, and the times of the last change of content and of anything, in nanoseconds."""


class Content(msgspec.Struct, frozen=True):
    """What a log held when it was looked at."""

    digest: bytes
    stamp: FileStamp
    """Of the file it lies in, before and after."""


def content_of(file: SessionFile) -> Content | None:
    """Read a log's bytes for their digest, a member of an archive as it is packed.

    None where there is no telling: it cannot be read, is no regular file, or changed meanwhile.
    """
    try:
        with open(file.path, "rb", buffering=0, opener=_open) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                return None
            stamp = _stamp(status)
            digest = blake2b(digest_size=_KEY_BYTES)
            if file.member is None:
                _digest_bytes(digest, stream, stamp[2])
            else:
                _digest_member(digest, stream, status, file.member)
            if _stamp(os.fstat(stream.fileno())) != stamp:
                return None
    except _FAULTS:
        return None
    return Content(digest.digest(), stamp)


def stamp_of(file: SessionFile) -> FileStamp | None:
    """Return the stamp of the file a log lies in; None where it cannot be looked at."""
    try:
        status = file.path.stat()
    except (OSError, ValueError):
        return None
    return _stamp(status) if stat.S_ISREG(status.st_mode) else None


def vouches(stamp: FileStamp, now_ns: int) -> bool:
    """Tell whether a stamp that is met again means the same content.

    It does where the system notes every change of a file in a time nobody sets, and the last one lies behind. A change
    through a shared memory mapping is noted late; no harness writes its logs so.
    """
    return os.name == "posix" and max(stamp[3], stamp[4]) + _SETTLED_AFTER < now_ns


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | _OPENING)


def _stamp(status: os.stat_result) -> FileStamp:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _digest_bytes(digest: blake2b, stream: IO[bytes], left: int) -> None:
    while left:
        data = stream.read(min(left, _SLICE))
        if not data:
            message = "shorter than it was"
            raise EOFError(message)
        digest.update(data)
        left -= len(data)


def _digest_member(digest: blake2b, stream: io.FileIO, status: os.stat_result, name: str) -> None:
    from analysis.sessions.archives import ARCHIVE_FAULTS, archive_in

    try:
        info = archive_in(stream, status).getinfo(name)
    except ARCHIVE_FAULTS as error:
        raise OSError from error
    said = (info.orig_filename, info.compress_type, info.compress_size, info.file_size, info.CRC, info.flag_bits)
    digest.update(repr(said).encode("utf-8", "surrogatepass"))
    stream.seek(info.header_offset)
    header = stream.read(_LOCAL_HEADER)
    if len(header) < _LOCAL_HEADER:
        message = "no header"
        raise EOFError(message)
    digest.update(header)
    lengths = (header[at] + 256 * header[at + 1] for at in (_NAME_LENGTH_AT, _EXTRA_LENGTH_AT))
    _digest_bytes(digest, stream, sum(lengths) + info.compress_size)


@cache
def program_digest() -> bytes | None:
    """Return the digest of everything that turns bytes into numbers; None where its sources cannot be read.

    Any change of the program makes the entries of the one before unreachable.
    """
    import ada_url
    import msgspec
    import zstandard

    import analysis
    import breaker

    digest = blake2b(digest_size=_KEY_BYTES)
    about = (sys.version, sys.byteorder, msgspec.__version__, zstandard.__version__)
    digest.update(repr(about).encode())
    try:
        for package in (breaker, analysis):
            folder = str(Path(package.__file__ or "").parent)
            for path in sorted(_sources(folder)):
                with Path(path).open("rb", buffering=0) as file:
                    data = file.read()
                digest.update(f"{path[len(folder) :]}\0{len(data)}\0".encode("utf-8", "surrogatepass"))
                digest.update(data)
        # It does not tell its version, and asking its distribution takes longer than all the rest.
        with os.scandir(Path(ada_url.__file__).parent) as listing:
            files = sorted((entry.name, entry.stat().st_size) for entry in listing if entry.is_file())
        digest.update(repr(files).encode())
    except OSError:
        return None
    return digest.digest()


def _sources(folder: str) -> Iterable[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in files:
            if name.endswith(_SOURCES):
                yield f"{place}{os.sep}{name}"


def key_of(*parts: object) -> bytes:
    """Return a digest of values that are equal in every respect: of their types, too, and the order in mappings."""
    digest = blake2b(digest_size=_KEY_BYTES)
    for part in parts:
        digest.update(repr(_plain(part)).encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return digest.digest()


def _plain(value: object) -> object:
    """Return what has the same text in every process: sets in order, types named."""
    names: Sequence[str] = ()
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
    elif is_dataclass(value) and not isinstance(value, type):
        names = [member.name for member in fields(value)]
    if names:
        return (type(value).__name__, [(name, _plain(cast("object", getattr(value, name)))) for name in names])
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return ("map", [(_plain(key), _plain(item)) for key, item in pairs])
    if isinstance(value, AbstractSet):
        return ("set", sorted(repr(_plain(item)) for item in cast("AbstractSet[object]", value)))
    if isinstance(value, list | tuple):
        return (type(cast("object", value)).__name__, [_plain(item) for item in cast("Sequence[object]", value)])
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    message = f"a {type(value).__name__} has no text to make a key of"
    raise TypeError(message)
