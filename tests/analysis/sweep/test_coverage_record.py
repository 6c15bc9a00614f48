"""The recorded simulation says what the code does, and what is promised of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from analysis.sweep.intervals import coverage_table
from tests.bench.coverage import RECORD, SHAPES, SIZES, count_cell, floor_cell, rate_cell

RECORDED: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
WILSON_LEAST, WILSON_MOST = 0.93, 0.97
TRIALS = 400
NEAR = 0.06
"""What 400 trials may differ from the recorded 4000."""


def test_wilson_covers_93_to_97_percent() -> None:
    assert [cell["sessions"] for cell in RECORDED["rates"]] == list(SIZES)
    for cell in RECORDED["rates"]:
        assert WILSON_LEAST <= cell["coverage"] <= WILSON_MOST


def test_the_floor_errs_at_most_alpha() -> None:
    assert len(RECORDED["floor"]) == 12
    for cell in RECORDED["floor"]:
        assert 0 < cell["error"] <= cell["alpha"]


def test_the_coverage_of_counts_is_recorded_for_every_size_and_shape() -> None:
    assert {(cell.sessions, cell.shape) for cell in coverage_table()} == {(n, name) for n in SIZES for name in SHAPES}


def test_a_short_run_comes_near_the_record() -> None:
    recorded = {(cell.sessions, cell.shape): cell.coverage for cell in coverage_table()}
    for sessions, shape in ((30, "skewed"), (30, "extreme"), (107, "heavy")):
        measured = count_cell(sessions, shape, TRIALS)["coverage"]
        assert measured == pytest.approx(recorded[sessions, shape], abs=NEAR)
    assert rate_cell(107, TRIALS)["coverage"] == pytest.approx(0.95, abs=NEAR)
    error = floor_cell(50, 0.1, TRIALS)["error"]
    assert error == pytest.approx(0.092, abs=0.02)


@pytest.mark.slow
def test_the_whole_simulation_comes_near_the_record() -> None:
    for cell in coverage_table():
        measured = count_cell(cell.sessions, cell.shape, 1000)
        assert measured["coverage"] == pytest.approx(cell.coverage, abs=0.04)
        assert measured["effective"] == pytest.approx(cell.effective, rel=0.15)
