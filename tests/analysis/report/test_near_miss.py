"""How close good sessions come to each stage stands in the report, in words too."""

from __future__ import annotations

from pathlib import Path

from analysis.report import render_page, report_document
from analysis.synth import write_corpus
from tests.analysis.report.pages import Page, report_of


def test_the_margins_of_good_sessions_are_told_and_drawn(tmp_path: Path) -> None:
    """Good runs repeat a measure up to 8 times and fail at most twice in a row; defaults are 7, 11, 12, 3 and 5."""
    truth = write_corpus(tmp_path, "labelled", sessions=10)
    data = report_of(tmp_path, labels=[f"{one.label}={one.id}" for one in truth.sessions])
    assert set(data.near_miss) == {"warn", "summarize", "gate", "fail-warn", "fail-gate"}
    assert all(len(left) == data.labels["good"] == 6 for left in data.near_miss.values())
    assert [min(data.near_miss[stage]) for stage in ("warn", "summarize", "fail-warn", "fail-gate")] == [0, 3, 1, 3]
    assert report_document(data)["near_miss"] == {stage: list(left) for stage, left in data.near_miss.items()}
    page = render_page(data)
    assert Page(page).ids["near-miss-picture-title"] == 1
    assert "warn: reached by 3 of 6, the nearest other had 1 left; summarize: reached by 0 of 6" in page


def test_without_good_sessions_there_is_no_such_picture(tmp_path: Path) -> None:
    write_corpus(tmp_path, "labelled", sessions=5)
    data = report_of(tmp_path)
    assert data.near_miss == {}
    assert "near-miss-picture" not in render_page(data)
