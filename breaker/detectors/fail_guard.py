"""The fail-guard: trips after so many failed results in a row, of one tool or of the whole session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from breaker.detectors.protocol import NOTHING, Finding, SeenCall, SeenOutcome, SeenTurn
from breaker.detectors.settings import SettingsReader

__all__ = ["FailGuard"]

_NAME: Final = "fail-guard"
_SESSION_KEY: Final = "session"

_STOP_TEXT: Final = (
    "Stop here and make no further call yet. First, state in one sentence what you were trying to reach. Second, quote "
    "the exact error of each of the last failures. Third, name what all of them have in common and which assumption "
    "of yours they contradict. Fourth, choose a way that does not rest on that assumption, or say what you need from "
    "the person."
)
_STOP_SUMMARY: Final = "too many failures in a row"


@dataclass(slots=True)
class _Streak:
    length: int = 0
    rebuilt: int = 0
    """How many of its failures rest on a rebuilt exit code alone."""


class FailGuard:
    """Counts consecutive failed results and trips at the threshold; the count then begins again.

    A result is a failure when its error flag is set or its exit code is not 0. Only results of the model's own calls
    count, whatever became of the call: not those of calls nested in a program, and not what a repair of the log wrote.
    A success clears its own key. A human message clears nothing; a new process does, for the counts live in memory.
    """

    DEFAULTS: Final[Mapping[str, object]] = MappingProxyType(
        {
            "threshold": 2,
            "sameToolOnly": True,
            "stopText": _STOP_TEXT,
            "stopSummary": _STOP_SUMMARY,
            "debug": False,
        }
    )
    RULE: Final = "so many failed results in a row, by tool or by session; a human message does not clear"

    def __init__(self, config: Mapping[str, object]) -> None:
        """Validate the settings.

        Raises:
            DetectorSettingsError: naming key, rule and value.
        """
        reader = SettingsReader(_NAME, config, self.DEFAULTS)
        self.threshold = reader.integer("threshold", 1)
        self.same_tool_only = reader.boolean("sameToolOnly")
        self.stop_text = reader.text("stopText")
        self.stop_summary = reader.text("stopSummary")
        self.settings: Mapping[str, object] = {
            "threshold": self.threshold,
            "sameToolOnly": self.same_tool_only,
            "stopText": self.stop_text,
            "stopSummary": self.stop_summary,
            "debug": reader.boolean("debug"),
        }
        self.failures = 0
        """Failed results counted."""
        self.rebuilt_failures = 0
        """Those of them that rest on a rebuilt exit code alone."""
        self._streaks: dict[str, _Streak] = {}

    def on_turn(self, turn: SeenTurn) -> None:
        """Forget the counts where a process begins; a human message leaves them."""
        if turn.cause != "human":
            self._streaks.clear()

    def on_call(self, call: SeenCall) -> Sequence[Finding]:
        """Say nothing: it never blocks."""
        del call
        return NOTHING

    def on_outcome(self, call: SeenCall, outcome: SeenOutcome) -> Sequence[Finding]:
        """Count a result, and trip where the count reaches the threshold."""
        if call.nested or outcome.closer:
            return NOTHING
        key = f"tool:{call.name}" if self.same_tool_only else _SESSION_KEY
        by_code = outcome.exit_code is not None and outcome.exit_code != 0
        if not (outcome.is_error or by_code):
            self._streaks.pop(key, None)
            return NOTHING
        rebuilt = outcome.exit_code_rebuilt and not outcome.is_error
        self.failures += 1
        self.rebuilt_failures += rebuilt
        streak = self._streaks.setdefault(key, _Streak())
        streak.length += 1
        streak.rebuilt += rebuilt
        if streak.length < self.threshold:
            return NOTHING
        del self._streaks[key]
        return (
            Finding(
                stage="trip",
                measure=key,
                count=streak.length,
                threshold=self.threshold,
                track="failure",
                failure=outcome.failure,
                message=self.stop_text,
                on_rebuilt=streak.rebuilt > 0,
            ),
        )
