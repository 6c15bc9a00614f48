import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.detect import parse_detectors
from analysis.replay import (
    FailureKey,
    FirstTrip,
    MeasureCount,
    Policy,
    ReplayEvent,
    ReplayPlan,
    SessionReplay,
    ShellHttpMode,
    replay_session,
    session_run,
)
from analysis.sessions.facts import CallFact, Fact, FactBuilder, MessageFact, SettleFact, TurnFact
from analysis.sessions.find import find_sessions
from analysis.sessions.header import parse_header
from analysis.sessions.outcome_kinds import OUTCOME_KINDS
from analysis.sessions.report import ReadReport
from analysis.sessions.session import SessionReader
from analysis.sessions.session_facts import SessionFacts
from breaker.engine import Decision
from breaker.failure import Failure
from breaker.measures import MeasuredCall
from breaker.settings import Settings
from tests.analysis.logs import ABSENT, Json, LogWriter

EXIT_1 = "x\n[exit code: 1]"
MAKE = "cmd:make:make"
MAKE_EXACT = 'exact:bash:{"command":"make"}'
READ = 'exact:read:{"path":"a"}'
GATED_EARLY: Json = {"name": "AbortError", "code": "ABORTED_BEFORE_DISPATCH"}


def plan(policy: Policy = "unattended", **settings: object) -> ReplayPlan:
    return ReplayPlan(settings=Settings.from_config(settings), policy=policy, keep_events=True)


def replayed(log: LogWriter, how: ReplayPlan) -> SessionReplay:
    """Replay a log without a file."""
    report = ReadReport(shown="x")
    builder = FactBuilder(parse_header(json.dumps(log.header).encode()), report, how.ruleset, source=how.result_source)
    facts: list[Fact] = []
    for line in log.lines:
        builder.add(line)
        facts += builder.drain()
    facts += builder.finish()
    assert not report.notes
    run = session_run(how, builder.session)
    for fact in facts:
        run.take(fact)
    return run.finish(builder.session)


def told(replay: SessionReplay) -> list[tuple[int, str, str, int, float, str]]:
    return [
        (event.call, event.stage, event.measure, event.count, event.threshold, event.decision)
        for event in replay.events
    ]


def reads(log: LogWriter, count: int) -> None:
    for _ in range(count):
        call = log.call(name="read", arguments='{"path": "a"}')
        log.result(call)


@pytest.fixture
def repeats() -> LogWriter:
    """Return a log of the same call thirteen times, each time a success."""
    log = LogWriter()
    log.user()
    reads(log, 13)
    return log


@pytest.fixture
def failures() -> LogWriter:
    """Return a log of the same failing command eight times."""
    log = LogWriter()
    log.user()
    for _ in range(8):
        log.bash("make", EXIT_1)
    return log


# The policies, on repeats

WARN = (6, "warn", READ, 7, 7, "allow")
SUMMARIZE = (10, "summarize", READ, 11, 11, "allow")


@pytest.mark.parametrize(
    ("policy", "settings", "gates", "asks", "denials", "peak"),
    [
        ("unattended", {}, [(11, 12, "ask-declined"), (12, 13, "deny")], 1, 2, 13),
        ("approve", {}, [(11, 12, "ask-approved")], 1, 0, 12),
        ("deny", {}, [(11, 12, "deny"), (12, 13, "deny")], 0, 2, 13),
        ("observe", {}, [(11, 12, "observed"), (12, 13, "observed")], 0, 0, 13),
        ("unattended", {"onLimit": "deny"}, [(11, 12, "deny"), (12, 13, "deny")], 0, 2, 13),
        ("approve", {"onLimit": "deny"}, [(11, 12, "deny"), (12, 13, "deny")], 0, 2, 13),
        ("observe", {"onLimit": "deny"}, [(11, 12, "observed"), (12, 13, "observed")], 0, 0, 13),
    ],
)
def test_repeats_under_each_policy(
    repeats: LogWriter,
    policy: Policy,
    settings: dict[str, object],
    gates: list[tuple[int, int, str]],
    asks: int,
    denials: int,
    peak: int,
) -> None:
    how = plan(policy, **settings)
    replay = replayed(repeats, how)
    assert told(replay) == [
        WARN,
        SUMMARIZE,
        *((call, "gate", READ, count, 12, decision) for call, count, decision in gates),
    ]
    assert (replay.asks, replay.denials, replay.false_rejections) == (asks, denials, denials)
    assert (replay.turns, replay.calls, replay.tracked) == (1, 13, 13)
    assert (replay.outcomes["ok"], replay.settled, replay.streak_length) == (13, 13, 0)
    assert replay.peak == MeasureCount(READ, peak)
    assert replay.near_miss(how.settings) == {"gate": 0, "warn": 0, "summarize": 0, "fail-warn": 3, "fail-gate": 5}
    assert replay.stages == {"warn": 1, "summarize": 1, "gate": len(gates)}
    assert replay.stages_by_kind == {"exact": {"warn": 1, "summarize": 1, "gate": len(gates)}}


def test_eleven_run_and_the_twelfth_is_gated(repeats: LogWriter) -> None:
    del repeats.lines[-4:]
    replay = replayed(repeats, plan())
    assert (replay.calls, replay.denials, replay.stages["gate"]) == (11, 0, 0)
    assert replay.near_miss(plan().settings)["gate"] == 1


def test_the_window_slides_under_observation(repeats: LogWriter) -> None:
    reads(repeats, 10)
    replay = replayed(repeats, plan("observe"))
    assert [event.count for event in replay.events if event.stage == "gate"] == [12, 13, 14, 15, 16, *[17] * 7]
    assert replay.peak == MeasureCount(READ, 17)


def test_a_human_message_and_a_resume_clear_the_state_and_a_notice_does_not() -> None:
    log = LogWriter()
    for clear in (lambda: log.user(), lambda: log.marker(inherited=False), lambda: log.user(kind="plugin")):
        reads(log, 4)
        clear()
    reads(log, 4)
    replay = replayed(log, plan(warnAt=5, summarizeAt=None))
    assert told(replay) == [(12, "warn", READ, 5, 5, "allow")]
    assert replay.peak == MeasureCount(READ, 8)


# The policies, on failures

FAIL_WARN = (2, "fail-warn", MAKE, 3, 3, "allow")


@pytest.mark.parametrize(
    ("policy", "gates", "asks", "denials", "peak"),
    [
        ("unattended", [(5, 5, "ask-declined"), (6, 5, "deny"), (7, 5, "deny")], 1, 3, 8),
        ("approve", [(5, 5, "ask-approved")], 1, 0, 6),
        ("deny", [(5, 5, "deny"), (6, 5, "deny"), (7, 5, "deny")], 0, 3, 8),
    ],
)
def test_failures_under_each_policy(
    failures: LogWriter, policy: Policy, gates: list[tuple[int, int, str]], asks: int, denials: int, peak: int
) -> None:
    how = plan(policy)
    replay = replayed(failures, how)
    assert told(replay) == [
        FAIL_WARN,
        *((call, "fail-gate", MAKE_EXACT, count, 5, decision) for call, count, decision in gates),
    ]
    assert (replay.asks, replay.denials, replay.false_rejections) == (asks, denials, 0)
    assert replay.outcomes == {"failed": 8}
    assert replay.failed_by == {FailureKey("bash", "exit", "1", "rebuilt"): 8}
    assert replay.longest_streak == MeasureCount(MAKE, 8)
    assert replay.peak == MeasureCount(MAKE, peak)


def test_failures_under_observation_go_on(failures: LogWriter) -> None:
    how = plan("observe")
    replay = replayed(failures, how)
    assert told(replay) == [
        FAIL_WARN,
        (5, "fail-gate", MAKE_EXACT, 5, 5, "observed"),
        (6, "fail-gate", MAKE_EXACT, 6, 5, "observed"),
        (6, "warn", MAKE, 7, 7, "observed"),
        (7, "fail-gate", MAKE_EXACT, 7, 5, "observed"),
    ]
    assert replay.near_miss(how.settings) == {"gate": 4, "warn": 0, "summarize": 3, "fail-warn": 0, "fail-gate": 0}


def test_an_event_is_told_in_full(failures: LogWriter) -> None:
    warned, gated, *_ = replayed(failures, plan()).events
    failure = Failure("exit", "1", "rebuilt")
    assert warned == ReplayEvent(
        seq=5,
        turn=1,
        call=2,
        tool="bash",
        stage="fail-warn",
        track="failure",
        measure=MAKE,
        count=3,
        threshold=3,
        decision="allow",
        failure=failure,
    )
    assert (gated.seq, gated.track, gated.failure) == (11, "failure", failure)


def test_a_rejected_success_is_a_false_rejection(failures: LogWriter) -> None:
    log = failures
    log.bash("make", "done")
    replay = replayed(log, plan())
    assert (replay.denials, replay.false_rejections) == (4, 1)
    assert replayed(log, plan("observe")).false_rejections == 0


def test_a_withheld_call_is_not_settled() -> None:
    log = LogWriter()
    for text in (EXIT_1, EXIT_1, "done", EXIT_1):
        log.bash("make", text)
    replay = replayed(log, plan(failWarnAt=None, failLimit=2))
    assert told(replay) == [
        (2, "fail-gate", MAKE_EXACT, 2, 2, "ask-declined"),
        (3, "fail-gate", MAKE_EXACT, 2, 2, "deny"),
    ]
    assert replay.longest_streak == MeasureCount(MAKE, 2)


def test_calls_of_one_batch_are_guarded_before_the_first_of_them_is_settled() -> None:
    log = LogWriter()
    calls = [log.call("make") for _ in range(6)]
    for call in calls:
        log.result(call, EXIT_1)
    log.bash("make", EXIT_1)
    replay = replayed(log, plan())
    assert told(replay) == [FAIL_WARN, (6, "fail-gate", MAKE_EXACT, 6, 5, "ask-declined")]
    assert (replay.calls, replay.outcomes["failed"]) == (7, 7)


def test_four_failures_a_human_and_two_failures_make_a_streak_of_four_and_no_gate() -> None:
    log = LogWriter()
    log.user()
    for _ in range(4):
        log.bash("make", EXIT_1)
    log.user()
    log.bash("make", EXIT_1)
    log.user(kind="tool-jobs")
    log.bash("make", EXIT_1)
    replay = replayed(log, plan(failWarnAt=2))
    assert told(replay) == [
        (1, "fail-warn", MAKE, 2, 2, "allow"),
        (5, "fail-warn", MAKE, 2, 2, "allow"),
    ]
    assert replay.longest_streak == MeasureCount(MAKE, 4)


def test_a_streak_ends_with_a_success_of_its_own_measure_only() -> None:
    log = LogWriter()
    for command, text in (("make", EXIT_1), ("ls", "ok"), ("make", EXIT_1), ("make", "ok"), ("make", EXIT_1)):
        log.bash(command, text)
    assert replayed(log, plan()).longest_streak == MeasureCount(MAKE, 2)


def test_nested_calls_are_calls_of_the_same_agent() -> None:
    log = LogWriter()
    outer = log.call(name="run_code", arguments="{}", call_id="o")
    for number in range(5):
        inner = log.nested({"command": "make"}, sub_id=f"o:{number}", parent="o")
        log.result(inner, EXIT_1)
    log.result(outer)
    log.bash("make", EXIT_1)
    replay = replayed(log, plan())
    assert told(replay) == [
        (3, "fail-warn", MAKE, 3, 3, "allow"),
        (6, "fail-gate", MAKE_EXACT, 5, 5, "ask-declined"),
    ]
    assert (replay.calls, replay.tracked) == (7, 7)


def test_edits_between_failing_tests_do_not_hide_the_failures() -> None:
    log = LogWriter()
    for number in range(9):
        call = log.call(name="edit", arguments=json.dumps({"file_path": "a.py", "new_string": f"try {number}"}))
        log.result(call)
        log.bash("npm test", EXIT_1)
    measure = "cmd:npm:npm test"
    replay = replayed(log, plan())
    assert told(replay) == [
        (5, "fail-warn", measure, 3, 3, "allow"),
        (11, "fail-gate", 'exact:bash:{"command":"npm test"}', 5, 5, "ask-declined"),
        *((call, "fail-gate", 'exact:bash:{"command":"npm test"}', 5, 5, "deny") for call in (13, 15, 17)),
    ]
    assert replay.longest_streak == replay.peak == MeasureCount(measure, 9)
    assert replay.near_miss(plan().settings) == {
        "gate": 3,
        "warn": 0,
        "summarize": 2,
        "fail-warn": 0,
        "fail-gate": 0,
    }


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("bash", '{"command":"make","timeoutMs":1000}', '{"timeoutMs":9, "command":"make"}'),
        ("bash", '{"command":"make","description":"Build"}', '{"command":"make","run_in_background":true}'),
        ("read", '{"path":"a","offset":1}', '{"offset":1.0,"path":"a"}'),
        ("read", '{"path":"a","description":"x"}', '{"path":"a"}'),
        ("read", "", "{}"),
    ],
)
def test_calls_that_differ_in_nothing_that_matters_are_repeats(name: str, first: str, second: str) -> None:
    log = LogWriter()
    for arguments in (first, second):
        log.result(log.call(name=name, arguments=arguments))
    peak = replayed(log, plan()).peak
    assert peak is not None
    assert peak.count == 2


@pytest.mark.parametrize(
    ("first", "second"), [('{"path":"a"}', '{"path":"b"}'), ('{"n":1}', '{"n":"1"}'), ('{"path":"a"}', '{"path":"a"')]
)
def test_calls_that_differ_in_what_matters_are_not(first: str, second: str) -> None:
    log = LogWriter()
    for arguments in (first, second):
        log.result(log.call(name="read", arguments=arguments))
    peak = replayed(log, plan()).peak
    assert peak is not None
    assert peak.count == 1


# What reaches the engine


def test_a_call_denied_before_the_guard_settles_and_does_not_commit() -> None:
    log = LogWriter()
    for _ in range(13):
        call = log.call("make")
        log.hook("PreToolUse", "block")
        log.result(call, "Error: no", is_error=True)
    replay = replayed(log, plan())
    assert told(replay) == [FAIL_WARN]
    assert (replay.peak, replay.longest_streak) == (None, MeasureCount(MAKE, 13))
    assert replay.outcomes == {"failed": 13}
    assert replay.near_miss(plan().settings)["gate"] is None
    log.bash("make")
    assert told(replayed(log, plan()))[1:] == [(13, "fail-gate", MAKE_EXACT, 13, 5, "ask-declined")]


def test_calls_aborted_before_dispatch_leave_nothing() -> None:
    log = LogWriter()
    for _ in range(6):
        call = log.call("make")
        log.result(call, "Error: tool call aborted before dispatch", is_error=True, error=GATED_EARLY)
    replay = replayed(log, plan(failWarnAt=2, warnAt=2))
    assert (replay.events, replay.peak, replay.longest_streak) == ([], None, None)
    assert (replay.tracked, replay.outcomes, replay.settled) == (6, {"not-run": 6}, 0)


@pytest.mark.parametrize("what", ["undecidable", "open", "denied"])
def test_calls_without_a_known_outcome_commit_and_do_not_settle(what: str) -> None:
    log = LogWriter()
    for _ in range(12):
        call = log.call(name="read", arguments='{"path": "a"}')
        if what == "undecidable":
            log.hook("PostToolUse", "block")
            log.result(call, "feedback", is_error=True)
        elif what == "denied":
            log.result(call, "Error: REPEAT_TOOL_BLOCKED", is_error=True)
    replay = replayed(log, plan(failWarnAt=2))
    assert told(replay) == [WARN, SUMMARIZE, (11, "gate", READ, 12, 12, "ask-declined")]
    assert (replay.outcomes, replay.longest_streak) == ({what: 12}, None)
    assert (replay.denials, replay.false_rejections) == (1, 0)


def test_untracked_tools_are_outside_of_it_all() -> None:
    log = LogWriter()
    for _ in range(13):
        call = log.call(name="todo_write", arguments='{"todos": []}')
        log.result(call, is_error=True)
    log.bash("make", EXIT_1)
    replay = replayed(log, plan())
    assert (replay.calls, replay.tracked, replay.outcomes) == (14, 1, {"failed": 1})
    assert replay.events == []


def test_the_words_of_a_shell_are_counted_apart() -> None:
    log = LogWriter()
    log.bash("pytest | tail", "Traceback (most recent call last)\nKeyError: 'x'")
    log.bash("make", EXIT_1)
    log.bash("cat x", "a\n\n(Omitted 5 bytes. Full formatted result stored at: /tmp/x. y)")
    log.bash("cat y", "(Omitted 5 bytes. Full formatted result stored at: /tmp/x. y)")
    replay = replayed(log, plan())
    assert (replay.outcomes, replay.failed_text_only) == ({"failed": 2, "ok": 2}, 1)
    assert (replay.clipped, replay.truncated) == (1, 1)
    assert replay.failed_by == {
        FailureKey("bash", "exception", "KeyError", "text"): 1,
        FailureKey("bash", "exit", "1", "rebuilt"): 1,
    }


# Ties


def test_of_equal_peaks_and_streaks_the_earlier_then_the_lower_rank_counts() -> None:
    log = LogWriter()
    for command in ("make a", "make a", "make b", "make b"):
        log.bash(command, EXIT_1)
    replay = replayed(log, plan())
    assert replay.peak == MeasureCount("cmd:make:make a", 2)
    assert replay.longest_streak == MeasureCount("cmd:make:make a", 2)


def test_a_host_ranks_before_an_address_before_a_command() -> None:
    log = LogWriter()
    for _ in range(3):
        log.bash("curl https://a.example/x", "x\n[exit code: 22]")
    replay = replayed(log, plan())
    assert replay.peak == MeasureCount("host:a.example", 3)
    assert replay.longest_streak == MeasureCount("host:a.example", 3)
    assert told(replay) == [(2, "fail-warn", "host:a.example", 3, 3, "allow")]
    assert replay.near_miss(plan().settings)["gate"] == 9


def test_a_measure_that_is_off_is_not_looked_at() -> None:
    log = LogWriter()
    for number in range(5):
        log.bash(f"curl https://a.example/{number}", "x\n[exit code: 22]")
    replay = replayed(log, plan(limits={"host": None}))
    assert replay.peak == MeasureCount("net:a.example/0", 1)
    assert replay.longest_streak is not None
    assert (replay.longest_streak.measure[:4], replay.longest_streak.count) == ("net:", 1)


def test_stages_that_are_off_have_no_margin() -> None:
    log = LogWriter()
    log.bash()
    how = plan(warnAt=None, summarizeAt=None, failWarnAt=None, failLimit=None)
    margins = replayed(log, how).near_miss(how.settings)
    assert margins == {"gate": 11, "warn": None, "summarize": None, "fail-warn": None, "fail-gate": None}


# Where a stage was first reached


def test_the_first_trip_says_what_was_used_and_what_was_still_to_come() -> None:
    log = LogWriter()
    log.user()
    for number in range(9):
        log.says(tokens=100 + number)
        log.bash("make", EXIT_1)
    log.add("turn/end", {"turn": 1})
    trips = replayed(log, plan()).first_trips
    assert set(trips) == {"fail-warn", "fail-gate"}
    assert trips["fail-warn"] == FirstTrip(
        seq=8,
        turn=1,
        call=2,
        seconds=8.0,
        tokens=100 + 101 + 102,
        calls_after=6,
        seconds_after=20.0,
        tokens_after=sum(range(103, 109)),
    )
    assert (trips["fail-gate"].call, trips["fail-gate"].tokens, trips["fail-gate"].calls_after) == (5, 615, 3)


def test_a_trip_counts_nested_and_untracked_calls_and_has_no_times_where_there_are_none() -> None:
    log = LogWriter()
    log.stripped = True
    call = log.call(name="todo_write", arguments="{}")
    log.result(call)
    outer = log.call(name="run_code", arguments="{}", call_id="o")
    for number in range(3):
        inner = log.nested({"command": "make"}, sub_id=f"o:{number}", parent="o")
        log.result(inner, EXIT_1)
    log.result(outer)
    trip = replayed(log, plan()).first_trips["fail-warn"]
    assert trip == FirstTrip(
        seq=7, turn=0, call=4, seconds=None, tokens=None, calls_after=0, seconds_after=None, tokens_after=None
    )


def test_a_clock_that_steps_back_gives_no_negative_time() -> None:
    log = LogWriter()
    log.user()
    for number in range(4):
        call = log.call("make", time=1000 - number)
        log.result(call, EXIT_1)
    log.add("turn/end", {}, time=5)
    trip = replayed(log, plan()).first_trips["fail-warn"]
    assert (trip.seconds, trip.seconds_after) == (0, 0)


# The log alone, as published


def log_alone(log: LogWriter) -> SessionReplay:
    return replayed(log, ReplayPlan(result_source="log", keep_events=True))


def test_the_log_alone_never_resets_and_counts_every_measure() -> None:
    log = LogWriter()
    for command in ("make a", "make b", "make c"):
        log.user()
        log.bash(command, EXIT_1)
    assert log_alone(log).longest_streak == MeasureCount("verb:make", 3)
    assert replayed(log, plan()).streak_length == 1


def test_the_log_alone_counts_excluded_tools_and_denials() -> None:
    log = LogWriter()
    for number in range(3):
        call = log.call(name="todo_write", arguments='{"todos": []}')
        log.result(call, error=None if number else {"code": "X"})
    log.bash("x", "Error: REPEAT_TOOL_BLOCKED", is_error=True)
    call = log.call("y")
    log.result(call, "aborted", is_error=True, error=GATED_EARLY)
    replay = log_alone(log)
    assert (replay.tracked, replay.outcomes) == (5, {"failed": 4, "ok": 1})
    assert replay.longest_streak == MeasureCount('exact:todo_write:{"todos":[]}', 3)


def test_the_log_alone_sees_no_exit_code_but_the_words() -> None:
    log = LogWriter()
    call = log.call("a")
    log.result(call, "x", meta={"exitCode": 3})
    call = log.call("b")
    log.result(call, EXIT_1)
    call = log.call("c")
    log.result(call, "x\n[sandbox: file access denied under read-only mode]")
    replay = log_alone(log)
    assert replay.outcomes == {"ok": 1, "failed": 2}
    assert replay.failed_text_only == 2


def test_the_log_alone_leaves_calls_without_a_result_open() -> None:
    log = LogWriter()
    log.call("a")
    assert log_alone(log).outcomes == {"open": 1}


# Properties

ENDINGS = ("ok", "exit", "error", "hook", "not-run", "open", "undecidable", "denied", "unknown")
STREAKING = {"ok": False, "exit": True, "error": True, "hook": True}
moments = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(ENDINGS)) | st.sampled_from(["human", "notice", "resume"]),
    max_size=60,
)


def composed(script: list[tuple[int, str] | str]) -> LogWriter:
    log = LogWriter()
    for moment in script:
        if isinstance(moment, str):
            {"human": log.user, "notice": lambda: log.user(kind="schedule")}.get(
                moment, lambda: log.marker(inherited=False)
            )()
            continue
        path, ending = moment
        call = log.call(name="read", arguments=json.dumps({"n": path}))
        if ending == "hook":
            log.hook("PreToolUse", "deny")
        if ending == "undecidable":
            log.hook("PostToolUse", "block")
        if ending == "open":
            continue
        code = {"not-run": "ABORTED_BEFORE_DISPATCH", "unknown": "TOOL_OUTCOME_UNKNOWN"}.get(ending)
        log.result(
            call,
            "Error: REPEAT_TOOL_BLOCKED" if ending == "denied" else "x",
            is_error=ending not in {"ok", "exit"},
            error=ABSENT if code is None else {"code": code},
            meta={"exitCode": 1} if ending == "exit" else ABSENT,
        )
    return log


def recounted(script: list[tuple[int, str] | str]) -> int:
    """Return the longest failure streak, by the plainest count."""
    longest = 0
    streaks = [0, 0, 0]
    for moment in script:
        if isinstance(moment, str):
            if moment != "notice":
                streaks = [0, 0, 0]
        elif moment[1] in STREAKING:
            path, ending = moment
            streaks[path] = streaks[path] + 1 if STREAKING[ending] else 0
            longest = max(longest, streaks[path])
    return longest


@given(moments, st.sampled_from(["unattended", "approve", "deny", "observe"]))
def test_the_census_of_streaks_is_the_plain_count_whatever_the_policy(
    script: list[tuple[int, str] | str], policy: Policy
) -> None:
    log = composed(script)
    replay = replayed(log, plan(policy, failWarnAt=2, failLimit=3))
    assert replay.streak_length == recounted(script)


@given(moments, st.sampled_from(["unattended", "approve", "deny", "observe"]))
def test_every_tracked_call_has_one_outcome(script: list[tuple[int, str] | str], policy: Policy) -> None:
    replay = replayed(composed(script), plan(policy))
    calls = [moment for moment in script if not isinstance(moment, str)]
    assert replay.tracked == replay.calls == len(calls) == sum(replay.outcomes[kind] for kind in OUTCOME_KINDS)
    expected = {"exit": "failed", "error": "failed", "hook": "failed", "unknown": "open"}
    kinds = [expected.get(ending, ending) for _, ending in calls]
    assert {kind: kinds.count(kind) for kind in kinds} == dict(replay.outcomes)
    assert replay.denials <= replay.tracked - replay.outcomes["not-run"]
    assert sum(replay.stages.values()) == len(replay.events)


@given(moments)
def test_the_record_is_the_same_under_every_policy(script: list[tuple[int, str] | str]) -> None:
    log = composed(script)
    runs = [replayed(log, plan(policy)) for policy in ("unattended", "approve", "deny", "observe")]
    first = runs[0]
    for run in runs[1:]:
        assert (run.outcomes, run.failed_by, run.longest_streak) == (
            first.outcomes,
            first.failed_by,
            first.longest_streak,
        )


# A file


def test_a_file_that_cannot_be_used_has_no_replay(tmp_path: Path) -> None:
    path = tmp_path / "s/session.v4.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"no header\n")
    (file,) = find_sessions([path]).files
    assert replay_session(SessionReader(file), ReplayPlan()) is None


@pytest.mark.parametrize("version", [0, 3, 4])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_of_any_version_is_replayed_alike(tmp_path: Path, version: int, compressed: bool) -> None:
    log = LogWriter(version=version)
    log.user()
    for _ in range(6):
        log.bash("make", EXIT_1)
    (file,) = find_sessions([log.write(tmp_path, compressed=compressed)]).files
    replay = replay_session(SessionReader(file), plan())
    assert replay is not None
    assert told(replay) == [FAIL_WARN, (5, "fail-gate", MAKE_EXACT, 5, 5, "ask-declined")]


# A session that may be offered the tool that replaces shell HTTP

CURL = "curl -s https://a.com/x"


class Watcher:
    """Writes down what it sees."""

    def __init__(self) -> None:
        self.seen: list[tuple[object, ...] | ReplayEvent] = []

    def on_turn(self, fact: TurnFact, *, clears_streaks: bool) -> None:
        self.seen.append(("turn", fact.turn, clears_streaks))

    def on_message(self, fact: MessageFact) -> None:
        self.seen.append(("message", fact.tokens))

    def on_call(
        self, fact: CallFact, measured: MeasuredCall, counts: Mapping[str, int], decision: Decision | None
    ) -> None:
        self.seen.append(("call", fact.index, measured.measures, dict(counts), decision))

    def on_settle(self, fact: SettleFact, measured: MeasuredCall | None, streaks: Mapping[str, int]) -> None:
        self.seen.append(("settle", fact.fact.index, dict(streaks)))

    def on_event(self, event: ReplayEvent) -> None:
        self.seen.append(event)

    def on_end(self, session: SessionFacts) -> None:
        self.seen.append(("end", session.calls))


class CountedReader:
    """Counts how often a session is read; may give fewer facts, and fewer when it is read again."""

    def __init__(self, reader: SessionReader, facts: int | None = None, later_facts: int | None = None) -> None:
        self.readings = 0
        self._reader = reader
        self._facts = facts
        self._later_facts = later_facts

    @property
    def session(self) -> SessionFacts | None:
        return self._reader.session

    @property
    def report(self) -> ReadReport:
        return self._reader.report

    def facts(self) -> Iterator[Fact]:
        self.readings += 1
        return islice(self._reader.facts(), self._facts)

    def again(self) -> "CountedReader":
        self.readings += 1
        return CountedReader(self._reader.again(), self._later_facts)


def offers(log: LogWriter) -> None:
    log.add("request/header", {"header": {"config": {"model": "m"}, "tools": [{"name": "web_fetch_file"}]}})


def fetching(offered_at: int | None, *, row_by_row: bool = True) -> LogWriter:
    """Return a log of fourteen fetches in a shell that fail, offered the tool before one of them or not at all.

    A row of a plugin's own has the log read row by row; else it is short enough to be known whole at once.
    """
    log = LogWriter()
    if row_by_row:
        log.add("some-plugin/note", {})
    log.user()
    for number in range(14):
        if number == offered_at:
            offers(log)
        log.bash("echo" if number == 1 else CURL, "x\n[exit code: 6]")
        log.says(tokens=5)
    if offered_at == 14:
        offers(log)
    return log


def watched(reader: CountedReader, how: ReplayPlan) -> tuple[SessionReplay, Watcher]:
    replay = replay_session(reader, how, Watcher)
    assert replay is not None
    assert isinstance(replay.observer, Watcher)
    return replay, replay.observer


def reader_of(log: LogWriter, folder: Path, later_facts: int | None = None) -> CountedReader:
    (file,) = find_sessions([log.write(folder)]).files
    return CountedReader(SessionReader(file), later_facts=later_facts)


@pytest.mark.parametrize(
    ("offered_at", "row_by_row", "readings", "like", "stages"),
    [
        (None, True, 1, "off", {"fail-warn": 1, "fail-gate": 8}),
        (0, True, 1, "on", {"shell-http": 13}),
        (1, True, 2, "on", {"shell-http": 13}),
        (9, True, 2, "on", {"shell-http": 13}),
        (14, True, 2, "on", {"shell-http": 13}),
        (None, False, 1, "off", {"fail-warn": 1, "fail-gate": 8}),
        (14, False, 1, "on", {"shell-http": 13}),
    ],
)
@pytest.mark.parametrize("policy", ["unattended", "approve", "deny", "observe"])
def test_a_session_goes_the_way_it_turns_out_to_go_wherever_the_tool_is_offered(
    tmp_path: Path,
    policy: Policy,
    offered_at: int | None,
    row_by_row: bool,
    readings: int,
    like: ShellHttpMode,
    stages: dict[str, int],
) -> None:
    log = fetching(offered_at, row_by_row=row_by_row)
    how = replace(plan(policy), detectors=parse_detectors(["fail-guard", "reminder"]), keep_messages=True)
    reader = reader_of(log, tmp_path)
    replay, watcher = watched(reader, how)
    assert reader.readings == readings
    plain_reader = reader_of(log, tmp_path)
    plain, plain_watcher = watched(plain_reader, replace(how, shell_http=like))
    assert plain_reader.readings == 1
    assert replay == plain
    assert watcher.seen == plain_watcher.seen
    assert len([seen for seen in watcher.seen if not isinstance(seen, ReplayEvent) and seen[0] == "call"]) == 14
    assert replay.shell_http is (like == "on")
    if policy == "unattended":
        assert replay.stages == stages


def test_a_session_without_a_refusal_is_read_once_and_says_that_the_tool_was_offered(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.bash("make")
    offers(log)
    reader = reader_of(log, tmp_path)
    replay = replay_session(reader, plan())
    assert replay is not None
    assert (reader.readings, replay.shell_http, replay.calls) == (1, True, 1)


@pytest.mark.parametrize("readable", [0, 5])
def test_a_file_that_has_lost_facts_when_it_is_read_again_counts_as_unreadable(tmp_path: Path, readable: int) -> None:
    reader = reader_of(fetching(9), tmp_path, later_facts=readable)
    assert replay_session(reader, plan()) is None
    assert (reader.report.state, reader.report.used) == ("corrupt", False)
    (defect,) = reader.report.defects
    assert (defect.kind, defect.message) == ("unreadable", "the file changed while it was read")
    assert defect.lost_bytes == reader.report.size > 0


def test_a_second_reading_takes_no_more_than_the_first_has_seen(tmp_path: Path) -> None:
    log = fetching(14)

    class Growing(CountedReader):
        def again(self) -> CountedReader:
            log.bash(CURL)
            log.write(tmp_path)
            return super().again()

    (file,) = find_sessions([log.write(tmp_path)]).files
    replay = replay_session(Growing(SessionReader(file)), plan())
    assert replay is not None
    assert (replay.calls, replay.tracked, replay.stages) == (14, 14, {"shell-http": 13})
