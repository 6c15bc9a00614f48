"""Session logs made by hand, row by row, and what the reader says of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import zstandard

from analysis.sessions.facts import CallFact, Fact, TurnFact
from analysis.sessions.find import find_sessions
from analysis.sessions.outcomes import Outcome
from analysis.sessions.report import ReadReport
from analysis.sessions.session import SessionReader
from analysis.sessions.session_facts import ResultSource, SessionFacts
from breaker.rulesets import DEFAULT_RULESET, Ruleset

Json = dict[str, object]

START = 1_700_000_000_000
"""The time of a log's header; row n follows n seconds after it."""

ABSENT = object()


@dataclass(frozen=True)
class Made:
    """A call row as it was written."""

    call_id: object
    turn: int
    step: int
    nested: bool


class LogWriter:
    """Composes one log. Every method adds a row and returns its sequence number."""

    def __init__(self, session_id: str = "session-a", *, version: int = 4, flat: bool = False, **header: object):
        self.version = version
        self.flat = flat
        self.header: Json = {"type": "session", "version": version, "id": session_id, "createdAt": START, **header}
        if version >= 2:
            self.header.setdefault("isSeeded", False)
        self.stripped = False
        """Leave out seq and time, as published recordings do."""
        self.lines: list[bytes] = []
        self.next = 0
        self.made: dict[int, Made] = {}

    def add(self, kind: str, data: object, **envelope: object) -> int:
        """Add a row; envelope members given as ABSENT are left out."""
        seq = self.next
        row: Json = {"type": kind, "seq": seq, "time": START + 1000 * seq, "data": data, **envelope}
        if self.stripped:
            del row["seq"], row["time"]
        row = {key: value for key, value in row.items() if value is not ABSENT}
        if isinstance(row.get("seq"), int):
            seq = int(str(row["seq"]))
        self.lines.append(json.dumps(row).encode())
        self.next = seq + 1
        return seq

    def raw(self, line: bytes) -> None:
        """Add a line as it is, without a number."""
        self.lines.append(line)

    def user(self, text: str = "go on", kind: str = "user", op: object = "append", **source: object) -> int:
        message: Json = {"content": [{"type": "text", "text": text}], "source": {"kind": kind, **source}}
        if not self.flat:
            message |= {"role": "user", "id": f"m{self.next}"}
        return self.add("user/message", message, surfaceOp=op)

    def says(self, text: str = "well", tokens: int | None = None) -> int:
        content = [{"type": "text", "text": text}]
        data: Json = {"turn": 1, "step": 1}
        if self.flat:
            data |= {"content": content, "provenance": {"provider": "p", "model": "some-model"}}
        else:
            source = {"kind": "model", "provider": "p", "model": "some-model"}
            data["message"] = {"role": "assistant", "content": content, "source": source, "id": f"m{self.next}"}
        if tokens is not None:
            data["usage"] = {"inputTokens": tokens, "outputTokens": 0, "cacheReadTokens": 0, "reasoningTokens": 99}
        return self.add("assistant/message", data, surfaceOp="append")

    def call(
        self,
        command: str = "make",
        *,
        name: str = "bash",
        arguments: object = None,
        call_id: object = None,
        turn: int = 1,
        step: int = 1,
        **envelope: object,
    ) -> int:
        """Add a call; of `bash` with a command where no arguments are given."""
        made = Made(f"call_{self.next}" if call_id is None else call_id, turn, step, nested=False)
        given = json.dumps({"command": command}) if arguments is None else arguments
        data: Json = {"turn": turn, "step": step, "callId": made.call_id, "name": name, "arguments": given}
        seq = self.add("tool/call", data, **envelope)
        self.made[seq] = made
        return seq

    def nested(self, arguments: object, *, sub_id: str, parent: str, name: str = "bash") -> int:
        """Add the start of a call inside a program."""
        data: Json = {"rootCallId": parent, "parentCallId": parent, "subCallId": sub_id}
        word = "ptc" if self.version else "code"
        seq = self.add(f"tool/{word}-dispatch-start", {**data, "name": name, "arguments": arguments})
        self.made[seq] = Made(sub_id, 0, 0, nested=True)
        return seq

    def result(
        self,
        call: int,
        text: str = "done",
        *,
        is_error: object = False,
        error: object = ABSENT,
        meta: object = ABSENT,
        content: object = None,
        call_id: object = None,
        sources: object = None,
        message_id: str | None = None,
        op: object = "append",
        turn: int | None = None,
        step: int | None = None,
    ) -> int:
        """Add the result of a call, in the shape of the log's version; `sources` ABSENT leaves out the link."""
        made = self.made.get(call, Made(f"call_{call}", 1, 1, nested=False))
        identity = made.call_id if call_id is None else call_id
        body: Json = {"content": [{"type": "text", "text": text}] if content is None else content}
        if is_error is not ABSENT:
            body["isError"] = is_error
        extra: Json = {key: value for key, value in (("error", error), ("meta", meta)) if value is not ABSENT}
        if made.nested:
            word = "ptc" if self.version else "code"
            return self.add(f"tool/{word}-dispatch", {"subCallId": identity, "name": "bash", **body, **extra})
        data: Json = {"turn": made.turn if turn is None else turn, "step": made.step if step is None else step}
        message: Json = {"source": {"kind": "tool", "callId": identity}, "id": message_id or f"m{self.next}"}
        if self.flat:
            data |= {"callId": identity, **body}
        elif self.version < 4:
            block: Json = {"type": "tool-result", "toolCallId": identity, **body}
            data["message"] = {**message, "role": "user", "content": [block]}
        else:
            data["message"] = {**message, "role": "tool", "toolCallId": identity, **body}
        links = [call] if sources is None else sources
        return self.add("tool/result", {**data, **extra}, sourceEventSeqs=links, surfaceOp=op)

    def bash(self, command: str = "make", text: str = "done", *, is_error: bool = False) -> int:
        """Add a shell call and its result; returns the call's number."""
        seq = self.call(command)
        self.result(seq, text, is_error=is_error)
        return seq

    def asked(self, approval: str, reason: str, call_id: object = ABSENT, tool: str = "bash") -> int:
        data: Json = {"id": approval, "toolName": tool, "callId": call_id, "reason": reason}
        return self.add("approval/asked", {key: value for key, value in data.items() if value is not ABSENT})

    def decided(self, approval: str, outcome: str) -> int:
        return self.add("approval/decided", {"id": approval, "outcome": outcome})

    def hook(self, point: str, decision: str) -> int:
        return self.add("hook/result", {"turn": 1, "point": point, "handlerId": "h", "decision": decision})

    def marker(self, *, inherited: bool = True) -> int:
        return self.add("session/end-seed", {"inherited": True} if inherited else {})

    @property
    def text(self) -> bytes:
        return b"".join(line + b"\n" for line in (json.dumps(self.header).encode(), *self.lines))

    def write(self, root: Path, *, folder: str | None = None, compressed: bool = False) -> Path:
        """Write the log where the harness would, below a sessions root; compressed, each row is a frame."""
        version = f".v{self.version}" if self.version else ""
        path = root / "--p--" / (folder or str(self.header["id"])) / f"session{version}.jsonl"
        if compressed:
            path = path.with_name(path.name + ".zstd")
        path.parent.mkdir(parents=True, exist_ok=True)
        frames = zstandard.ZstdCompressor(write_checksum=True)
        lines = [line + b"\n" for line in self.text.split(b"\n")[:-1]]
        path.write_bytes(b"".join(map(frames.compress, lines)) if compressed else self.text)
        return path


@dataclass
class Reading:
    """All that one reading of a log gave."""

    facts: list[Fact]
    reader: SessionReader

    @property
    def session(self) -> SessionFacts:
        assert self.reader.session is not None
        return self.reader.session

    @property
    def report(self) -> ReadReport:
        return self.reader.report

    @property
    def calls(self) -> list[CallFact]:
        return [fact for fact in self.facts if isinstance(fact, CallFact)]

    @property
    def outcomes(self) -> list[Outcome]:
        return [call.outcome for call in self.calls]

    @property
    def kinds(self) -> list[str]:
        return [outcome.kind for outcome in self.outcomes]

    @property
    def resets(self) -> list[TurnFact]:
        return [fact for fact in self.facts if isinstance(fact, TurnFact)]


def read_log(path: Path, *, ruleset: Ruleset = DEFAULT_RULESET, source: ResultSource = "rebuilt") -> Reading:
    """Read the one log of a path."""
    (file,) = [file for file in find_sessions([path]).files if file.superseded_by is None]
    reader = SessionReader(file, ruleset, source=source)
    return Reading(list(reader.facts()), reader)
