"""Sweeps: what every choice of settings costs and catches, held equal to replaying each choice on its own."""

from analysis.sweep.corpus import Sweep, sweep_corpus
from analysis.sweep.document import flat_rows, sweep_document
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
from analysis.sweep.metrics import METRICS, ConfigMetrics, Metric, SweepError

__all__ = [
    "METRICS",
    "Base",
    "Candidate",
    "ConfigMetrics",
    "GridAxis",
    "GridError",
    "Metric",
    "Sweep",
    "SweepConfig",
    "SweepError",
    "SweepPlan",
    "flat_rows",
    "parse_axis",
    "plan_sweep",
    "read_candidates",
    "read_grid",
    "sweep_corpus",
    "sweep_document",
]
