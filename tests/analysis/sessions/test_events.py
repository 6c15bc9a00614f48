import json

import pytest

from analysis.sessions.events import (
    ApprovalAsked,
    ApprovalDecided,
    AssistantMessage,
    CallStart,
    Event,
    HookResult,
    RequestHeader,
    ResultEvent,
    SeedMarker,
    StepStart,
    UserMessage,
    is_known_type,
    packed_parts,
    read_event,
    read_row,
)
from analysis.sessions.rows import BadRowError, parse_row

Json = dict[str, object]


def event(kind: str, data: object) -> Event | None:
    line = json.dumps({"type": kind, "seq": 1, "data": data}).encode()
    read = read_event(read_row(line))
    assert read == read_event(parse_row(line))
    return read


def result(data: Json) -> ResultEvent:
    read = event("tool/result", data)
    assert isinstance(read, ResultEvent)
    return read


# Results, in every shape

TEXT: list[object] = [{"type": "text", "text": "…\n[exit code: 2]"}]
TEXTS = ("…\n[exit code: 2]",)


def test_a_result_of_format_4_stands_at_the_top_of_its_message() -> None:
    read = result(
        {
            "turn": 2,
            "step": 3,
            "message": {
                "role": "tool",
                "source": {"kind": "tool", "callId": "c1"},
                "toolCallId": "c1",
                "content": TEXT,
                "isError": True,
                "id": "79f2",
            },
            "error": {"name": "FsError", "code": "FS_NOT_FOUND"},
            "meta": {"statusCode": 200},
        }
    )
    assert read == ResultEvent(
        call_id="c1",
        message_id="79f2",
        nested=False,
        turn=2,
        step=3,
        is_error=True,
        error={"name": "FsError", "code": "FS_NOT_FOUND"},
        has_error=True,
        meta={"statusCode": 200},
        texts=TEXTS,
    )


def test_a_result_of_older_formats_is_a_block_of_a_users_message() -> None:
    block: Json = {"type": "tool-result", "toolCallId": "c1", "content": TEXT, "isError": False}
    message: Json = {"role": "user", "id": "m", "source": {"kind": "tool", "callId": "c1"}, "content": [block]}
    read = result({"turn": 1, "step": 1, "message": message, "meta": None})
    assert (read.call_id, read.message_id, read.is_error, read.texts) == ("c1", "m", False, TEXTS)
    assert (read.meta, read.has_error) == ({}, False)


def test_a_result_of_the_earliest_shape_is_flat() -> None:
    read = result({"turn": 1, "step": 1, "callId": "c1", "content": TEXT, "isError": True})
    assert (read.call_id, read.message_id, read.is_error, read.texts) == ("c1", "", True, TEXTS)


def test_a_result_names_its_call_by_the_source_where_that_is_all_there_is() -> None:
    assert result({"message": {"source": {"kind": "tool", "callId": "c9"}, "content": []}}).call_id == "c9"
    assert result({"message": {"content": []}}).call_id is None
    assert result({"message": {"toolCallId": "", "content": []}}).call_id == ""


def test_an_absent_error_flag_is_not_false() -> None:
    assert result({"message": {"toolCallId": "c", "content": []}}).is_error is None
    assert result({"message": {"toolCallId": "c", "content": [], "isError": "yes"}}).is_error is None


def test_a_null_error_is_there() -> None:
    read = result({"message": {"toolCallId": "c", "content": []}, "error": None})
    assert (read.error, read.has_error) == (None, True)


def test_a_result_of_odd_parts_is_a_result_without_them() -> None:
    read = result({"turn": "1", "step": 1.5, "message": 7, "meta": [1], "content": "text"})
    assert (read.call_id, read.turn, read.step, read.meta, read.texts) == (None, None, None, {}, ())


# Calls


def test_a_call_keeps_the_models_text() -> None:
    data: Json = {"turn": 1, "step": 2, "callId": "c1", "name": "bash", "arguments": '{"command":"make"}'}
    assert event("tool/call", data) == CallStart("c1", "bash", '{"command":"make"}', nested=False, turn=1, step=2)


def test_a_call_without_id_and_name_is_a_call() -> None:
    assert event("tool/call", {"turn": 1, "step": 1}) == CallStart("", "", None, nested=False, turn=1, step=1)


@pytest.mark.parametrize("word", ["ptc", "code"])
@pytest.mark.parametrize("arguments", [{"command": "ls"}, "npm test", None, [1]])
def test_a_nested_call_goes_by_two_names(word: str, arguments: object) -> None:
    data: Json = {
        "rootCallId": "c9",
        "parentCallId": "c9",
        "subCallId": f"c9:{word}:1",
        "name": "bash",
        "arguments": arguments,
    }
    start = event(f"tool/{word}-dispatch-start", data)
    assert start == CallStart(f"c9:{word}:1", "bash", arguments, nested=True, turn=None, step=None)
    settle = event(f"tool/{word}-dispatch", {**data, "isError": False, "content": TEXT})
    assert settle == ResultEvent(f"c9:{word}:1", "", True, None, None, False, None, False, {}, TEXTS)


# Messages


def test_a_users_message_of_the_late_shape() -> None:
    data: Json = {"content": [{"type": "text", "text": "fix the build"}], "source": {"kind": "user"}, "id": "5f0c"}
    assert event("user/message", data) == UserMessage(True, False, "fix the build", "5f0c")


def test_a_users_message_of_the_earliest_shape_has_no_id() -> None:
    data: Json = {"content": [{"type": "text", "text": "hi"}], "source": {"kind": "user", "rpcId": "r"}}
    assert event("user/message", data) == UserMessage(True, False, "hi", "")


@pytest.mark.parametrize(
    "source",
    [{"kind": "plugin", "plugin": "user"}, {"kind": "schedule"}, {"kind": "USER"}, {"kind": "plugin:plugin:x"}, {}, 5],
)
def test_only_the_kind_user_is_human(source: object) -> None:
    assert event("user/message", {"content": [], "source": source}) == UserMessage(False, False, "", "")


@pytest.mark.parametrize(
    ("source", "own"),
    [
        ({"kind": "plugin", "plugin": "repeat-tool-breaker"}, True),
        ({"kind": "plugin:dsh-repeat-tool-breaker"}, True),
        ({"kind": "plugin", "plugin": "repeat-tool-reminder"}, False),
        ({"kind": "repeat-tool-reminder"}, False),
        ({"kind": "repeat-tool-breaker"}, False),
    ],
)
def test_the_guards_own_notices_are_told_apart(source: Json, own: bool) -> None:
    read = event("user/message", {"content": [], "source": source})
    assert isinstance(read, UserMessage)
    assert read.breaker_notice is own


USAGE = {"inputTokens": 120, "outputTokens": 40, "cacheReadTokens": 2816, "reasoningTokens": 17, "totalTokens": 9999}


def test_an_answer_counts_input_cache_reads_and_output() -> None:
    message: Json = {
        "role": "assistant",
        "content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "Running it."}],
        "source": {"kind": "model", "provider": "p", "model": "m-flash"},
        "id": "d1",
    }
    read = event("assistant/message", {"turn": 1, "step": 1, "message": message, "usage": USAGE, "stream": []})
    assert read == AssistantMessage(120 + 40 + 2816, "m-flash", "hm\nRunning it.", "d1")


def test_an_answer_of_the_earliest_shape_names_its_model_as_provenance() -> None:
    data: Json = {"turn": 1, "step": 1, "content": [{"type": "text", "text": "ok"}], "provenance": {"model": "m"}}
    assert event("assistant/message", data) == AssistantMessage(None, "m", "ok", "")


def test_an_answer_with_a_part_of_the_usage_counts_that_part() -> None:
    data: Json = {"message": {"content": []}, "usage": {"inputTokens": 5, "outputTokens": "7", "cacheReadTokens": None}}
    assert event("assistant/message", data) == AssistantMessage(5, None, "", "")


# What stands around calls


def test_approvals_hooks_steps_and_markers() -> None:
    asked: Json = {"id": "a1", "toolName": "bash", "callId": "c1", "reason": "escalate sandbox to x: y"}
    assert event("approval/asked", asked) == ApprovalAsked("a1", "c1", "bash", "escalate sandbox to x: y")
    assert event("approval/asked", {"id": "a1", "toolName": "bash"}) == ApprovalAsked("a1", None, "bash", "")
    assert event("approval/decided", {"id": "a1", "outcome": "approved"}) == ApprovalDecided("a1", "approved")
    hook: Json = {"turn": 1, "point": "PreToolUse", "decision": "block", "exitCode": 2}
    assert event("hook/result", hook) == HookResult("PreToolUse", "block")
    assert event("step/start", {"turn": 2, "step": 4}) == StepStart(2, 4)
    assert event("session/end-seed", {"inherited": True}) == SeedMarker(inherited=True)
    assert event("session/end-seed", {}) == SeedMarker(inherited=False)
    assert event("session/end-seed", {"inherited": "true"}) == SeedMarker(inherited=False)


def test_a_request_names_its_model_and_tools_in_either_schema() -> None:
    tools: list[object] = [{"name": "run_code"}, {"type": "function", "function": {"name": "web_fetch_file"}}, {}, 5]
    header: Json = {"config": {"provider": "p", "model": "m"}, "tools": tools, "system": "You are"}
    read = event("request/header", {"header": header, "reason": "initial"})
    assert read == RequestHeader("m", ("run_code", "web_fetch_file"))
    assert event("request/header", {}) == RequestHeader(None, ())


# The vocabulary


@pytest.mark.parametrize("kind", ["tool/call", "user/message", "assistant/chunk", "team/joined", "text-chunks"])
def test_the_formats_own_types_are_known(kind: str) -> None:
    assert is_known_type(kind)


@pytest.mark.parametrize("kind", ["roleplay/scene", "tool/cal", "", "lyteboat/x", "tool/ptc-dispatch-end"])
def test_types_of_plugins_are_not(kind: str) -> None:
    assert not is_known_type(kind)


def test_a_type_that_bears_on_no_count_is_no_event() -> None:
    assert event("turn/end", {"turn": 1}) is None
    assert event("roleplay/scene", {}) is None
    assert event("turn/end", None) is None


@pytest.mark.parametrize("kind", ["tool/call", "tool/result", "user/message", "tool/ptc-dispatch", "session/end-seed"])
@pytest.mark.parametrize("data", [None, [], "text", 5])
def test_a_known_row_without_its_data_is_bad(kind: str, data: object) -> None:
    with pytest.raises(BadRowError, match=kind):
        event(kind, data)


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        ({"texts": ["a", "b", "c"]}, 3),
        ({"args": ["{", "}"]}, 2),
        ({"texts": []}, 1),
        ({}, 1),
        ({"texts": "abc"}, 1),
    ],
)
def test_a_packed_row_stands_for_its_parts(data: Json, parts: int) -> None:
    assert packed_parts(data) == parts
