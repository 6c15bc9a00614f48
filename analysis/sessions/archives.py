"""Archives of sessions: the table of contents of the last one met is kept, for its members are read one by one.

Importing this imports what reads archives, which takes long; few runs meet one.
"""

from __future__ import annotations

import atexit
import io
import os
import zlib
from typing import Final
from zipfile import BadZipFile, ZipFile

__all__ = ["ARCHIVE_FAULTS", "archive_in"]

ARCHIVE_FAULTS: Final = (OSError, EOFError, BadZipFile, zlib.error)
"""What reading out of an archive raises, besides the faults of asking for what it cannot give."""

_Identity = tuple[int, int, int, int]


class _Kept:
    """An open archive, and which file that is."""

    def __init__(self, identity: _Identity, descriptor: int) -> None:
        self.identity = identity
        self._stream = io.FileIO(os.dup(descriptor), "r")
        try:
            self.archive = ZipFile(self._stream)
        except BaseException:
            self._stream.close()
            raise

    def close(self) -> None:
        self.archive.close()
        self._stream.close()


_kept: list[_Kept] = []
"""The last one, or none."""


def archive_in(stream: io.FileIO, status: os.stat_result) -> ZipFile:
    """Return the archive that an open file is. It stays open until another one is asked for.

    Args:
        stream: the file.
        status: the file's, by which it is known again.

    Raises:
        BadZipFile, OSError and what else `ZipFile` raises for a damaged or foreign archive.
    """
    identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if not _kept or _kept[0].identity != identity or not status.st_ino:
        _let_go()
        _kept.append(_Kept(identity, stream.fileno()))
    return _kept[0].archive


@atexit.register
def _let_go() -> None:
    while _kept:
        _kept.pop().close()
