"""Detectors that count steps of a turn, and failures of one call or tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from breaker.detectors.protocol import NOTHING, Finding, SeenCall, SeenOutcome, SeenStep, SeenTurn
from breaker.detectors.settings import SettingsReader

__all__ = ["FailureStreak", "StepCap"]

_TURN_KEY: Final = "turn:steps"


class StepCap:
    """Stops where the `n`-th step of a turn begins. Preset `langgraph`: 25; `smolagents`: 20."""

    NAME: Final = "step-cap"
    DEFAULTS: Final[Mapping[str, object]] = MappingProxyType({"preset": "langgraph", "n": None})
    RULE: Final = "the n-th step of a turn begins; presets langgraph 25, smolagents 20"
    PRESETS: Final[Mapping[str, int]] = MappingProxyType({"langgraph": 25, "smolagents": 20})

    def __init__(self, config: Mapping[str, object]) -> None:
        """Validate the settings.

        Raises:
            DetectorSettingsError: naming key, rule and value.
        """
        reader = SettingsReader(self.NAME, config, self.DEFAULTS)
        preset = reader.choice("preset", tuple(self.PRESETS))
        self.n = reader.integer("n", 1) if "n" in config else self.PRESETS[preset]
        self.settings: Mapping[str, object] = {"n": self.n}
        self._steps = 0

    def on_turn(self, turn: SeenTurn) -> None:
        """Begin to count anew."""
        del turn
        self._steps = 0

    def on_step(self, step: SeenStep) -> Sequence[Finding]:
        """Count a step, and stop at the n-th."""
        del step
        self._steps += 1
        return (Finding("trip", _TURN_KEY, self._steps, self.n, "step"),) if self._steps == self.n else NOTHING

    def on_call(self, call: SeenCall) -> Sequence[Finding]:
        """Say nothing: steps count, not calls."""
        del call
        return NOTHING

    def on_outcome(self, call: SeenCall, outcome: SeenOutcome) -> Sequence[Finding]:
        """Say nothing: outcomes are not looked at."""
        del call, outcome
        return NOTHING


class FailureStreak:
    """Warns at exactly `warn` consecutive failures of a key and blocks further calls of it from `block` on.

    The key is the same call (`by` call: warn 2, block 5) or one tool whatever its arguments (`by` tool: warn 3, block
    8). A success of the key clears its streak. As with every guard, a blocked call is one that would follow: the
    streak must be there when the call is offered, and what became of a blocked call is not counted.
    """

    NAME: Final = "failure-streak"
    DEFAULTS: Final[Mapping[str, object]] = MappingProxyType({"by": "call", "warn": None, "block": None})
    RULE: Final = "consecutive failures of the same call (warn 2, block 5) or of one tool (3, 8)"
    _NUMBERS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType({"call": (2, 5), "tool": (3, 8)})

    def __init__(self, config: Mapping[str, object]) -> None:
        """Validate the settings.

        Raises:
            DetectorSettingsError: naming key, rule and value.
        """
        reader = SettingsReader(self.NAME, config, self.DEFAULTS)
        by = reader.choice("by", tuple(self._NUMBERS))
        warn, block = self._NUMBERS[by]
        self.warn: int | None = reader.integer_or_off("warn", 1) if "warn" in config else warn
        self.block: int | None = reader.integer_or_off("block", 1) if "block" in config else block
        self.settings: Mapping[str, object] = {"by": by, "warn": self.warn, "block": self.block}
        self._by_call = by == "call"
        self._streaks: dict[str, int] = {}
        self._blocked: set[int] = set()

    def on_turn(self, turn: SeenTurn) -> None:
        """Forget the streaks."""
        del turn
        self._streaks.clear()

    def on_call(self, call: SeenCall) -> Sequence[Finding]:
        """Block a call whose key has failed too often."""
        streak = self._streaks.get(self._key(call), 0)
        if self.block is None or streak < self.block:
            return NOTHING
        self._blocked.add(call.index)
        return (Finding("deny", self._key(call), streak, self.block, "failure"),)

    def on_outcome(self, call: SeenCall, outcome: SeenOutcome) -> Sequence[Finding]:
        """Count a failure or clear the streak, and warn where it is exactly long enough."""
        if call.index in self._blocked:
            self._blocked.discard(call.index)
            return NOTHING
        if not outcome.settles:
            return NOTHING
        key = self._key(call)
        if outcome.kind != "failed":
            self._streaks.pop(key, None)
            return NOTHING
        streak = self._streaks.get(key, 0) + 1
        self._streaks[key] = streak
        if self.warn is None or streak != self.warn:
            return NOTHING
        return (Finding("notice", key, streak, self.warn, "failure", failure=outcome.failure),)

    def _key(self, call: SeenCall) -> str:
        return call.key if self._by_call else f"tool:{call.name}"
