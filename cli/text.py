"""Text from logs on its way to a terminal."""

from __future__ import annotations

from analysis.text import counted, plain, shortened

__all__ = ["counted", "plain", "shortened"]
