"""What lies in a cache, computed once for every rendering."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from analysis.cache.store import KINDS, Kept, Store
from analysis.documents import JsonObject, tool_head

__all__ = ["CacheContents", "cache_document", "contents_of"]


class CacheContents(msgspec.Struct, frozen=True):
    """Entries and bytes, by kind and in all, and when the oldest and the newest were last of use."""

    folder: Path
    limit: int
    """Bytes that a run leaves."""
    entries: dict[str, int]
    sizes: dict[str, int]
    oldest_use: float | None
    """Epoch seconds; None where it is empty."""
    newest_use: float | None


def contents_of(store: Store, limit: int) -> CacheContents:
    """Look through a cache."""
    entries, sizes = _counted(kept := list(store.entries()))
    used = [entry.used for entry in kept]
    return CacheContents(store.folder, limit, entries, sizes, min(used, default=None), max(used, default=None))


def _counted(kept: Iterable[Kept]) -> tuple[dict[str, int], dict[str, int]]:
    entries: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for kind in KINDS:
        entries[kind] = sizes[kind] = 0
    for entry in kept:
        entries[entry.kind] += 1
        sizes[entry.kind] += entry.size
    return entries, sizes


def cache_document(contents: CacheContents) -> JsonObject:
    """Return it as a JSON-ready document."""
    return {
        **tool_head("cache"),
        "folder": str(contents.folder),
        "entries": sum(contents.entries.values()),
        "bytes": sum(contents.sizes.values()),
        "limit_bytes": contents.limit,
        "oldest_use": contents.oldest_use,
        "newest_use": contents.newest_use,
        "kinds": {
            kind: {"entries": contents.entries[kind], "bytes": contents.sizes[kind]} for kind in contents.entries
        },
    }
