"""What a report tells: the numbers of the replay, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.replay import ReplayPlan
from analysis.report import ReportData, build_report, report_document
from analysis.synth import write_corpus
from tests.analysis.logs import LogWriter
from tests.analysis.report.pages import report_of
from tests.analysis.tables.exports import Gathered

FAILED = "[exit code: 1]"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = tmp_path_factory.mktemp("demo")
    write_corpus(corpus, "demo")
    return corpus


@pytest.fixture(scope="module")
def data(demo: Path) -> ReportData:
    return report_of(demo)


def test_headlines_give_their_two_integers(demo: Path, data: ReportData) -> None:
    corpus = Gathered(demo).corpus
    totals = corpus.totals
    gated = sum(bool(row.replay.stages["gate"] + row.replay.stages["fail-gate"]) for row in corpus.sessions)
    told = {one.name: (one.share.part, one.share.whole) for one in data.headlines}
    sessions = len(corpus.sessions)
    assert told["sessions gated"] == (gated, sessions)
    assert told["sessions with a false rejection"] == (totals.sessions_with_false_rejection, sessions)
    assert told["false rejections"] == (totals.false_rejections, totals.denials)
    assert told["failed calls"] == (totals.outcomes["failed"], totals.settled)
    without = told["failed calls, a shell's words left out"]
    assert without == (totals.outcomes["failed"] - totals.failed_text_only, totals.settled)


def test_stages_kinds_tools_and_failures_add_up_to_the_replay(demo: Path, data: ReportData) -> None:
    totals = Gathered(demo).corpus.totals
    assert {line.stage: line.events for line in data.stages} == {
        line.stage: totals.stages[line.stage] for line in data.stages
    }
    assert {line.stage: line.sessions.part for line in data.stages} == {
        line.stage: totals.sessions_by_stage[line.stage] for line in data.stages
    }
    assert sum(sum(line.stages.values()) for line in data.kinds) == sum(totals.stages.values())
    assert sum(sum(line.stages.values()) for line in data.tools) == sum(totals.stages.values())
    assert sum(line.calls for line in data.tools) == totals.calls
    assert sum(line.failed for line in data.tools) == totals.outcomes["failed"]
    assert sum(line.count for line in data.failures) == totals.outcomes["failed"] == sum(data.evidence.values())


def test_the_worst_session_comes_first_with_its_timeline(tmp_path: Path) -> None:
    for name, calls in (("mild", 3), ("stuck", 8), ("calm", 1)):
        log = LogWriter(f"session-{name}")
        log.user()
        for _ in range(calls):
            log.bash("make", FAILED if name != "calm" else "done")
        log.write(tmp_path)
    data = report_of(tmp_path)
    assert [one.session for one in data.worst] == ["session-stuck", "session-mild"]
    marks = data.worst[0].marks
    assert [mark.outcome for mark in marks] == ["failed"] * 8
    assert [mark.stages for mark in marks][2:6] == [("fail-warn",), (), (), ("fail-gate",)]
    assert [mark.withheld for mark in marks] == [False] * 5 + [True] * 3
    assert (data.worst[0].first_gate, data.worst[0].streak) == (5, 8)
    assert report_of(tmp_path, top=1).worst_untold == 1
    assert report_of(tmp_path, top=0).worst == ()


def test_a_shell_command_that_is_refused_for_its_request_reaches_no_gate(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.bash("curl https://example.com")
    log.write(tmp_path)
    plan = ReplayPlan(shell_http="on")
    gathered = Gathered(tmp_path, plan=plan)
    data = build_report(gathered.observation, gathered.corpus, top=1)
    (gated,) = [one for one in data.headlines if one.name == "sessions gated"]
    assert gathered.corpus.totals.stages["shell-http"] == 1
    assert (gated.share.part, gated.share.whole, gated.meaning) == (0, 1, "at least one call reaches a gate")
    assert data.worst[0].first_gate is None


def test_turns_of_a_session_show_failures_and_short_lines(tmp_path: Path) -> None:
    log = LogWriter()
    for text, result in (("x" * 80, "done"), ("hm\nagain", FAILED), ("no\nstill\nwhat", FAILED)):
        log.user()
        log.says(text)
        log.bash("make", result)
    log.write(tmp_path)
    (one,) = report_of(tmp_path).worst
    assert [(line.turn, line.calls, line.failed, line.short_line_share) for line in one.turn_lines] == [
        (1, 1, 0, 0.0),
        (2, 1, 1, 1.0),
        (3, 1, 1, 1.0),
    ]


def test_files_that_did_not_read_ok_are_told_with_their_places(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.raw(b'{"type":')
    log.user()
    log.write(tmp_path)
    (full,) = report_of(tmp_path).read_lines
    assert full.state == "partial"
    assert full.told[0].startswith("row:3 (byte ")
    (shape,) = report_of(tmp_path, privacy="shape").read_lines
    assert shape.told[0].startswith("row:3 (byte ")
    assert len(shape.told[0]) < len(full.told[0])


def test_the_document_holds_the_same_numbers(data: ReportData) -> None:
    document: dict[str, Any] = report_document(data)
    assert document["schema"] == "breaker/report/1"
    assert [(one["part"], one["whole"]) for one in document["headlines"]] == [
        (one.share.part, one.share.whole) for one in data.headlines
    ]
    assert [len(one["timeline"]) for one in document["worst_sessions"]] == [one.calls for one in data.worst]
