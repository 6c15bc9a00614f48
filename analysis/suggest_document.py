"""Proposed labels as one JSON document."""

from __future__ import annotations

from analysis.documents import JsonObject, corpus_head, run_head
from analysis.suggest import Suggestions

__all__ = ["suggest_document"]


def suggest_document(found: Suggestions) -> JsonObject:
    """Return proposals as a JSON-ready document."""
    return {
        **run_head("label-suggest", found.corpus.plan),
        **corpus_head(found.corpus),
        "long_turn": found.long_turn,
        "proposals": [
            {"session": one.session_id, "path": one.path, "label": one.label, "signs": list(one.signs)}
            for one in found.proposals
        ],
        "labelled": found.labelled,
        "unsigned": found.unsigned,
    }
