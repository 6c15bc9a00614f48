"""Open the cache a person asked for, or the platform's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from analysis.cache.cache import Cache
from analysis.cache.place import default_folder, fault_of_default
from analysis.files import OutputError, refuse_inside

__all__ = ["CACHE_VARIABLE", "OFF", "CacheRefused", "Place", "open_cache", "place_of"]

OFF = "off"
CACHE_VARIABLE = "BREAKER_CACHE"
"""The variable that chooses the cache where no option does."""


class CacheRefused(ValueError):
    """What was asked for cannot be a cache; the message says why."""


class Place(msgspec.Struct, frozen=True):
    """Where the cache lies."""

    folder: Path | None
    """None where there is none."""
    fault: str | None = None
    """Why the platform's folder is not used, though it is there."""


def place_of(given: str | None, environ: Mapping[str, str]) -> Place:
    """Return where the cache lies: the folder given, nowhere for `off`, the platform's where nothing is given.

    Raises:
        CacheRefused: what is given is no folder.
    """
    if given is None:
        folder = default_folder(environ)
        fault = None if folder is None else fault_of_default(folder)
        return Place(folder if fault is None else None, fault)
    if given.casefold() == OFF:
        return Place(None)
    if not given or "\0" in given:
        message = f"{given!r}: no folder has such a name"
        raise CacheRefused(message)
    folder = Path(given)
    if not folder.is_dir() and (folder.exists() or folder.is_symlink()):
        message = f"{given}: is not a folder"
        raise CacheRefused(message)
    return Place(folder)


def open_cache(
    given: str | None, corpus: Iterable[Path], environ: Mapping[str, str]
) -> tuple[Cache | None, str | None]:
    """Return the cache of a run over a corpus, None where there is none, and what a person should be warned of.

    Raises:
        CacheRefused: what is given is no folder, or lies inside the corpus.
    """
    place = place_of(given, environ)
    if place.folder is None:
        return None, None if place.fault is None else f"the cache is not used: {place.fault}"
    paths = list(corpus)
    try:
        refuse_inside(place.folder, paths)
        _refuse_around(place.folder, paths)
    except OutputError as error:
        if given is None:
            return None, None
        raise CacheRefused(str(error)) from None
    cache = Cache(place.folder)
    if cache.store.is_elsewhere:
        message = f"{place.folder}: what it keeps lies behind a symbolic link, where nothing would bound it"
        if given is None:
            return None, f"the cache is not used: {message}"
        raise CacheRefused(message)
    return cache, None


def _refuse_around(folder: Path, corpus: Iterable[Path]) -> None:
    """Refuse a folder that holds the corpus: somebody meant another one.

    Raises:
        OutputError: it holds some of it.
    """
    target = folder.resolve()
    for path in corpus:
        if path.resolve().is_relative_to(target):
            message = f"{folder}: the corpus {path} lies in it; a cache has a folder of its own"
            raise OutputError(message)
