"""The errors a writer of planted sessions raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class SynthError(Exception):
    """Stand for every refusal of the corpus writer: nothing has been written when one is raised."""


class UnknownRecipeError(SynthError):
    """Refuse a recipe name that is not known, and name those that are."""

    def __init__(self, recipe: str, known: Iterable[str]) -> None:
        self.recipe = recipe
        self.known = tuple(sorted(known))
        super().__init__(f"unknown recipe {recipe!r}: choose one of {', '.join(self.known)}")


class OutputNotEmptyError(SynthError):
    """Refuse an output folder that already holds something, or a path that is no folder."""

    def __init__(self, out: Path, why: str) -> None:
        self.out = out
        super().__init__(f"{out}: {why}")


class InvalidSizeError(SynthError):
    """Refuse a count, a size or a format version outside its range."""

    def __init__(self, name: str, value: object, rule: str) -> None:
        self.name = name
        self.value = value
        super().__init__(f"{name} {rule} (got {value!r})")
