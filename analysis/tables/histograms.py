"""Counts per measure kind: next counts over calls, peaks over sessions, lengths of failure streaks. They add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from analysis.labels import LABELS, Label
from analysis.replay import ReplayEvent, ReplayPlan
from analysis.sessions.facts import CallFact, MessageFact, SettleFact, TurnFact
from analysis.sessions.session_facts import SessionFacts
from breaker.engine import Decision
from breaker.kinds import KINDS, kind_of
from breaker.measures import MeasuredCall
from breaker.settings import Settings

__all__ = [
    "WHATS",
    "Bin",
    "HistogramKey",
    "HistogramObservation",
    "HistogramObserver",
    "Histograms",
    "What",
    "caps_by_kind",
    "thresholds",
]

What = Literal["next", "peak", "streak"]
WHATS: tuple[What, ...] = ("next", "peak", "streak")
"""A call's highest next count of a kind; a session's; the length of a maximal failure streak of such a measure."""


class Bin(NamedTuple):
    """One value of one session's histograms."""

    kind: str
    what: What
    value: int


class HistogramKey(NamedTuple):
    """One value of the corpus' histograms."""

    label: Label
    kind: str
    what: What
    value: int


class HistogramObserver:
    """Counts one session's values. Use one per session."""

    def __init__(self) -> None:
        self.bins: Counter[Bin] = Counter()
        """Complete after the session's end."""
        self._peaks: dict[str, int] = {}
        self._streaks: dict[str, int] = {}

    def on_turn(self, fact: TurnFact, *, clears_streaks: bool) -> None:
        """End the streaks where the record's own are cleared."""
        del fact
        if clears_streaks:
            self._end_streaks(list(self._streaks))

    def on_message(self, fact: MessageFact) -> None:
        """Ignore what the model says."""

    def on_call(
        self, fact: CallFact, measured: MeasuredCall, counts: Mapping[str, int], decision: Decision | None
    ) -> None:
        """Count a call's highest next count of every kind it has."""
        del fact, measured, decision
        highest: dict[str, int] = {}
        for measure, count in counts.items():
            kind = kind_of(measure)
            highest[kind] = max(highest.get(kind, 0), count)
        for kind, count in highest.items():
            self.bins[Bin(kind, "next", count)] += 1
            self._peaks[kind] = max(self._peaks.get(kind, 0), count)

    def on_settle(self, fact: SettleFact, measured: MeasuredCall | None, streaks: Mapping[str, int]) -> None:
        """Follow the streaks of a call's measures."""
        if measured is None:
            return
        if fact.fact.outcome.failure is None:
            self._end_streaks([measure for measure in measured.measures if measure in self._streaks])
        else:
            self._streaks.update(streaks)

    def on_event(self, event: ReplayEvent) -> None:
        """Ignore events."""

    def on_end(self, session: SessionFacts) -> None:
        """End the streaks and count the peaks."""
        del session
        self._end_streaks(list(self._streaks))
        for kind, peak in self._peaks.items():
            self.bins[Bin(kind, "peak", peak)] += 1
        self._peaks.clear()

    def _end_streaks(self, measures: Iterable[str]) -> None:
        for measure in measures:
            self.bins[Bin(kind_of(measure), "streak", self._streaks.pop(measure))] += 1


@dataclass(frozen=True)
class Histograms:
    """The corpus' histograms, by label."""

    counts: Counter[HistogramKey] = field(default_factory=Counter[HistogramKey])

    def add(self, label: Label, bins: Mapping[Bin, int]) -> None:
        """Add one session's values."""
        for one, count in bins.items():
            self.counts[HistogramKey(label, *one)] += count

    def rows(self) -> list[tuple[HistogramKey, int]]:
        """Return every value seen: by label, kind, what, value."""
        labels, kinds, whats = ({name: place for place, name in enumerate(names)} for names in (LABELS, KINDS, WHATS))
        return sorted(
            self.counts.items(),
            key=lambda item: (labels[item[0].label], kinds[item[0].kind], whats[item[0].what], item[0].value),
        )

    def values(self, kind: str, what: What, label: Label | None = None) -> dict[int, int]:
        """Return value and count of one histogram in order, over all labels where none is given."""
        found: Counter[int] = Counter()
        for key, count in self.counts.items():
            if key.kind == kind and key.what == what and label in {None, key.label}:
                found[key.value] += count
        return dict(sorted(found.items()))

    def labels(self) -> list[Label]:
        """Return the labels that have any value, in their order."""
        seen = {key.label for key in self.counts}
        return [label for label in LABELS if label in seen]

    def kinds(self) -> list[str]:
        """Return the kinds that have any value, in their order."""
        seen = {key.kind for key in self.counts}
        return [kind for kind in KINDS if kind in seen]


class HistogramObservation:
    """Watches a corpus for its histograms alone."""

    short_line: int | None = None
    needs_texts: bool = False

    def __init__(self) -> None:
        self._bins: dict[str, Counter[Bin]] = {}

    @property
    def make_observer(self) -> Callable[[], HistogramObserver]:
        """What makes a watcher for each session."""
        return HistogramObserver

    def take(self, path: str, observer: object) -> None:
        """Keep one session's values."""
        if isinstance(observer, HistogramObserver):
            self._bins[path] = observer.bins

    def histograms(self, sessions: Iterable[tuple[str, Label]]) -> Histograms:
        """Add up the sessions that count.

        Args:
            sessions: path and label of each.
        """
        histograms = Histograms()
        for path, label in sessions:
            histograms.add(label, self._bins.get(path, Counter()))
        return histograms


def thresholds(settings: Settings, what: What) -> dict[str, float]:
    """Return the stages' thresholds that apply to every kind; a stage that is off has none."""
    stages: dict[str, float | None]
    if what == "streak":
        stages = {"fail-warn": settings.fail_warn_at, "fail-gate": settings.fail_limit}
    else:
        stages = {"warn": settings.warn_at, "summarize": settings.summarize_at}
    return {stage: threshold for stage, threshold in stages.items() if threshold is not None}


def caps_by_kind(plan: ReplayPlan) -> dict[str, float]:
    """Return the limit of every enabled kind, at which the gate closes."""
    return {kind: limit for kind in KINDS if (limit := plan.settings.limits.get(kind)) is not None}
