"""Sweeps: what every choice of settings costs and catches, held equal to replaying each choice on its own."""

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
from analysis.sweep.requirements import Choosing, Requirement, parse_objective, parse_requirement, refuse_contradictions

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
