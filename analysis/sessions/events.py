"""Rows to session events: one vocabulary whatever the format version (0 to 4 and the early flat shape)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import msgspec

from analysis.sessions.rows import Row, whole_number
from breaker.messages import KIND_NAMING_PLUGIN, PLUGIN

__all__ = [
    "PACKED_TYPES",
    "UNREAD_TYPES",
    "ApprovalAsked",
    "ApprovalDecided",
    "AssistantMessage",
    "CallStart",
    "Event",
    "HookResult",
    "RequestHeader",
    "ResultEvent",
    "SeedMarker",
    "StepStart",
    "UserMessage",
    "is_known_type",
    "packed_parts",
    "read_event",
]

PACKED_TYPES = frozenset({"text-chunks", "reasoning-chunks", "tool-call-chunks"})
"""Rows of the oldest formats that stand for as many events as they hold parts."""

_NESTED_STARTS = frozenset({"tool/ptc-dispatch-start", "tool/code-dispatch-start"})
_NESTED_SETTLES = frozenset({"tool/ptc-dispatch", "tool/code-dispatch"})

_UNREAD_TYPES = frozenset(
    {
        "agent-preset/selected",
        "agent/inbox/spliced",
        "approval/policy",
        "assistant/attempt",
        "assistant/chunk",
        "command/done",
        "command/run",
        "compaction/end",
        "compaction/prune",
        "compaction/start",
        "compaction/summary",
        "deliverables/presented",
        "developer/message",
        "feedback/message-delete",
        "feedback/message-put",
        "feedback/record",
        "goal/change",
        "hook/invoked",
        "image/offload",
        "llm/retry",
        "llm/retry-started",
        "model/selection",
        "permission/preset",
        "plan/mode",
        "request/context",
        "sandbox/mode",
        "schedule/change",
        "session-log-deepseek/delivery-accepted",
        "session/title",
        "session/title-llm-request",
        "step/end",
        "subagent/catalog",
        "subagent/descriptor",
        "subagent/model-selection-policy",
        "system/message",
        "todo/write",
        "tool-workflow/agent-end",
        "tool-workflow/agent-start",
        "tool-workflow/run-end",
        "tool-workflow/run-start",
        "turn/end",
        "turn/start",
        "web/deepseek-search-llm-request",
        "workspace/changes",
    }
)
_TEAM_PREFIX = "team/"

UNREAD_TYPES = frozenset(kind.encode() for kind in _UNREAD_TYPES)
"""The types of the vocabulary whose data no count needs, as they stand in a log."""


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message in the user's role; a human's where `human`."""

    human: bool
    breaker_notice: bool
    """The guard's own notice, a sign that the session was recorded under it."""
    text: str
    message_id: str


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """A message of the model."""

    tokens: int | None
    """Input, cache reads and output together; None where no usage was recorded."""
    model: str | None
    text: str
    message_id: str


@dataclass(frozen=True, slots=True)
class StepStart:
    """A model step begins."""

    turn: int | None
    step: int | None


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call row: a tool call, or one nested in a program (`nested`)."""

    call_id: str
    name: str
    arguments: object
    """The model's raw text for a call; a JSON value for a nested one."""
    nested: bool
    turn: int | None
    step: int | None


@dataclass(frozen=True, slots=True)
class ResultEvent:
    """A result row: of a call, or of a nested one."""

    call_id: str | None
    message_id: str
    nested: bool
    turn: int | None
    step: int | None
    is_error: bool | None
    """The flag as written; None where it is absent."""
    error: object
    has_error: bool
    """An `error` member exists, even null."""
    meta: Mapping[str, object]
    content: Sequence[object]


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """Somebody was asked whether a call may run."""

    approval_id: str
    call_id: str | None
    tool: str
    reason: str


@dataclass(frozen=True, slots=True)
class ApprovalDecided:
    """What was answered."""

    approval_id: str
    outcome: str


@dataclass(frozen=True, slots=True)
class HookResult:
    """What a hook before or after a tool said."""

    point: str
    decision: str


@dataclass(frozen=True, slots=True)
class SeedMarker:
    """The end of an inherited prefix (`inherited`), or the place where a process opened the log again."""

    inherited: bool


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """What the model was offered."""

    model: str | None
    tools: tuple[str, ...]


Event: TypeAlias = (
    UserMessage
    | AssistantMessage
    | StepStart
    | CallStart
    | ResultEvent
    | ApprovalAsked
    | ApprovalDecided
    | HookResult
    | SeedMarker
    | RequestHeader
)


def is_known_type(kind: str) -> bool:
    """Tell whether a row type is part of the format's vocabulary (plugins add others)."""
    return kind in _READERS or kind in _UNREAD_TYPES or kind in PACKED_TYPES or kind.startswith(_TEAM_PREFIX)


def packed_parts(data: Mapping[str, object]) -> int:
    """Return how many events a packed row stands for; at least one."""
    for member in ("texts", "args"):
        parts = data.get(member)
        if isinstance(parts, list):
            return max(len(cast("list[object]", parts)), 1)
    return 1


def read_event(row: Row) -> Event | None:
    """Read a row into an event; None for a type that no count needs.

    Raises:
        BadRowError: the row is of a known type but not of its shape.
    """
    reader = _READERS.get(row.type)
    return None if reader is None else reader(row)


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[object]:
    return cast("list[object]", value) if isinstance(value, list) else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _block_texts(content: object) -> str:
    return "\n".join(_text(_mapping(block).get("text")) for block in _list(content))


def _user_message(row: Row) -> Event:
    data = row.data()
    message = _mapping(data.get("message", data))
    source = _mapping(message.get("source"))
    kind = _text(source.get("kind"))
    notice = kind == KIND_NAMING_PLUGIN or (kind == "plugin" and source.get("plugin") == PLUGIN)
    return UserMessage(
        human=kind == "user",
        breaker_notice=notice,
        text=_block_texts(message.get("content")),
        message_id=_text(message.get("id")),
    )


_TOKEN_BUCKETS = ("inputTokens", "cacheReadTokens", "outputTokens")


class _Block(msgspec.Struct):
    text: object = None


class _Source(msgspec.Struct):
    model: object = None


class _Message(msgspec.Struct):
    content: list[_Block]
    source: _Source | None = None
    id: object = None


class _AssistantData(msgspec.Struct):
    """What is read of the model's message; the stream it came in, several times as long, is passed over."""

    message: _Message
    usage: dict[str, object] | None = None


_ASSISTANT_DATA = msgspec.json.Decoder(_AssistantData)


def _assistant_message(row: Row) -> Event:
    if row.raw is None:
        return _odd_assistant_message(row)
    try:
        data = _ASSISTANT_DATA.decode(row.raw)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return _odd_assistant_message(row)
    message = data.message
    return AssistantMessage(
        tokens=_tokens(data.usage or {}),
        model=_text_or_none(message.source.model) if message.source is not None else None,
        text="\n".join(_text(block.text) for block in message.content),
        message_id=_text(message.id),
    )


def _odd_assistant_message(row: Row) -> Event:
    """Read a message of another shape, or one the fast decoder refuses."""
    data = row.data()
    message = _mapping(data.get("message", data))
    source = _mapping(message.get("source", data.get("provenance")))
    return AssistantMessage(
        tokens=_tokens(_mapping(data.get("usage"))),
        model=_text_or_none(source.get("model")),
        text=_block_texts(message.get("content")),
        message_id=_text(message.get("id")),
    )


def _tokens(usage: Mapping[str, object]) -> int | None:
    tokens: int | None = None
    for bucket in _TOKEN_BUCKETS:
        count = whole_number(usage.get(bucket))
        if count is not None:
            tokens = (tokens or 0) + count
    return tokens


def _step_start(row: Row) -> Event:
    data = row.data()
    return StepStart(turn=whole_number(data.get("turn")), step=whole_number(data.get("step")))


def _call(row: Row) -> Event:
    data = row.data()
    return CallStart(
        call_id=_text(data.get("callId")),
        name=_text(data.get("name")),
        arguments=data.get("arguments"),
        nested=False,
        turn=whole_number(data.get("turn")),
        step=whole_number(data.get("step")),
    )


def _nested_call(row: Row) -> Event:
    data = row.data()
    return CallStart(
        call_id=_text(data.get("subCallId")),
        name=_text(data.get("name")),
        arguments=data.get("arguments"),
        nested=True,
        turn=None,
        step=None,
    )


def _result(row: Row) -> Event:
    data = row.data()
    message = _mapping(data.get("message", data))
    content = _list(message.get("content"))
    body = message
    if len(content) == 1:
        block = _mapping(content[0])
        if block.get("type") == "tool-result":
            body = block
            content = _list(block.get("content"))
    call_id = _text_or_none(body.get("toolCallId"))
    if call_id is None:
        call_id = _text_or_none(_mapping(message.get("source")).get("callId"))
    if call_id is None:
        call_id = _text_or_none(data.get("callId"))
    return ResultEvent(
        call_id=call_id,
        message_id=_text(message.get("id")),
        nested=False,
        turn=whole_number(data.get("turn")),
        step=whole_number(data.get("step")),
        is_error=_flag(body.get("isError", message.get("isError"))),
        error=data.get("error"),
        has_error="error" in data,
        meta=_mapping(data.get("meta")),
        content=content,
    )


def _nested_result(row: Row) -> Event:
    data = row.data()
    return ResultEvent(
        call_id=_text(data.get("subCallId")),
        message_id="",
        nested=True,
        turn=None,
        step=None,
        is_error=_flag(data.get("isError")),
        error=data.get("error"),
        has_error="error" in data,
        meta=_mapping(data.get("meta")),
        content=_list(data.get("content")),
    )


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _approval_asked(row: Row) -> Event:
    data = row.data()
    return ApprovalAsked(
        approval_id=_text(data.get("id")),
        call_id=_text_or_none(data.get("callId")),
        tool=_text(data.get("toolName")),
        reason=_text(data.get("reason")),
    )


def _approval_decided(row: Row) -> Event:
    data = row.data()
    return ApprovalDecided(approval_id=_text(data.get("id")), outcome=_text(data.get("outcome")))


def _hook_result(row: Row) -> Event:
    data = row.data()
    return HookResult(point=_text(data.get("point")), decision=_text(data.get("decision")))


def _seed_marker(row: Row) -> Event:
    return SeedMarker(inherited=row.data().get("inherited") is True)


def _request_header(row: Row) -> Event:
    header = _mapping(row.data().get("header"))
    names = (_tool_name(_mapping(tool)) for tool in _list(header.get("tools")))
    return RequestHeader(
        model=_text_or_none(_mapping(header.get("config")).get("model")), tools=tuple(name for name in names if name)
    )


def _tool_name(tool: Mapping[str, object]) -> str:
    return _text(tool.get("name")) or _text(_mapping(tool.get("function")).get("name"))


_READERS = {
    "approval/asked": _approval_asked,
    "approval/decided": _approval_decided,
    "assistant/message": _assistant_message,
    "hook/result": _hook_result,
    "request/header": _request_header,
    "session/end-seed": _seed_marker,
    "step/start": _step_start,
    "tool/call": _call,
    "tool/result": _result,
    "user/message": _user_message,
    **dict.fromkeys(_NESTED_STARTS, _nested_call),
    **dict.fromkeys(_NESTED_SETTLES, _nested_result),
}
