"""What the chosen configuration scores on sessions it was not chosen on: grouped cross-validation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.labels import LABELS, Label
from analysis.sweep.corpus import Sweep
from analysis.sweep.front import find_front
from analysis.sweep.metrics import SweepError, Value
from analysis.sweep.requirements import Choosing
from analysis.sweep.sessions import SweepSession

if TYPE_CHECKING:
    from analysis.sweep.evidence import Evidence

__all__ = ["FEWEST_FOLDS", "HELD_OUT_METRICS", "Fold", "HeldOut", "Score", "hold_out"]

FEWEST_FOLDS = 2
_UNTOLD = "(not told)"

HELD_OUT_METRICS = ("stuck_caught", "good_touched", "good_gated", "false_rejections", "messages", "sessions_gated")
"""What is scored: sums over sessions, of which each is held out once."""


@dataclass(frozen=True, slots=True)
class Fold:
    """One group of sessions that was held out."""

    group: str
    labels: Mapping[Label, int]
    """Sessions held out."""
    chosen: int | None
    """The configuration chosen on the others; None where nothing could be."""
    why: str
    scores: Mapping[str, Value]
    """Its metrics on the sessions held out."""


@dataclass(frozen=True, slots=True)
class Score:
    """One metric, seen and held out, over the same sessions."""

    metric: str
    seen: float
    """Of the configuration chosen on all sessions."""
    held_out: float
    """Of each fold's choice, on what it was not chosen on."""
    whole: int | None
    """Sessions it counts among; None where it counts something else."""

    @property
    def gap(self) -> float:
        """How much worse it is held out: above 0 the seen number flatters."""
        worse = self.held_out - self.seen
        return -worse if self.metric.startswith("stuck_") else worse


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A whole cross-validation."""

    by: str
    folds: tuple[Fold, ...]
    scores: tuple[Score, ...]
    sessions: int
    """Sessions in folds for which something could be chosen."""
    seed: int | None
    """What the folds were drawn from, where they were."""


def hold_out(sweep: Sweep, by: str, *, seed: int = 0) -> HeldOut:
    """Hold out one group of sessions after another, choose on the rest, and score the choice on the group.

    How it is chosen is the sweep's own way, but that few sessions do not keep it from choosing.

    Args:
        sweep: the sweep.
        by: `project`, `model`, or how many folds to draw; drawn folds have alike numbers of every label.
        seed: what folds are drawn from.

    Raises:
        SweepError: fewer than two groups, or nothing to choose on any fold's other sessions; it says what is missing.
    """
    from analysis.sweep.evidence import Evidence

    sessions = sweep.sessions
    lacking = [label for label in ("good", "stuck") if not sweep.labels[label]]
    if lacking:
        message = f"--cv {by}: no session is labelled {' and none '.join(lacking)}"
        raise SweepError(message)
    groups = _groups(sessions, by, seed)
    configs = len(sweep.plan.configs)
    evidence = Evidence(sessions, configs)
    base = sweep.choosing
    choosing = Choosing(base.requirements, base.weights, base.alpha, enough=False)
    folds: list[Fold] = []
    scored = [False] * len(sessions)
    for name, held in groups.items():
        inside = set(held)
        others = [number not in inside for number in range(len(sessions))]
        front = find_front(evidence.metrics(others), _labels(sessions, others), choosing)
        out = [not other for other in others]
        scores: Mapping[str, Value] = {}
        if front.recommended is not None:
            values = evidence.metrics(out)[front.recommended].values
            scores = {metric: values[metric] for metric in HELD_OUT_METRICS}
            for number in held:
                scored[number] = True
        folds.append(Fold(name, _labels(sessions, out), front.recommended, front.why, scores))
    if not any(scored):
        message = f"--cv {by}: nothing can be chosen on the other sessions of any fold: {folds[0].why}"
        raise SweepError(message)
    return HeldOut(
        by=by,
        folds=tuple(folds),
        scores=tuple(_scores(sweep, evidence, folds, scored, choosing)),
        sessions=sum(scored),
        seed=seed if by.isdecimal() else None,
    )


def _scores(
    sweep: Sweep, evidence: Evidence, folds: Sequence[Fold], scored: Sequence[bool], choosing: Choosing
) -> list[Score]:
    everything = find_front(sweep.rows, sweep.labels, choosing)
    if everything.recommended is None:
        message = f"--cv: nothing can be chosen on all sessions: {everything.why}"
        raise SweepError(message)
    seen = evidence.metrics(scored)[everything.recommended].values
    labels = _labels(sweep.sessions, scored)
    wholes = {"stuck_caught": labels["stuck"], "good_touched": labels["good"], "good_gated": labels["good"]}
    wholes["sessions_gated"] = sum(scored)
    return [
        Score(metric, seen[metric] or 0, sum(fold.scores.get(metric) or 0 for fold in folds), wholes.get(metric))
        for metric in HELD_OUT_METRICS
    ]


def _labels(sessions: Sequence[SweepSession], chosen: Sequence[bool]) -> dict[Label, int]:
    counts: dict[Label, int] = dict.fromkeys(LABELS, 0)
    for session, used in zip(sessions, chosen, strict=True):
        counts[session.label] += used
    return counts


def _groups(sessions: Sequence[SweepSession], by: str, seed: int) -> dict[str, list[int]]:
    if by.isdecimal():
        return _drawn_groups(sessions, int(by), seed)
    groups: dict[str, list[int]] = {}
    for number, session in enumerate(sessions):
        groups.setdefault(_group(session, by), []).append(number)
    if len(groups) < FEWEST_FOLDS:
        (only,) = groups
        message = f"--cv {by}: all {len(sessions)} sessions are of one {by}, {only}; at least {FEWEST_FOLDS} are needed"
        raise SweepError(message)
    return dict(sorted(groups.items()))


def _group(session: SweepSession, by: str) -> str:
    if by == "project":
        return session.project or _UNTOLD
    if by == "model":
        return ", ".join(sorted(session.models)) or _UNTOLD
    message = f"--cv {by}: must be project, model, or a number of folds"
    raise SweepError(message)


def _drawn_groups(sessions: Sequence[SweepSession], folds: int, seed: int) -> dict[str, list[int]]:
    labelled = sum(session.label != "unknown" for session in sessions)
    if not FEWEST_FOLDS <= folds <= labelled:
        message = f"--cv {folds}: must be at least {FEWEST_FOLDS} and at most the {labelled} labelled sessions"
        raise SweepError(message)
    groups: dict[str, list[int]] = {f"fold {number + 1} of {folds}": [] for number in range(folds)}
    order = sorted(range(len(sessions)), key=lambda number: (sessions[number].label, _draw(seed, number)))
    for place, number in enumerate(order):
        groups[f"fold {place % folds + 1} of {folds}"].append(number)
    return groups


def _draw(seed: int, number: int) -> bytes:
    return hashlib.sha256(f"{seed}/{number}".encode()).digest()
