"""Pictures of a sweep: axes named with units, the same bytes every time, or what is missing."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import pytest

from analysis.replay import StageName
from analysis.report.near_miss import near_miss_figure, near_miss_told
from analysis.report.plots import Figure, write_figure
from analysis.sweep import Sweep, SweepError
from analysis.sweep.pictures import PICTURES, Picture, good_margins, sweep_figure
from analysis.synth import Truth
from tests.analysis.sweep.corpora import swept


def svg(figure: Figure) -> bytes:
    file = BytesIO()
    write_figure(figure, file, "svg")
    return file.getvalue()


def words(figure: Figure) -> set[str]:
    root = ElementTree.fromstring(svg(figure))
    return {element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")}


@pytest.mark.parametrize(
    ("picture", "axes"),
    [
        ("pareto", {"good sessions touched [% of 24]", "stuck sessions caught [% of 16]", "recommended, 95 %"}),
        ("heat", {"warnAt [calls]; frame: the choice", "failWarnAt [calls]", "Good sessions touched [sessions]"}),
        ("response", {"warnAt [calls]; dotted: the choice", "sessions [%]; bands: 95 %", "stuck caught (of 16)"}),
        ("near-miss", {"calls left before it [calls]; square: reached", "stage", "warn", "gate", "fail-warn"}),
    ],
)
def test_axes_are_named_with_units(sweep: Sweep, picture: Picture, axes: set[str]) -> None:
    assert axes <= words(sweep_figure(sweep, [picture]))


def test_one_sheet_has_them_all_and_the_same_bytes(sweep: Sweep) -> None:
    sheet = sweep_figure(sweep)
    assert {"What settings cost and catch", "What warnAt does", "How close 24 good runs come [runs]"} <= words(sheet)
    assert svg(sweep_figure(sweep)) == svg(sweep_figure(sweep, PICTURES))


def test_the_heat_map_shows_the_metric_asked_for(sweep: Sweep) -> None:
    told = words(sweep_figure(sweep, ["heat"], metric="stuck_caught"))
    assert "Stuck sessions caught [sessions]" in told
    assert {str(row.values["stuck_caught"]) for row in sweep.rows} <= told


def test_what_cannot_be_drawn_is_said(planted: tuple[Path, Truth], sweep: Sweep) -> None:
    folder, truth = planted
    bare = swept(folder, truth.sessions[:3], "warnAt=9", labelled=[])
    cases: tuple[tuple[Picture, str], ...] = (
        ("pareto", "no session is labelled good and none stuck"),
        ("near-miss", "no session is labelled good"),
        ("heat", "two settings with several values"),
        ("response", "a setting with several numbers"),
    )
    for picture, told in cases:
        with pytest.raises(SweepError, match=told):
            sweep_figure(bare, [picture])
    with pytest.raises(SweepError, match="nothing to draw"):
        sweep_figure(bare)
    with pytest.raises(SweepError, match="did you mean messages"):
        sweep_figure(sweep, ["heat"], metric="mesages")


def test_pictures_that_need_no_labels_are_drawn_without(planted: tuple[Path, Truth]) -> None:
    folder, truth = planted
    one = swept(folder, truth.sessions[:3], "warnAt=3,9", labelled=[])
    told = words(sweep_figure(one))
    assert {"What warnAt does", "warned (of 3)", "gated (of 3)"} <= told
    two = swept(folder, truth.sessions[:3], "warnAt=3,9", "failWarnAt=2,3", labelled=[])
    assert {"Messages [number]", "What warnAt does", "What failWarnAt does"} <= words(sweep_figure(two))
    words_only = swept(folder, truth.sessions[:3], "policy=deny,approve", labelled=[])
    with pytest.raises(SweepError, match="neither a setting with several numbers nor two with several values"):
        sweep_figure(words_only)


def test_good_runs_keep_the_distance_that_is_planted(sweep: Sweep) -> None:
    """They repeat a measure up to 8 times, and fail at most twice in a row."""
    assert sweep.front.recommended is not None
    margins = good_margins(sweep, sweep.plan.configs[sweep.front.recommended].settings)
    assert set(margins) == {"warn", "gate", "fail-warn"}
    assert (min(margins["warn"]), min(margins["fail-warn"]), min(margins["gate"])) == (1, 1, 4)


def test_a_stage_that_is_reached_is_told_and_drawn() -> None:
    margins: dict[StageName, list[float]] = {"warn": [0.0, 0.0, 2.0], "gate": [3.5, 20.0, 30.0]}
    assert near_miss_told(margins) == (
        "warn: reached by 2 of 3, the nearest other had 2 left; gate: reached by 0 of 3, the nearest other had 3.5 left"
    )
    told = words(near_miss_figure(margins, "3 good runs"))
    assert {"How close 3 good runs come [runs]", "warn", "gate", "12+", "2"} <= told
    assert "summarize" not in told
