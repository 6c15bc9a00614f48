"""`breaker cache`: what is kept of sessions that were read before."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cli.cache_options import CacheOption
from cli.exits import USAGE, Failed

if TYPE_CHECKING:
    from analysis.cache import Kept, Store

__all__ = ["app", "clear", "info", "prune"]

app = typer.Typer(invoke_without_command=True)

_SIZE = re.compile(r"([0-9]{1,12})(B|KB|MB|GB|KiB|MiB|GiB)?", re.ASCII)
_UNITS = {
    None: 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
}
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
    cache: CacheOption = None,
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
    print(f"{counted(sum(contents.entries.values()), 'entry', 'entries')}, {total} of {contents.limit} bytes")
    if contents.oldest_use is not None and contents.newest_use is not None:
        print(f"last of use: {_day(contents.oldest_use)} to {_day(contents.newest_use)}")
        rows = [(kind, str(contents.entries[kind]), str(contents.sizes[kind])) for kind in contents.entries]
        print_rows(("kind", "entries", "bytes"), rows)


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
    cache: CacheOption = None,
) -> None:
    """Remove what was of no use for longest, and old temporary files."""
    from analysis.cache import DEFAULT_LIMIT

    limit = DEFAULT_LIMIT if max_size is None else _size(max_size)
    age = None if older_than is None else _age(older_than)
    _tell(_store(cache).prune(limit, older_than=age))


@app.command("clear")
def clear(cache: CacheOption = None) -> None:
    """Remove every entry. Files that are none are left alone."""
    _tell(_store(cache).clear())


def _store(given: str | None) -> Store:
    from analysis.cache import CacheRefused, Store, place_of

    try:
        place = place_of(given, os.environ)
    except CacheRefused as error:
        raise Failed(USAGE, f"--cache {error}") from None
    if place.folder is None:
        raise Failed(USAGE, f"there is no cache: {place.fault or 'it is off, or nothing says where it would be'}")
    return Store(place.folder)


def _tell(removed: Sequence[Kept]) -> None:
    from cli.text import counted

    print(f"{counted(len(removed), 'entry', 'entries')} removed, {sum(entry.size for entry in removed)} bytes")


def _day(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise Failed(USAGE, f"--max-size {text}: not a size (a whole number, with KB, MB, GB or KiB, MiB, GiB)")
    return int(match[1]) * _UNITS[match[2]]


def _age(text: str) -> int:
    match = _AGE.fullmatch(text)
    if match is None:
        raise Failed(USAGE, f"--older-than {text}: not an age (a whole number with s, m, h, d or w)")
    return int(match[1]) * _SECONDS[match[2]]
