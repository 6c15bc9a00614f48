"""A seeded source of numbers whose answers never change."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

Item = TypeVar("Item")

_WORD = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB


class Chance:
    """Draw numbers from a seed with the splitmix64 generator.

    The standard library promises its sequences per method and Python version only; a corpus must be the same bytes
    on every Python, so the generator is spelled out here. The seed is text: `f"{seed}/{recipe}/{index}"` gives every
    session its own independent sequence.
    """

    def __init__(self, seed: str) -> None:
        self._state = int.from_bytes(blake2b(seed.encode(), digest_size=8).digest(), "big")

    def word(self) -> int:
        """Draw 64 bits."""
        self._state = (self._state + _STEP) & _WORD
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * _MIX_1) & _WORD
        mixed = ((mixed ^ (mixed >> 27)) * _MIX_2) & _WORD
        return mixed ^ (mixed >> 31)

    def integer(self, low: int, high: int) -> int:
        """Draw an integer from `low` to `high`, both included."""
        return low + self.word() % (high - low + 1)

    def pick(self, items: Sequence[Item]) -> Item:
        """Draw one item of a non-empty sequence."""
        return items[self.word() % len(items)]

    def hexadecimal(self, digits: int) -> str:
        """Draw `digits` hexadecimal digits."""
        text = ""
        while len(text) < digits:
            text += f"{self.word():016x}"
        return text[:digits]

    def uuid(self) -> str:
        """Draw a text in the shape of a random (version 4) UUID."""
        digits = self.hexadecimal(32)
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
