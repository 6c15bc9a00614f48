"""The JSON Schemas of every document, shipped with the package."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["UnknownSchema", "schema_names", "schema_text"]

_SUFFIX = ".schema.json"


class UnknownSchema(ValueError):
    """No document has that name; the message lists the known ones."""


def schema_names() -> list[str]:
    """Return the names of all documents, sorted."""
    entries = files(__name__).iterdir()
    return sorted(entry.name.removesuffix(_SUFFIX) for entry in entries if entry.name.endswith(_SUFFIX))


def schema_text(name: str) -> str:
    """Return a document's JSON Schema as text.

    Raises:
        UnknownSchema: no document has that name.
    """
    known = schema_names()
    if name not in known:
        message = f"unknown document {name!r}; known: {', '.join(known)}"
        raise UnknownSchema(message)
    return files(__name__).joinpath(name + _SUFFIX).read_text(encoding="utf-8")
