"""The metrics of every configuration over any part of the sessions: rows are sessions, columns configurations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from analysis.labels import LABELS, Label
from analysis.sweep.metrics import METRICS, ConfigMetrics, Value
from analysis.sweep.sessions import SessionValues, SweepSession

__all__ = ["COUNTS", "LEADS", "SESSION_RATES", "Evidence", "FloatArray"]

FloatArray: TypeAlias = "npt.NDArray[np.float64]"
IntArray: TypeAlias = "npt.NDArray[np.int64]"

COUNTS = ("messages", "gate_calls", "asks", "denials", "false_rejections")
"""Metrics of which one session may have any number."""

SESSION_RATES: dict[str, Label | None] = {
    "sessions_warned": None,
    "sessions_gated": None,
    "sessions_with_false_rejection": None,
    "good_touched": "good",
    "good_gated": "good",
    "stuck_caught": "stuck",
    "stuck_gated": "stuck",
}
"""Metrics that count sessions, each with the label of the sessions it looks at."""

LEADS = ("lead_calls_median", "lead_minutes_median", "lead_tokens_median")
"""Metrics that are medians over the stuck sessions that were caught."""

_ADDITIVE = (*COUNTS, *SESSION_RATES)


def _row(values: SessionValues, label: Label) -> list[float]:
    """Return what a session adds to each additive metric."""
    touched, gated = values.warned or values.gated, values.gated
    return [
        values.messages,
        values.gate_calls,
        values.asks,
        values.denials,
        values.false_rejections,
        values.warned,
        gated,
        values.false_rejections > 0,
        touched and label == "good",
        gated and label == "good",
        touched and label == "stuck",
        gated and label == "stuck",
    ]


class Evidence:
    """What sessions show for configurations, as arrays.

    Args:
        sessions: the sessions.
        configs: how many configurations there are.
    """

    def __init__(self, sessions: Sequence[SweepSession], configs: int) -> None:
        self.labels = tuple(session.label for session in sessions)
        self.configs = configs
        entries = [
            (number, session.label, values, members)
            for number, session in enumerate(sessions)
            for values, members in session.values
        ]
        lengths = [len(members) for *_, members in entries]
        added = np.array([_row(values, sessions[number].label) for number, _, values, _ in entries], dtype=np.float64)
        leads = np.array(
            [
                [values.lead_calls, values.lead_minutes, values.lead_tokens]
                if label == "stuck"
                else [None] * len(LEADS)
                for _, label, values, _ in entries
            ],
            dtype=np.float64,
        )
        columns = np.concatenate([np.asarray(members, dtype=np.int64) for *_, members in entries] or [_NO_COLUMNS])
        order = np.argsort(columns, kind="stable")
        owner = np.repeat(np.arange(len(entries)), lengths)[order]
        self._columns: IntArray = columns[order]
        self._rows: IntArray = np.array([number for number, *_ in entries], dtype=np.int64)[owner]
        self._added: FloatArray = added.reshape(len(entries), len(_ADDITIVE))
        self._leads: FloatArray = leads.reshape(len(entries), len(LEADS))
        self._owner: IntArray = owner

    def matrix(self, metric: str, start: int = 0, stop: int | None = None) -> FloatArray:
        """Return a metric by session and configuration; of a lead NaN where the session has none.

        Args:
            metric: its name; additive, or a lead.
            start: the first configuration.
            stop: the one after the last; all that follow where None.
        """
        stop = self.configs if stop is None else stop
        first, last = np.searchsorted(self._columns, [start, stop])
        owner = self._owner[first:last]
        if metric in LEADS:
            dense = np.full((len(self.labels), stop - start), np.nan)
            values = self._leads[owner, LEADS.index(metric)]
        else:
            dense = np.zeros((len(self.labels), stop - start))
            values = self._added[owner, _ADDITIVE.index(metric)]
        dense[self._rows[first:last], self._columns[first:last] - start] = values
        return dense

    def session_values(self, metric: str, config: int) -> FloatArray:
        """Return a metric of one configuration by session."""
        return self.matrix(metric, config, config + 1)[:, 0]

    def metrics(self, chosen: Sequence[bool]) -> list[ConfigMetrics]:
        """Return every configuration's metrics over some of the sessions; stages and kinds are not told apart.

        Args:
            chosen: for each session whether it counts.
        """
        weights = np.asarray(chosen, dtype=np.float64)[self._rows]
        labels = {
            label: sum(one == label and used for one, used in zip(self.labels, chosen, strict=True)) for label in LABELS
        }
        columns: dict[str, list[Value]] = {}
        for place, name in enumerate(_ADDITIVE):
            sums = np.bincount(self._columns, weights=weights * self._added[self._owner, place], minlength=self.configs)
            columns[name] = [int(value) for value in sums]
        stuck = [used and label == "stuck" for label, used in zip(self.labels, chosen, strict=True)]
        for name in LEADS:
            columns[name] = self._medians(name, stuck)
        calls = np.nan_to_num(self._leads[self._owner, 0])
        totals = np.bincount(self._columns, weights=weights * calls, minlength=self.configs)
        for metric in METRICS:
            if metric.needs is not None and not labels[metric.needs]:
                columns[metric.name] = [None] * self.configs
        return [
            ConfigMetrics(
                {metric.name: columns[metric.name][number] for metric in METRICS}, {}, {}, {}, int(totals[number])
            )
            for number in range(self.configs)
        ]

    def _medians(self, name: str, chosen: Sequence[bool]) -> list[Value]:
        held = self.matrix(name)[np.asarray(chosen, dtype=np.bool_)]
        return [None if np.isnan(value) else float(value) for value in column_medians(held)]


_NO_COLUMNS: IntArray = np.zeros(0, dtype=np.int64)


def column_medians(values: FloatArray) -> FloatArray:
    """Return the median of each column's numbers, NaN left out; NaN where a column has none."""
    rows = values.shape[0]
    if not rows:
        return np.full((values.shape[1],), np.nan, dtype=np.float64)
    ordered = np.sort(values, axis=0)
    present = rows - np.isnan(ordered).sum(axis=0)
    low, high = np.maximum((present - 1) // 2, 0), np.minimum(present // 2, rows - 1)
    place: IntArray = np.arange(values.shape[1], dtype=np.int64)
    middle: FloatArray = (ordered[low, place] + ordered[high, place]) / 2
    middle[present == 0] = np.nan
    return middle
