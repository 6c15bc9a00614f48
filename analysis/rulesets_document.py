"""The releases that can be replayed, as one JSON document."""

from __future__ import annotations

from analysis.documents import JsonObject, tool_head
from breaker.rulesets import DEFAULT_RULESET, RULESETS, Ruleset, differences, predecessor

__all__ = ["rulesets_document"]


def rulesets_document() -> JsonObject:
    """Return every ruleset, oldest first, as a JSON-ready document."""
    return {**tool_head("rulesets"), "rulesets": [_ruleset(ruleset) for ruleset in RULESETS.values()]}


def _ruleset(ruleset: Ruleset) -> JsonObject:
    before = predecessor(ruleset)
    return {
        "name": ruleset.name,
        "default": ruleset is DEFAULT_RULESET,
        "held_by": ruleset.held_by,
        "note": ruleset.note,
        "differs_from": None if before is None else before.name,
        "differences": [] if before is None else differences(ruleset, before),
    }
