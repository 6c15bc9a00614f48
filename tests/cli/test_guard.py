"""`breaker guard`: the engine as a process, JSON lines in, JSON lines out."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.cli.commands import (
    COMMAND,
    PATIENCE,
    Json,
    breaker,
    breaker_process,
    json_lines,
    lines_of,
    raw_items,
    raw_members,
    vector_lines,
    violations,
)

STREAMS = [("0.5.0", 6, 434), ("0.5.2", 12, 787), ("0.8.7", 60, 3503)]
"""Releases with recorded answers: how many streams, how many decisions."""

FAILED: Json = {"isError": True, "error": {"code": "BROKEN"}}
FINE: Json = {"isError": False, "content": [{"type": "text", "text": "done"}]}


def call(identity: object, command: str = "make", **more: object) -> Json:
    return {"kind": "call", "id": identity, "name": "bash", "arguments": {"command": command}, **more}


def result(identity: object, given: object = None, **more: object) -> Json:
    return {"kind": "result", "id": identity, "result": FINE if given is None else given, **more}


def guard(records: Sequence[object], *arguments: str | Path) -> list[Json]:
    done = breaker("guard", *arguments, stdin=lines_of(records))
    assert (done.returncode, done.stderr) == (0, "")
    answers = json_lines(done.stdout)
    assert [violation for answer in answers for violation in violations("guard-output", answer)] == []
    return answers


# The recorded answers


def renamed(event: str, stream: int) -> str:
    """Return an event of a stream as a line of a common input: one agent a stream, numbers spelled as they are."""
    members = {**raw_members(event), "agent": str(stream)}
    if "id" in members:
        members["id"] = f"[{stream},{members['id']}]"
    return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in members.items()) + "}\n"


def decisions(answers: Sequence[Json], stream: int) -> list[Json]:
    """Return one object for each call of a stream, in call order, as the recorded answers are."""
    calls: dict[str, Json] = {}
    for answer in answers:
        agent, identity = answer["id"]
        if agent != stream:
            continue
        if "decision" in answer:
            shown = {key: value for key, value in answer.items() if key not in {"measures", "message"}}
            calls[identity] = shown | {"id": identity, "fps": answer["measures"]}
        else:
            calls[identity] |= {key: answer[key] for key in ("failure", "failureAdvisory", "streaks")}
    return [
        {key: value for key, value in shown.items() if value not in (None, False, [], {})} for shown in calls.values()
    ]


@pytest.mark.shared
@pytest.mark.parametrize(("release", "streams", "count"), STREAMS)
def test_every_recorded_stream_is_answered_as_recorded(
    shared: Path, tmp_path: Path, release: str, streams: int, count: int
) -> None:
    rows = [raw_members(line) for line in vector_lines(shared, release, "streams.jsonl")]
    assert len(rows) == streams
    by_settings: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        by_settings.setdefault(json.dumps(json.loads(row["settings"]), sort_keys=True), []).append(number)
    seen = 0
    for numbers in by_settings.values():
        config = tmp_path / "settings.json"
        config.write_text(rows[numbers[0]]["settings"], encoding="utf-8")
        # Taking turns, so that one agent's events fall between another's.
        turns = zip_longest(*([(number, event) for event in raw_items(rows[number]["events"])] for number in numbers))
        stdin = "".join(renamed(event, number) for turn in turns for number, event in filter(None, turn))
        done = breaker("guard", "--ruleset", release, "--config", config, stdin=stdin.encode())
        assert (done.returncode, done.stderr) == (0, "")
        answers = json_lines(done.stdout)
        assert [violation for answer in answers for violation in violations("guard-output", answer)] == []
        for number in numbers:
            expected = json.loads(rows[number]["expect"])
            assert decisions(answers, number) == expected, f"stream {number + 1}"
            seen += len(expected)
    assert seen == count


@pytest.mark.shared
def test_every_event_of_the_recorded_streams_is_a_line_the_input_schema_allows(shared: Path) -> None:
    events = [
        json.loads(event)
        for line in vector_lines(shared, "0.5.2", "streams.jsonl")
        for event in raw_items(raw_members(line)["events"])
    ]
    assert [violation for event in events for violation in violations("guard-input", event)] == []
    assert {event["kind"] for event in events} == {"user", "notice", "call", "result"}


# Answers


def test_a_call_and_its_result_are_answered() -> None:
    asked, settled = guard([call("c1"), result("c1", FAILED)])
    measures = ['exact:bash:{"command":"make"}', "verb:make", "cmd:make:make"]
    assert asked == {
        "id": "c1",
        "tracked": True,
        "measures": measures,
        "decision": "allow",
        "refused": False,
        "hits": [],
        "blocking": [],
        "advisory": None,
        "streaks": {},
        "window": 1,
        "message": None,
    }
    assert settled == {
        "id": "c1",
        "failure": {"reason": "error", "detail": "BROKEN"},
        "evidence": "structured",
        "failureAdvisory": None,
        "streaks": {measures[0]: 1, measures[2]: 1},
        "message": None,
    }


def test_an_ask_is_declined_unless_the_call_or_the_option_approves() -> None:
    settings = ("--set", "window=4", "--set", "limits.exact=2", "--set", "limits.cmd=null")
    repeats = [call(1), call(2), call(3)]
    assert [answer["decision"] for answer in guard(repeats, *settings)] == ["allow", "ask-declined", "deny"]
    assert [answer["refused"] for answer in guard(repeats, *settings)] == [False, False, True]
    approved = ["allow", "ask-approved", "allow"]
    assert [answer["decision"] for answer in guard(repeats, *settings, "--answer", "approve")] == approved
    repeats[1]["answer"] = "approve"
    assert [answer["decision"] for answer in guard(repeats, *settings)] == approved
    repeats[1]["answer"] = "decline"
    answers = guard(repeats, *settings, "--answer", "approve")
    assert [answer["decision"] for answer in answers] == ["allow", "ask-declined", "deny"]
    exact = 'exact:bash:{"command":"make"}'
    assert answers[1]["hits"] == [{"fp": exact, "next": 2, "cap": 2, "kind": "repeat"}]
    assert answers[1]["blocking"] == [exact]


def test_the_result_of_a_withheld_or_untracked_call_is_not_answered() -> None:
    withheld = guard([call(1), call(2), result(2)], "--set", "limits.exact=2", "--set", "onLimit=deny")
    assert [answer["decision"] for answer in withheld] == ["allow", "deny"]
    untracked: Json = {"kind": "call", "id": 1, "name": "todo_write", "arguments": {}}
    assert [answer["tracked"] for answer in guard([untracked, result(1)])] == [False]


def test_a_human_message_clears_and_a_notice_does_not() -> None:
    window = [answer["window"] for answer in guard([call(1), {"kind": "notice"}, call(2), {"kind": "user"}, call(3)])]
    assert window == [1, 2, 1]


def test_agents_do_not_see_each_other() -> None:
    agents = ["a", "b", "", 1, "1", {"deep": [1]}, None]
    answers = guard([call(1, agent=agent) for agent in agents for _ in range(2)] + [call(1)])
    assert [answer["window"] for answer in answers] == [1, 2] * len(agents) + [3]


def test_messages_are_said_where_they_are_asked_for() -> None:
    records = [event for number in range(3) for event in (call(number), result(number, FAILED))]
    quiet = guard(records)
    told = guard(records, "--messages")
    assert [answer["message"] for answer in quiet] == [None] * 6
    assert [answer["message"] is not None for answer in told] == [False] * 5 + [True]
    assert told[5]["failureAdvisory"]["streak"] == 3
    assert [{**answer, "message": None} for answer in told] == quiet


def test_ids_come_back_as_they_were_given() -> None:
    identities: list[object] = ["c", 7, 7.5, "\ud800", {"a": [1, None]}, None, True, 12345678901234567890]
    answers = guard([event for identity in identities for event in (call(identity), result(identity))])
    assert [answer["id"] for answer in answers] == [
        echoed for identity in [*identities[:-1], 12345678901234567000] for echoed in (identity, identity)
    ]
    (answer,) = json_lines(breaker("guard", stdin=b'{"kind":"call","id":[1.0,1e999],"name":"a"}').stdout)
    assert answer["id"] == [1, None]


def test_each_answer_is_there_before_the_next_line_is_sent() -> None:
    with subprocess.Popen([COMMAND, "guard"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(lines_of([{"kind": "notice"}, call(number)]))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


# Bad lines


BAD_LINES: list[tuple[object, str]] = [
    ({"kind": "what"}, "unknown kind 'what'; known: user, notice, call, result"),
    ({}, "unknown kind None; known: user, notice, call, result"),
    ({"kind": ["call"]}, "unknown kind ['call']; known: user, notice, call, result"),
    (call(1, answer="maybe"), "unknown answer 'maybe'; known: approve, decline"),
    (call(1, answer=["approve"]), "unknown answer ['approve']; known: approve, decline"),
    (call(1, answer=None), "unknown answer None; known: approve, decline"),
    ({"kind": "result", "id": 1}, "no call with id 1 is waiting for a result"),
    (result({"a": 1.0}), 'no call with id {"a":1} is waiting for a result'),
    ([], "not a JSON object"),
    ("call", "not a JSON object"),
    (None, "not a JSON object"),
]


@pytest.mark.parametrize(("record", "message"), BAD_LINES)
def test_a_bad_record_is_answered_in_place_and_changes_nothing(record: object, message: str) -> None:
    first, bad, second = guard([call("a"), record, call("b")])
    assert bad == {"error": message, "line": 2}
    assert (first["window"], second["window"]) == (1, 2)


def test_the_input_schema_refuses_what_no_state_of_the_guard_allows() -> None:
    unlike = [record for record, message in BAD_LINES if "is waiting" not in message]
    assert [record for record in unlike if not violations("guard-input", record)] == []
    assert violations("guard-input", {"kind": "result", "id": 1, "result": 5}) != []
    assert violations("guard-input", result(1, command="make", more=1)) == []


def test_a_result_that_is_no_object_leaves_its_call_waiting() -> None:
    answers = guard([call(1), {"kind": "result", "id": 1, "result": "done"}, result(1), result(1)])
    assert [answer.get("error") for answer in answers] == [
        None,
        "result must be an object",
        None,
        "no call with id 1 is waiting for a result",
    ]


def test_lines_that_are_no_json_are_answered_in_place() -> None:
    good = lines_of([call(1)])
    broken = [
        b"not json\n",
        b'{"kind":"user"\n',
        b'{"kind":"call","id":NaN,"name":"a"}\n',
        b'{"kind":"call","id":1,"name":"\xff"}\n',
        b'{"kind":"call","id":1,"name":"a","arguments":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        b"\xef\xbb\xbf{}\n",
    ]
    done = breaker("guard", stdin=good + b"".join(broken) + b"\n \t\r\n" + good[:-1])
    assert (done.returncode, done.stderr) == (0, "")
    answers = json_lines(done.stdout)
    assert [answer.get("line") for answer in answers] == [None, 2, 3, 4, 5, 6, 7, None]
    assert [answer["error"] for answer in answers if "error" in answer] == [
        "not JSON: Expecting value at character 0",
        "not JSON: Expecting ',' delimiter at character 15",
        "NaN is not JSON",
        "not UTF-8: invalid start byte at byte 30",
        "nested too deeply",
        "not JSON: Expecting value at character 0",
    ]
    assert answers[-1]["window"] == 2


def test_a_line_of_many_megabytes_is_a_line() -> None:
    text = "x" * 8_000_000
    answers = guard([call(1, text), result(1, {"content": [{"type": "text", "text": text}]}), call(2)])
    assert [answer.get("window") for answer in answers] == [1, None, 2]
    assert len(answers[0]["measures"][0]) == len(text) + len('exact:bash:{"command":""}')


def test_a_line_ends_at_a_line_feed_only() -> None:
    answers = guard([call(1), call(2, "echo \u2028\u2029\x85\x0b\x0c")])
    stdin = '{"kind":"call","id":1,"name":"bash","arguments":{"command":"a\u2028b"}}\r\n'
    (raw,) = json_lines(breaker("guard", stdin=stdin.encode()).stdout)
    assert [answer["window"] for answer in answers] == [1, 2]
    assert raw["measures"][0] == 'exact:bash:{"command":"a\u2028b"}'


def test_a_lone_surrogate_is_kept() -> None:
    (answer,) = guard([call("\ud800", "echo \udfff")])
    assert (answer["id"], answer["measures"][2]) == ("\ud800", "cmd:echo:echo \udfff")


# The process


def test_a_caller_that_goes_away_is_no_error() -> None:
    with subprocess.Popen(
        [COMMAND, "guard"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(lines_of([call(1)]))
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(lines_of([call(2)]))
        process.stdin.flush()
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == b""


def test_an_interrupt_ends_it_with_130() -> None:
    with subprocess.Popen(
        [COMMAND, "guard"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(lines_of([call(1)]))
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert process.stderr.read() == b"breaker: error: interrupted\n"


def test_closed_streams_are_no_crash() -> None:
    shell = f"'{COMMAND}' guard <&- && '{COMMAND}' measure ls >&-"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_installed_command_answers_as_the_library_call_does() -> None:
    stdin = lines_of([call(1), result(1, FAILED), {"kind": "x"}])
    assert breaker_process("guard", stdin=stdin).stdout == breaker("guard", stdin=stdin).stdout
