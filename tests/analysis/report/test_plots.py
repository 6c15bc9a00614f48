"""Pictures: axes named with units, thresholds drawn in, the same bytes every time."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import pytest

from analysis.labels import Label
from analysis.report import PLOT_FORMATS, PlotFormat, histogram_sheet, write_figure
from analysis.report.data import CallMark, Histogram, StageLine, TurnLine
from analysis.report.plots import (
    Figure,
    histogram_figure,
    inline_svg,
    stages_figure,
    timeline_figure,
    turns_figure,
)
from analysis.shares import session_share

COUNTS: dict[Label, dict[int, int]] = {"good": {1: 100, 2: 10}, "stuck": {1: 5, 9: 1}}
NEXT = Histogram("host", "next", COUNTS, {"warn": 7.0, "summarize": 11.0, "gate": 16.0})
STREAKS = Histogram("host", "streak", {"unknown": {1: 3, 4: 1}}, {"fail-warn": 3.0, "fail-gate": 5.0})


def words(figure: Figure) -> list[str]:
    """Return the texts of a picture, as they stand in its SVG."""
    file = BytesIO()
    write_figure(figure, file, "svg")
    root = ElementTree.fromstring(file.getvalue())
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("kind", PLOT_FORMATS)
def test_the_same_numbers_give_the_same_bytes(kind: PlotFormat) -> None:
    pictures: list[bytes] = []
    for _ in range(2):
        file = BytesIO()
        write_figure(histogram_sheet([NEXT, STREAKS], "title"), file, kind)
        pictures.append(file.getvalue())
    assert pictures[0] == pictures[1]
    assert len(pictures[0]) > 1000


def test_a_histogram_names_its_axes_with_units_its_thresholds_and_its_labels() -> None:
    told = words(histogram_figure([NEXT, STREAKS]))
    assert {"next count of the measure [calls]", "calls [number, log]"} <= set(told)
    assert {"failures in a row [calls]", "streaks [number]"} <= set(told)
    assert {"warn 7", "summarize 11", "gate 16", "fail-warn 3", "fail-gate 5"} <= set(told)
    assert {"good sessions", "stuck sessions", "unknown sessions"} <= set(told)


def test_a_logarithmic_axis_has_plain_numbers() -> None:
    told = words(histogram_figure([NEXT]))
    assert {"1", "10", "100"} <= set(told)
    assert not any("$" in text for text in told)


def test_labels_are_named_only_where_there_are_any() -> None:
    assert not any("sessions" in text for text in words(histogram_figure([STREAKS])))


def test_long_streaks_share_bars() -> None:
    long = Histogram("cmd", "streak", {"unknown": {1: 1, 500: 2}}, {"fail-gate": 5.0})
    assert "failures in a row [calls], in steps of 9" in words(histogram_figure([long]))


def test_a_threshold_without_end_is_not_drawn() -> None:
    endless = Histogram("cmd", "streak", {"unknown": {1: 1}}, {"fail-gate": float("inf"), "fail-warn": 3.0})
    told = words(histogram_figure([endless]))
    assert "fail-warn 3" in told
    assert not any("fail-gate" in text for text in told)


def test_a_sheet_of_nothing_says_so() -> None:
    assert "no values: no call met the guard" in words(histogram_sheet([], "title"))


def test_stages_show_both_integers() -> None:
    line = StageLine("warn", "7", 10, session_share(8, 32), 6, 6)
    told = words(stages_figure([line, StageLine("gate", "off", 0, session_share(0, 0), None, None)]))
    assert {"warn", "gate", "8 of 32", "0 of 0", "sessions that reach it [%]; line: 95 % interval"} <= set(told)


def test_a_timeline_counts_its_marks() -> None:
    marks = [
        CallMark(0, 1, "ok", withheld=False, stages=("warn",)),
        CallMark(1, 2, "failed", withheld=True, stages=("gate",)),
    ]
    told = words(timeline_figure(marks))
    assert {"ok (1)", "failed (1)", "other (0)", "warned (1)", "gated (1)"} <= set(told)
    assert "call [index]; dashed: a new turn" in told


def test_a_refused_request_of_a_shell_stands_apart_from_gated_calls() -> None:
    told = words(timeline_figure([CallMark(0, 1, "ok", withheld=True, stages=("shell-http",))]))
    assert {"gated (0)", "refused (1)"} <= set(told)
    calm = words(timeline_figure([CallMark(0, 1, "ok", withheld=False, stages=())]))
    assert not any(text.startswith("refused") for text in calm)


def test_a_long_timeline_stays_small() -> None:
    marks = [CallMark(call, 1, "ok", withheld=False, stages=()) for call in range(20_000)]
    svg = inline_svg(timeline_figure(marks), name="t", title="T", description="D")
    assert len(svg) < 200_000
    assert "34 calls a mark" in svg


def test_a_timeline_without_calls_is_empty() -> None:
    assert "ok (0)" in words(timeline_figure([]))


def test_turns_name_their_axes() -> None:
    lines = [TurnLine(turn, 4, turn, 0, 0, None, None, 10, 2 * turn) for turn in range(4)]
    told = words(turns_figure([*lines, TurnLine(4, 1, 0, 0, 0, None, None, 0, 0)], 40))
    assert {"short lines [%]", "calls [number]", "turn of the session [number]"} <= set(told)
    assert "Short lines: at most 40 characters" in told


def test_an_inline_picture_has_a_text_alternative_and_the_pages_colours() -> None:
    svg = inline_svg(histogram_figure([NEXT]), name="one", title="A <title>", description='A "description" & more')
    assert svg.startswith('<svg role="img" aria-labelledby="one-title one-desc" viewBox="0 0 ')
    assert '<title id="one-title">A &lt;title&gt;</title>' in svg
    assert "A &quot;description&quot; &amp; more</desc>" in svg
    assert "var(--ink)" in svg
    assert "#1a1a1a" not in svg
    assert "#ffffff" not in svg


def test_pictures_of_one_page_share_no_ids_and_refer_to_their_own() -> None:
    one, two = (inline_svg(histogram_figure([NEXT]), name=name, title="T", description="D") for name in ("one", "two"))
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (one, two)]
    assert ids[0] & ids[1] == set()
    for svg, known in zip((one, two), ids, strict=True):
        used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
        assert used <= known
        assert used != set()


def test_a_picture_fits_the_width_of_a_phone(tmp_path: Path) -> None:
    svg = inline_svg(timeline_figure([]), name="t", title="T", description="D")
    box = re.search(r'viewBox="0 0 ([0-9.]+) ', svg)
    assert box is not None
    assert float(box.group(1)) < 340
