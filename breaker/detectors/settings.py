"""Settings of detectors, validated as strictly as the guard's: the error names key, rule and value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import cast

from breaker.ecmascript import is_number, string_text

__all__ = ["DetectorSettingsError", "SettingsReader"]


class DetectorSettingsError(ValueError):
    """A setting a detector refuses to load.

    Attributes:
        detector: the detector's name.
        key: the key at fault.
        rule: what the key must be.
        value: the offending value as given.
    """

    def __init__(self, detector: str, key: str, rule: str, value: object) -> None:
        self.detector = detector
        self.key = key
        self.rule = rule
        self.value = value
        super().__init__(f"{detector}: `{key}` {rule} (got {string_text(value)})")


class SettingsReader:
    """Reads one detector's settings over its defaults; every method refuses what its rule does not allow."""

    def __init__(self, detector: str, given: Mapping[str, object], defaults: Mapping[str, object]) -> None:
        self._detector = detector
        self._values = {**defaults, **given}
        for key in given:
            if key not in defaults:
                near = get_close_matches(key, defaults, n=1)
                hint = f"; did you mean `{near[0]}`?" if near else ""
                raise self.refusal(key, f"is no setting of it; known: {', '.join(defaults) or 'none'}{hint}")

    def refusal(self, key: str, rule: str) -> DetectorSettingsError:
        """Return the error for a key that breaks a rule."""
        return DetectorSettingsError(self._detector, key, rule, self._values.get(key))

    def integer(self, key: str, least: int) -> int:
        """Read an integer of at least `least`."""
        value = self._values[key]
        if not _is_integer(value) or cast("float", value) < least:
            raise self.refusal(key, f"must be an integer >= {least}")
        return int(cast("float", value))

    def integer_or_off(self, key: str, least: int) -> int | None:
        """Read an integer of at least `least`; null and 0 mean off."""
        value = self._values[key]
        if value is None or (_is_integer(value) and value == 0):
            return None
        if not _is_integer(value) or cast("float", value) < least:
            raise self.refusal(key, f"must be an integer >= {least}, or null/0 to disable it")
        return int(cast("float", value))

    def boolean(self, key: str) -> bool:
        """Read true or false."""
        value = self._values[key]
        if not isinstance(value, bool):
            raise self.refusal(key, "must be true or false")
        return value

    def text(self, key: str) -> str:
        """Read a text that is not empty."""
        value = self._values[key]
        if not isinstance(value, str) or not value.strip():
            raise self.refusal(key, "must be a text that is not empty")
        return value

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """Read one of several texts."""
        value = self._values[key]
        if not isinstance(value, str) or value not in choices:
            raise self.refusal(key, f"must be one of {', '.join(choices)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Read a list of texts."""
        value = self._values[key]
        if not isinstance(value, list | tuple) or not all(
            isinstance(item, str) for item in cast("Sequence[object]", value)
        ):
            raise self.refusal(key, "must be a list of strings")
        return tuple(cast("Sequence[str]", value))

    def numbers(self, key: str) -> tuple[float, ...]:
        """Read a list of numbers."""
        value = self._values[key]
        if not isinstance(value, list | tuple) or not all(map(is_number, cast("Sequence[object]", value))):
            raise self.refusal(key, "must be a list of numbers")
        return tuple(cast("Sequence[float]", value))


def _is_integer(value: object) -> bool:
    if not is_number(value):
        return False
    try:
        number = float(cast("float", value))
    except OverflowError:  # an int beyond the doubles
        return False
    return math.isfinite(number) and number.is_integer()
