"""The tables' fixed schemas: every column's type, unit, what null means in it, and how private its text is."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import pyarrow as pa

from analysis.replay import STAGES

__all__ = [
    "SCHEMA_VERSION",
    "TABLES",
    "Column",
    "Table",
    "TextKind",
    "column_type_name",
    "table_named",
    "tables_document",
]

SCHEMA_VERSION = "breaker/tables/1"
"""Raised whenever a column changes its name, type or meaning."""

TextKind = Literal["fixed", "measure", "name", "identity", "path", "text"]
"""How a column's text is treated where a log may hold secrets; `fixed` are words of this tool, and numbers."""

_INTEGER = pa.int64()
_INDEX = pa.int32()
_NUMBER = pa.float64()
_FLAG = pa.bool_()
_TEXT = pa.string()
_WORD = pa.dictionary(pa.int32(), pa.string())
"""Text that repeats."""
_TIME = pa.timestamp("ms", tz="UTC")
_TEXTS = pa.list_(pa.field("item", pa.string(), nullable=False))
_DEFECTS = pa.list_(
    pa.field(
        "item",
        pa.struct(
            [
                pa.field("kind", pa.string(), nullable=False),
                pa.field("message", pa.string()),
                pa.field("line", pa.int64()),
                pa.field("byte", pa.int64()),
                pa.field("frame", pa.int64()),
                pa.field("lost_bytes", pa.int64(), nullable=False),
            ]
        ),
        nullable=False,
    )
)

_TOO_LARGE = "the log holds a number beyond 64 bits"
_NO_TIME = "the log has no times here"
_NO_USAGE = "the log records no usage"
_PRIVATE = "left out for privacy"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    type: pa.DataType
    description: str
    unit: str = ""
    null: str = ""
    """What null means; empty where the column is never null."""
    text: TextKind = "fixed"

    def field(self) -> pa.Field[pa.DataType]:
        """Return the Arrow field; description, unit and the meaning of null are in its metadata."""
        told = {"description": self.description, "unit": self.unit, "null": self.null, "text": self.text}
        metadata = {key: value for key, value in told.items() if value}
        return pa.field(self.name, self.type, nullable=bool(self.null), metadata=metadata)


@dataclass(frozen=True, slots=True)
class Table:
    """One table: what a row is, its order, and its columns."""

    name: str
    description: str
    order: str
    columns: tuple[Column, ...]
    by_name: dict[str, Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {column.name: column for column in self.columns})

    def schema(self) -> pa.Schema:
        """Return the Arrow schema, without what belongs to one run."""
        return pa.schema([column.field() for column in self.columns])


_KEY = (
    Column("session_index", _INDEX, "Which session: its place among the sessions sorted by path, from 0."),
    Column("session", _WORD, "The session's id; several sessions can share one.", null=_PRIVATE, text="identity"),
)

_OUTCOME_COUNTS = (
    Column("calls", _INTEGER, "Call rows, nested and untracked ones too.", "calls"),
    Column("tracked", _INTEGER, "Calls the guard looks at: the sum of the six outcomes that follow.", "calls"),
    Column("ok", _INTEGER, "Tracked calls that succeeded.", "calls"),
    Column("failed", _INTEGER, "Tracked calls that failed.", "calls"),
    Column("undecidable", _INTEGER, "Tracked calls that ran but whose own result is lost.", "calls"),
    Column("denied", _INTEGER, "Tracked calls this guard had withheld when the session was recorded.", "calls"),
    Column("not_run", _INTEGER, "Tracked calls that never met the guard.", "calls"),
    Column("open", _INTEGER, "Tracked calls without a recorded result.", "calls"),
    Column("failed_text_only", _INTEGER, "Failures whose only evidence is a shell's words.", "calls"),
)


def _stage_word(stage: str) -> str:
    return stage.replace("-", "_")


_STAGE_COUNTS = tuple(
    Column(f"events_{_stage_word(stage)}", _INTEGER, f"Events of the stage `{stage}`.", "events") for stage in STAGES
)


def _first_trip(stage: str) -> tuple[Column, ...]:
    never = f"`{stage}` was never reached"
    word = f"first_{_stage_word(stage)}"
    return (
        Column(f"{word}_call", _INTEGER, f"Index of the first call that reached `{stage}`.", null=never),
        Column(f"{word}_seq", _INTEGER, "That call's sequence number.", null=f"{never}, or {_TOO_LARGE}"),
        Column(f"{word}_turn", _INTEGER, "That call's turn.", null=never),
        Column(f"{word}_seconds", _NUMBER, "From the session's first event to it.", "s", f"{never}, or {_NO_TIME}"),
        Column(f"{word}_tokens", _INTEGER, "Tokens used before it.", "tokens", f"{never}, or {_NO_USAGE}"),
        Column(f"{word}_calls_after", _INTEGER, "Calls recorded after it.", "calls", never),
        Column(f"{word}_seconds_after", _NUMBER, "What the session lasted after it.", "s", f"{never}, or {_NO_TIME}"),
        Column(f"{word}_tokens_after", _INTEGER, "Tokens used after it.", "tokens", f"{never}, or {_NO_USAGE}"),
    )


_NEAR_MISSES = tuple(
    Column(
        f"near_miss_{_stage_word(stage)}",
        _NUMBER,
        f"How far the session stayed from the stage `{stage}`; 0 where it reached it.",
        "counts",
        "the stage is off, or nothing was counted",
    )
    for stage in STAGES
    if stage != "shell-http"
)

_FAILURE = (
    Column("reason", _WORD, "Why it failed: `error`, `exit`, `timeout`, `signal`, `http` …", null="it did not fail"),
    Column(
        "detail",
        _WORD,
        "The failure's detail, such as an exit code or a status; empty where it has none.",
        null=f"it did not fail, or {_PRIVATE}",
        text="name",
    ),
)

_SESSIONS = Table(
    "sessions",
    "One session that counts: one agent's log.",
    "path",
    (
        *_KEY,
        Column("path", _TEXT, "The file it was read from.", null=_PRIVATE, text="path"),
        Column("label", _WORD, "What a person knows of it: `good`, `stuck`, `unknown`."),
        Column("agent", _WORD, "`main` or `subagent`."),
        Column("format_version", _INTEGER, "Version of the session format."),
        Column("project", _WORD, "The working folder.", null=f"the header names none, or {_PRIVATE}", text="path"),
        Column("models", _TEXTS, "The models that spoke, in order of appearance.", text="name"),
        Column("created_at", _TIME, "When it was created.", "UTC", "the header has no time"),
        Column("seconds", _NUMBER, "From its first own event to its last.", "s", _NO_TIME),
        Column("tokens", _INTEGER, "Input, cache reads and output of its messages.", "tokens", _NO_USAGE),
        Column("recorded_under_breaker", _FLAG, "The record shows signs of this guard: its tail is shaped by it."),
        Column("read", _WORD, "Read state: `ok`, `torn` or `partial`."),
        Column("notes", _TEXTS, "What the read report notes.", text="text"),
        Column("shell_http", _FLAG, "The shell-HTTP policy was engaged."),
        Column("turns", _INTEGER, "Human turns.", "turns"),
        *_OUTCOME_COUNTS,
        Column("not_started", _INTEGER, "Calls requested but never started; not among the calls.", "calls"),
        Column("clipped", _INTEGER, "Calls whose recorded output lacks its middle.", "calls"),
        Column("truncated", _INTEGER, "Calls of whose recorded output only the notice of a cut is left.", "calls"),
        Column(
            "peak_measure",
            _TEXT,
            "The enabled measure with the highest next count, under the policy.",
            null=f"no enabled measure was seen, or {_PRIVATE}",
            text="measure",
        ),
        Column("peak_kind", _WORD, "Its kind.", null="no enabled measure was seen"),
        Column("peak", _INTEGER, "That count, the call itself included.", "calls", "no enabled measure was seen"),
        Column(
            "longest_streak_measure",
            _TEXT,
            "The enabled measure with the longest failure streak in the record.",
            null=f"nothing failed, or {_PRIVATE}",
            text="measure",
        ),
        Column("longest_streak_kind", _WORD, "Its kind.", null="nothing failed"),
        Column("longest_streak", _INTEGER, "The length of that streak; 0 without a failure.", "failures"),
        *_STAGE_COUNTS,
        Column("asks", _INTEGER, "Questions put to the operator.", "asks"),
        Column("denials", _INTEGER, "Calls withheld, declined asks included.", "calls"),
        Column("false_rejections", _INTEGER, "Calls withheld that had succeeded in the record.", "calls"),
        *_NEAR_MISSES,
        *(column for stage in STAGES for column in _first_trip(stage)),
    ),
)

_TURNS = Table(
    "turns",
    "One turn of one session: from a human message to the next. Turn 0 is what happened before the first one.",
    "session_index, turn",
    (
        *_KEY,
        Column("turn", _INTEGER, "The turn, from 1; 0 before the first human message."),
        Column("start", _TIME, "Its first event.", "UTC", _NO_TIME),
        Column("seconds", _NUMBER, "From its first event to its last.", "s", _NO_TIME),
        Column("first_call", _INTEGER, "Index of its first call.", null="it has no call"),
        *_OUTCOME_COUNTS,
        *_STAGE_COUNTS,
        Column("withheld", _INTEGER, "Calls the policy withholds.", "calls"),
        Column("messages", _INTEGER, "Messages of the model.", "messages"),
        Column("tokens", _INTEGER, "Input, cache reads and output of those messages.", "tokens", _NO_USAGE),
        Column("lines", _INTEGER, "Lines of the model's reasoning and text that are not blank.", "lines"),
        Column("short_lines", _INTEGER, "Of those, the ones that are short phrases.", "lines"),
        Column("short_line_share", _NUMBER, "short_lines / lines.", "share", "the model wrote nothing"),
    ),
)

_CALLS = Table(
    "calls",
    "One call row of a session, nested and untracked ones too.",
    "session_index, call",
    (
        *_KEY,
        Column("call", _INTEGER, "Index of the call in its session, from 0."),
        Column("seq", _INTEGER, "Sequence number of its row.", null=_TOO_LARGE),
        Column("time", _TIME, "When it was offered.", "UTC", _NO_TIME),
        Column("turn", _INTEGER, "The human turn."),
        Column("recorded_turn", _INTEGER, "The harness' own turn number.", null=f"not recorded, or {_TOO_LARGE}"),
        Column("step", _INTEGER, "The harness' step number.", null=f"not recorded, or {_TOO_LARGE}"),
        Column("tool", _WORD, "The tool's name.", null=_PRIVATE, text="name"),
        Column("nested", _FLAG, "It was made by a program of the model (`run_code`)."),
        Column("tracked", _FLAG, "The guard looks at this tool."),
        Column("outcome", _WORD, "What became of it: `ok`, `failed`, `undecidable`, `denied`, `not-run`, `open`."),
        *_FAILURE,
        Column("evidence", _WORD, "What the outcome rests on: `structured`, `rebuilt`, `text`, `none`."),
        Column("rule", _WORD, "The sign that decided the outcome."),
        Column("clipped", _FLAG, "The recorded output lacks its middle."),
        Column("truncated", _FLAG, "Of the recorded output only the notice of a cut is left."),
        Column("seconds", _NUMBER, "From the call to its result.", "s", f"no result, or {_NO_TIME}"),
        Column("result_length", _INTEGER, "Length of the result's text.", "characters", "no result is recorded"),
        Column("decision", _WORD, "The guard's answer under the policy.", null="it never met the guard"),
        Column("withheld", _FLAG, "The policy withholds it."),
        Column("false_rejection", _FLAG, "The policy withholds it, and it had succeeded in the record."),
        Column(
            "count",
            _INTEGER,
            "The highest next count of its enabled measures, itself included.",
            "calls",
            "it never met the guard, or has no enabled measure",
        ),
        Column(
            "measures",
            _TEXTS,
            "Its measures, enabled or not, in the order that breaks ties.",
            null=_PRIVATE,
            text="measure",
        ),
        Column(
            "arguments",
            _TEXT,
            "Its arguments as the log holds them; numbers of any size stay text.",
            null=_PRIVATE,
            text="text",
        ),
        Column("arguments_length", _INTEGER, "Length of that text.", "characters"),
    ),
)

_EVENTS = Table(
    "events",
    "One stage reached by one call.",
    "session_index, event",
    (
        *_KEY,
        Column("event", _INTEGER, "Index of the event in its session, in the order they happen."),
        Column("detector", _WORD, "What saw it: `breaker`."),
        Column("call", _INTEGER, "Index of the call, also for what its result set off."),
        Column("seq", _INTEGER, "That call's sequence number.", null=_TOO_LARGE),
        Column("turn", _INTEGER, "That call's turn."),
        Column("tool", _WORD, "That call's tool.", null=_PRIVATE, text="name"),
        Column("stage", _WORD, "`warn`, `summarize`, `gate`, `fail-warn`, `fail-gate` or `shell-http`."),
        Column("track", _WORD, "`occurrence`, `failure` or `shell-http`."),
        Column(
            "measure", _TEXT, "The measure it names.", null=f"`shell-http` names none, or {_PRIVATE}", text="measure"
        ),
        Column("kind", _WORD, "That measure's kind.", null="`shell-http` names no measure"),
        Column("count", _INTEGER, "The measure's count or streak.", "calls", "`shell-http` counts nothing"),
        Column("threshold", _NUMBER, "The threshold reached.", "calls", "`shell-http` has none"),
        Column("decision", _WORD, "The guard's answer to the call."),
        *_FAILURE,
        Column("evidence", _WORD, "What that failure rests on.", null="no failure belongs to it"),
    ),
)

_MEASURES = Table(
    "measures",
    "One enabled measure in one session.",
    "session_index, measure_index",
    (
        *_KEY,
        Column("measure_index", _INTEGER, "Which measure of the session, by first appearance from 0."),
        Column("measure", _TEXT, "The measure.", null=_PRIVATE, text="measure"),
        Column("kind", _WORD, "Its kind."),
        Column("cap", _NUMBER, "Its limit.", "calls", "the published measurements count measures without a limit too"),
        Column("occurrences", _INTEGER, "Calls that carry it and met the guard.", "calls"),
        Column("peak", _INTEGER, "Its highest next count, under the policy.", "calls", "no call with it met the guard"),
        Column("failures", _INTEGER, "Its settled failures in the record.", "calls"),
        Column("longest_streak", _INTEGER, "Its longest failure streak in the record.", "failures"),
    ),
)

_STREAKS = Table(
    "streaks",
    "One maximal failure streak of one enabled measure in the record, a single failure too.",
    "session_index, streak",
    (
        *_KEY,
        Column("streak", _INTEGER, "Index of the streak in its session, in the order they began."),
        Column("measure_index", _INTEGER, "Which measure of the session."),
        Column("measure", _TEXT, "The measure.", null=_PRIVATE, text="measure"),
        Column("kind", _WORD, "Its kind."),
        Column("length", _INTEGER, "Failures in a row.", "failures"),
        Column("turn", _INTEGER, "The turn of its last failure."),
        Column("first_call", _INTEGER, "Index of its first failed call."),
        Column("last_call", _INTEGER, "Index of its last failed call."),
        Column("seconds", _NUMBER, "From its first failed result to its last.", "s", _NO_TIME),
        Column("ended_by", _WORD, "`success` of the measure, `reset` by a human turn, or the session's `end`."),
        *_FAILURE,
        Column("evidence", _WORD, "What the last failure rests on."),
    ),
)

_HISTOGRAM = Table(
    "histogram",
    "How often a value was seen, per label and measure kind. Counts are sums: tables of several runs merge by adding.",
    "label, kind, what, value",
    (
        Column("label", _WORD, "The label of the sessions counted."),
        Column("kind", _WORD, "The measure kind."),
        Column(
            "what",
            _WORD,
            "`next`: a call's highest next count of the kind; `peak`: a session's highest; `streak`: the length of a "
            "maximal failure streak.",
        ),
        Column("value", _INTEGER, "The count, or the length.", "calls or failures"),
        Column("count", _INTEGER, "How many calls, sessions or streaks have it.", "calls, sessions or streaks"),
    ),
)

_READ_REPORT = Table(
    "read_report",
    "One file met, whether it counts or not: what could be read and what was lost.",
    "path",
    (
        Column("path", _TEXT, "The file.", null=_PRIVATE, text="path"),
        Column("session_index", _INDEX, "The session it gave.", null="it does not count"),
        Column("state", _WORD, "Read state: `ok`, `torn`, `partial`, `corrupt`, `unsupported`, `duplicate` …"),
        Column(
            "session",
            _WORD,
            "The id in its header.",
            null=f"no header could be read, it has no id, or {_PRIVATE}",
            text="identity",
        ),
        Column("format_version", _INTEGER, "Version in its header.", null="no header could be read"),
        Column("bytes", _INTEGER, "Its size on disk.", "bytes"),
        Column("expanded_bytes", _INTEGER, "Its size as text.", "bytes"),
        Column("lines", _INTEGER, "Lines read.", "lines"),
        Column("rows", _INTEGER, "Rows used, the header not among them.", "rows"),
        Column("lost_rows", _INTEGER, "Rows that could not be used.", "rows"),
        Column("lost_bytes", _INTEGER, "Bytes that could not be used.", "bytes"),
        Column(
            "defects",
            _DEFECTS,
            "What was wrong, with its place: line from 1, byte and zstd frame from 0, null where unknown.",
            text="text",
        ),
        Column("defects_untold", _INTEGER, "Defects beyond the ones listed.", "defects"),
        Column("notes", _TEXTS, "What else is worth knowing.", text="text"),
    ),
)

TABLES: tuple[Table, ...] = (
    _SESSIONS,
    _TURNS,
    _CALLS,
    _EVENTS,
    _MEASURES,
    _STREAKS,
    _HISTOGRAM,
    _READ_REPORT,
)
"""Every table, in the order they are written and documented."""


@cache
def table_named(name: str) -> Table:
    """Return a table by its name.

    Raises:
        KeyError: there is none of that name.
    """
    return {table.name: table for table in TABLES}[name]


def column_type_name(kind: pa.DataType) -> str:
    """Return a column's type as the documentation writes it."""
    if pa.types.is_dictionary(kind):
        return "string (dictionary)"
    if pa.types.is_timestamp(kind):
        return "timestamp (ms)"
    if kind == _TEXTS:
        return "list of string"
    if kind == _DEFECTS:
        return "list of {kind, message, line, byte, frame, lost_bytes}"
    return {"int32": "int32", "int64": "int64", "double": "float64", "bool": "bool", "string": "string"}[str(kind)]


_PRIVACY_TOLD: dict[TextKind, str] = {
    "fixed": "",
    "measure": "measure",
    "name": "name",
    "identity": "identity",
    "path": "path",
    "text": "text",
}


def tables_document() -> str:
    """Return the documentation of every table as Markdown, made from the schemas."""
    lines = [
        "# The tables",
        "",
        "Made from the schemas by `python -m analysis.tables`; a test holds the two equal.",
        "",
        f"Schema version `{SCHEMA_VERSION}`. Every file carries, in its Arrow schema metadata under `breaker.…`, the",
        "schema version, the table, the tool's version, ruleset, policy, effective settings with their hash, and the",
        "privacy it was written under. Rows come in the order given; the order of sessions is that of their paths.",
        "",
        "Private texts (`--privacy`): under `shape`, a *measure* becomes its kind, its host, verb, family or tool,",
        "and its length; a *name* and an *identity* stay where they are plain words and become their length",
        "otherwise; of a *path* and a *text* the lengths are kept, and arguments are left out. Under `hash`, each",
        "becomes a salted hash (a measure keeps its kind, a *name* stays where it is a plain word). Under `counts`,",
        "each is null or empty. `full` keeps them all. A lone surrogate, which no file can hold, is written out",
        "(`\\ud800`).",
        "",
        "The same holds for `manifest.json` and for the settings in the metadata: paths and label globs are *paths*;",
        "of the settings, numbers, switches and defaults stay, limits of a single measure are *measures*, host",
        "aliases are *texts*, tools and arguments are *names*; entries that come out alike are numbered. The",
        "settings' hash is that of the true settings, and the machine's names (`--machine`) stay as given. So",
        "`breaker reproduce` needs the paths, the labels and, where they were not kept whole, the settings of such an",
        "export on its command line.",
    ]
    for table in TABLES:
        lines += [
            "",
            f"## {table.name}",
            "",
            f"{table.description} Sorted by {table.order}.",
            "",
            "| column | type | unit | meaning | null means | private |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| `{column.name}` | {column_type_name(column.type)} | {column.unit} | {column.description} "
            f"| {column.null or 'never null'} | {_PRIVACY_TOLD[column.text]} |"
            for column in table.columns
        ]
    return "\n".join(lines) + "\n"
