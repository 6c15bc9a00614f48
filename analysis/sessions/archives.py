"""Archives of sessions: the table of contents of the last one met is kept, for its members are read one by one.

Importing this imports what reads archives, which takes long; few runs meet one.
"""

from __future__ import annotations

import io
import os
import zlib
from typing import Final
from zipfile import BadZipFile, ZipFile

__all__ = ["ARCHIVE_FAULTS", "archive_in"]

ARCHIVE_FAULTS: Final = (OSError, EOFError, BadZipFile, zlib.error)
"""What reading out of an archive raises, besides the faults of asking for what it cannot give."""

_Identity = tuple[int, int, int, int]


class _Stream(io.FileIO):
    """An archive's own handle: closed once neither the archive nor any member that is still read needs it."""

    def __del__(self) -> None:
        self.close()


_kept: list[tuple[_Identity, ZipFile]] = []
"""The last one, or none."""


def archive_in(stream: io.FileIO, status: os.stat_result) -> ZipFile:
    """Return the archive that an open file is. It is kept until another one is asked for.

    Args:
        stream: the file.
        status: the file's, by which it is known again.

    Raises:
        BadZipFile, OSError and what else `ZipFile` raises for a damaged or foreign archive.
    """
    identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if not _kept or _kept[0][0] != identity or not status.st_ino:
        while _kept:
            _kept.pop()[1].close()
        _kept.append((identity, ZipFile(_Stream(os.dup(stream.fileno()), "r"))))
    return _kept[0][1]
