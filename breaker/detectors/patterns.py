"""Detectors that look at the last few calls together: of a step, of a turn, with their results."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import Final

from breaker.detectors.protocol import NOTHING, Finding, SeenCall, SeenOutcome, SeenTurn
from breaker.detectors.settings import SettingsReader

__all__ = ["DoomLoop", "OpenHands"]

_DIGEST_BYTES: Final = 16


class DoomLoop:
    """Asks when the last `n` calls are the same call: of one answer of the model (`scope` step), or of the turn.

    Every call whose last `n` are the same is asked about. In the scope of a step, calls nested in a program are not
    part of the model's answer and are looked through.
    """

    NAME: Final = "doom-loop"
    DEFAULTS: Final[Mapping[str, object]] = MappingProxyType({"n": 3, "scope": "step"})
    RULE: Final = "the last n calls of one step (or of the turn) are the same call"

    def __init__(self, config: Mapping[str, object]) -> None:
        """Validate the settings.

        Raises:
            DetectorSettingsError: naming key, rule and value.
        """
        reader = SettingsReader(self.NAME, config, self.DEFAULTS)
        self.n = reader.integer("n", 2)
        self._by_step = reader.choice("scope", ("step", "turn")) == "step"
        self.settings: Mapping[str, object] = {"n": self.n, "scope": "step" if self._by_step else "turn"}
        self._key = ""
        self._length = 0
        self._step = -1

    def on_turn(self, turn: SeenTurn) -> None:
        """Forget the calls: a turn ends, and a step with it."""
        del turn
        self._length = 0

    def on_call(self, call: SeenCall) -> Sequence[Finding]:
        """Count a call, and ask where it completes the pattern."""
        if self._by_step:
            if call.nested:
                return NOTHING
            if call.step != self._step:
                self._step = call.step
                self._length = 0
        key = call.key
        self._length = self._length + 1 if self._length and key == self._key else 1
        self._key = key
        if self._length < self.n:
            return NOTHING
        return (Finding("ask", key, self._length, self.n),)

    def on_outcome(self, call: SeenCall, outcome: SeenOutcome) -> Sequence[Finding]:
        """Say nothing: outcomes are not looked at."""
        del call, outcome
        return NOTHING


@dataclass(frozen=True, slots=True)
class _Done:
    key: str
    failed: bool
    result: tuple[str, bytes]
    """Outcome and a digest of the text; equal results are equal in both."""


class OpenHands:
    """Stops at three patterns among the last calls and their results since the human message.

    (a) the last 4 are the same call with equal results; (b) the last 3 are the same call and each failed; (c) the last
    6 alternate between two calls, each with the result it had before. Equal results have the same outcome and the same
    text. A call takes its place where its result stands; a call without one takes none.
    """

    NAME: Final = "openhands"
    DEFAULTS: Final[Mapping[str, object]] = MappingProxyType({"window": 20, "same": 4, "failed": 3, "alternating": 6})
    RULE: Final = "4 same calls with equal results, 3 same that fail, or 6 that alternate A B with equal results"
    _SHORTEST_ALTERNATION: Final = 4

    def __init__(self, config: Mapping[str, object]) -> None:
        """Validate the settings.

        Raises:
            DetectorSettingsError: naming key, rule and value.
        """
        reader = SettingsReader(self.NAME, config, self.DEFAULTS)
        self._window = reader.integer("window", 2)
        self._same = reader.integer("same", 2)
        self._failed = reader.integer("failed", 2)
        self._alternating = reader.integer("alternating", self._SHORTEST_ALTERNATION)
        if self._alternating % 2:
            raise reader.refusal("alternating", "must be even: whole pairs of A and B")
        self.settings: Mapping[str, object] = {
            "window": self._window,
            "same": self._same,
            "failed": self._failed,
            "alternating": self._alternating,
        }
        self._done: deque[_Done] = deque(maxlen=self._window)

    def on_turn(self, turn: SeenTurn) -> None:
        """Forget the calls."""
        del turn
        self._done.clear()

    def on_call(self, call: SeenCall) -> Sequence[Finding]:
        """Say nothing: a call counts with its result."""
        del call
        return NOTHING

    def on_outcome(self, call: SeenCall, outcome: SeenOutcome) -> Sequence[Finding]:
        """Take a result, and stop where it completes one of the patterns."""
        if outcome.closer or outcome.kind == "open":
            return NOTHING
        self._done.append(_Done(call.key, outcome.kind == "failed", (outcome.kind, _digest(outcome.text))))
        last = self._last(self._same)
        if last and all(done.key == last[0].key and done.result == last[0].result for done in last):
            return (Finding("trip", call.key, self._same, self._same),)
        last = self._last(self._failed)
        if last and all(done.key == last[0].key and done.failed for done in last):
            return (Finding("trip", call.key, self._failed, self._failed, "failure", failure=outcome.failure),)
        last = self._last(self._alternating)
        if last and last[0].key != last[1].key and all(done == last[at % 2] for at, done in enumerate(last)):
            return (Finding("trip", call.key, self._alternating, self._alternating),)
        return NOTHING

    def _last(self, number: int) -> list[_Done]:
        """Return the last calls, the earliest first; none where there are not that many."""
        done = self._done
        if len(done) < number:
            return []
        return [done[at] for at in range(len(done) - number, len(done))]


def _digest(text: str) -> bytes:
    """Return a short stand-in for a text, which may be large."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
