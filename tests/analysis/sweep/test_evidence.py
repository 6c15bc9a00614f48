"""Metrics of any part of the sessions are those of a sweep over that part alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.sweep import Evidence, Sweep
from analysis.sweep.evidence import COUNTS, column_medians
from analysis.synth import Truth
from tests.analysis.sweep.corpora import swept


def test_over_all_sessions_they_are_the_rows_of_the_sweep(sweep: Sweep) -> None:
    evidence = Evidence(sweep.sessions, len(sweep.rows))
    found = evidence.metrics([True] * len(sweep.sessions))
    for one, row in zip(found, sweep.rows, strict=True):
        assert one.values == pytest.approx(row.values)
        assert one.lead_calls == row.lead_calls


def test_over_some_sessions_they_are_those_of_a_sweep_of_these(planted: tuple[Path, Truth], sweep: Sweep) -> None:
    folder, truth = planted
    chosen = [number % 3 != 0 for number in range(len(sweep.sessions))]
    paths = [row.path for row, used in zip(sweep.corpus.sessions, chosen, strict=True) if used]
    alone = swept(folder, [one for one in truth.sessions if str(folder / one.files[0].path) in paths])
    assert len(alone.sessions) == sum(chosen)
    for one, row in zip(Evidence(sweep.sessions, len(sweep.rows)).metrics(chosen), alone.rows, strict=True):
        assert one.values == pytest.approx(row.values)


def test_a_matrix_adds_up_to_the_row(sweep: Sweep) -> None:
    evidence = Evidence(sweep.sessions, len(sweep.rows))
    for name in COUNTS:
        sums = evidence.matrix(name, 3, 11).sum(axis=0).tolist()
        assert sums == [row.values[name] for row in sweep.rows[3:11]]


def test_without_sessions_or_silent_ones_everything_is_zero() -> None:
    (row,) = Evidence([], 1).metrics([])
    assert row.values["messages"] == 0
    assert row.values["good_touched"] is None


def test_medians_leave_out_what_is_not_there() -> None:
    none = float("nan")
    values = np.array([[1.0, none, 4.0], [none, none, 2.0], [3.0, none, none]])
    assert column_medians(values).tolist()[::2] == [2.0, 3.0]
    assert np.isnan(column_medians(values)[1])
