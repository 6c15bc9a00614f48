"""Rows to session events: one vocabulary whatever the format version (0 to 4 and the early flat shape)."""

# Annotations are objects here and in `rows`: were they text, it would be compiled anew for every one of sixty records.

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, TypeAlias, Union, cast

import msgspec

from analysis.sessions.decode import Lines
from analysis.sessions.rows import Count, Envelope, Row, parse_row, whole_number
from breaker.messages import KIND_NAMING_PLUGIN, PLUGIN

__all__ = [
    "PACKED_TYPES",
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
    "UsualRow",
    "is_known_type",
    "packed_parts",
    "read_event",
    "read_row",
    "read_rows",
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


class UserMessage(msgspec.Struct, frozen=True):
    """A message in the user's role; a human's where `human`."""

    human: bool
    breaker_notice: bool
    """The guard's own notice, a sign that the session was recorded under it."""
    text: str
    message_id: str


class AssistantMessage(msgspec.Struct, frozen=True):
    """A message of the model."""

    tokens: int | None
    """Input, cache reads and output together; None where no usage was recorded."""
    model: str | None
    text: str
    message_id: str


class StepStart(msgspec.Struct, frozen=True):
    """A model step begins."""

    turn: int | None
    step: int | None


class CallStart(msgspec.Struct, frozen=True):
    """A call row: a tool call, or one nested in a program (`nested`)."""

    call_id: str
    name: str
    arguments: object
    """The model's raw text for a call; a JSON value for a nested one."""
    nested: bool
    turn: int | None
    step: int | None


class ResultEvent(msgspec.Struct, frozen=True):
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
    texts: tuple[str, ...]
    """One for each content block, empty where a block holds none."""

    @property
    def text(self) -> str:
        """All of it, a block a line, as the guard classifies it."""
        return self.texts[0] if len(self.texts) == 1 else "\n".join(self.texts)


class ApprovalAsked(msgspec.Struct, frozen=True):
    """Somebody was asked whether a call may run."""

    approval_id: str
    call_id: str | None
    tool: str
    reason: str


class ApprovalDecided(msgspec.Struct, frozen=True):
    """What was answered."""

    approval_id: str
    outcome: str


class HookResult(msgspec.Struct, frozen=True):
    """What a hook before or after a tool said."""

    point: str
    decision: str


class SeedMarker(msgspec.Struct, frozen=True):
    """The end of an inherited prefix (`inherited`), or the place where a process opened the log again."""

    inherited: bool


class RequestHeader(msgspec.Struct, frozen=True):
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


def read_event(row: "Row | UsualRow") -> Event | None:
    """Read a row into an event; None for a type that no count needs.

    Raises:
        BadRowError: the row is of a known type but not of its shape.
    """
    if isinstance(row, UsualRow):
        return row.event()
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


def _block_texts(content: object) -> tuple[str, ...]:
    return tuple(_text(_mapping(block).get("text")) for block in _list(content))


def _user_message(row: Row) -> Event:
    data = row.data()
    message = _mapping(data.get("message", data))
    source = _mapping(message.get("source"))
    kind = _text(source.get("kind"))
    notice = kind == KIND_NAMING_PLUGIN or (kind == "plugin" and source.get("plugin") == PLUGIN)
    return UserMessage(
        human=kind == "user",
        breaker_notice=notice,
        text="\n".join(_block_texts(message.get("content"))),
        message_id=_text(message.get("id")),
    )


_TOKEN_BUCKETS = ("inputTokens", "cacheReadTokens", "outputTokens")


def _assistant_message(row: Row) -> Event:
    data = row.data()
    message = _mapping(data.get("message", data))
    source = _mapping(message.get("source", data.get("provenance")))
    return AssistantMessage(
        tokens=_tokens(_mapping(data.get("usage"))),
        model=_text_or_none(source.get("model")),
        text="\n".join(_block_texts(message.get("content"))),
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
        texts=_block_texts(content),
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
        texts=_block_texts(data.get("content")),
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


# The usual rows in their usual shape are decoded in one step, and only what is read of them; whatever is shaped
# otherwise, or refused by the fast decoder, goes through the readers above and comes to the same.


class UsualRow(Envelope, kw_only=True, tag_field="type"):
    """A row of a known type in its usual shape, decoded in one step. Its own members say what is read of it."""

    kind: ClassVar[str]

    @property
    def is_packed(self) -> bool:
        """Tell whether it is numbered as rows are that stand for several; it has to be read otherwise."""
        return self.seq0 is not None or self.time0 is not None

    def event(self) -> Event | None:
        """Return what the row tells; None for a type that no count needs."""
        return None


class _TextBlock(msgspec.Struct, tag_field="type", tag="text"):
    text: str


class _ResultMessage(msgspec.Struct):
    content: list[_TextBlock]
    tool_call_id: str = msgspec.field(name="toolCallId")
    id: str = ""
    is_error: bool | None = msgspec.field(default=None, name="isError")


class _ResultData(msgspec.Struct):
    message: _ResultMessage
    turn: Count | None = None
    step: Count | None = None
    error: object = msgspec.UNSET
    meta: dict[str, object] | None = None


class _ResultRow(UsualRow, kw_only=True, tag="tool/result"):
    kind = "tool/result"
    data: _ResultData

    def event(self) -> Event:
        data, message = self.data, self.data.message
        given = data.error is not msgspec.UNSET
        return ResultEvent(
            message.tool_call_id,
            message.id,
            False,
            data.turn,
            data.step,
            message.is_error,
            data.error if given else None,
            given,
            data.meta or {},
            tuple([block.text for block in message.content]),
        )


class _CallData(msgspec.Struct):
    call_id: str = msgspec.field(name="callId")
    name: str
    arguments: object = None
    turn: Count | None = None
    step: Count | None = None


class _CallRow(UsualRow, kw_only=True, tag="tool/call"):
    kind = "tool/call"
    data: _CallData

    def event(self) -> Event:
        data = self.data
        return CallStart(data.call_id, data.name, data.arguments, False, data.turn, data.step)


class _StepData(msgspec.Struct):
    turn: Count | None = None
    step: Count | None = None


class _StepRow(UsualRow, kw_only=True, tag="step/start"):
    kind = "step/start"
    data: _StepData

    def event(self) -> Event:
        return StepStart(self.data.turn, self.data.step)


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


class _AssistantRow(UsualRow, kw_only=True, tag="assistant/message"):
    kind = "assistant/message"
    data: _AssistantData

    def event(self) -> Event:
        data, message = self.data, self.data.message
        return AssistantMessage(
            None if data.usage is None else _tokens(data.usage),
            _text_or_none(message.source.model) if message.source is not None else None,
            "\n".join([_text(block.text) for block in message.content]),
            _text(message.id),
        )


class _OtherRow(UsualRow, kw_only=True, tag=""):
    """A row that is read piece by piece all the same."""

    data: msgspec.Raw = msgspec.Raw()

    def event(self) -> Event | None:
        raw = self.data if memoryview(self.data) else None
        return read_event(Row(self.kind, self.seq, self.time, self.appended, self.sources, raw, None))


def _rows_of(base: type[UsualRow], kinds: Iterable[str]) -> list[type[UsualRow]]:
    made = (msgspec.defstruct("_Row", [], bases=(base,), tag=kind, namespace={"kind": kind}) for kind in sorted(kinds))
    return [cast("type[UsualRow]", one) for one in made]


_USUAL: list[type[UsualRow]] = [_ResultRow, _CallRow, _StepRow, _AssistantRow]
_ROWS: msgspec.json.Decoder[UsualRow] = msgspec.json.Decoder(
    Union[  # noqa: UP007
        tuple(
            _USUAL
            + _rows_of(UsualRow, _UNREAD_TYPES)
            + _rows_of(_OtherRow, _READERS.keys() - {one.kind for one in _USUAL})
        )
    ]
)


def read_rows(lines: Lines) -> list[UsualRow] | None:
    """Decode many lines at once; None where not every one is one usual row and nothing else.

    The decoder alone would take two rows on a line, blank lines, and a row over several lines.
    """
    if not lines.one_object_each:
        return None
    try:
        rows = _ROWS.decode_lines(lines.text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    return None if len(rows) != lines.count or any(row.is_packed for row in rows) else rows


def read_row(data: bytes) -> Row | UsualRow:
    """Decode one line. A row that nobody reads is passed over by its structure: what its texts hold is not judged.

    Raises:
        BadRowError: it is no record.
    """
    try:
        row = _ROWS.decode(data)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return parse_row(data)
    return parse_row(data) if row.is_packed else row
