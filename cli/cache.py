"""`breaker cache`: what is kept of sessions that were read before."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cli.cache_options import CacheFolderOption, cache_source
from cli.exits import USAGE, Failed
from cli.sizes import size_of, size_text

if TYPE_CHECKING:
    from analysis.cache import Kept, Store

__all__ = ["app", "clear", "info", "prune"]

app = typer.Typer(invoke_without_command=True)

_AGE = re.compile(r"([0-9]{1,6})([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@app.callback()
def cache(context: typer.Context) -> None:
    """See and empty what is kept of sessions that were read before."""
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(USAGE)


class InfoFormat(StrEnum):
    """How it is printed."""

    text = "text"
    json = "json"


@app.command("info")
def info(
    output: Annotated[InfoFormat, typer.Option("--format", help="Text, or one JSON document.")] = InfoFormat.text,
    cache: CacheFolderOption = None,
) -> None:
    """Tell where the cache lies and what is in it."""
    from analysis.cache import DEFAULT_LIMIT
    from analysis.cache.document import cache_document, contents_of

    contents = contents_of(_store(cache), DEFAULT_LIMIT)
    if output is InfoFormat.json:
        from cli.jsonlines import print_json

        print_json(cache_document(contents))
        return
    from cli.tables import print_rows
    from cli.text import counted, plain

    print(plain(str(contents.folder)))
    total = sum(contents.sizes.values())
    told = f"{size_text(total)} of {size_text(contents.limit)}"
    print(f"{counted(sum(contents.entries.values()), 'entry', 'entries')}, {told}")
    if contents.oldest_use is not None and contents.newest_use is not None:
        print(f"last used: {_day(contents.oldest_use)} to {_day(contents.newest_use)}")
        rows = [(kind, str(contents.entries[kind]), size_text(contents.sizes[kind])) for kind in contents.entries]
        print_rows(("kind", "entries", "size"), rows)


@app.command("prune")
def prune(
    max_size: Annotated[
        str | None,
        typer.Option(
            "--max-size", metavar="SIZE", help="Leave at most this, such as 500MB.", show_default="the cache's limit"
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than", metavar="AGE", help="Remove what was of no use for this long, such as 30d or 12h."
        ),
    ] = None,
    cache: CacheFolderOption = None,
) -> None:
    """Remove what was of no use for longest, and old temporary files."""
    from analysis.cache import DEFAULT_LIMIT

    limit = DEFAULT_LIMIT if max_size is None else size_of("--max-size", max_size)
    age = None if older_than is None else _age(older_than)
    _tell(_standing_store(cache).prune(limit, older_than=age))


@app.command("clear")
def clear(cache: CacheFolderOption = None) -> None:
    """Remove every entry. Files that are none are left alone."""
    _tell(_standing_store(cache).clear())


def _store(given: str | None) -> Store:
    from analysis.cache import CacheRefused, Store, place_of

    try:
        place = place_of(given, os.environ)
    except CacheRefused as error:
        raise Failed(USAGE, f"{cache_source(given)} {error}") from None
    if place.folder is None:
        raise Failed(USAGE, f"there is no cache: {place.fault or 'it is off, or nothing says where it would be'}")
    return Store(place.folder)


def _standing_store(given: str | None) -> Store:
    """Return a store that is there, where somebody says so: a mistyped path must not look fine."""
    store = _store(given)
    if given is not None and not store.folder.is_dir():
        raise Failed(USAGE, f"{cache_source(given)} {given}: no such folder")
    return store


def _tell(removed: Sequence[Kept]) -> None:
    from cli.text import counted

    size = sum(entry.size for entry in removed)
    print(f"{counted(len(removed), 'entry', 'entries')} removed, {size_text(size)}")


def _day(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _age(text: str) -> int:
    match = _AGE.fullmatch(text)
    if match is None:
        raise Failed(USAGE, f"--older-than {text}: not an age (a whole number with s, m, h, d or w)")
    return int(match[1]) * _SECONDS[match[2]]
