"""The labelled corpus, swept: what the tests of intervals and choices stand on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analysis.labels import LabelRules, parse_label
from analysis.replay import ReplayPlan
from analysis.sweep import Base, Choosing, Sweep, parse_axis, plan_sweep, sweep_corpus
from analysis.synth import SessionTruth

BASE: dict[str, object] = {"failLimit": None, "summarizeAt": None}
GRID = ("warnAt=6..13", "failWarnAt=2..7")


def swept(
    folder: Path,
    sessions: Sequence[SessionTruth],
    *axes: str,
    labelled: Sequence[SessionTruth] | None = None,
    choosing: Choosing | None = None,
) -> Sweep:
    """Sweep the given sessions of a corpus; all of them are labelled as planted, or only those named."""
    known = sessions if labelled is None else labelled
    rules = [parse_label(f"{one.label}={one.id}") for one in known]
    plan = plan_sweep(Base(config=BASE), [parse_axis(axis) for axis in axes or GRID])
    paths = [folder / file.path for one in sessions for file in one.files]
    usual = choosing or Choosing()
    return sweep_corpus(paths, plan, ReplayPlan(), labels=LabelRules(rules), choosing=usual)
