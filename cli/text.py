"""Text from logs on its way to a terminal."""

from __future__ import annotations

from analysis.text import plain, shortened

__all__ = ["plain", "shortened"]
