import json
import tracemalloc
from pathlib import Path
from typing import Literal

import pytest

from analysis.sessions.decode import Limits
from analysis.sessions.facts import CallFact, FactBuilder, MessageFact, SettleFact, StepFact, TurnFact
from analysis.sessions.find import find_sessions
from analysis.sessions.header import parse_header
from analysis.sessions.report import ReadReport
from analysis.sessions.session import SessionReader
from breaker.rulesets import DEFAULT_RULESET
from tests.analysis.logs import ABSENT, START, Json, LogWriter, Reading, read_log

FAILED: Json = {"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"}
NOT_STARTED: Json = {"name": "ToolNotStartedError", "code": "TOOL_NOT_STARTED"}


@pytest.fixture
def log() -> LogWriter:
    return LogWriter()


def texts(read: Reading) -> list[tuple[int, str]]:
    """Return which call each result was taken for, and its text, in the order of the results."""
    return [(fact.fact.index, fact.text) for fact in read.facts if isinstance(fact, SettleFact)]


# The record of a call


def test_a_call_and_its_result_in_full(tmp_path: Path, log: LogWriter) -> None:
    log.user("fix it")
    log.add("step/start", {"turn": 3, "step": 2})
    log.says(tokens=120)
    call = log.call("make", call_id="c1", turn=3, step=2)
    result = log.result(call, "ok")
    read = read_log(log.write(tmp_path))
    turn, step, message, made, settled = read.facts
    assert isinstance(made, CallFact)
    assert turn == TurnFact(seq=0, time=START, cause="human", turn=1)
    assert step == StepFact(seq=1, time=START + 1000, recorded_turn=3, step=2)
    assert message == MessageFact(seq=2, time=START + 2000, tokens=120)
    assert (made.index, made.seq, made.time, made.turn, made.recorded_turn, made.step) == (0, 3, START + 3000, 1, 3, 2)
    assert (made.call.name, made.call.arguments, made.raw_arguments) == (
        "bash",
        {"command": "make"},
        '{"command": "make"}',
    )
    assert (made.call_id, made.nested, made.outcome.kind) == ("c1", False, "ok")
    assert isinstance(settled, SettleFact)
    assert settled.fact is made
    assert (settled.seq, settled.time, settled.is_error, settled.text) == (result, START + 4000, False, "ok")
    session = read.session
    assert (session.turns, session.calls, session.models) == (1, 1, ["some-model"])
    assert (session.first_time, session.last_time) == (START, START + 4000)
    assert (read.report.state, read.report.rows, read.report.lines, read.report.notes) == ("ok", 5, 6, [])


@pytest.mark.parametrize(
    ("given", "arguments", "raw"),
    [
        ('{"a": 1, "b": [null]}', {"a": 1, "b": [None]}, '{"a": 1, "b": [null]}'),
        ("", {}, ""),
        (" ", " ", " "),
        ("null", None, "null"),
        ("[1]", [1], "[1]"),
        ('"text"', "text", '"text"'),
        ('{"command": "ls', '{"command": "ls', '{"command": "ls'),
        ('{"a": NaN}', '{"a": NaN}', '{"a": NaN}'),
        ("Infinity", "Infinity", "Infinity"),
        ("{'a': 1}", "{'a': 1}", "{'a': 1}"),
        ('{"a": 1,}', '{"a": 1,}', '{"a": 1,}'),
        ('{"t": "\\ud800"}', {"t": "\ud800"}, '{"t": "\\ud800"}'),
        ('{"t": "\ud800"}', {"t": "\ud800"}, '{"t": "\ud800"}'),
        ("\ud800", "\ud800", "\ud800"),
        ({"command": "ls"}, {"command": "ls"}, None),
        (["ls"], ["ls"], None),
    ],
)
def test_arguments_are_what_the_tool_got(
    tmp_path: Path, log: LogWriter, given: object, arguments: object, raw: str | None
) -> None:
    log.call(arguments=given)
    (call,) = read_log(log.write(tmp_path)).calls
    assert (call.call.arguments, call.raw_arguments) == (arguments, raw)


def test_huge_numbers_in_arguments_are_javascripts(tmp_path: Path, log: LogWriter) -> None:
    log.call(arguments='{"a": 1e400, "b": %s}' % ("9" * 5000))
    (call,) = read_log(log.write(tmp_path)).calls
    assert call.call.arguments == {"a": float("inf"), "b": float("inf")}


def test_a_nested_calls_arguments_are_a_value_even_as_text(tmp_path: Path, log: LogWriter) -> None:
    outer = log.call(name="run_code", arguments="{}", call_id="o")
    log.nested("npm test", sub_id="o:ptc:1", parent="o")
    log.nested({"command": "ls"}, sub_id="o:ptc:2", parent="o")
    log.result(outer)
    calls = read_log(log.write(tmp_path)).calls
    assert [(call.call.arguments, call.raw_arguments, call.nested) for call in calls] == [
        ({}, "{}", False),
        ("npm test", None, True),
        ({"command": "ls"}, None, True),
    ]


# Which call a result belongs to


def test_a_result_joins_by_the_seq_it_follows_from(tmp_path: Path, log: LogWriter) -> None:
    first, second = log.call(call_id="call_0"), log.call(call_id="call_0")
    log.result(second, "second")
    log.result(first, "first")
    read = read_log(log.write(tmp_path))
    assert texts(read) == [(1, "second"), (0, "first")]
    assert read.kinds == ["ok", "ok"]


@pytest.mark.parametrize(
    "sources", [[5, 1], [1, 5], [[0, 3]], [4, [0, 2]]], ids=["unsorted", "sorted", "packed", "packed and unsorted"]
)
def test_source_seqs_may_be_packed_and_unsorted(tmp_path: Path, log: LogWriter, sources: list[object]) -> None:
    log.user()
    log.call(call_id="a")
    second = log.call(call_id="b")
    log.result(1, "first", call_id="a", sources=sources)
    log.result(second, "second")
    assert texts(read_log(log.write(tmp_path))) == [(0, "first"), (1, "second")]


def test_a_source_whose_id_disagrees_is_no_source(tmp_path: Path, log: LogWriter) -> None:
    first, second = log.call(call_id="a"), log.call(call_id="b")
    log.result(second, "of b", call_id="b", sources=[first])
    log.result(first, "of a")
    assert texts(read_log(log.write(tmp_path))) == [(1, "of b"), (0, "of a")]


def test_a_source_that_is_settled_and_disagrees_is_no_source_either(tmp_path: Path, log: LogWriter) -> None:
    first = log.call(call_id="a")
    log.result(first, "of a")
    second = log.call(call_id="b")
    log.result(second, "of b", call_id="b", sources=[first])
    assert texts(read_log(log.write(tmp_path))) == [(0, "of a"), (1, "of b")]


@pytest.mark.parametrize("sources", [ABSENT, [], [99], "0"])
def test_without_a_source_the_oldest_open_call_of_the_key_is_joined(
    tmp_path: Path, log: LogWriter, sources: object
) -> None:
    for _ in range(2):
        log.call(call_id="call_0")
    log.call(call_id="call_0", step=2)
    log.call(call_id="call_0", turn=2)
    log.result(3, "turn 2", sources=sources)
    log.result(2, "step 2", sources=sources)
    log.result(0, "older", sources=sources)
    log.result(1, "newer", sources=sources)
    read = read_log(log.write(tmp_path))
    assert texts(read) == [(3, "turn 2"), (2, "step 2"), (0, "older"), (1, "newer")]
    assert read.report.notes == []


def test_an_id_used_again_in_a_later_turn_is_another_call(tmp_path: Path, log: LogWriter) -> None:
    for turn in (1, 2, 3):
        for step in (1, 2):
            call = log.call(call_id="call_0", turn=turn, step=step)
            log.result(call, f"{turn}.{step}", sources=ABSENT)
    read = read_log(log.write(tmp_path))
    assert texts(read) == [(0, "1.1"), (1, "1.2"), (2, "2.1"), (3, "2.2"), (4, "3.1"), (5, "3.2")]


@pytest.mark.parametrize("linked", [True, False])
def test_empty_ids_and_names(tmp_path: Path, log: LogWriter, linked: bool) -> None:
    calls = [log.call(call_id="", name="") for _ in range(3)]
    for call in calls:
        log.result(
            call,
            'Error: unknown tool ""',
            is_error=True,
            error={"name": "ToolNotFoundError", "code": "UNKNOWN_TOOL"},
            sources=[call] if linked else ABSENT,
        )
    read = read_log(log.write(tmp_path))
    assert [(one.kind, one.commits) for one in read.outcomes] == [("failed", True)] * 3
    assert [index for index, _ in texts(read)] == [0, 1, 2]


def test_of_two_results_of_one_call_the_first_counts(tmp_path: Path, log: LogWriter) -> None:
    call = log.call(call_id="c")
    log.result(call, "first\n[exit code: 1]")
    log.result(call, "second")
    log.result(call, "third", sources=ABSENT)
    read = read_log(log.write(tmp_path))
    assert texts(read) == [(0, "first\n[exit code: 1]")]
    assert read.kinds == ["failed"]
    assert read.report.notes == ["2 second results of calls, ignored"]


def test_a_second_result_does_not_fall_to_a_later_call_of_the_same_id(tmp_path: Path, log: LogWriter) -> None:
    first, second = log.call(call_id="c"), log.call(call_id="c")
    log.result(first, "first")
    log.result(first, "again")
    log.result(second, "second")
    assert texts(read_log(log.write(tmp_path))) == [(0, "first"), (1, "second")]


def test_a_rewritten_result_is_no_result(tmp_path: Path, log: LogWriter) -> None:
    call = log.call()
    log.result(call, "x" * 50 + "\n[exit code: 1]")
    for operation in ({"op": "replace", "startSeq": 1, "endSeq": 1}, {"op": "replace", "start": 1, "end": 1}):
        log.result(call, "pruned", op=operation)
    other = log.call()
    log.result(other, "rewritten", op={"op": "replace", "startSeq": 1, "endSeq": 1})
    read = read_log(log.write(tmp_path))
    assert read.kinds == ["failed", "open"]
    assert read.report.notes == []


def test_a_result_without_a_call_is_told(tmp_path: Path, log: LogWriter) -> None:
    log.result(7, "lost", sources=ABSENT)
    log.result(7, "lost", sources=[7])
    read = read_log(log.write(tmp_path))
    assert (read.calls, texts(read)) == ([], [])
    assert (read.report.state, read.report.notes) == ("ok", ["2 results without a call"])


def test_a_call_without_a_result_is_open(tmp_path: Path, log: LogWriter) -> None:
    log.call()
    (outcome,) = read_log(log.write(tmp_path)).outcomes
    assert (outcome.kind, outcome.commits, outcome.settles, outcome.evidence) == ("open", True, False, "none")


def test_parallel_calls_keep_the_order_of_the_rows(tmp_path: Path, log: LogWriter) -> None:
    calls = [log.call(name="read") for _ in range(3)]
    for call in calls:
        log.result(call)
    alone = log.call()
    log.result(alone)
    order = [
        f"{'call' if isinstance(fact, CallFact) else 'result'} {fact.seq}"
        for fact in read_log(log.write(tmp_path)).facts
        if isinstance(fact, CallFact | SettleFact)
    ]
    assert order == [
        *("call 0", "call 1", "call 2"),
        *("result 3", "result 4", "result 5"),
        *("call 6", "result 7"),
    ]


def test_a_call_that_never_started_is_counted_apart(tmp_path: Path, log: LogWriter) -> None:
    call = log.call(call_id="a")
    log.result(call, "interrupted", is_error=True, error=FAILED)
    log.result(9, "interrupted", call_id="b", is_error=True, error=NOT_STARTED, sources=ABSENT)
    log.result(9, "interrupted", call_id="a", is_error=True, error=NOT_STARTED, sources=ABSENT, turn=2)
    read = read_log(log.write(tmp_path))
    assert (read.kinds, read.session.not_started, read.session.calls) == (["open"], 2, 1)
    assert read.report.notes == []


@pytest.mark.parametrize("identity", ["", "call_0"])
def test_a_call_that_never_started_is_never_one_that_did(tmp_path: Path, log: LogWriter, identity: str) -> None:
    log.call(call_id=identity)
    log.result(9, "interrupted", call_id=identity, is_error=True, error=NOT_STARTED, sources=ABSENT)
    read = read_log(log.write(tmp_path))
    assert (read.kinds, read.session.not_started) == (["open"], 1)


def test_a_started_call_of_the_same_id_does_not_hide_one_that_never_started(tmp_path: Path, log: LogWriter) -> None:
    log.bash()
    call = log.call(call_id="call_0")
    log.result(call, "done")
    log.result(9, "interrupted", call_id="call_0", is_error=True, error=NOT_STARTED, sources=ABSENT)
    assert read_log(log.write(tmp_path)).session.not_started == 1


# Calls inside programs


@pytest.mark.parametrize("version", [0, 3, 4])
def test_nested_calls_are_calls_of_the_same_agent(tmp_path: Path, version: int) -> None:
    log = LogWriter(version=version)
    outer = log.call(name="run_code", arguments="{}", call_id="o")
    one = log.nested({"command": "ls"}, sub_id="o:1", parent="o")
    two = log.nested({"command": "pwd"}, sub_id="o:2", parent="o")
    inner = log.nested({"command": "id"}, sub_id="free text", parent="o:2")
    log.result(two, "x\n[exit code: 1]")
    log.result(inner, "denied", is_error=True, error={"name": "X", "code": "AUTO_REVIEW_DENIED"})
    log.result(one, "ok")
    log.result(outer, "caught it")
    read = read_log(log.write(tmp_path))
    assert [(call.index, call.call_id, call.nested, call.outcome.kind) for call in read.calls] == [
        (0, "o", False, "ok"),
        (1, "o:1", True, "ok"),
        (2, "o:2", True, "failed"),
        (3, "free text", True, "failed"),
    ]
    assert [one.commits for one in read.outcomes] == [True, True, True, False]
    assert [(call.recorded_turn, call.step) for call in read.calls[1:]] == [(None, None)] * 3


def test_a_nested_start_may_never_settle(tmp_path: Path, log: LogWriter) -> None:
    outer = log.call(name="run_code", arguments="{}", call_id="o")
    log.nested({"command": "ls"}, sub_id="o:1", parent="o")
    log.result(outer)
    log.bash()
    read = read_log(log.write(tmp_path))
    assert read.kinds == ["ok", "open", "ok"]
    assert (read.report.state, read.report.notes) == ("ok", [])


def test_a_nested_result_never_settles_the_outer_call(tmp_path: Path, log: LogWriter) -> None:
    log.call(name="run_code", arguments="{}", call_id="o")
    log.add("tool/ptc-dispatch", {"subCallId": "o", "name": "bash", "isError": True, "content": []})
    read = read_log(log.write(tmp_path))
    assert read.kinds == ["open"]
    assert read.report.notes == ["1 result without a call"]


def test_an_approval_of_a_nested_call_goes_by_its_own_id(tmp_path: Path, log: LogWriter) -> None:
    outer = log.call(name="run_code", arguments="{}", call_id="o")
    inner = log.nested("npm test", sub_id="o:1", parent="o")
    log.asked("a", "because", "o:1")
    log.decided("a", "rejected")
    log.result(inner, "no", is_error=True)
    log.result(outer, "caught")
    assert [one.commits for one in read_log(log.write(tmp_path)).outcomes] == [True, False]


def test_of_many_open_calls_an_approval_asks_about_the_last_of_its_id_or_tool(tmp_path: Path, log: LogWriter) -> None:
    made = [log.call(name=f"tool-{number % 2}", call_id=f"c{number % 100}") for number in range(200)]
    log.asked("by-id", "because", "c30")
    log.decided("by-id", "rejected")
    log.asked("by-tool", "because", tool="tool-1")
    log.decided("by-tool", "rejected")
    log.asked("nobody", "because", "c200")
    log.decided("nobody", "rejected")
    for seq in made:
        log.result(seq, "no")
    read = read_log(log.write(tmp_path))
    assert [call.index for call in read.calls if not call.outcome.commits] == [130, 199]


def test_of_many_open_calls_the_closed_ones_are_not_asked_about(tmp_path: Path, log: LogWriter) -> None:
    made = [log.call(call_id="same") for _ in range(100)]
    log.asked("first", "because", "same")
    log.decided("first", "rejected")
    log.result(made[99], "no")
    made.append(log.call(call_id="same"))
    log.result(made[98], "fine")
    log.asked("second", "because", "same")
    log.decided("second", "rejected")
    log.result(made[100], "no")
    log.asked("third", "because", "same")
    log.decided("third", "rejected")
    for seq in made[:98]:
        log.result(seq, "fine")
    read = read_log(log.write(tmp_path))
    assert [call.index for call in read.calls if not call.outcome.commits] == [97, 99, 100]


def test_calls_of_one_key_may_settle_from_the_middle(tmp_path: Path, log: LogWriter) -> None:
    made = [log.call(call_id="same") for _ in range(5)]
    for seq in (made[2], made[4], made[0], made[3], made[1]):
        log.result(seq, f"of {seq}")
    read = read_log(log.write(tmp_path))
    assert texts(read) == [(index, f"of {made[index]}") for index in (2, 4, 0, 3, 1)]


def test_a_result_without_a_source_joins_the_oldest_call_that_is_still_open(tmp_path: Path, log: LogWriter) -> None:
    made = [log.call(call_id="same") for _ in range(4)]
    log.result(made[1], "second")
    log.result(made[0], "first")
    log.result(made[0], "the oldest open", sources=ABSENT)
    read = read_log(log.write(tmp_path))
    assert texts(read) == [(1, "second"), (0, "first"), (2, "the oldest open")]


# Forks


def fork(version: int = 4, **header: object) -> LogWriter:
    seeded: Json = {"isSeeded": True} if version >= 2 else {}
    log = LogWriter("session-b", version=version, parentSession="session-a")
    log.header.update(seeded | header)
    return log


def test_a_fork_owns_what_stands_behind_the_marker(tmp_path: Path) -> None:
    log = fork()
    log.user("the parent's task")
    log.says(tokens=5)
    log.bash("make", "x\n[exit code: 1]")
    log.marker()
    log.user("the child's")
    own = log.call("ls")
    log.result(own)
    read = read_log(log.write(tmp_path))
    assert [(call.index, call.seq, call.turn) for call in read.calls] == [(0, own, 1)]
    assert [type(fact) for fact in read.facts] == [TurnFact, CallFact, SettleFact]
    session = read.session
    assert (session.fork, session.turns, session.calls) == (True, 1, 1)
    assert (session.first_time, session.last_time) == (START + 1000 * (own - 1), START + 1000 * (own + 1))
    assert (read.report.state, read.report.notes) == ("ok", [])


def test_of_several_markers_the_last_counts(tmp_path: Path) -> None:
    log = fork()
    log.bash("a")
    log.marker()
    log.user("an ancestor")
    log.bash("b")
    log.marker()
    log.bash("c")
    log.marker(inherited=False)
    log.bash("d")
    read = read_log(log.write(tmp_path))
    assert [call.call.arguments for call in read.calls] == [{"command": "c"}, {"command": "d"}]
    assert [(reset.cause, reset.turn) for reset in read.resets] == [("resume", 0)]


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("closer", [True, False])
def test_a_call_open_at_the_marker_is_inherited_and_so_is_its_result(
    tmp_path: Path, linked: bool, closer: bool
) -> None:
    log = fork()
    call = log.call(call_id="c")
    log.marker()
    log.result(
        call,
        "The history inherited by this branch…",
        is_error=True,
        error=FAILED,
        message_id=f"forked-tool-result-c-{call}" if closer else None,
        sources=[call] if linked else ABSENT,
    )
    log.result(
        9,
        "The history inherited by this branch…",
        call_id="d",
        is_error=True,
        error=NOT_STARTED,
        message_id="forked-tool-result-d-9",
        sources=ABSENT,
    )
    log.bash("own")
    read = read_log(log.write(tmp_path))
    assert [(call.call.arguments, call.outcome.kind) for call in read.calls] == [({"command": "own"}, "ok")]
    assert (read.session.not_started, read.report.state) == (0, "ok")
    assert read.report.notes == ["2 results of inherited calls, ignored"]


def test_an_own_call_with_an_inherited_id_gets_its_own_result(tmp_path: Path) -> None:
    log = fork()
    log.call(call_id="call_0")
    log.marker()
    own = log.call(call_id="call_0")
    log.result(own, "own", sources=ABSENT)
    assert read_log(log.write(tmp_path)).kinds == ["ok"]


def test_an_inherited_source_that_disagrees_is_no_source(tmp_path: Path) -> None:
    log = fork()
    old = log.call(call_id="old")
    log.marker()
    own = log.call(call_id="own")
    log.result(own, "own", sources=[old])
    assert read_log(log.write(tmp_path)).kinds == ["ok"]


def test_signs_of_the_prefix_do_not_reach_own_calls(tmp_path: Path) -> None:
    log = fork()
    log.call(call_id="c")
    log.asked("a", "because", "c")
    log.hook("PostToolUse", "block")
    log.add("user/message", {"content": [], "source": {"kind": "plugin:dsh-repeat-tool-breaker"}}, surfaceOp="append")
    log.marker()
    log.decided("a", "rejected")
    log.bash("own", "x", is_error=True)
    read = read_log(log.write(tmp_path))
    assert [(one.kind, one.commits) for one in read.outcomes] == [("failed", True)]
    assert not read.session.recorded_under_breaker


def test_a_fork_whose_marker_is_missing_owns_nothing(tmp_path: Path) -> None:
    log = fork()
    log.user()
    log.bash()
    read = read_log(log.write(tmp_path))
    assert (read.facts, read.session.calls, read.session.turns) == ([], 0, 0)
    assert read.report.notes == ["the inherited part never ends: nothing of this fork is its own"]


@pytest.mark.parametrize("version", [0, 1])
def test_in_the_oldest_formats_the_header_says_how_much_is_inherited(tmp_path: Path, version: int) -> None:
    log = fork(version, seedLength=3)
    log.user("the parent's")
    log.bash("parent")
    log.user("the child's")
    log.bash("own")
    read = read_log(log.write(tmp_path))
    assert [(call.seq, call.index, call.turn) for call in read.calls] == [(4, 0, 1)]
    assert read.session.first_time == START + 3000


def test_the_length_counts_the_parts_of_packed_rows(tmp_path: Path) -> None:
    log = fork(0, seedLength=6)
    log.stripped = True
    log.user("the parent's")
    log.add("text-chunks", {"turn": 1, "step": 1, "index": 0, "dt": [], "texts": ["a", "b", "c", "d"]})
    log.call("parent", call_id="p")
    log.call("own", call_id="q")
    read = read_log(log.write(tmp_path))
    assert [(call.seq, call.call_id) for call in read.calls] == [(6, "q")]


def test_a_length_is_not_read_where_markers_are(tmp_path: Path) -> None:
    log = fork(4, seedLength=1)
    log.bash("parent")
    log.marker()
    log.bash("own")
    assert [call.call.arguments for call in read_log(log.write(tmp_path)).calls] == [{"command": "own"}]


def test_a_subagent_that_inherits_nothing_owns_all(tmp_path: Path) -> None:
    log = LogWriter(parentSession="session-a", origin="subagent", delegationDepth=1)
    log.user("the delegated prompt")
    log.bash()
    read = read_log(log.write(tmp_path))
    assert (read.session.turns, read.kinds, read.session.fork) == (1, ["ok"], False)
    assert read.calls[0].turn == 1
    assert read.session.header.subagent


def test_imported_history_counts_and_is_told(tmp_path: Path) -> None:
    log = LogWriter(isSeeded=True)
    log.user()
    log.bash("old")
    call = log.call("across")
    marker = log.marker()
    log.result(call)
    log.bash("new")
    read = read_log(log.write(tmp_path))
    assert read.kinds == ["ok", "ok", "ok"]
    assert [(reset.seq, reset.cause) for reset in read.resets] == [(0, "human"), (marker, "import")]
    assert read.report.notes == ["imported history: no parent file, all of it counts"]
    assert read.session.imported


def test_a_marker_in_a_log_that_inherits_nothing_is_told(tmp_path: Path, log: LogWriter) -> None:
    log.bash()
    log.marker()
    log.bash()
    read = read_log(log.write(tmp_path))
    assert read.kinds == ["ok", "ok"]
    assert read.report.notes == ["an inherited marker in a log that says it inherits nothing"]


# Turns and resets


def test_a_resumed_process_forgets_its_state_but_opens_no_turn(tmp_path: Path, log: LogWriter) -> None:
    log.user()
    log.bash()
    log.marker(inherited=False)
    log.bash()
    read = read_log(log.write(tmp_path))
    assert [(reset.cause, reset.turn) for reset in read.resets] == [("human", 1), ("resume", 1)]
    assert (read.session.turns, [call.turn for call in read.calls]) == (1, [1, 1])


def test_human_messages_without_anything_between_are_one_turn(tmp_path: Path, log: LogWriter) -> None:
    log.user("one")
    log.user("and another thing", kind="runtime-context")
    log.user("two")
    log.says()
    log.user("three")
    log.bash()
    log.user("four")
    log.nested({}, sub_id="n", parent="x")
    log.user("five")
    read = read_log(log.write(tmp_path))
    assert read.session.turns == 4
    assert [(reset.cause, reset.turn) for reset in read.resets] == [
        ("human", 1),
        ("human", 1),
        ("human", 2),
        ("human", 3),
        ("human", 4),
    ]


def test_steering_inside_a_turn_is_a_turn_of_its_own(tmp_path: Path, log: LogWriter) -> None:
    log.user("go")
    log.add("turn/start", {"turn": 1})
    log.bash()
    log.user("rather so")
    log.bash()
    read = read_log(log.write(tmp_path))
    assert [(call.turn, call.recorded_turn) for call in read.calls] == [(1, 1), (2, 1)]


@pytest.mark.parametrize("kind", ["plugin", "tool-jobs", "subagent-report", "goal", "schedule", "compact-checkpoint"])
def test_notices_open_no_turn_and_reset_nothing(tmp_path: Path, log: LogWriter, kind: str) -> None:
    log.user(kind=kind)
    log.bash()
    read = read_log(log.write(tmp_path))
    assert (read.resets, read.session.turns, read.calls[0].turn) == ([], 0, 0)


def test_a_rewritten_human_message_is_no_turn(tmp_path: Path, log: LogWriter) -> None:
    log.user("go")
    log.bash()
    log.user("summary", op={"op": "replace", "startSeq": 0, "endSeq": 2})
    log.bash()
    read = read_log(log.write(tmp_path))
    assert (read.session.turns, len(read.resets)) == (1, 1)


def test_a_message_that_does_not_say_how_it_stands_is_added(tmp_path: Path, log: LogWriter) -> None:
    log.user(op=ABSENT)
    call = log.call()
    log.result(call, op=ABSENT)
    read = read_log(log.write(tmp_path))
    assert (read.session.turns, read.kinds) == (1, ["ok"])


def test_a_rewritten_answer_is_not_spoken_again(tmp_path: Path, log: LogWriter) -> None:
    log.says(tokens=5)
    rewritten = json.loads(log.lines[-1])
    log.add("assistant/message", rewritten["data"], surfaceOp={"op": "replace", "startSeq": 0, "endSeq": 0})
    facts = read_log(log.write(tmp_path)).facts
    assert [fact.tokens for fact in facts if isinstance(fact, MessageFact)] == [5]


# Sequence numbers


def test_stripped_rows_are_numbered_from_the_header_on(tmp_path: Path) -> None:
    log = LogWriter(version=0)
    log.stripped = True
    log.user()
    log.add("assistant/chunk", {"turn": 1, "step": 1})
    log.add("text-chunks", {"texts": ["a", "b", "c"], "dt": [0, 0]})
    log.add("tool-call-chunks", {"args": ["{", "}"], "id": "c", "name": "bash"})
    log.call(call_id="c")
    log.add("reasoning-chunks", {"texts": ["\ud800", "y"]})
    log.result(7, "ok", call_id="c")
    log.call(call_id="d")
    read = read_log(log.write(tmp_path))
    assert [(call.seq, call.time, call.outcome.kind) for call in read.calls] == [(7, None, "ok"), (11, None, "open")]
    assert (read.session.first_time, read.session.last_time) == (None, None)
    assert read.report.notes == []


def test_packed_rows_with_numbers_leave_no_gap(tmp_path: Path) -> None:
    log = LogWriter(version=0)
    log.user()
    log.add("text-chunks", {"texts": ["a", "\ud800", "c"]}, seq=ABSENT, time=ABSENT, seq0=1, time0=START)
    log.next = 4
    call = log.call()
    log.result(call)
    read = read_log(log.write(tmp_path))
    assert (read.calls[0].seq, read.kinds, read.report.notes) == (4, ["ok"], [])


def test_a_lost_row_of_a_stripped_log_keeps_its_number(tmp_path: Path) -> None:
    log = LogWriter()
    log.stripped = True
    log.user()
    log.raw(b"{broken")
    log.next += 1
    first, second = log.call(call_id=""), log.call(call_id="")
    log.result(second, "second")
    log.result(first, "first")
    read = read_log(log.write(tmp_path))
    assert [call.seq for call in read.calls] == [2, 3]
    assert texts(read) == [(1, "second"), (0, "first")]
    assert read.report.state == "partial"


def test_garbage_in_a_numbered_log_takes_no_number(tmp_path: Path, log: LogWriter) -> None:
    log.user()
    log.raw(b"garbage")
    log.bash()
    read = read_log(log.write(tmp_path))
    assert (read.kinds, read.report.notes) == (["ok"], [])


def test_a_seq_may_be_written_as_a_double(tmp_path: Path, log: LogWriter) -> None:
    log.call(seq=5.0)
    log.next = 6
    log.result(5, call_id="call_0", sources=[5.0])
    read = read_log(log.write(tmp_path))
    assert [(call.seq, call.outcome.kind) for call in read.calls] == [(5, "ok")]


def test_a_jump_in_the_numbers_is_told_and_harmless(tmp_path: Path, log: LogWriter) -> None:
    log.bash()
    log.next = 43
    log.bash()
    read = read_log(log.write(tmp_path))
    assert [call.seq for call in read.calls] == [0, 43]
    assert (read.report.state, read.report.notes) == ("ok", ["1 gap in the sequence numbers"])


def test_a_block_written_twice_counts_once(tmp_path: Path, log: LogWriter) -> None:
    log.user()
    log.bash("a")
    log.bash("b", "x\n[exit code: 1]")
    log.next = 1
    log.bash("a")
    log.bash("something else under the same numbers")
    log.bash("c")
    read = read_log(log.write(tmp_path))
    assert [call.call.arguments for call in read.calls] == [{"command": command} for command in "abc"]
    assert read.kinds == ["ok", "failed", "ok"]
    assert read.report.notes == ["4 rows with a sequence number seen before, left out"]


def test_a_row_out_of_order_counts_where_it_stands(tmp_path: Path, log: LogWriter) -> None:
    log.bash("a")
    log.next = 4
    log.bash("c")
    log.next = 2
    log.bash("b")
    log.next = 2
    log.bash("b")
    read = read_log(log.write(tmp_path))
    assert [call.call.arguments for call in read.calls] == [{"command": command} for command in "acb"]
    assert read.report.notes == [
        "1 gap in the sequence numbers",
        "2 rows out of order",
        "2 rows with a sequence number seen before, left out",
    ]


def test_numbers_out_of_all_reason_do_no_harm(tmp_path: Path, log: LogWriter) -> None:
    log.bash("a")
    log.add("tool/call", {"turn": 1, "step": 1, "callId": "x", "name": "bash", "arguments": "{}"}, seq=10**30)
    log.next = 2
    log.bash("b")
    log.add("turn/end", {}, seq=-1)
    read = read_log(log.write(tmp_path))
    assert read.kinds == ["ok", "open", "ok"]
    assert read.report.state == "ok"


# Unknown rows


@pytest.mark.parametrize("ignorable", [True, ABSENT])
def test_events_of_plugins_are_passed_over(tmp_path: Path, log: LogWriter, ignorable: object) -> None:
    log.user()
    log.add("roleplay/scene", {"x": 1}, ignorable=ignorable)
    log.add("lyteboat/run", "no object", ignorable=ignorable)
    log.bash()
    read = read_log(log.write(tmp_path))
    assert (read.kinds, read.report.state, read.report.rows) == (["ok"], "ok", 5)
    assert all(note.startswith("2 unknown events") for note in read.report.notes)
    assert read.report.notes
    assert "lyteboat/run, roleplay/scene" in read.report.notes[0]


def test_a_known_row_of_another_shape_is_lost_and_told(tmp_path: Path, log: LogWriter) -> None:
    log.add("tool/call", [1])
    log.bash()
    read = read_log(log.write(tmp_path))
    assert read.kinds == ["ok"]
    assert (read.report.state, read.report.lost_rows) == ("partial", 1)
    (defect,) = read.report.defects
    assert (defect.line, defect.message) == (2, "tool/call has no data object")


# Whether the fetch tool was there


@pytest.mark.parametrize(
    ("tools", "used", "there"),
    [
        ([{"name": "bash"}, {"name": "web_fetch_file"}], "bash", True),
        ([{"name": "bash"}], "web_fetch_file", True),
        ([{"name": "bash"}, {"name": "web_fetch"}], "web_fetch", False),
    ],
)
def test_a_session_offers_the_fetch_tool_where_it_is_listed_or_used(
    tmp_path: Path, log: LogWriter, tools: list[object], used: str, there: bool
) -> None:
    log.add("request/header", {"header": {"config": {"model": "other-model"}, "tools": tools}})
    log.call(name=used)
    log.says()
    session = read_log(log.write(tmp_path)).session
    assert session.offers_fetch_file is there
    assert session.models == ["other-model", "some-model"]


# Facts stream


def test_a_call_is_given_out_as_soon_as_its_outcome_is_known(log: LogWriter) -> None:
    log.user()
    first, second = log.call(name="read"), log.call(name="read")
    log.result(second)
    log.result(first)
    builder = FactBuilder(parse_header(json.dumps(log.header).encode()), ReadReport(shown="x"), DEFAULT_RULESET)
    given: list[list[str]] = []
    for line in log.lines:
        builder.add(line)
        given.append([type(fact).__name__ for fact in builder.drain()])
    assert given == [["TurnFact"], [], [], [], ["CallFact", "CallFact", "SettleFact", "SettleFact"]]


def test_no_fact_waits_for_the_end_of_the_file(tmp_path: Path, log: LogWriter) -> None:
    for _ in range(50):
        log.bash("cat", "x" * 50_000)
    lines = len(log.lines)
    (file,) = find_sessions([log.write(tmp_path)]).files
    reader = SessionReader(file, limits=Limits())
    first = next(reader.facts())
    assert isinstance(first, CallFact)
    assert reader.report.lines < lines


def peak_of(path: Path) -> int:
    (file,) = find_sessions([path]).files
    reader = SessionReader(file)
    tracemalloc.start()
    for _ in reader.facts():
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reader.report.state == "ok"
    return peak


@pytest.mark.parametrize("kind", ["main", "fork"])
def test_memory_does_not_grow_with_the_settled_calls(tmp_path: Path, kind: Literal["main", "fork"]) -> None:
    peaks: list[int] = []
    for calls in (150, 600):
        log = LogWriter("session-a") if kind == "main" else fork()
        if kind == "fork":
            log.bash("the parent's")
            log.marker()
        for number in range(calls):
            log.bash(f"make {number}", "x" * 20_000)
        peaks.append(peak_of(log.write(tmp_path / f"{calls}")))
    assert peaks[1] < peaks[0] + 2_000_000
