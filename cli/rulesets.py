"""`breaker rulesets`: the releases of the guard that can be replayed, and what each changed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

__all__ = ["RulesetFormat", "rulesets"]

_HELD = {"vectors": "held by the release's own recorded answers", "text": "held by its documents only"}
_INDENT = "    "


class RulesetFormat(StrEnum):
    """How the list is printed."""

    table = "table"
    json = "json"


def rulesets(
    output: Annotated[
        RulesetFormat, typer.Option("--format", help="Text, or one JSON document.")
    ] = RulesetFormat.table,
) -> None:
    """List the rulesets, oldest first: what each does differently from the one before, and how the port is held."""
    if output is RulesetFormat.json:
        from analysis.rulesets_document import rulesets_document
        from cli.jsonlines import print_json

        print_json(rulesets_document())
        return
    from breaker.rulesets import DEFAULT_RULESET, RULESETS, differences, predecessor

    for ruleset in RULESETS.values():
        before = predecessor(ruleset)
        mark = " (default)" if ruleset is DEFAULT_RULESET else ""
        print(f"{ruleset.name}{mark}: {ruleset.note}; {_HELD[ruleset.held_by]}")
        changes = differences(ruleset, before) if before is not None else ["the oldest one"]
        for change in changes:
            print(f"{_INDENT}{change}")
