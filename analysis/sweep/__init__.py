"""Sweeps: what every choice of settings costs and catches, held equal to replaying each choice on its own.

The names below are imported when they are first used: a sweep without intervals draws nothing from sessions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.sweep.conformal import ALPHA, TrackFloor, fewest_good, sweep_floors
    from analysis.sweep.corpus import Sweep, sweep_corpus
    from analysis.sweep.document import flat_rows, sweep_document
    from analysis.sweep.evidence import Evidence
    from analysis.sweep.grid import (
        Base,
        Candidate,
        GridAxis,
        GridError,
        SweepConfig,
        SweepPlan,
        parse_axis,
        plan_sweep,
        read_candidates,
        read_grid,
    )
    from analysis.sweep.held_out import HeldOut, hold_out
    from analysis.sweep.intervals import Uncertainty, sweep_intervals
    from analysis.sweep.metrics import METRICS, ConfigMetrics, Metric, SweepError
    from analysis.sweep.requirements import (
        Choosing,
        Requirement,
        parse_objective,
        parse_requirement,
        refuse_contradictions,
    )

__all__ = [
    "ALPHA",
    "METRICS",
    "Base",
    "Candidate",
    "Choosing",
    "ConfigMetrics",
    "Evidence",
    "GridAxis",
    "GridError",
    "HeldOut",
    "Metric",
    "Requirement",
    "Sweep",
    "SweepConfig",
    "SweepError",
    "SweepPlan",
    "TrackFloor",
    "Uncertainty",
    "fewest_good",
    "flat_rows",
    "hold_out",
    "parse_axis",
    "parse_objective",
    "parse_requirement",
    "plan_sweep",
    "read_candidates",
    "read_grid",
    "refuse_contradictions",
    "sweep_corpus",
    "sweep_document",
    "sweep_floors",
    "sweep_intervals",
]

_HOMES = {
    "ALPHA": "analysis.sweep.conformal",
    "TrackFloor": "analysis.sweep.conformal",
    "fewest_good": "analysis.sweep.conformal",
    "sweep_floors": "analysis.sweep.conformal",
    "Sweep": "analysis.sweep.corpus",
    "sweep_corpus": "analysis.sweep.corpus",
    "flat_rows": "analysis.sweep.document",
    "sweep_document": "analysis.sweep.document",
    "Evidence": "analysis.sweep.evidence",
    "Base": "analysis.sweep.grid",
    "Candidate": "analysis.sweep.grid",
    "GridAxis": "analysis.sweep.grid",
    "GridError": "analysis.sweep.grid",
    "SweepConfig": "analysis.sweep.grid",
    "SweepPlan": "analysis.sweep.grid",
    "parse_axis": "analysis.sweep.grid",
    "plan_sweep": "analysis.sweep.grid",
    "read_candidates": "analysis.sweep.grid",
    "read_grid": "analysis.sweep.grid",
    "HeldOut": "analysis.sweep.held_out",
    "hold_out": "analysis.sweep.held_out",
    "Uncertainty": "analysis.sweep.intervals",
    "sweep_intervals": "analysis.sweep.intervals",
    "METRICS": "analysis.sweep.metrics",
    "ConfigMetrics": "analysis.sweep.metrics",
    "Metric": "analysis.sweep.metrics",
    "SweepError": "analysis.sweep.metrics",
    "Choosing": "analysis.sweep.requirements",
    "Requirement": "analysis.sweep.requirements",
    "parse_objective": "analysis.sweep.requirements",
    "parse_requirement": "analysis.sweep.requirements",
    "refuse_contradictions": "analysis.sweep.requirements",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(home), name)
