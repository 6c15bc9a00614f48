"""What every command that reads sessions takes of the cache: where it lies, or that there is none."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.cache_names import CACHE_VARIABLE, is_off
from cli.exits import USAGE, Failed, warn

if TYPE_CHECKING:
    from analysis.cache import Cache

__all__ = ["CacheFolderOption", "CacheOption", "cache_opener", "cache_source", "told_cache"]

CacheOption = Annotated[
    str | None,
    typer.Option(
        "--cache",
        metavar="DIR|off",
        envvar=CACHE_VARIABLE,
        show_envvar=False,
        help="Where what was read of unchanged sessions is kept for the next run, or nowhere.",
        show_default="$BREAKER_CACHE, else the platform's cache folder",
    ),
]


CacheFolderOption = Annotated[
    str | None,
    typer.Option(
        "--cache",
        metavar="DIR",
        envvar=CACHE_VARIABLE,
        show_envvar=False,
        help="The cache's folder.",
        show_default="$BREAKER_CACHE, else the platform's cache folder",
    ),
]


def cache_source(given: str | None) -> str:
    """Return what chose the cache, as people know it: the option, or the variable."""
    chosen = given is not None and given == os.environ.get(CACHE_VARIABLE)
    return CACHE_VARIABLE if chosen else "--cache"


@contextmanager
def cache_opener(given: str | None) -> Generator[Callable[[Iterable[Path]], Cache | None]]:
    """Give what opens the cache of a run over a corpus, and warn at the end where it could not be written.

    Opening raises `Failed` where what is given is no folder, or lies inside the corpus.
    """
    opened: list[Cache] = []

    def open_for(corpus: Iterable[Path]) -> Cache | None:
        if is_off(given):
            return None
        from analysis.cache import CacheRefused, open_cache

        try:
            cache, warning = open_cache(given, corpus, os.environ)
        except CacheRefused as error:
            raise Failed(USAGE, f"{cache_source(given)} {error}") from None
        if warning is not None:
            warn(warning)
        if cache is not None:
            opened.append(cache)
        return cache

    yield open_for
    for cache in opened:
        cache.close()
        if cache.fault is not None:
            warn(cache.fault)


@contextmanager
def told_cache(given: str | None, corpus: Iterable[Path]) -> Generator[Cache | None]:
    """Give the cache of a run over a corpus, None where there is none, and warn at the end where it was of no use.

    Raises:
        Failed: what is given is no folder, or lies inside the corpus.
    """
    with cache_opener(given) as open_for:
        yield open_for(corpus)
