"""What earlier runs read and came to, kept so that an unchanged session is not read again."""

from __future__ import annotations

from analysis.cache.answers import Answers, ReplayAnswers
from analysis.cache.cache import Cache, Known, Source, Tally
from analysis.cache.facts import EntryDamaged, RecordingReader, StoredReader
from analysis.cache.opening import CACHE_VARIABLE, OFF, CacheRefused, Place, open_cache, place_of
from analysis.cache.store import DEFAULT_LIMIT, KINDS, Kept, Store

__all__ = [
    "CACHE_VARIABLE",
    "DEFAULT_LIMIT",
    "KINDS",
    "OFF",
    "Answers",
    "Cache",
    "CacheRefused",
    "EntryDamaged",
    "Kept",
    "Known",
    "Place",
    "RecordingReader",
    "ReplayAnswers",
    "Source",
    "Store",
    "StoredReader",
    "Tally",
    "open_cache",
    "place_of",
]
