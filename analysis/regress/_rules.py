"""What a check holds sessions to: limits, expectations, waivers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fnmatch import translate
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from analysis.globs import session_matches
from analysis.regress._faults import Origin
from analysis.regress._numbers import Number
from analysis.replay import ReplayEvent, StageName

__all__ = ["Bound", "EventPattern", "Expectation", "Limit", "Waiver", "exact_text", "measure_matches", "parse_bound"]

Bound = Literal["most", "least"]

_LONGEST_NUMBER = 64
_LARGEST_EXPONENT = 60
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%")
_RATIO = re.compile(r"([0-9]+)\s*/\s*([0-9]+)")
_PLAIN = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_HUNDRED = 100


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on one number of the corpus."""

    name: str
    """As written: the number's name, with `_min` or `_max` where it says so."""
    number: Number
    bound: Bound
    value: Fraction
    written: str
    origin: Origin

    def holds(self, measured: Fraction) -> bool:
        """Tell whether a number keeps to it; reaching it exactly does."""
        return measured <= self.value if self.bound == "most" else measured >= self.value


@dataclass(frozen=True, slots=True)
class EventPattern:
    """An event that must show; what is left out can be anything."""

    stage: StageName | None
    measure: str | None
    """A glob."""
    count: int | None
    """What the guard had counted to."""
    times: int | None
    """How many such events there must be; None for at least one."""
    origin: Origin

    def matches(self, event: ReplayEvent) -> bool:
        """Tell whether an event is such a one."""
        return (
            self.stage in {None, event.stage}
            and self.count in {None, event.count}
            and (self.measure is None or measure_matches(self.measure, event.measure))
        )

    def __str__(self) -> str:
        """Return it as a person says it."""
        words = [self.stage or "an event", *([self.measure] if self.measure is not None else [])]
        if self.count is not None:
            words.append(f"at {self.count}")
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Expectation:
    """The events that must show in the sessions a glob matches; no others may, unless it says so."""

    glob: str
    events: tuple[EventPattern, ...]
    others: bool
    reason: str
    origin: Origin

    def speaks_of(self, session_id: str | None, path: str) -> bool:
        """Tell whether it holds for a session."""
        return session_matches(self.glob, session_id, path)


@dataclass(frozen=True, slots=True)
class Waiver:
    """Events, or differences from the baseline, that are known and borne until a day."""

    session: str | None
    measure: str | None
    stage: StageName | None
    reason: str
    expires: date
    origin: Origin

    def expired(self, today: date) -> bool:
        """Tell whether its last day is over."""
        return today > self.expires

    def speaks_of(self, session_id: str | None, path: str) -> bool:
        """Tell whether it holds for a session."""
        return self.session is None or session_matches(self.session, session_id, path)

    def covers(self, event: ReplayEvent) -> bool:
        """Tell whether an event of a session it speaks of is borne."""
        return self.stage in {None, event.stage} and (
            self.measure is None or measure_matches(self.measure, event.measure)
        )

    @property
    def subject(self) -> str:
        """What it covers, in words."""
        parts = [self.stage or "every stage"]
        if self.measure is not None:
            parts.append(f"of {self.measure}")
        if self.session is not None:
            parts.append(f"in {self.session}")
        return " ".join(parts)


@lru_cache
def _measure_expression(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob))


def measure_matches(glob: str, measure: str) -> bool:
    """Tell whether a glob takes a measure; `*` takes any characters."""
    return _measure_expression(glob).match(measure) is not None


def parse_bound(value: object, kind: str) -> Fraction | str:
    """Read a bound exactly; text says what is wrong with it.

    Counts are whole numbers. Rates are `"5%"`, `"1/20"` or `0.05`, between 0 and 1.
    """
    number = _fraction(value)
    if kind == "count":
        if number is None or isinstance(value, str) or number.denominator != 1:
            return f"must be a whole number, got {_told(value)}"
        return number if number >= 0 else f"must not be below 0, got {_told(value)}"
    if number is None:
        return f'must be a number such as 0.05, "5%" or "1/20", got {_told(value)}'
    if number < 0 or (kind == "rate" and number > 1):
        return f'must be between 0 and 1 (write "5%" for five in a hundred), got {_told(value)}'
    return number


def _fraction(value: object) -> Fraction | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Fraction(value) if value.bit_length() <= _LONGEST_NUMBER else None
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, Decimal):
        small = value.is_finite() and abs(value.adjusted()) <= _LARGEST_EXPONENT
        return Fraction(value) if small and len(value.as_tuple().digits) <= _LONGEST_NUMBER else None
    return _fraction_text(value.strip()) if isinstance(value, str) and len(value) <= _LONGEST_NUMBER else None


def _fraction_text(text: str) -> Fraction | None:
    if percent := _PERCENT.fullmatch(text):
        return Fraction(percent[1]) / _HUNDRED
    if ratio := _RATIO.fullmatch(text):
        return Fraction(int(ratio[1]), int(ratio[2])) if int(ratio[2]) else None
    return Fraction(text) if _PLAIN.fullmatch(text) else None


def _told(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, int | float | Decimal):
        return str(value) if len(str(value)) <= _LONGEST_NUMBER else "a number too long"
    return "a table" if isinstance(value, Mapping) else "a list" if isinstance(value, list) else str(value)


def exact_text(number: Fraction | None) -> str:
    """Return a number exactly: `9`, or `3/41`."""
    return "none" if number is None else str(number)
