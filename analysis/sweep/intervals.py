"""How sure the numbers of a sweep are: intervals over sessions, how wide they really are, and how values are spread."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import cast

import numpy as np
import numpy.typing as npt

from analysis.labels import LABELS
from analysis.shares import CONFIDENCE, session_share
from analysis.sweep.evidence import COUNTS, LEADS, SESSION_RATES, Evidence, FloatArray, column_medians
from analysis.sweep.metrics import Value

__all__ = [
    "NOMINAL",
    "RESAMPLES",
    "ConfigIntervals",
    "CoverageCell",
    "Interval",
    "Spread",
    "Uncertainty",
    "bootstrap_medians",
    "bootstrap_totals",
    "coverage_table",
    "effective_sessions",
    "measured_coverage",
    "sweep_intervals",
]

RESAMPLES = 2000
"""Draws of sessions behind one interval of a count."""
NOMINAL = 0.93
"""An interval of 95 % that covers less often than this in the recorded simulation is said to cover too little."""

_COVERAGE_FILE = "coverage.json"
_FEWEST_VALUES = 2
_CONFIGS_AT_ONCE = 4096
_WEIGHTS_AT_ONCE = 4_000_000
_TAIL = (1 - CONFIDENCE) / 2
_HIGH_QUANTILE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval in the metric's own unit, for as many sessions as the corpus has."""

    low: float
    high: float
    method: str
    """`wilson`, or `bootstrap` over sessions."""


@dataclass(frozen=True, slots=True)
class CoverageCell:
    """How often the bootstrap's intervals covered the truth in one cell of the recorded simulation."""

    sessions: int
    shape: str
    effective: float
    """The median number of effective sessions in the drawn samples."""
    coverage: float
    trials: int


@dataclass(frozen=True, slots=True)
class Spread:
    """How a count is spread over sessions: what a bare mean hides."""

    sessions: int
    """Sessions with any."""
    median: float
    p95: float
    highest: float
    top_share: float | None
    """The share of the session with the most; None where there are none at all."""
    effective: float
    """As many sessions of equal size would vary as much."""
    coverage: CoverageCell | None
    """The cell of the recorded simulation nearest to it, where its intervals covered too little."""


@dataclass(frozen=True, slots=True)
class ConfigIntervals:
    """The intervals of one configuration."""

    intervals: Mapping[str, Interval | None]
    """By metric."""
    reasons: Mapping[str, str]
    """For each None, why."""
    spreads: Mapping[str, Spread]
    """By count."""


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """The intervals of a whole sweep."""

    seed: int
    """What sessions were drawn from."""
    configs: tuple[ConfigIntervals, ...]


@cache
def coverage_table() -> tuple[CoverageCell, ...]:
    """Return the recorded simulation of the count intervals: by number of sessions and shape of the counts."""
    recorded = cast("object", json.loads(files(__package__ or __name__).joinpath(_COVERAGE_FILE).read_text("utf-8")))
    cells = cast("dict[str, list[dict[str, object]]]", recorded)["counts"]
    return tuple(
        CoverageCell(
            sessions=cast("int", cell["sessions"]),
            shape=cast("str", cell["shape"]),
            effective=cast("float", cell["effective"]),
            coverage=cast("float", cell["coverage"]),
            trials=cast("int", cell["trials"]),
        )
        for cell in cells
    )


def measured_coverage(sessions: int, effective: float) -> CoverageCell:
    """Return the cell of the simulation that speaks for counts of this many sessions.

    It is taken among the cells of the next smaller number of sessions that was simulated (the smallest where there is
    none), and of those the one whose samples had as many effective sessions, or the next fewer.
    """
    cells = coverage_table()
    sizes = sorted({cell.sessions for cell in cells})
    size = max((one for one in sizes if one <= sessions), default=sizes[0])
    alike = sorted((cell for cell in cells if cell.sessions == size), key=lambda cell: cell.effective)
    return max((cell for cell in alike if cell.effective <= effective), key=_effective, default=alike[0])


def _effective(cell: CoverageCell) -> float:
    return cell.effective


def effective_sessions(values: FloatArray) -> FloatArray:
    """Return for each column how many sessions of equal size would vary as much: the squared sum over the squares."""
    squares = (values * values).sum(axis=0)
    sums = values.sum(axis=0)
    return np.divide(sums * sums, squares, out=np.zeros_like(sums), where=squares > 0)


def bootstrap_totals(values: FloatArray, *, seed: int, resamples: int = RESAMPLES) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the 95 % intervals of each column's sum, by the bootstrap over rows.

    Whole sessions are drawn, since calls of one session resemble each other. A draw is a weight for every session, so
    that all draws of all configurations are one product of matrices. The ends are corrected for bias and skewness
    (BCa); a sum's acceleration is a sixth of its values' skewness. All columns share the draws.

    Args:
        values: one row per session, one column per configuration.
        seed: what the sessions are drawn from.
        resamples: how many times.
    """
    sessions = values.shape[0]
    used = np.flatnonzero(values.any(axis=1))
    spoken = values[used]
    distinct, inverse = np.unique(spoken, axis=1, return_inverse=True)
    sums = _drawn_sums(distinct, sessions, seed, resamples)
    low, high = _corrected_ends(np.sort(sums, axis=0), distinct, sessions)
    place = inverse.reshape(-1)
    return low[place], high[place]


def _drawn_sums(values: FloatArray, sessions: int, seed: int, resamples: int) -> FloatArray:
    """Draw sessions and sum up; those in which nothing happens are drawn as one."""
    generator = np.random.default_rng(seed)
    rows = values.shape[0]
    chances = np.append(np.full(rows, 1 / sessions), max(1 - rows / sessions, 0))
    step = max(_WEIGHTS_AT_ONCE // (rows + 1), 1)
    parts = [
        generator.multinomial(sessions, chances, size=min(step, resamples - start))[:, :-1] @ values
        for start in range(0, resamples, step)
    ]
    return np.concatenate(parts)


def _corrected_ends(ordered: FloatArray, values: FloatArray, sessions: int) -> tuple[FloatArray, FloatArray]:
    from scipy.special import ndtr, ndtri

    resamples = ordered.shape[0]
    sums = values.sum(axis=0)
    means = sums / sessions
    silent = sessions - values.shape[0]
    centred = values - means
    squares = (centred**2).sum(axis=0) + silent * means**2
    cubes = (centred**3).sum(axis=0) - silent * means**3
    spread = squares > 0
    acceleration = np.divide(cubes, 6 * squares**1.5, out=np.zeros_like(sums), where=spread)
    below = ((ordered < sums).sum(axis=0) + (ordered <= sums).sum(axis=0)) / 2
    bias = cast("FloatArray", ndtri(np.clip(below / resamples, 1 / resamples, 1 - 1 / resamples)))
    ends: list[FloatArray] = []
    for tail in (_TAIL, 1 - _TAIL):
        shifted = bias + float(ndtri(tail))
        level = cast("FloatArray", ndtr(bias + shifted / (1 - acceleration * shifted)))
        ends.append(np.where(spread, _quantiles(ordered, np.where(spread, level, 0.5)), sums))
    return ends[0], ends[1]


def _quantiles(ordered: FloatArray, levels: FloatArray) -> FloatArray:
    """Return one quantile of each sorted column, between neighbours in proportion."""
    place = levels * (ordered.shape[0] - 1)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, ordered.shape[0] - 1)
    columns: npt.NDArray[np.int64] = np.arange(ordered.shape[1], dtype=np.int64)
    part = place - below
    return ordered[below, columns] * (1 - part) + ordered[above, columns] * part


def bootstrap_medians(values: FloatArray, *, seed: int, resamples: int = RESAMPLES) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the 95 % percentile intervals of each column's median, by the bootstrap over rows.

    Args:
        values: one row per session, one column per configuration; NaN where the session has no number.
        seed: what the sessions are drawn from.
        resamples: how many times.
    """
    rows = values.shape[0]
    drawn = np.random.default_rng(seed).integers(0, rows, size=(rows, resamples))
    distinct, inverse = np.unique(values, axis=1, return_inverse=True, equal_nan=True)
    ends = np.full((2, distinct.shape[1]), np.nan)
    for column in range(distinct.shape[1]):
        medians = column_medians(distinct[:, column][drawn])
        known = medians[~np.isnan(medians)]
        if known.size:
            ends[:, column] = np.quantile(known, [_TAIL, 1 - _TAIL])
    place = inverse.reshape(-1)
    return ends[0][place], ends[1][place]


def sweep_intervals(evidence: Evidence, rows: Sequence[Mapping[str, Value]], *, seed: int) -> Uncertainty:
    """Return the intervals of every configuration.

    Shares of sessions have Wilson's, in sessions of the corpus; counts and medians the bootstrap's over sessions.

    Args:
        evidence: the sessions.
        rows: the metrics of each configuration, by name.
        seed: what sessions are drawn from.
    """
    found: list[ConfigIntervals] = []
    for start in range(0, evidence.configs, _CONFIGS_AT_ONCE):
        stop = min(start + _CONFIGS_AT_ONCE, evidence.configs)
        found.extend(_some_intervals(evidence, rows[start:stop], start, stop, seed))
    return Uncertainty(seed, tuple(found))


def _some_intervals(
    evidence: Evidence, rows: Sequence[Mapping[str, Value]], start: int, stop: int, seed: int
) -> list[ConfigIntervals]:
    sessions = len(evidence.labels)
    wholes = {None: sessions, **{label: evidence.labels.count(label) for label in LABELS}}
    counts = {name: _CountColumns(evidence.matrix(name, start, stop), seed) for name in COUNTS}
    stuck = np.array([label == "stuck" for label in evidence.labels], dtype=np.bool_)
    leads = {name: evidence.matrix(name, start, stop)[stuck] for name in LEADS}
    ends = {name: bootstrap_medians(values, seed=seed) for name, values in leads.items() if values.shape[0]}
    found: list[ConfigIntervals] = []
    for place, row in enumerate(rows):
        intervals: dict[str, Interval | None] = {}
        reasons: dict[str, str] = {}
        for name, label in SESSION_RATES.items():
            intervals[name] = _wilson(row[name], wholes[label])
            if intervals[name] is None:
                reasons[name] = f"no session is labelled {label}"
        for name, columns in counts.items():
            intervals[name], reason = columns.interval(place)
            if reason is not None:
                reasons[name] = reason
        for name, values in leads.items():
            known = int((~np.isnan(values[:, place])).sum())
            if known < _FEWEST_VALUES:
                intervals[name] = None
                reasons[name] = f"{known} stuck sessions have one, and {_FEWEST_VALUES} are needed"
                continue
            low, high = ends[name]
            intervals[name] = Interval(float(low[place]), float(high[place]), "bootstrap")
        spreads = {name: columns.spread(place) for name, columns in counts.items()}
        found.append(ConfigIntervals(intervals, reasons, spreads))
    return found


def _wilson(value: Value, whole: int) -> Interval | None:
    share = session_share(int(value or 0), whole)
    if value is None or share.low is None or share.high is None:
        return None
    return Interval(min(share.low * whole, float(value)), max(share.high * whole, float(value)), "wilson")


class _CountColumns:
    """One count of several configurations."""

    def __init__(self, values: FloatArray, seed: int) -> None:
        self._values = values
        self._ends = bootstrap_totals(values, seed=seed)
        self._effective = effective_sessions(values)
        self._present: npt.NDArray[np.int64] = (values > 0).sum(axis=0)

    def interval(self, place: int) -> tuple[Interval | None, str | None]:
        present = int(self._present[place])
        if present < _FEWEST_VALUES:
            told = "no session has any" if not present else "one session has all of them"
            return None, f"{told}: drawing these sessions again says nothing of others"
        low, high = self._ends
        return Interval(float(low[place]), float(high[place]), "bootstrap"), None

    def spread(self, place: int) -> Spread:
        values = self._values[:, place]
        total, effective = float(values.sum()), float(self._effective[place])
        cell = measured_coverage(values.size, effective)
        return Spread(
            sessions=int(self._present[place]),
            median=float(np.median(values)),
            p95=float(np.quantile(values, _HIGH_QUANTILE)),
            highest=float(values.max()),
            top_share=float(values.max()) / total if total else None,
            effective=effective,
            coverage=cell if cell.coverage < NOMINAL and total else None,
        )
