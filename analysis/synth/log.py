"""A session log as the harness keeps it, written in format 4, 3 or 0.

A `SessionLog` holds neutral events in the words of format 4. Writing translates them: sequence numbers are given
out at that moment, because format 0 counts every streamed part of an answer as an event of its own and later formats
do not (session format, sections 4, 5.8 and 7.4).
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, cast

import msgspec
import zstandard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

Json = dict[str, object]
Version = Literal[0, 3, 4]

VERSIONS: Final[tuple[Version, ...]] = (4, 3, 0)
"""The format versions that can be written, newest first."""

FRAME_LEVEL: Final = 3
"""Compression level of every frame: fixed, so that equal logs are equal bytes."""

_KEY_LIMIT: Final = 251
_PART_LENGTH: Final = 12
_SURFACE_TYPES: Final = frozenset(
    {"system/message", "developer/message", "user/message", "assistant/message", "tool/result"}
)
_PLUGIN_NAMES: Final = {
    "compact-checkpoint": "compact",
    "ptc-mode": "tools-ptc",
    "compact-basic": "dsh-compaction-basic",
    "system-prompt": "@deepseek-ai/dsh-system-prompt",
    "runtime-context": "@deepseek-ai/dsh-system-prompt",
    "plugin:dsh-repeat-tool-breaker": "repeat-tool-breaker",
}
"""Producer kinds whose name before format 4 was another one (session format, section 5.5)."""
_KINDS_OF_ALL_VERSIONS: Final = frozenset({"user", "model", "tool"})
_ABSENT_IN_0: Final = frozenset({"system/message", "subagent/catalog"})
_CALL_ID_KEYS: Final = frozenset({"callId", "rootCallId", "parentCallId", "subCallId"})
_SHORTEST_RUN: Final = 3
_PIECES: Final = re.compile(r"\s*\S+\s*\Z|\s*\S+")

SYSTEM_PROMPT: Final = "You are a coding agent. Work in the given folder with the tools you are offered."


@dataclass(eq=False, slots=True)
class Event:
    """Hold one event in the words of format 4.

    `data` may hold other events where the format wants their sequence number, and `OwnSeq` where it wants a text
    that ends in the event's own. `replaces` is the pair (first, last) of the events a rewrite hides; None on a
    surface event means it appends.
    """

    type: str
    time: int
    data: Json
    sources: tuple[Event, ...] = ()
    replaces: tuple[Event, Event] | None = None


@dataclass(frozen=True, slots=True)
class OwnSeq:
    """Stand for a text that ends in the sequence number of the event that holds it."""

    prefix: str


@dataclass(frozen=True, slots=True)
class Header:
    """Hold what the first line of a log says, in the words of format 4."""

    id: str
    created_at: int
    cwd: str | None
    parent_session: str | None = None
    is_seeded: bool = False
    origin: str | None = None
    delegation_depth: int = 0
    agent_preset: str | None = "standard"


@dataclass(frozen=True, slots=True)
class Rendered:
    """Hold a log as bytes of one format version, before compression.

    `batches` are the durable appends (whole lines each); `seqs` gives the sequence number of each event. `seeded` logs
    carry a copied history in their first batch.
    """

    header: bytes
    batches: tuple[bytes, ...]
    seqs: dict[Event, int]
    seeded: bool = False


@dataclass(slots=True)
class SessionLog:
    """Collect the events of one session.

    `inherited` is the history copied from a parent (a fork) or from elsewhere (an import); the marker that ends it
    is written by the log itself. `events` are the session's own.
    """

    header: Header
    inherited: tuple[Event, ...] = ()
    events: list[Event] = field(default_factory=list[Event])
    _flushes: set[int] = field(default_factory=set[int])

    def append(
        self,
        kind: str,
        time: int,
        data: Json,
        *,
        sources: Sequence[Event] = (),
        replaces: tuple[Event, Event] | None = None,
    ) -> Event:
        """Add one event and return it."""
        event = Event(kind, time, data, tuple(sources), replaces)
        self.events.append(event)
        return event

    def flush(self) -> None:
        """End the present append batch: the harness makes what it has durable here."""
        self._flushes.add(len(self.events))

    def copy(self) -> SessionLog:
        """Return the log as it is now; what is added later does not enter the copy."""
        return SessionLog(self.header, self.inherited, list(self.events), set(self._flushes))

    def restart(self) -> None:
        """Begin the own events anew, empty."""
        self.events = []
        self._flushes = set()

    def prefix(self, last: Event) -> tuple[Event, ...]:
        """Return the history up to and including one event, for a fork to inherit.

        A history that itself begins with an inherited part carries that part and its marker along.
        """
        end = self.events.index(last) + 1
        return (*self._inherited_with_marker(), *self.events[:end])

    def render(self, version: Version) -> Rendered:
        """Translate the log into lines of one format version."""
        seqs: dict[Event, int] = {}
        batches: list[bytes] = []
        next_seq = 0
        lines: list[bytes] = []
        for event in self._inherited_with_marker():
            next_seq = _write_event(event, version, next_seq, seqs, lines)
        seed_length = next_seq
        for position, event in enumerate(self.events):
            if position in self._flushes and lines:
                batches.append(b"".join(lines))
                lines = []
            next_seq = _write_event(event, version, next_seq, seqs, lines)
        if lines:
            batches.append(b"".join(lines))
        header = header_line(self.header, version, seed_length if self.header.is_seeded else None)
        return Rendered(header, tuple(batches), seqs, self.header.is_seeded)

    def _inherited_with_marker(self) -> tuple[Event, ...]:
        if not self.header.is_seeded:
            return self.inherited
        return (*self.inherited, Event("session/end-seed", self.header.created_at, {"inherited": True}))


def project_key(cwd: str | None) -> str:
    """Return the folder name the harness gives the sessions of one working directory (section 1.2)."""
    if cwd is None:
        return "_no-cwd"
    slug = _escaped(re.sub(r"[/\\:]+", "-", cwd), r"[^A-Za-z0-9._-]").lstrip("-")
    return f"--{slug[:_KEY_LIMIT] or 'root'}--"


def session_folder(session_id: str) -> str:
    """Return the folder name of a session id; no two ids share one."""
    return _escaped(session_id, r"[^A-Za-z0-9_-]")


def file_name(version: int, *, plain: bool) -> str:
    """Return the file name of one generation of a log."""
    tag = f".v{version}" if version else ""
    return f"session{tag}.jsonl{'' if plain else '.zstd'}"


def log_path(root: Path, header: Header, version: int, *, plain: bool) -> Path:
    """Return where the harness keeps a log of this header below a sessions root."""
    return root / project_key(header.cwd) / session_folder(header.id) / file_name(version, plain=plain)


def compressor(level: int = FRAME_LEVEL, *, content_size: bool = True) -> zstandard.ZstdCompressor:
    """Return what makes one frame of a log: with a checksum and, as in the harness' small frames, a content size."""
    return zstandard.ZstdCompressor(level=level, write_checksum=True, write_content_size=content_size)


def encode(rendered: Rendered, *, plain: bool, torn: bool = False) -> Iterator[bytes]:
    """Yield the bytes of a log file, piece by piece.

    Compressed, the first frame is the header line and each further frame one append batch; a copied history is a
    frame without a content size, as the harness streams it. A torn file ends inside its last batch, before that
    batch's first line is whole, so every encoding loses the same rows.
    """
    frames, streamed = compressor(), compressor(content_size=False)
    parts = (rendered.header, *rendered.batches)
    for number, part in enumerate(parts):
        frame = streamed if rendered.seeded and number == 1 else frames
        piece = part if plain else frame.compress(part)
        if torn and number == len(parts) - 1:
            piece = piece[: part.index(b"\n") // 2] if plain else piece[: len(piece) // 2]
        yield piece


def write_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file so that its name never shows half of it.

    The bytes go to a staging name beside it first; when anything fails the staging file is removed and the error
    goes on, an OSError with the name of the file.
    """
    staging = path.with_name(f"{path.name}.0.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with staging.open("wb") as file:
            file.writelines(pieces)
        staging.replace(path)
    except OSError as error:
        with suppress(OSError):
            staging.unlink()
        error.filename = str(path)
        raise
    except BaseException:
        staging.unlink(missing_ok=True)
        raise


def _escaped(text: str, unsafe: str) -> str:
    """Replace each UTF-16 unit of every unsafe character by `~` and four hexadecimal digits."""

    def escape(match: re.Match[str]) -> str:
        units = match[0].encode("utf-16-be", "surrogatepass")
        return "".join(f"~{units[at] << 8 | units[at + 1]:04X}" for at in range(0, len(units), 2))

    return re.sub(unsafe, escape, text)


def _line(row: Json) -> bytes:
    return msgspec.json.encode(row) + b"\n"


def header_line(header: Header, version: Version, seed_length: int | None = None) -> bytes:
    """Return the first line of a log; `seed_length` is how many events format 0 says were inherited."""
    row: Json = {"type": "session", "version": version, "id": header.id, "createdAt": header.created_at}
    if header.cwd is not None:
        row["cwd"] = header.cwd
    if header.parent_session is not None:
        row["parentSession"] = header.parent_session
    if version:
        row["isSeeded"] = header.is_seeded
    elif seed_length is not None:
        row["seedLength"] = seed_length
    if header.origin is not None:
        row["origin"] = header.origin
    row["delegationDepth"] = header.delegation_depth
    if header.agent_preset is not None:
        row["agentPreset"] = header.agent_preset
    return _line(row)


def _write_event(event: Event, version: Version, seq: int, seqs: dict[Event, int], lines: list[bytes]) -> int:
    """Add the rows of one event and return the next free sequence number."""
    sources = [seqs[source] for source in event.sources]
    data = _translated(event, version)
    if version == 0:
        if event.type in _ABSENT_IN_0 or (event.type == "session/end-seed" and event.data):
            return seq
        if event.type == "assistant/message":
            first = seq
            seq = _write_chunks_0(event, seq, lines)
            sources = list(range(first, seq))
    elif event.type == "assistant/message":
        data["stream"] = _stream(event)
    seqs[event] = seq
    name = event.type.replace("tool/ptc-", "tool/code-") if version == 0 else event.type
    row: Json = {"type": name, "seq": seq, "time": event.time, "data": _resolved(data, seq, seqs)}
    if sources:
        row["sourceEventSeqs"] = packed_seqs(sources)
    if event.replaces is not None:
        first_name, last_name = ("startSeq", "endSeq") if version else ("start", "end")
        first_event, last_event = event.replaces
        row["surfaceOp"] = {"op": "replace", first_name: seqs[first_event], last_name: seqs[last_event]}
    elif event.type in _SURFACE_TYPES:
        row["surfaceOp"] = "append"
    lines.append(_line(row))
    return seq + 1


def packed_seqs(seqs: Sequence[int]) -> list[object]:
    """Write sequence numbers as the harness does: runs of three and more as pairs, others one by one (section 4)."""
    packed: list[object] = []
    at = 0
    while at < len(seqs):
        end = at
        while end + 1 < len(seqs) and seqs[end + 1] == seqs[end] + 1:
            end += 1
        run = seqs[at : end + 1]
        packed.extend([[run[0], run[-1]]] if len(run) >= _SHORTEST_RUN else run)
        at = end + 1
    return packed


def _resolved(value: object, own: int, seqs: dict[Event, int]) -> object:
    """Put sequence numbers where the data names events."""
    if isinstance(value, Event):
        return seqs[value]
    if isinstance(value, OwnSeq):
        return f"{value.prefix}{own}"
    if isinstance(value, dict):
        members = cast("Json", value)
        return {key: _resolved(member, own, seqs) for key, member in members.items()}
    if isinstance(value, list):
        items = cast("list[object]", value)
        return [_resolved(item, own, seqs) for item in items]
    return value


def _translated(event: Event, version: Version) -> Json:
    """Return a copy of an event's data in the shape of one format version."""
    data = dict(event.data)
    if version == VERSIONS[0]:
        return data
    match event.type:
        case "user/message":
            data = _with_old_source(data)
        case "agent/inbox/spliced":
            data["inserted"] = [_with_old_source(message) for message in cast("list[Json]", data["inserted"])]
        case "system/message" | "developer/message":
            data["message"] = _with_old_source(cast("Json", data["message"]))
        case "tool/result":
            data["message"] = _nested_result(cast("Json", data["message"]))
        case "request/header" if version == 0:
            data["header"] = cast("Json", data["header"]) | {"system": SYSTEM_PROMPT}
        case _:
            pass
    if version == 0:
        for key in _CALL_ID_KEYS & data.keys():
            data[key] = cast("str", data[key]).replace(":ptc:", ":code:")
    return data


def _with_old_source(message: Json) -> Json:
    """Name the producer of a message as formats before 4 do: by its plugin."""
    source = cast("Json", message["source"])
    kind = cast("str", source["kind"])
    if kind in _KINDS_OF_ALL_VERSIONS:
        return dict(message)
    rest = {key: value for key, value in source.items() if key != "kind"}
    return message | {"source": {"kind": "plugin", "plugin": _PLUGIN_NAMES.get(kind, kind), **rest}}


def _nested_result(message: Json) -> Json:
    """Put a tool's result into a block of a user message, as formats before 4 do (section 5.8)."""
    block: Json = {"type": "tool-result", "toolCallId": message["toolCallId"], "content": message["content"]}
    if "isError" in message:
        block["isError"] = message["isError"]
    return {"role": "user", "id": message["id"], "source": message["source"], "content": [block]}


def _parts(block: Json) -> tuple[str, list[str]]:
    """Cut a block of an answer into the pieces it was streamed in; joined they are the block again."""
    if block["type"] == "tool-call":
        text = cast("str", block["arguments"])
        return "tool-call-chunks", [text[at : at + _PART_LENGTH] for at in range(0, len(text), _PART_LENGTH)] or [""]
    text = cast("str", block["text"])
    pieces = _PIECES.findall(text)
    return ("reasoning-chunks" if block["type"] == "reasoning" else "text-chunks"), pieces or [text]


def _chunks(event: Event) -> Iterator[tuple[str, Json]]:
    """Yield the stream of an answer: single chunks as ("chunk", chunk), packed pieces under their record type."""
    message = cast("Json", event.data["message"])
    blocks = cast("list[Json]", message["content"])
    for index, block in enumerate(blocks):
        yield "chunk", {"type": "block-start", "index": index, "blockType": block["type"]}
        name, pieces = _parts(block)
        record: Json = {"index": index, "dt": [0] * (len(pieces) - 1)}
        if name == "tool-call-chunks":
            record |= {"id": block["id"], "name": block["name"], "args": pieces}
        else:
            record["texts"] = pieces
        yield name, record
        yield "chunk", {"type": "block-end", "index": index, "block": block}
    yield "chunk", {"type": "usage", "usage": event.data["usage"]}
    asks = any(block["type"] == "tool-call" for block in blocks)
    yield "chunk", {"type": "finish", "reason": {"kind": "tool-calls" if asks else "stop"}}


def _stream(event: Event) -> list[object]:
    """Return the stream as formats 2 and later embed it in the answer."""
    records: list[object] = []
    for name, record in _chunks(event):
        if name == "chunk":
            records.append({"type": "chunk", "time": event.time, "chunk": record})
        else:
            records.append({"type": name, "time0": event.time, **record})
    return records


def _write_chunks_0(event: Event, seq: int, lines: list[bytes]) -> int:
    """Add the stream as format 0 keeps it, rows before the answer; a packed row takes one number per piece."""
    place = {"turn": event.data["turn"], "step": event.data["step"]}
    for name, record in _chunks(event):
        if name == "chunk":
            chunk: Json = {"type": "assistant/chunk", "seq": seq, "time": event.time, "data": place | {"chunk": record}}
            lines.append(_line(chunk))
            seq += 1
        else:
            lines.append(_line({"type": name, "seq0": seq, "time0": event.time, "data": place | record}))
            seq += len(cast("list[str]", record.get("texts") or record["args"]))
    return seq
