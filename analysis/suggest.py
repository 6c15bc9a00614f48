"""Labels a person might give: proposals from simple, stated signs. Nothing is labelled by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analysis.corpus import CorpusReplay, Period, replay_corpus
from analysis.globs import literal_glob
from analysis.labels import Label, LabelRules
from analysis.progress import NO_PROGRESS, Progress
from analysis.replay import ReplayPlan, SessionReplay
from analysis.sessions.decode import Limits
from analysis.sessions.facts import CallFact, MessageFact, SettleFact
from analysis.sessions.session import SessionReader
from analysis.spreadsheet import csv_line

__all__ = ["LONG_TURN", "Proposal", "SessionSigns", "Suggestions", "proposals_csv", "suggest_labels"]

LONG_TURN = 100
"""Calls in one turn from which on it is very long, unless said otherwise."""

_NO_LABELS = LabelRules()
_DEFAULT_LIMITS = Limits()
_NOT_CONFIRMED = "# "


@dataclass(slots=True)
class SessionSigns:
    """What a proposal rests on."""

    calls: int = 0
    busiest_turn: int = 0
    """The most calls in one turn."""
    last_call_failed: bool = False
    open_calls: int = 0
    """Calls without a result at the end."""
    answered: bool = False
    """The model's own words close the session, after the last call's result."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One label a person might give, and the signs for it."""

    session_id: str
    path: str
    label: Label
    signs: tuple[str, ...]


@dataclass(frozen=True)
class Suggestions:
    """What is proposed for a corpus."""

    corpus: CorpusReplay
    proposals: tuple[Proposal, ...]
    labelled: int
    """Sessions left out because they carry a label."""
    unsigned: int
    """Sessions that show no sign, or signs for both."""
    long_turn: int


@dataclass(slots=True)
class _Watch:
    signs: SessionSigns = field(default_factory=SessionSigns)
    open: set[int] = field(default_factory=set[int])
    by_turn: Counter[int] = field(default_factory=Counter[int])

    def read(self, reader: SessionReader) -> SessionSigns:
        signs = self.signs
        for fact in reader.facts():
            if isinstance(fact, CallFact):
                signs.calls += 1
                self.by_turn[fact.turn] += 1
                self.open.add(fact.index)
                signs.answered = False
            elif isinstance(fact, SettleFact):
                if not fact.closer:
                    self.open.discard(fact.fact.index)
                signs.last_call_failed = fact.fact.outcome.kind == "failed"
                signs.answered = False
            elif isinstance(fact, MessageFact):
                signs.answered = True
        signs.busiest_turn = max(self.by_turn.values(), default=0)
        signs.open_calls = len(self.open)
        return signs


def _told(signs: SessionSigns, long_turn: int) -> tuple[list[str], list[str]]:
    """Return the signs for `stuck` and the signs for `good`."""
    stuck: list[str] = []
    if signs.open_calls:
        stuck.append(f"ended with calls that have no result: {signs.open_calls}")
    elif signs.last_call_failed:
        stuck.append("ended in an error: the last call failed")
    if signs.busiest_turn >= long_turn:
        stuck.append(f"a very long turn: {signs.busiest_turn} calls")
    completed = signs.answered and not signs.last_call_failed and not signs.open_calls
    return stuck, ["completed: the last call succeeded and the model closed with an answer"] if completed else []


def suggest_labels(
    paths: Sequence[Path],
    plan: ReplayPlan,
    *,
    labels: LabelRules = _NO_LABELS,
    period: Period | None = None,
    long_turn: int = LONG_TURN,
    limits: Limits = _DEFAULT_LIMITS,
    progress: Progress = NO_PROGRESS,
) -> Suggestions:
    """Propose a label for every session that has none and shows signs of one kind only.

    `stuck`: it ended in an error or with an open call, or has a very long turn. `good`: its last call succeeded and the
    model closed with an answer. A session with signs of both gets no proposal. The plan's ruleset says what failed.

    Raises:
        PathMissing: a given path does not exist.
        LabelConflict: two labels for one session.
    """
    watched: dict[str, SessionSigns] = {}

    def take(reader: SessionReader) -> SessionReplay | None:
        signs = _Watch().read(reader)
        if reader.session is None or not reader.report.used:
            return None
        watched[reader.file.shown] = signs
        return SessionReplay(turns=reader.session.turns, calls=reader.session.calls)

    corpus = replay_corpus(paths, plan, labels=labels, period=period, limits=limits, progress=progress, replayer=take)
    proposals: list[Proposal] = []
    labelled = unsigned = 0
    for row in corpus.sessions:
        if row.label != "unknown":
            labelled += 1
            continue
        stuck, good = _told(watched[row.path], long_turn)
        if bool(stuck) == bool(good):
            unsigned += 1
            continue
        label: Label = "stuck" if stuck else "good"
        proposals.append(Proposal(row.session_id, row.path, label, tuple(stuck or good)))
    return Suggestions(corpus, tuple(proposals), labelled, unsigned, long_turn)


def proposals_csv(suggestions: Suggestions) -> str:
    """Return the proposals as a labels file in which every line is still a comment: taking off `# ` confirms one."""
    lines = [csv_line(("session", "label", "reason"))]
    for proposal in suggestions.proposals:
        cells = (literal_glob(proposal.session_id), proposal.label, "; ".join(proposal.signs))
        lines.append(_NOT_CONFIRMED + csv_line(cells))
    return "".join(lines)
