"""The numbers a corpus can be held to, by name. All are exact: counts, or fractions of two counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import cache
from typing import Literal, TypeAlias

from analysis.corpus import STREAK_STEPS, CorpusReplay, SessionRow
from analysis.labels import LABELS, Label
from analysis.replay import STAGES, ReplayEvent, StageName
from analysis.sessions.outcome_kinds import OUTCOME_KINDS, OutcomeKind
from analysis.sessions.report import READ_STATES
from breaker.kinds import KINDS, kind_of

__all__ = [
    "BOUND_ENDINGS",
    "GATES",
    "LEAST_ENDING",
    "MESSAGES",
    "Number",
    "NumberKind",
    "SessionView",
    "View",
    "nearest_number",
    "number_named",
    "number_names",
]

MESSAGES: frozenset[StageName] = frozenset({"warn", "summarize", "fail-warn"})
"""The stages at which the guard speaks to the agent."""
GATES: frozenset[StageName] = frozenset({"gate", "fail-gate"})
_WITHHELD = frozenset({"ask-declined", "deny", "deny-shell-http"})
_ASKED = frozenset({"ask-approved", "ask-declined"})

LEAST_ENDING = "_min"
BOUND_ENDINGS = ("_max", LEAST_ENDING)
"""Endings of a limit's name that say which way it holds; without one it is an upper bound."""

NumberKind = Literal["count", "rate", "amount"]

_P95 = Fraction(95, 100)
_STREAK = re.compile(r"sessions_with_streak_([1-9][0-9]{0,5})")
_BARE_STATES = tuple(state for state in READ_STATES if state != "ok")
"""`ok` alone is the calls that succeeded."""


@dataclass(frozen=True, slots=True)
class SessionView:
    """One session, and its events that no waiver takes out."""

    row: SessionRow
    events: tuple[ReplayEvent, ...]


@dataclass(frozen=True, slots=True)
class View:
    """What the numbers are taken from."""

    corpus: CorpusReplay
    sessions: tuple[SessionView, ...]


Share: TypeAlias = Callable[[SessionView], int]
Shows: TypeAlias = Callable[[ReplayEvent], bool]


@dataclass(frozen=True, slots=True)
class Number:
    """A number with a name.

    Attributes:
        kind: `count` is whole, `rate` lies between 0 and 1, `amount` can be any fraction.
        value: takes it; None where there is nothing to take it from.
        share: what one session adds to it, where it is a sum or can be laid at sessions at all.
        shows: which events are its cause.
        label: it needs sessions of that label.
        partial: an upper bound on it that fails for some of the sessions fails for all of them.
    """

    name: str
    kind: NumberKind
    value: Callable[[View], Fraction | None]
    share: Share | None = None
    shows: Shows | None = None
    label: Label | None = None
    partial: bool = False


def _sum(name: str, share: Share, shows: Shows | None = None, label: Label | None = None) -> Number:
    def value(view: View) -> Fraction | None:
        if label is not None and not any(one.row.label == label for one in view.sessions):
            return None
        return Fraction(sum(share(one) for one in view.sessions))

    return Number(name, "count", value, share, shows, label, partial=True)


def _events(name: str, shows: Shows) -> Number:
    return _sum(name, lambda one: sum(map(shows, one.events)), shows)


def _sessions(name: str, shows: Shows, label: Label | None = None) -> Number:
    def share(one: SessionView) -> int:
        return int((label is None or one.row.label == label) and any(map(shows, one.events)))

    return _sum(name, share, shows, label)


def _rate(name: str, part: Share, whole: Share) -> Number:
    def value(view: View) -> Fraction | None:
        below = sum(whole(one) for one in view.sessions)
        return Fraction(sum(part(one) for one in view.sessions), below) if below else None

    return Number(name, "rate", value, part)


def _corpus(name: str, of: Callable[[CorpusReplay], int]) -> Number:
    return Number(name, "count", lambda view: Fraction(of(view.corpus)))


def _at(stage: StageName) -> Shows:
    return lambda event: event.stage == stage


def _kind_at(kind: str, stage: StageName) -> Shows:
    return lambda event: event.stage == stage and bool(event.measure) and kind_of(event.measure) == kind


def _of_kind(kind: str) -> Shows:
    return lambda event: bool(event.measure) and kind_of(event.measure) == kind


def _is_message(event: ReplayEvent) -> bool:
    return event.stage in MESSAGES


def _is_gate(event: ReplayEvent) -> bool:
    return event.stage in GATES


def _is_touch(event: ReplayEvent) -> bool:
    return event.stage in MESSAGES or event.stage in GATES


def _outcome(kind: OutcomeKind) -> Share:
    return lambda one: one.row.replay.outcomes[kind]


def _reaches(length: int, label: Label | None = None) -> Share:
    return lambda one: int(one.row.replay.streak_length >= length and label in {None, one.row.label})


def _messages(one: SessionView) -> int:
    return sum(map(_is_message, one.events))


def _failed_told(one: SessionView) -> int:
    return one.row.replay.outcomes["failed"] - one.row.replay.failed_text_only


def _one(one: SessionView) -> int:
    del one
    return 1


def _settled(one: SessionView) -> int:
    return one.row.replay.settled


def _p95_messages(view: View) -> Fraction | None:
    """Take the 95th percentile as the published measurements do: the value at floor(q * n), counted from 0."""
    ordered = sorted(_messages(one) for one in view.sessions)
    if not ordered:
        return None
    return Fraction(ordered[min(len(ordered) - 1, int(_P95 * len(ordered)))])


def _lead(one: SessionView) -> int:
    """Count the calls left after the first message or gate."""
    return one.row.replay.calls - min(event.call for event in one.events if _is_touch(event)) - 1


def _lead_calls_median(view: View) -> Fraction | None:
    leads = sorted(_lead(one) for one in view.sessions if one.row.label == "stuck" and any(map(_is_touch, one.events)))
    if not leads:
        return None
    middle = len(leads) // 2
    return Fraction(leads[middle]) if len(leads) % 2 else Fraction(leads[middle - 1] + leads[middle], 2)


def _read(state: str) -> Callable[[CorpusReplay], int]:
    return lambda corpus: corpus.read_counts[state]


def _simple() -> list[Number]:
    return [
        _sum("turns", lambda one: one.row.replay.turns),
        _sum("calls", lambda one: one.row.replay.calls),
        _sum("tracked", lambda one: one.row.replay.tracked),
        *(_sum(kind.replace("-", "_"), _outcome(kind)) for kind in OUTCOME_KINDS),
        _sum("failed_text_only", lambda one: one.row.replay.failed_text_only),
        _sum("not_started", lambda one: one.row.replay.not_started),
        _sum("clipped", lambda one: one.row.replay.clipped),
        _sum("truncated", lambda one: one.row.replay.truncated),
        _sum("settled", _settled),
        _rate("failure_rate", _outcome("failed"), _settled),
        _rate("failure_rate_without_text", _failed_told, _settled),
        _events("asks", lambda event: event.stage in GATES and event.decision in _ASKED),
        _events("denials", lambda event: event.decision in _WITHHELD),
        _events("false_rejections", lambda event: event.false_rejection),
        _sessions("sessions_with_false_rejection", lambda event: event.false_rejection),
        _events("messages", _is_message),
        Number("p95_messages", "count", _p95_messages, _messages, _is_message),
        _sessions("sessions_gated", _is_gate),
        _sessions("sessions_warned", _is_message),
        _events("gate_calls", _is_gate),
        _sessions("good_touched", _is_touch, "good"),
        _sessions("good_gated", _is_gate, "good"),
        _sessions("stuck_caught", _is_touch, "stuck"),
        _sessions("stuck_gated", _is_gate, "stuck"),
        Number("lead_calls_median", "amount", _lead_calls_median, label="stuck"),
        _sum("sessions", _one),
        _corpus("files", lambda corpus: len(corpus.reports)),
        _corpus("bytes", lambda corpus: corpus.size),
    ]


@cache
def _catalogue() -> Mapping[str, Number]:
    numbers = _simple()
    for stage in STAGES:
        numbers.append(_events(stage, _at(stage)))
        numbers.append(_events(f"events.{stage}", _at(stage)))
        numbers.append(_sessions(f"sessions_by_stage.{stage}", _at(stage)))
        numbers += [_events(f"by_kind.{kind}.{stage}", _kind_at(kind, stage)) for kind in KINDS]
    numbers += [_sessions(f"by_kind.{kind}.sessions", _of_kind(kind)) for kind in KINDS]
    for step in STREAK_STEPS:
        numbers.append(_sum(f"streaks.{step}", _reaches(step)))
        numbers += [_sum(f"streaks_by_label.{label}.{step}", _reaches(step, label), None, label) for label in LABELS]
    numbers += [_corpus(f"read.{state}", _read(state)) for state in READ_STATES]
    numbers += [_corpus(state, _read(state)) for state in _BARE_STATES]
    return {number.name: number for number in numbers}


def number_named(name: str) -> Number | None:
    """Return a number by its name, None where there is no such number."""
    known = _catalogue().get(name)
    if known is not None:
        return known
    streak = _STREAK.fullmatch(name)
    return None if streak is None else _sum(name, _reaches(int(streak[1])))


def number_names() -> Sequence[str]:
    """Return every name but the open family `sessions_with_streak_N`, of which the usual ones are listed."""
    return [*_catalogue(), *(f"sessions_with_streak_{step}" for step in STREAK_STEPS)]


def nearest_number(name: str) -> str | None:
    """Return the known name nearest to a mistyped one, None where none is near."""
    ending = next((ending for ending in BOUND_ENDINGS if name.endswith(ending)), "")
    matches = get_close_matches(name.removesuffix(ending).lower(), number_names(), n=1)
    return matches[0] + ending if matches else None
