"""The rows of the tables: small logs with the right values stated, and what must add up over real ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from analysis.replay import STAGES, ReplayPlan
from analysis.sessions.outcome_kinds import OUTCOME_KINDS
from analysis.synth import write_corpus
from breaker.settings import Settings
from tests.analysis.logs import START, LogWriter
from tests.analysis.tables.exports import Gathered, Row

FAILED = "boom\n[exit code: 1]"


def gathered(tmp_path: Path, *logs: LogWriter, **options: Any) -> Gathered:
    for log in logs:
        log.write(tmp_path)
    return Gathered(tmp_path, **options)


def picked(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


# Calls


def test_a_call_row_tells_what_was_called_and_what_became_of_it(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.call("make test")
    log.result(1, FAILED)
    found = gathered(tmp_path, log)
    (row,) = found.rows("calls")
    assert row["session"] == "session-a"
    assert picked([row], "call", "seq", "turn", "recorded_turn", "step", "tool") == [(0, 1, 1, 1, 1, "bash")]
    assert picked([row], "outcome", "reason", "detail", "evidence") == [("failed", "exit", "1", "rebuilt")]
    assert row["seconds"] == 1.0
    assert row["result_length"] == len(FAILED)
    assert (row["decision"], row["withheld"], row["count"]) == ("allow", False, 1)
    assert row["measures"] == ['exact:bash:{"command":"make test"}', "verb:make", "cmd:make:make test"]
    assert row["arguments"] == '{"command": "make test"}'
    assert row["arguments_length"] == 24
    assert row["time"].timestamp() * 1000 == START + 1000


def test_a_call_without_a_result_has_no_seconds_and_no_length(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.call("make")
    (row,) = gathered(tmp_path, log).rows("calls")
    assert (row["outcome"], row["seconds"], row["result_length"]) == ("open", None, None)


def test_an_untracked_call_has_a_row_but_met_no_guard(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.call(name="todo_write", arguments="{}")
    log.result(1)
    found = gathered(tmp_path, log)
    (row,) = found.rows("calls")
    assert (row["tracked"], row["decision"], row["count"]) == (False, None, None)
    assert found.rows("measures") == []
    assert found.column("sessions", "calls") == [1]
    assert found.column("sessions", "tracked") == [0]


def test_results_that_come_late_belong_to_their_calls(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    first, second = log.call("one"), log.call("two")
    log.result(second, "second")
    log.result(first, "the first")
    rows = gathered(tmp_path, log).rows("calls")
    assert picked(rows, "call", "seconds", "result_length") == [(0, 3.0, 9), (1, 1.0, 6)]


def test_a_withheld_call_that_had_succeeded_is_a_false_rejection(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    for _ in range(4):
        log.bash("make")
    rows = gathered(tmp_path, log, warnAt=None, summarizeAt=None, limits={"exact": 3, "cmd": None}).rows("calls")
    assert picked(rows, "count", "decision", "withheld", "false_rejection") == [
        (1, "allow", False, False),
        (2, "allow", False, False),
        (3, "ask-declined", True, True),
        (4, "deny", True, True),
    ]


def test_arguments_keep_numbers_of_any_size_as_text(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.call(name="read", arguments='{"offset": 123456789012345678901234567890}')
    log.result(1)
    log.nested({"offset": 2**70}, sub_id="s1", parent="call_1", name="read")
    first, second = gathered(tmp_path, log).column("calls", "arguments")
    assert first == '{"offset": 123456789012345678901234567890}'
    assert second == '{"offset":1.1805916207174113e+21}'


def test_numbers_beyond_64_bits_are_null_and_nothing_raises(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.says(tokens=2**70)
    log.call("early", time=-1e300)
    log.call("make", turn=2**80, step=2**64, seq=2**65)
    found = gathered(tmp_path, log)
    assert found.column("calls", "time")[0] is None
    assert picked(found.rows("calls"), "seq", "recorded_turn", "step")[1] == (None, None, None)
    assert found.column("sessions", "tokens") == [2**63 - 1]
    assert found.column("turns", "tokens") == [2**63 - 1]


def test_lone_surrogates_are_written_out_wherever_they_stand(tmp_path: Path) -> None:
    log = LogWriter("\ud800", cwd="/\udfff")
    log.user()
    log.says("\ud800")
    log.call(name="to\ud800ol", arguments='{"a": "\\ud800"}', call_id="\ud800")
    log.result(2, "\ud800", is_error=True, error={"code": "E\ud800"})
    log.write(tmp_path, folder="x")
    for privacy in ("full", "shape", "hash", "counts"):
        found = Gathered(tmp_path, privacy=privacy)
        for name in ("sessions", "turns", "calls", "measures", "streaks", "read_report"):
            assert found.batches(name) != []
        found.export(tmp_path.parent / f"{tmp_path.name}-{privacy}")
    full = Gathered(tmp_path)
    assert full.column("sessions", "session") == ["\\ud800"]
    assert full.column("calls", "tool") == ["to\\ud800ol"]
    assert full.column("calls", "detail") == ["E\\ud800"]


# Events, measures, streaks


def test_events_name_their_measure_its_kind_and_the_threshold(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    for _ in range(2):
        log.bash("make", FAILED)
    found = gathered(tmp_path, log, warnAt=2, failWarnAt=2)
    assert picked(found.rows("events"), "event", "call", "stage", "kind", "count", "threshold", "decision") == [
        (0, 1, "warn", "cmd", 2, 2.0, "allow"),
        (1, 1, "fail-warn", "cmd", 2, 2.0, "allow"),
    ]
    assert picked(found.rows("events"), "reason", "detail", "evidence") == [
        (None, None, None),
        ("exit", "1", "rebuilt"),
    ]


def test_measures_tell_occurrences_peak_and_streak(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.bash("make", FAILED)
    log.bash("make", FAILED)
    log.bash("make")
    log.bash("ls")
    rows = gathered(tmp_path, log).rows("measures")
    assert picked(rows, "measure_index", "measure", "cap", "occurrences", "peak", "failures", "longest_streak") == [
        (0, 'exact:bash:{"command":"make"}', 12.0, 3, 3, 2, 2),
        (1, "cmd:make:make", 12.0, 3, 3, 2, 2),
        (2, 'exact:bash:{"command":"ls"}', 12.0, 1, 1, 0, 0),
        (3, "cmd:ls:ls", 12.0, 1, 1, 0, 0),
    ]


def test_streaks_are_maximal_and_say_how_they_ended(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.bash("make", FAILED)
    log.bash("make", "[exit code: 2]")
    log.bash("make")
    log.bash("make", FAILED)
    log.says()
    log.user()
    log.bash("make", FAILED)
    rows = [row for row in gathered(tmp_path, log).rows("streaks") if row["kind"] == "cmd"]
    assert picked(rows, "length", "turn", "first_call", "last_call", "seconds", "ended_by", "detail") == [
        (2, 1, 0, 1, 2.0, "success", "2"),
        (1, 1, 3, 3, 0.0, "reset", "1"),
        (1, 2, 4, 4, 0.0, "end", "1"),
    ]


# Turns


def test_turns_count_calls_failures_events_and_the_models_lines(tmp_path: Path) -> None:
    log = LogWriter()
    log.call("before any message")
    log.result(0)
    log.user()
    log.says("ok\n\n   \nlet me see\n" + "x" * 41 + "\n" + "  " + "y" * 40 + "  ", tokens=100)
    log.bash("make", FAILED)
    log.user()
    log.bash("make")
    log.says("", tokens=None)
    found = gathered(tmp_path, log, warnAt=1)
    rows = found.rows("turns")
    assert picked(rows, "turn", "calls", "failed", "events_warn", "messages", "tokens") == [
        (0, 1, 0, 1, 0, None),
        (1, 1, 1, 1, 1, 100),
        (2, 1, 0, 1, 1, None),
    ]
    assert picked(rows, "lines", "short_lines", "short_line_share") == [(0, 0, None), (4, 3, 0.75), (0, 0, None)]
    assert picked(rows, "first_call", "seconds") == [(0, 1.0), (1, 3.0), (2, 3.0)]


def test_the_length_of_a_short_line_is_a_setting(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.says("1234567\n12345678")
    assert gathered(tmp_path, log, short_line=7).column("turns", "short_lines") == [1]


# Which sessions count, and in what order


def test_a_copy_of_a_session_has_a_read_report_row_and_no_others(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.bash("make")
    log.write(tmp_path, folder="a")
    log.write(tmp_path, folder="b")
    found = Gathered(tmp_path)
    assert picked(found.rows("read_report"), "state", "session_index") == [("ok", 0), ("duplicate", None)]
    assert len(found.rows("sessions")) == len(found.rows("calls")) == 1


def test_the_order_of_the_paths_given_does_not_show(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        log = LogWriter(f"session-{name}")
        log.user()
        log.bash("make", FAILED)
        log.write(tmp_path / name)
    names = [tmp_path / name for name in ("a", "b", "c")]
    one, other = Gathered(*names), Gathered(*reversed(names))
    assert one.column("sessions", "session") == ["session-a", "session-b", "session-c"]
    for table in ("sessions", "turns", "calls", "events", "measures", "streaks", "histogram", "read_report"):
        assert one.rows(table) == other.rows(table)


def test_a_session_that_turns_out_to_have_had_the_fetch_tool_is_told_the_way_it_went(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.bash("curl https://example.com/x")
    log.bash("curl https://example.com/x")
    log.call(name="web_fetch_file", arguments='{"url": "https://example.com/x"}')
    found = gathered(tmp_path, log)
    assert found.column("calls", "decision") == ["deny-shell-http", "deny-shell-http", "allow"]
    assert picked(found.rows("events"), "stage", "measure", "count") == [("shell-http", None, None)] * 2
    without = Gathered(tmp_path, plan=ReplayPlan(shell_http="off"))
    assert without.column("calls", "decision") == ["allow"] * 3


def test_a_session_of_many_calls_keeps_its_order_when_its_rows_are_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analysis.tables.collect._SEAL_ROWS", 100)
    log = LogWriter()
    log.user()
    calls = 1_050
    for number in range(calls):
        log.call(name="read", arguments="{}", call_id=f"c{number}")
        log.result(log.next - 1, "x" * (number % 7))
    log.write(tmp_path)
    found = Gathered(tmp_path, limits={"exact": None})
    rows = found.rows("calls")
    assert [batch.num_rows for batch in found.batches("calls")] == [100] * 10 + [50]
    assert [row["call"] for row in rows] == list(range(calls))
    assert [row["result_length"] for row in rows] == [number % 7 for number in range(calls)]


# What must add up


def demo(tmp_path: Path) -> Path:
    write_corpus(tmp_path, "demo")
    return tmp_path


def check_sums(found: Gathered) -> None:
    totals = found.corpus.totals
    calls, sessions, turns = found.rows("calls"), found.rows("sessions"), found.rows("turns")
    assert len(calls) == totals.calls == sum(row["calls"] for row in sessions) == sum(row["calls"] for row in turns)
    assert sum(row["tracked"] for row in calls) == totals.tracked
    outcomes = Counter(row["outcome"] for row in calls if row["tracked"])
    assert outcomes == +totals.outcomes
    for kind in OUTCOME_KINDS:
        name = kind.replace("-", "_")
        assert sum(row[name] for row in sessions) == sum(row[name] for row in turns) == totals.outcomes[kind]
    assert sum(row["withheld"] for row in calls) == totals.denials == sum(row["withheld"] for row in turns)
    assert sum(row["false_rejection"] for row in calls) == totals.false_rejections
    stages = Counter(row["stage"] for row in found.rows("events"))
    assert stages == +totals.stages
    for stage in STAGES:
        name = f"events_{stage.replace('-', '_')}"
        assert sum(row[name] for row in sessions) == sum(row[name] for row in turns) == totals.stages[stage]
    longest = Counter[int]()
    for row in found.rows("streaks"):
        longest[row["session_index"]] = max(longest[row["session_index"]], row["length"])
    assert {row["session_index"]: row["longest_streak"] for row in sessions if row["longest_streak"]} == dict(longest)
    peaks = Counter[int]()
    for row in found.rows("measures"):
        peaks[row["session_index"]] = max(peaks[row["session_index"]], row["peak"] or 0)
    assert {row["session_index"]: row["peak"] for row in sessions if row["peak"]} == +peaks
    assert len(turns) == sum(row["turn"] > 0 for row in turns) + sum(row["turn"] == 0 for row in turns)
    assert sum(row["turn"] > 0 for row in turns) == totals.turns


@pytest.mark.parametrize("policy", ["unattended", "approve", "deny", "observe"])
def test_the_tables_of_the_demo_add_up_to_the_replay(tmp_path: Path, policy: Any) -> None:
    check_sums(Gathered(demo(tmp_path), policy=policy))


def test_the_tables_add_up_under_the_published_measurements_too(tmp_path: Path) -> None:
    check_sums(Gathered(demo(tmp_path), plan=ReplayPlan(result_source="log")))


@pytest.mark.shared
def test_the_tables_of_recorded_sessions_add_up_to_the_replay(shared: Path) -> None:
    plan = ReplayPlan(settings=Settings.from_config({"warnAt": 1, "failWarnAt": 1}))
    check_sums(Gathered(shared / "corpus" / "recorded", plan=plan))
