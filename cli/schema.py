"""`breaker schema`: the JSON Schemas of the documents."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cli.exits import USAGE, Failed

__all__ = ["schema"]


def schema(
    name: Annotated[str | None, typer.Argument(help="Which document; without it, the names are listed.")] = None,
) -> None:
    """Print the JSON Schema of a document this tool writes or reads."""
    from analysis.schemas import UnknownSchema, schema_names, schema_text

    if name is None:
        print("\n".join(schema_names()))
        return
    try:
        sys.stdout.write(schema_text(name))
    except UnknownSchema as error:
        raise Failed(USAGE, str(error)) from None
