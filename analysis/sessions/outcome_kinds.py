"""The ways a recorded call can end."""

from __future__ import annotations

from typing import Literal

__all__ = ["OUTCOME_KINDS", "OutcomeKind"]

OutcomeKind = Literal["ok", "failed", "undecidable", "denied", "not-run", "open"]
OUTCOME_KINDS: tuple[OutcomeKind, ...] = ("ok", "failed", "undecidable", "denied", "not-run", "open")
