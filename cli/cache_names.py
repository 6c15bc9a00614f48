"""What chooses the cache, where `analysis.cache` would take long to import only to know its words."""

from __future__ import annotations

__all__ = ["CACHE_VARIABLE", "is_off"]

CACHE_VARIABLE = "BREAKER_CACHE"
"""`analysis.cache.CACHE_VARIABLE`."""
_OFF = "off"
"""`analysis.cache.OFF`."""


def is_off(given: str | None) -> bool:
    """Tell whether a run was told to do without a cache."""
    return given is not None and given.casefold() == _OFF
