"""Files that are whole or not there: written under a temporary name, then renamed.

An error or an interrupt leaves nothing behind. What a run that was killed outright leaves is hidden, ends in `.part`,
and is removed by the next run that writes to the same place. A run that is still writing holds a lock on its own, so
nothing of it is taken for a leftover.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

__all__ = ["OutputError", "atomic_file", "atomic_folder", "refuse_inside"]

try:
    import fcntl
except ImportError:
    fcntl = None

_NAME_BYTES = 4
"""Random bytes in a temporary name."""
_RANDOM = "[0-9a-f]" * (2 * _NAME_BYTES)

_SESSION_LOG = re.compile(r"session(\.v[0-9]+)?\.jsonl(\.zstd)?")


class OutputError(Exception):
    """Something cannot be written where it was asked for; the message names the place."""


def _told(path: Path, error: OSError) -> OutputError:
    return OutputError(f"{path}: cannot write: {error.strerror or error}")


def refuse_inside(out: Path, corpus: Iterable[Path]) -> None:
    """Refuse to write inside recorded sessions.

    Args:
        out: the file or folder to be written.
        corpus: the folders and files read; of a session's log, its folder counts.

    Raises:
        OutputError: `out` is one of them or inside one of them.
    """
    target = out.resolve()
    for path in corpus:
        resolved = path.resolve()
        root = resolved
        if not resolved.is_dir() and _SESSION_LOG.fullmatch(resolved.name):
            root = resolved.parent
        if target.is_relative_to(root):
            message = f"{out}: lies inside the corpus {path}; results are never written among recorded sessions"
            raise OutputError(message)


@contextmanager
def atomic_file(path: Path, *, force: bool) -> Generator[BinaryIO]:
    """Give a file to write that appears under its name only when all of it is there.

    Raises:
        OutputError: it exists and `force` is false, it is a folder or a device, or it cannot be written.
    """
    if path.is_dir():
        message = f"{path}: is a folder"
        raise OutputError(message)
    if path.exists() and not path.is_file():
        message = f"{path}: is no file; only a file can be replaced by one"
        raise OutputError(message)
    if path.exists() and not force:
        message = f"{path}: exists already; --force replaces it"
        raise OutputError(message)
    # The name is chosen before anything is made, so that an interrupt at any moment leaves nothing behind.
    part = path.with_name(f".{path.name}.{token_hex(_NAME_BYTES)}.part")
    try:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(path.parent, f".{escape(path.name)}.{_RANDOM}.part")
            with _locked(lambda: part.open("xb").close(), part):
                with part.open("wb") as file:
                    yield file
                part.replace(path)
        except OSError as error:
            raise _told(path, error) from None
    finally:
        with suppress(OSError):
            part.unlink()


@contextmanager
def atomic_folder(folder: Path, names: Sequence[str], *, force: bool, replaced: Iterable[str] = ()) -> Generator[Path]:
    """Give an empty folder to write files into; at the end they appear in `folder`, in the order of `names`.

    Args:
        folder: where the files shall stand; made where it does not exist.
        names: the files that will be written, the one that vouches for the others last.
        force: replace files of those names.
        replaced: other files in it that go away when the new ones appear.

    Raises:
        OutputError: files of those names exist and `force` is false, or something cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        message = f"{folder}: is a file, not a folder"
        raise OutputError(message)
    standing = [name for name in names if (folder / name).exists()]
    if standing and not force:
        message = f"{folder}: holds {', '.join(standing)} already; --force replaces them"
        raise OutputError(message)
    made = not folder.exists()
    work = folder / f".{token_hex(_NAME_BYTES)}.part"
    published = False
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(folder, f".{_RANDOM}.part")
            with _locked(work.mkdir, work):
                yield work
                if force:
                    for name in (*reversed(names), *replaced):
                        (folder / name).unlink(missing_ok=True)
                for name in names:
                    (work / name).replace(folder / name)
            published = True
        except OSError as error:
            raise _told(folder, error) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if made and not published:
            with suppress(OSError):
                folder.rmdir()


# -- what killed runs leave ----------------------------------------------------------------------------------------


@contextmanager
def _locked(make: Callable[[], object], path: Path) -> Generator[None]:
    """Make a file or folder and hold a lock on it, so that nobody takes it for a leftover."""
    lock: int | None = None
    while not path.exists():  # more than once only where it was taken for one before it was locked
        _let_go(lock)
        make()
        lock = _lock(path, wait=True)
    try:
        yield
    finally:
        _let_go(lock)


def _lock(path: Path, *, wait: bool) -> int | None:
    """Lock a file or folder until what is returned is let go; None where somebody else has, or it cannot be done."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _let_go(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _remove_leftovers(folder: Path, pattern: str) -> None:
    """Remove what runs that were killed left in a folder; what cannot be removed does no harm."""
    for path in folder.glob(pattern):
        lock = _lock(path, wait=False)
        if lock is None:
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()
        _let_go(lock)
