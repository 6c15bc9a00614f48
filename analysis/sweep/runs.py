"""Engine runs over one session's script, and which settings one run speaks for.

A run follows one choice of everything that decides what is committed: caps, window, failure limit, policy. It keeps
what every advisory threshold would have said, and the largest numbers any cap was compared with; by these it is proven
which other choices would have gone the same way, call by call.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from analysis.replay import Policy, StageName, decide, stage_of
from analysis.sweep.script import CALL, SETTLE, Judged, MeasuredColumn, SessionScript
from breaker.engine import Breaker
from breaker.kinds import kind_of

__all__ = ["Choice", "EngineRun", "Said", "Spoken", "Thresholds", "Trip", "run_script", "whole_limit"]

Mode: TypeAlias = Policy
"""What becomes of a gate, as the engine sees it: `deny` also stands for `onLimit: deny`, except under observe."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What decides the commits of a session, in that session's own terms."""

    caps: tuple[float | None, ...]
    """For each slot (a kind, or a measure with a cap of its own) that the session has: its cap, None where disabled."""
    window: int
    fail_limit: float
    """Infinite where it is off."""
    mode: Mode


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Every value of the advisory thresholds a sweep asks about."""

    occurrence: AbstractSet[int]
    failure: AbstractSet[int]


class Trip(NamedTuple):
    """Where something was first said. Trips compare by the order in which they happened."""

    step: int
    call: int
    """Index over all call rows."""
    time: float | None
    tokens: int


Key: TypeAlias = "tuple[tuple[int, str], ...]"
"""What one call offers to speak of: thresholds it reaches, each with the kind of the measure that would be named."""


class Said(NamedTuple):
    """What was said at one threshold."""

    kinds: Counter[str]
    """How often, by kind; not to be changed."""
    first: Trip | None
    told: tuple[tuple[str, int], ...]
    """The kinds again, to be compared."""


@dataclass(slots=True)
class Spoken:
    """How often calls offered the same thresholds to one track, and where first."""

    by_key: dict[Key, int] = field(default_factory=dict[Key, int])
    first: dict[Key, Trip] = field(default_factory=dict[Key, Trip])
    _said: dict[tuple[int | None, int | None], Said] = field(
        default_factory=dict[tuple[int | None, int | None], "Said"]
    )
    """What was asked for, once all calls were added."""
    _named: list[tuple[dict[int, str], int, Trip]] = field(default_factory=list[tuple[dict[int, str], int, Trip]])

    def add(
        self, named: Mapping[int, str], thresholds: AbstractSet[int], trip: tuple[int, int, float | None, int]
    ) -> None:
        """Add one call, by the measure it names at each count or streak, and where it is, as a `Trip` has it."""
        offered = [(value, kind_of(measure)) for value, measure in named.items() if value in thresholds]
        if not offered:
            return
        key = tuple(sorted(offered))
        if key in self.by_key:
            self.by_key[key] += 1
            return
        self.by_key[key] = 1
        self.first[key] = Trip(*trip)

    def at(self, threshold: int | None, unless: int | None = None) -> Said:
        """Return what was said at a threshold; calls that also reach `unless` do not count.

        To be asked when all calls have been added.
        """
        known = self._said.get((threshold, unless))
        if known is None:
            known = self._said[threshold, unless] = self._at(threshold, unless)
        return known

    def _at(self, threshold: int | None, unless: int | None) -> Said:
        if len(self._named) != len(self.by_key):
            self._named = [(dict(key), times, self.first[key]) for key, times in self.by_key.items()]
        kinds: Counter[str] = Counter()
        first: Trip | None = None
        for named, times, trip in self._named if threshold is not None else ():
            if threshold in named and unless not in named:
                kinds[named[threshold]] += times
                first = trip if first is None or trip < first else first
        return Said(kinds, first, tuple(sorted(kinds.items())))


@dataclass(slots=True)
class EngineRun:
    """What one run of the engine saw."""

    choice: Choice
    peaks: list[int]
    """For each slot the largest next count of any of its measures at any call."""
    longest_streak: int = 0
    """The longest streak of an enabled measure that a call met."""
    most_records: int = 0
    """The most records committed between two resets."""
    withholds_fetches: bool = False
    """The shell-HTTP policy refuses some call of the session."""
    occurrence: Spoken = field(default_factory=Spoken)
    failure: Spoken = field(default_factory=Spoken)
    gates: dict[StageName, Counter[str]] = field(default_factory=dict[StageName, Counter[str]])
    """For each stage that stops a call, how often by kind of the first blocking measure."""
    first_gates: dict[StageName, Trip] = field(default_factory=dict[StageName, Trip])
    asks: int = 0
    denials: int = 0
    false_rejections: int = 0

    @property
    def stopped(self) -> object:
        """What is said of the calls it stopped, to be compared; known when the run has ended."""
        gates = tuple((stage, tuple(sorted(kinds.items()))) for stage, kinds in sorted(self.gates.items()))
        return gates, self.asks, self.denials, self.false_rejections

    @property
    def reached_a_limit(self) -> bool:
        """Tell whether some call met a cap or the failure limit, whatever became of it."""
        choice = self.choice
        capped = any(cap is not None and peak >= cap for cap, peak in zip(choice.caps, self.peaks, strict=True))
        return capped or self.longest_streak >= choice.fail_limit

    def speaks_for(self, other: Choice) -> bool:
        """Tell whether the session is proven to go the same way under another choice, call by call.

        It is where no number that was compared with a cap, a limit or the size of the window lies between the two
        values of it: then every comparison has the same answer, and so the same things are committed.
        """
        mine = self.choice
        if mine.mode != other.mode and (
            self.reached_a_limit or (self.withholds_fetches and "observe" in {mine.mode, other.mode})
        ):
            return False
        if mine.window != other.window and self.most_records > min(mine.window, other.window):
            return False
        if mine.fail_limit != other.fail_limit and self.longest_streak >= min(mine.fail_limit, other.fail_limit):
            return False
        for here, there, peak in zip(mine.caps, other.caps, self.peaks, strict=True):
            if here == there:
                continue
            if here is None or there is None or peak >= min(here, there):
                return False
        return True


def run_script(
    script: SessionScript,
    measured: MeasuredColumn,
    judged: Sequence[Judged],
    slots: Mapping[str, int],
    choice: Choice,
    guard: Breaker,
    thresholds: Thresholds,
    *,
    withholds_fetches: bool,
) -> EngineRun:
    """Run the engine over a session.

    Args:
        script: the session's steps.
        measured: the calls' measures, under the guard's settings.
        judged: the calls' outcomes, under the guard's ruleset.
        slots: for each measure of the session the position of its cap in `choice.caps`.
        choice: what the guard's settings come to in this session.
        guard: a fresh guard.
        thresholds: what to keep of what could be said.
        withholds_fetches: the guard's shell-HTTP policy is engaged and refuses some call.
    """
    run = EngineRun(choice=choice, peaks=[0] * len(choice.caps), withholds_fetches=withholds_fetches)
    withheld: set[int] = set()
    for number, (kind, position, tokens) in enumerate(script.steps):
        if kind == CALL:
            call = measured[position]
            if call is None or not judged[position].commits:
                continue
            _look(run, guard, call.measures, slots)
            named = guard.named_at_counts(call)
            decision, asked = decide(guard, call, choice.mode)
            place = (number, script.indexes[position], script.times[position], tokens)
            run.asks += asked
            stage = stage_of(decision)
            if stage is not None:
                kinds = run.gates.setdefault(stage, Counter())
                kinds["" if stage == "shell-http" else kind_of(decision.blocking[0].measure)] += 1
                run.first_gates.setdefault(stage, Trip(*place))
            if decision.withheld:
                run.denials += 1
                run.false_rejections += judged[position].ok
                withheld.add(position)
            else:
                run.occurrence.add(named, thresholds.occurrence, place)
        elif kind == SETTLE:
            call = measured[position]
            outcome = judged[position]
            if call is None or not outcome.settles or position in withheld:
                continue
            settlement = guard.settle(call, outcome.failure)
            if settlement.reached:
                place = (number, script.indexes[position], script.times[position], tokens)
                run.failure.add(settlement.reached, thresholds.failure, place)
        else:
            run.most_records = max(run.most_records, guard.commits)
            guard.turn()
    run.most_records = max(run.most_records, guard.commits)
    return run


def _look(run: EngineRun, guard: Breaker, measures: Sequence[str], slots: Mapping[str, int]) -> None:
    """Follow the largest counts and streaks that a cap or the failure limit is compared with."""
    peaks = run.peaks
    counts, streaks = guard.counts, guard.running_streaks
    for measure in measures:
        slot = slots[measure]
        count = counts.get(measure, 0) + 1
        if count > peaks[slot]:
            peaks[slot] = count
        if streaks and streaks.get(measure, 0) > run.longest_streak:
            run.longest_streak = streaks[measure]


def whole_limit(limit: float | None) -> float | None:
    """Return the whole number a count must reach for a limit: fractions act as the next whole number."""
    return None if limit is None else math.ceil(limit)
