"""Reports: read back by other people's libraries, and nothing in a log can act in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
from junitparser import JUnitXml
from sarif.loader import load_sarif_file

from analysis.regress import Finding, Verdict
from analysis.regress.reports import (
    REPORTS,
    check_document,
    render_github,
    render_json,
    render_junit,
    render_markdown,
    render_sarif,
    render_terminal,
)
from tests.analysis.regress.conftest import Good
from tests.analysis.regress.known_good import verdict
from tests.cli.commands import violations

HEAD = '[check]\nsessions = ["good"]\nbaseline = false\n'
LIMITS = "[check.limits]\ngate = 0\nwarn = 100\n"
RED = "limits.host = 8\n" + HEAD + LIMITS + '[[check.expect]]\nsession = "*"\nevents = ["warn"]\n'
WAIVED = RED + '[[check.waiver]]\nmeasure = "host:*"\nstage = "gate"\nreason = "known"\nexpires = 2026-06-30\n'
GREEN = HEAD + LIMITS
HOSTILE = "\x1b[31m::error::x\n::set-output name=a::b\x00<script>|`*]]>&\u202e"


@dataclass(frozen=True)
class Case:
    """A test case as another library reads it: its name, and the kinds, messages and texts of its results."""

    name: str
    kinds: list[str]
    messages: list[str]
    texts: list[str]


def cases_of(text: str, tmp_path: Path) -> list[Case]:
    path = tmp_path / "report.xml"
    path.write_text(text, encoding="utf-8")
    suites: Any = cast("Any", JUnitXml).fromfile(str(path))
    cases = [case for suite in suites for case in suite]
    return [
        Case(
            name=case.name,
            kinds=[type(one).__name__ for one in case.result],
            messages=[one.message for one in case.result],
            texts=[one.text or "" for one in case.result],
        )
        for case in cases
    ]


def sarif_results(text: str, tmp_path: Path) -> list[dict[str, Any]]:
    path = tmp_path / "report.sarif"
    path.write_text(text, encoding="utf-8")
    return cast("Any", load_sarif_file(str(path))).get_results()


def hostile(result: Verdict) -> Verdict:
    """Return a verdict in which every text of a log is hostile."""
    first = result.failures[0]
    place = replace(first.places[0], session=HOSTILE, measure=HOSTILE, explain=HOSTILE, path=HOSTILE)
    bad: Finding = replace(first, subject=HOSTILE, message=HOSTILE, session=HOSTILE, path=HOSTILE, places=(place,))
    return replace(result, findings=(bad,), sessions=(), limits=(), notes=(HOSTILE,))


def test_junit_is_read_back_by_another_library(good: Good, tmp_path: Path) -> None:
    result = verdict(good.folder, RED)
    cases = cases_of(render_junit(result), tmp_path)
    assert [case.name for case in cases] == ["gate", "warn", *(one.row.session_id for one in result.sessions)]
    failed = {case.name: case for case in cases if case.kinds == ["Failure"]}
    assert set(failed) == {finding.subject for finding in result.failures}
    place = result.failures[0].places[0]
    text = failed["gate"].texts[0]
    for word in (place.session, f"call {place.call}", str(place.measure), "8/8", place.explain):
        assert word in text
    assert "gate is" in failed["gate"].messages[0]


def test_junit_of_a_green_check_has_no_failure(good: Good, tmp_path: Path) -> None:
    cases = cases_of(render_junit(verdict(good.folder, GREEN)), tmp_path)
    assert len(cases) == 8
    assert not any(case.kinds for case in cases)


def test_junit_tells_shortages_as_errors_and_what_was_not_checked_as_skipped(good: Good, tmp_path: Path) -> None:
    result = verdict(good.folder, HEAD + "[check.limits]\ngood_gated = 0\n")
    cases = cases_of(render_junit(result), tmp_path)
    assert [kind for case in cases for kind in case.kinds] == ["Error", "Skipped"]


def test_sarif_is_read_back_by_another_library(good: Good, tmp_path: Path) -> None:
    result = verdict(good.folder, RED)
    results = sarif_results(render_sarif(result), tmp_path)
    assert [one["ruleId"] for one in results] == [finding.rule for finding in result.findings]
    assert {one["level"] for one in results} == {"error"}
    place = result.findings[0].places[0]
    location = results[0]["locations"][0]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == place.path
    assert location["logicalLocations"][0]["name"] == f"{place.session}#{place.call}"
    for word in (place.session, f"call {place.call}", str(place.measure), "8/8", place.explain):
        assert word in results[0]["message"]["text"]
    prints = [one["partialFingerprints"]["breaker/v1"] for one in results]
    assert len(set(prints)) == len(prints)


def test_sarif_suppresses_what_is_waived(good: Good, tmp_path: Path) -> None:
    baseline = verdict(good.folder, WAIVED)
    finding = replace(verdict(good.folder, RED).findings[-1], waiver=baseline.waivers[0].waiver)
    results = sarif_results(render_sarif(replace(baseline, findings=(finding,))), tmp_path)
    assert results[0]["suppressions"] == [{"kind": "external", "justification": "known"}]


def test_sarif_of_a_green_check_is_empty(good: Good, tmp_path: Path) -> None:
    assert sarif_results(render_sarif(verdict(good.folder, GREEN)), tmp_path) == []


@pytest.mark.parametrize("text", [GREEN, RED, WAIVED, HEAD + "[check.limits]\ngood_gated = 0\n"])
def test_the_document_keeps_to_its_schema(good: Good, text: str) -> None:
    result = verdict(good.folder, text)
    document = json.loads(render_json(result))
    assert violations("check", document) == []
    assert document == json.loads(json.dumps(check_document(result)))
    assert document["outcome"] == result.outcome


@pytest.mark.parametrize("text", [GREEN, RED, WAIVED])
def test_all_reports_agree_on_the_outcome(good: Good, text: str, tmp_path: Path) -> None:
    result = verdict(good.folder, text)
    number = len(result.failures)
    assert render_github(result).count("::error ") == number
    assert json.loads(render_json(result))["failures"] == number
    assert len([case for case in cases_of(render_junit(result), tmp_path) if case.kinds]) == number
    assert render_terminal(result).count("FAIL  ") == number
    assert ("passed" in render_terminal(result)) is (number == 0)
    assert ("## breaker check passed" in render_markdown(result)) is (number == 0)


def test_annotations_name_the_line_that_asks(good: Good) -> None:
    line = render_github(verdict(good.folder, RED)).splitlines()[0]
    assert line.startswith("::error file=breaker.toml,line=6,title=limit%3A gate::gate is ")
    assert "%0Abreaker explain " in line


@pytest.mark.parametrize("render", REPORTS.values(), ids=REPORTS)
def test_nothing_out_of_a_log_acts_in_a_report(render: Callable[[Verdict], str], good: Good) -> None:
    text = render(hostile(verdict(good.folder, RED)))
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "\u202e" not in text
    assert not any(line.startswith("::set-output") for line in text.splitlines())


def test_hostile_text_stays_well_formed(good: Good, tmp_path: Path) -> None:
    result = hostile(verdict(good.folder, RED))
    assert "<script>" in cases_of(render_junit(result), tmp_path)[0].texts[0]
    assert "<script>" in sarif_results(render_sarif(result), tmp_path)[0]["message"]["text"]
