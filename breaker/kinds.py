"""The kinds of measures, and their order."""

from __future__ import annotations

from breaker.settings import Settings

__all__ = ["KINDS", "kind_of", "measure_rank", "nearest_kind", "unknown_kinds"]

KINDS = ("exact", "cmd", "net", "host", "site", "sink", "family", "verb")
"""Every measure kind, in the order outputs list them."""

_RANKS = {kind: rank for rank, kind in enumerate(("host", "net", "site", "sink", "cmd", "exact"))}


def kind_of(measure: str) -> str:
    """Return the kind of a measure: what stands before its first colon."""
    return measure.partition(":")[0]


def measure_rank(measure: str) -> int:
    """Return a measure's rank in tie-breaks: host, net, site, sink, cmd, exact, then every other kind; lower wins."""
    return _RANKS.get(kind_of(measure), len(_RANKS))


def unknown_kinds(settings: Settings) -> list[str]:
    """Return the entries of `limits` that name no kind of measure, and so cap nothing."""
    return [entry for entry in settings.limits if kind_of(entry) not in KINDS]


def nearest_kind(entry: str) -> str | None:
    """Return the kind of measure nearest to a mistyped one, or None where none is near."""
    from difflib import get_close_matches

    matches = get_close_matches(kind_of(entry).lower(), KINDS, n=1)
    return matches[0] if matches else None
