"""Detectors of the same call made again and again, one straight after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from breaker.detectors.protocol import NOTHING, Finding, SeenCall, SeenOutcome, SeenTurn
from breaker.detectors.settings import SettingsReader
from breaker.ecmascript import canonical_json, preview
from breaker.measures import name_matcher

__all__ = ["Consecutive", "Reminder", "RepeatStop"]


class _Run:
    """The length of the present run of one call."""

    def __init__(self) -> None:
        self.length = 0
        self._key = ""

    def take(self, call: SeenCall) -> int:
        key = call.key
        self.length = self.length + 1 if self.length and key == self._key else 1
        self._key = key
        return self.length

    def forget(self) -> None:
        self.length = 0


class Reminder:
    """Reminds the model that it repeats itself when a run of the same call is exactly 3, 5 or 8 long.

    A call counts where it settles, also one that failed, was denied or declined; what was not run or never got an
    outcome of its own does not count. Tools left out by `include` and `exclude` neither count nor end a run.
    """

    NAME: Final = "repeat-tool-reminder"
    DEFAULTS: Final[Mapping[str, object]] = MappingProxyType(
        {"thresholds": (3, 5, 8), "include": (), "exclude": (), "argumentsPreviewChars": 500}
    )
    RULE: Final = "the same call 3, 5 or 8 times in a row, counted where it settles"
    _SMALLEST: Final = 2

    def __init__(self, config: Mapping[str, object]) -> None:
        """Validate the settings.

        Raises:
            DetectorSettingsError: naming key, rule and value.
        """
        reader = SettingsReader(self.NAME, config, self.DEFAULTS)
        thresholds = reader.numbers("thresholds")
        include, exclude = reader.texts("include"), reader.texts("exclude")
        if not thresholds:
            raise reader.refusal("thresholds", "must not be empty")
        for threshold in thresholds:
            if threshold < self._SMALLEST or not float(threshold).is_integer():
                rule = f"must hold integers >= {self._SMALLEST}; {threshold:g} is none"
                raise reader.refusal("thresholds", rule)
        if len(set(thresholds)) < len(thresholds):
            raise reader.refusal("thresholds", "must not hold a number twice")
        self.thresholds = tuple(sorted(map(int, thresholds)))
        self._preview_chars = reader.integer("argumentsPreviewChars", 1)
        self._included = name_matcher(include) if include else None
        self._excluded = name_matcher(exclude)
        self.settings: Mapping[str, object] = {
            "thresholds": list(self.thresholds),
            "include": list(include),
            "exclude": list(exclude),
            "argumentsPreviewChars": self._preview_chars,
        }
        self._run = _Run()

    def on_turn(self, turn: SeenTurn) -> None:
        """Forget the run."""
        del turn
        self._run.forget()

    def on_call(self, call: SeenCall) -> Sequence[Finding]:
        """Say nothing: calls count where they settle."""
        del call
        return NOTHING

    def on_outcome(self, call: SeenCall, outcome: SeenOutcome) -> Sequence[Finding]:
        """Count a settled call, and speak where the run is exactly at a threshold."""
        if outcome.kind in {"not-run", "open"} or outcome.closer or not self._tracks(call.name):
            return NOTHING
        length = self._run.take(call)
        if length not in self.thresholds:
            return NOTHING
        message = self._gentle() if length == self.thresholds[0] else self._detailed(call, length)
        return (Finding("notice", call.key, length, length, message=message),)

    def _tracks(self, name: str) -> bool:
        return (self._included is None or self._included(name)) and not self._excluded(name)

    def _gentle(self) -> str:
        return (
            "This exact call was just made before. Look closely at what the last result says; if the task is not done, "
            "try another approach or other arguments."
        )

    def _detailed(self, call: SeenCall, length: int) -> str:
        arguments = preview(canonical_json(call.call.arguments), self._preview_chars)
        return (
            f"The same call again:\n- tool: {call.name}\n- consecutive_calls: {length}\n- arguments: {arguments}\n"
            "Do not call it with these arguments again. Inspect the result you have, then do something else or finish."
        )


class RepeatStop:
    """Denies the 7th and every later call of a run of the same call; the tools of `exclude` are looked through.

    Denied calls go on counting.
    """

    NAME: Final = "repeat-stop"
    DEFAULTS: Final[Mapping[str, object]] = MappingProxyType({"n": 7, "exclude": ("job_*",)})
    RULE: Final = "the same call in a row: the 7th and later are denied; job_* tools are looked through"

    def __init__(self, config: Mapping[str, object]) -> None:
        """Validate the settings.

        Raises:
            DetectorSettingsError: naming key, rule and value.
        """
        reader = SettingsReader(self.NAME, config, self.DEFAULTS)
        self.n = reader.integer("n", 2)
        exclude = reader.texts("exclude")
        self.settings: Mapping[str, object] = {"n": self.n, "exclude": list(exclude)}
        self._excluded = name_matcher(exclude)
        self._run = _Run()

    def on_turn(self, turn: SeenTurn) -> None:
        """Forget the run."""
        del turn
        self._run.forget()

    def on_call(self, call: SeenCall) -> Sequence[Finding]:
        """Count a call, and deny it where the run is long enough."""
        if self._excluded(call.name):
            return NOTHING
        length = self._run.take(call)
        return (Finding("deny", call.key, length, self.n),) if length >= self.n else NOTHING

    def on_outcome(self, call: SeenCall, outcome: SeenOutcome) -> Sequence[Finding]:
        """Say nothing: outcomes are not looked at."""
        del call, outcome
        return NOTHING


class Consecutive:
    """Halts when a run of the same call reaches `n`; the run then begins again at 0.

    Presets: `gemini` n = 5, `roo` n = 4 (three repeats after the first; n = 0 is off), `goose` any run longer than
    `max`, and off without one.
    """

    NAME: Final = "consecutive"
    DEFAULTS: Final[Mapping[str, object]] = MappingProxyType(
        {"preset": "gemini", "n": None, "max": None, "after": "halt"}
    )
    RULE: Final = "the same call n times in a row, then counted anew; presets gemini, roo, goose"
    PRESETS: Final[Mapping[str, int | None]] = MappingProxyType({"gemini": 5, "roo": 4, "goose": None})

    def __init__(self, config: Mapping[str, object]) -> None:
        """Validate the settings.

        Raises:
            DetectorSettingsError: naming key, rule and value.
        """
        reader = SettingsReader(self.NAME, config, self.DEFAULTS)
        preset = reader.choice("preset", tuple(self.PRESETS))
        after = reader.choice("after", ("halt",))
        if preset == "goose":
            if "n" in config:
                raise reader.refusal("n", "is not used by the preset goose; set `max`")
            longest = None if config.get("max") is None else reader.integer("max", 1)
            self.n = None if longest is None else longest + 1
            self.settings: Mapping[str, object] = {"preset": preset, "max": longest, "after": after}
        else:
            if "max" in config:
                raise reader.refusal("max", "is used by the preset goose only; set `n`")
            self.n = reader.integer_or_off("n", 2) if "n" in config else self.PRESETS[preset]
            self.settings = {"preset": preset, "n": self.n, "after": after}
        self._run = _Run()

    def on_turn(self, turn: SeenTurn) -> None:
        """Forget the run."""
        del turn
        self._run.forget()

    def on_call(self, call: SeenCall) -> Sequence[Finding]:
        """Count a call, and halt where the run is long enough."""
        length = self._run.take(call)
        if self.n is None or length < self.n:
            return NOTHING
        self._run.forget()
        return (Finding("trip", call.key, length, self.n),)

    def on_outcome(self, call: SeenCall, outcome: SeenOutcome) -> Sequence[Finding]:
        """Say nothing: outcomes are not looked at."""
        del call, outcome
        return NOTHING
