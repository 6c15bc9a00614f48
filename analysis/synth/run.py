"""One agent at work: writes the rows of a session and keeps the plan of what is planted in it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, cast

from analysis.synth.log import SYSTEM_PROMPT, Event, Header, Json, OwnSeq, SessionLog
from analysis.synth.truth import (
    SETTINGS,
    Label,
    Moment,
    NamedSetting,
    Observed,
    PlannedCall,
    PlantedFile,
    SessionTruth,
    Verdict,
    observe_plan,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.synth.chance import Chance

SHORT_LINE: Final = 40
"""The longest line, in characters, that counts as a short phrase."""

_MILLISECONDS: Final = 1000
_CONTEXT_WINDOW: Final = 128_000
_OUTCOME_UNKNOWN: Final = (
    "The tool call was interrupted after it was recorded; its outcome is unknown. Verify before it is tried again."
)
_NOT_STARTED: Final = "The tool call was interrupted before the Harness recorded it as started. Retry it if needed."


@dataclass(frozen=True, slots=True)
class Hook:
    """Write what a hook said of a call, between its rows."""

    point: Literal["PreToolUse", "PostToolUse"]
    decision: str
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class Approval:
    """Write a question to the operator and its answer, between a call's rows."""

    reason: str
    outcome: str
    with_call_id: bool = True


@dataclass(frozen=True, slots=True)
class Nested:
    """Write the calls a `run_code` program makes; `together` of them are started before the first settles."""

    calls: tuple[Call, ...]
    together: int = 1


@dataclass(frozen=True, slots=True)
class Child:
    """Write the link from a delegating call to the session it made."""

    run: Run
    label: str


@dataclass(frozen=True, slots=True)
class Call:
    """Plan one call: what the log shows of it, and what a replay must make of it.

    `arguments` is an object, or the raw text of one. `measures` are stated by hand. `met_guard` and `settles` are
    derived from the outcome unless given: what was not run never meets the guard, and only a success or a failure
    settles. A call without a result row has `result` false.
    """

    tool: str
    arguments: Mapping[str, object] | str
    measures: tuple[str, ...]
    verdict: Verdict
    text: str = ""
    is_error: bool = False
    error: tuple[str, str] | None = None
    meta: Json | None = None
    met_guard: bool | None = None
    settles: bool | None = None
    tracked: bool = True
    between: tuple[Hook | Approval | Nested | Child, ...] = ()
    result: bool = True
    duration: int = 400
    clipped: bool = False
    verdicts: Mapping[str, Verdict] = field(default_factory=dict[str, Verdict])
    measures_under: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


@dataclass(eq=False, slots=True)
class Run:
    """Write one session the way the harness would, step by step.

    A human message opens a turn (or steers the open one); a step is one answer of the model with its calls; `end`
    closes the turn. Everything a replay must find is planned along.
    """

    log: SessionLog
    chance: Chance
    provider: str
    model: str
    name: str
    summary: str
    label: Label
    tools: tuple[str, ...]
    calls: list[PlannedCall] = field(default_factory=list[PlannedCall])
    moments: list[Moment] = field(default_factory=list[Moment])
    call_events: list[Event] = field(default_factory=list[Event])
    now: int = 0
    turns: int = 0
    not_started: int = 0
    recorded_under_breaker: bool = False
    lines: int = 0
    short_lines: int = 0
    torn: bool = False
    older_generation: SessionLog | None = None
    call_id: str | None = None
    still: bool = False
    _harness_turn: int = 0
    _step: int = 0
    _turn_open: bool = False
    _human_last: bool = False
    _pending: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])
    _headed: bool = False
    _tokens: int = 0
    _answers: int = 0
    _first_time: int | None = None
    _unsettled: list[tuple[Event, str]] = field(default_factory=list[tuple[Event, str]])
    _never_started: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    _results: list[Event] = field(default_factory=list[Event])
    _human_events: list[Event] = field(default_factory=list[Event])

    def __post_init__(self) -> None:
        self.now = self.log.header.created_at - 1
        if self.log.inherited:
            self._harness_turn = max(cast("int", event.data.get("turn") or 0) for event in self.log.inherited)

    # What people and the harness say

    def human(self, text: str) -> None:
        """Queue a human message: it opens a turn, or steers the open one at its next step."""
        self._queue(text, {"kind": "user"})

    def notice(self, text: str, kind: str, **source: object) -> None:
        """Queue a message of the harness or a plugin; like a human's it can open a turn, but it resets nothing."""
        self._queue(text, {"kind": kind, **source})

    def _queue(self, text: str, source: Json) -> None:
        message: Json = {
            "content": [{"type": "text", "text": text}],
            "source": source,
            "role": "user",
            "id": self.chance.uuid(),
        }
        target = "next-step" if self._turn_open else "next-turn"
        self._write("agent/inbox/spliced", {"target": target, "start": 0, "inserted": [message]})
        if not self._turn_open:
            self._turn_open = True
            self._harness_turn += 1
            self._step = 0
            self._write("turn/start", {"turn": self._harness_turn})
        self._write("agent/inbox/spliced", {"target": target, "start": 0, "removedCount": 1, "inserted": []})
        self._pending.append((cast("str", source["kind"]), message))

    # What the model does

    def step(self, *calls: Call, reasoning: str = "", text: str = "", parallel: bool = False) -> None:
        """Write one step: the model's answer and the calls it asks for, alone or as one pool."""
        self._open_step()
        ids = [self._new_call_id(position) for position in range(len(calls))]
        self._answer(calls, ids, reasoning, text)
        self.log.flush()
        open_calls: list[tuple[int, Event, str]] = []
        for call, call_id in zip(calls, ids, strict=True):
            open_calls.append(self._start(call, call_id))
            if not parallel:
                self._between_and_result(call, *open_calls.pop())
        for call, (at, event, call_id) in zip(calls, open_calls, strict=False):
            self._between_and_result(call, at, event, call_id)
        self._write("step/end", self._place())
        self.log.flush()

    def cut_off(self, *calls: Call, not_started: Sequence[str] = (), reasoning: str = "", text: str = "") -> None:
        """Write a step that never ends: its calls are started, some settle, and the log stops or is closed later.

        `not_started` names tools the answer asked for that never got a call row.
        """
        self._open_step()
        ids = [self._new_call_id(position) for position in range(len(calls))]
        self._never_started = [(name, self._new_call_id(at)) for at, name in enumerate(not_started, len(calls))]
        self._answer(calls, ids, reasoning, text)
        self.log.flush()
        for call, call_id in zip(calls, ids, strict=True):
            at, event, _ = self._start(call, call_id)
            if call.result:
                self._between_and_result(call, at, event, call_id)
            else:
                self._unsettled.append((event, call_id))

    def resume(self) -> None:
        """Write what a new process finds to close: the marker, closers of open calls, and the end of the turn."""
        self.log.flush()
        self.wait(60 * _MILLISECONDS)
        self._write("session/end-seed", {})
        self.moments.append(Moment("reset"))
        unknown = ("ToolOutcomeUnknownError", "TOOL_OUTCOME_UNKNOWN")
        for event, call_id in self._unsettled:
            self._write_result(call_id, event, _OUTCOME_UNKNOWN, is_error=True, error=unknown, closer="interrupted")
        self._unsettled.clear()
        for tool, call_id in self._never_started:
            self.not_started += 1
            never = ("ToolNotStartedError", "TOOL_NOT_STARTED")
            self._write_result(call_id, None, _NOT_STARTED, is_error=True, error=never, closer="interrupted", tool=tool)
        self._never_started.clear()
        if self._turn_open:
            self._write("step/end", self._place())
            self.end("interrupted")

    def close_fork(self, call: Event) -> None:
        """Write what a fork inside an open call begins with: closers of what its parent left open."""
        self._harness_turn, self._step = cast("int", call.data["turn"]), cast("int", call.data["step"])
        self._turn_open = True
        text = "The history inherited by this branch ends before the call settled; its outcome is unknown here."
        unknown = ("ToolOutcomeUnknownError", "TOOL_OUTCOME_UNKNOWN")
        self._write_result(cast("str", call.data["callId"]), call, text, is_error=True, error=unknown, closer="forked")
        self._write("step/end", self._place())
        self.end("forked")

    def seal_import(self) -> None:
        """Turn everything written so far into imported history: a seeded log without a parent."""
        self.log.header = replace(self.log.header, is_seeded=True)
        self.log.inherited = tuple(self.log.events)
        self.log.restart()
        self.moments.append(Moment("reset"))

    def end(self, kind: str = "completed", **more: object) -> None:
        """Close the turn."""
        self._write("turn/end", {"turn": self._harness_turn, "reason": {"kind": kind, **more}})
        self._turn_open = False
        self.log.flush()

    def say(self, text: str, *, reasoning: str = "") -> None:
        """Write the answer that ends a turn: a step without calls, and the end of the turn."""
        self.step(text=text, reasoning=reasoning)
        self.end()

    def title(self, text: str) -> None:
        """Write the session's title, taken from the human messages so far."""
        self._write(
            "session/title", {"title": text, "messageSeqs": list(self._human_events), "source": {"kind": "fallback"}}
        )

    def compact(self, summary: str) -> None:
        """Write a compaction: the history is hidden from the model behind a summary; nothing is lost from the file."""
        compaction_id = self.chance.uuid()
        first, last = self._human_events[0], self._results[-1]
        self._write("compaction/start", {"compactionId": compaction_id, "turn": self._harness_turn})
        start = self.log.events[-1]
        self._write(
            "compaction/summary",
            {
                "compactionId": compaction_id,
                "summary": [{"type": "text", "text": summary}],
                "shadowedRange": {"start": first, "end": last},
                "shadowedSeqs": [first, *self._results],
                "provider": self.provider,
                "model": self.model,
                "usage": {"inputTokens": 900, "outputTokens": 60},
            },
        )
        checkpoint: Json = {
            "content": [{"type": "text", "text": f"<compacted-summary>{summary}</compacted-summary>"}],
            "source": {"kind": "compact-checkpoint", "compactionId": compaction_id},
            "role": "user",
            "id": self.chance.uuid(),
        }
        self.log.append(
            "user/message",
            self.now,
            checkpoint,
            sources=(start, self.log.events[-1], first),
            replaces=(first, last),
        )
        self._write("compaction/end", {"compactionId": compaction_id, "turn": self._harness_turn})

    def prune(self) -> None:
        """Write a pruning of the first result: its row stays, a shorter copy replaces it in the model's view."""
        first = self._results[0]
        self._write("compaction/prune", {"turn": self._harness_turn, "pruned": [first]})
        message = cast("Json", first.data["message"]) | {"content": [{"type": "text", "text": "[... pruned ...]"}]}
        self.wait(1)
        copy: Json = {**first.data, "message": message}
        self.log.append("tool/result", self.now, copy, sources=first.sources, replaces=(first, first))

    # Rows

    def wait(self, milliseconds: int) -> None:
        """Let time pass."""
        if not self.still:
            self.now += milliseconds

    def _place(self) -> Json:
        return {"turn": self._harness_turn, "step": self._step}

    def _write(self, kind: str, data: Json, sources: Sequence[Event] = ()) -> Event:
        self.wait(1)
        if self._first_time is None:
            self._first_time = self.now
        return self.log.append(kind, self.now, data, sources=sources)

    def _new_call_id(self, position: int) -> str:
        if self.call_id is not None:
            return f"{self.call_id}{position}"
        return f"call_{position:02d}_{self.chance.hexadecimal(20)}"

    def _open_step(self) -> None:
        self._step += 1
        self._write("step/start", self._place())
        if not self._headed:
            system: Json = {
                "role": "system",
                "content": [{"type": "text", "text": SYSTEM_PROMPT}],
                "source": {"kind": "system-prompt"},
                "id": self.chance.uuid(),
            }
            self._write("system/message", {**self._place(), "message": system})
        for kind, message in self._pending:
            event = self._write("user/message", message)
            if kind == "user":
                self._human_events.append(event)
                self.moments.append(Moment("reset"))
                if not self._human_last:
                    self.turns += 1
                self._human_last = True
        self._pending.clear()
        if not self._headed:
            self._write("user/message", self._runtime_context())
            tools = [
                {"name": tool, "description": f"Use {tool}.", "parameters": {"type": "object"}} for tool in self.tools
            ]
            config: Json = {"provider": self.provider, "model": self.model}
            self._write("request/header", {"header": {"config": config, "tools": tools}, "reason": "initial"})
            context: Json = {"provider": self.provider, "model": self.model, "contextWindow": _CONTEXT_WINDOW}
            self._write("request/context", context)
            self._headed = True
        self.log.flush()

    def _runtime_context(self) -> Json:
        text = "Current runtime context. The file policy of this session is workspace-write."
        return {
            "content": [{"type": "text", "text": text}],
            "source": {"kind": "runtime-context", "form": "snapshot", "sections": [{"name": "policy", "text": text}]},
            "role": "user",
            "id": self.chance.uuid(),
        }

    def _answer(self, calls: Sequence[Call], ids: Sequence[str], reasoning: str, text: str) -> None:
        content: list[Json] = []
        for kind, words in (("reasoning", reasoning), ("text", text)):
            if words:
                content.append({"type": kind, "text": words})
                written = [line.strip() for line in words.split("\n") if line.strip()]
                self.lines += len(written)
                self.short_lines += sum(len(line) <= SHORT_LINE for line in written)
        for call, call_id in zip(calls, ids, strict=True):
            content.append({"type": "tool-call", "id": call_id, "name": call.tool, "arguments": _raw(call.arguments)})
        for name, call_id in self._never_started:
            content.append({"type": "tool-call", "id": call_id, "name": name, "arguments": "{}"})
        self._answers += 1
        output = self.chance.integer(40, 160)
        usage: Json = {
            "inputTokens": self.chance.integer(80, 400),
            "outputTokens": output,
            "cacheReadTokens": 2048 + 256 * self._answers,
            "reasoningTokens": output // 3,
        }
        counted = cast("int", usage["inputTokens"]) + output + cast("int", usage["cacheReadTokens"])
        usage["totalTokens"] = counted
        self.wait(self.chance.integer(900, 4000))
        message: Json = {
            "role": "assistant",
            "content": content,
            "source": {"kind": "model", "provider": self.provider, "model": self.model, "replayState": {}},
            "id": self.chance.uuid(),
        }
        self._write("assistant/message", {**self._place(), "message": message, "usage": usage})
        self._tokens += counted
        self._human_last = False

    def _plan(self, call: Call, event: Event) -> int:
        at = len(self.calls)
        settled = call.verdict.outcome in ("ok", "failed")
        self.calls.append(
            PlannedCall(
                tool=call.tool,
                turn=self.turns,
                measures=call.measures,
                verdict=call.verdict,
                met_guard=call.verdict.outcome != "not-run" if call.met_guard is None else call.met_guard,
                settles=settled if call.settles is None else call.settles,
                tracked=call.tracked,
                clipped=call.clipped,
                seconds=(event.time - (self._first_time or 0)) / _MILLISECONDS,
                tokens=self._tokens,
                verdicts=call.verdicts,
                measures_under=call.measures_under,
            )
        )
        self.call_events.append(event)
        self.moments.append(Moment("guard", at))
        self._human_last = False
        return at

    def _start(self, call: Call, call_id: str) -> tuple[int, Event, str]:
        data: Json = {**self._place(), "callId": call_id, "name": call.tool, "arguments": _raw(call.arguments)}
        event = self._write("tool/call", data)
        return self._plan(call, event), event, call_id

    def _between_and_result(self, call: Call, at: int, event: Event, call_id: str) -> None:
        if not call.between:
            self.log.flush()
        for entry in call.between:
            self._write_between(entry, call, call_id)
        self.wait(call.duration)
        if call.result:
            self._write_result(call_id, event, call.text, is_error=call.is_error, error=call.error, meta=call.meta)
        self.moments.append(Moment("settle", at))

    def _write_result(
        self,
        call_id: str,
        event: Event | None,
        text: str,
        *,
        is_error: bool,
        error: tuple[str, str] | None,
        meta: Json | None = None,
        closer: str = "",
        tool: str = "",
    ) -> Event:
        message: Json = {
            "role": "tool",
            "source": {"kind": "tool", "callId": call_id},
            "toolCallId": call_id,
            "content": [{"type": "text", "text": text}],
            "isError": is_error,
            "id": OwnSeq(f"{closer}-tool-result-{call_id}-") if closer else self.chance.uuid(),
        }
        data: Json = {**self._place(), "message": message}
        if error is not None:
            data["error"] = {"name": error[0], "code": error[1]} | ({"reason": f"{tool} never began"} if tool else {})
        if meta is not None:
            data["meta"] = meta
        written = self._write("tool/result", data, () if event is None else (event,))
        self._results.append(written)
        return written

    def _write_between(self, entry: Hook | Approval | Nested | Child, call: Call, call_id: str) -> None:
        match entry:
            case Hook():
                handler = f"claude-code:{entry.point}:1"
                turn = self._harness_turn
                self._write(
                    "hook/invoked",
                    {
                        "turn": turn,
                        "point": entry.point,
                        "dialect": "claude-code",
                        "matcher": call.tool,
                        "handlerId": handler,
                    },
                )
                result: Json = {"turn": turn, "point": entry.point, "handlerId": handler, "decision": entry.decision}
                result |= {"exitCode": 2 if entry.stderr else 0, "stderrSummary": entry.stderr, "durationMs": 4}
                self._write("hook/result", result)
            case Approval():
                asked: Json = {"id": self.chance.uuid(), "toolName": call.tool}
                if entry.with_call_id:
                    asked["callId"] = call_id
                self._write("approval/asked", asked | {"reason": entry.reason})
                self.log.flush()
                self.wait(5 * _MILLISECONDS)
                self._write("approval/decided", {"id": asked["id"], "outcome": entry.outcome})
            case Nested():
                self._write_nested(entry, call_id, call_id, 1)
            case Child():
                header = entry.run.log.header
                catalog: Json = {"version": 0, "childId": header.id, "childCreatedAt": header.created_at}
                self._write("subagent/catalog", catalog | {"mode": "one-shot", "label": entry.label})

    def _write_nested(self, nested: Nested, root: str, parent: str, first: int) -> None:
        started: list[tuple[Call, int, Json]] = []
        for number, call in enumerate(nested.calls, first):
            data: Json = {"rootCallId": root, "parentCallId": parent, "subCallId": f"{parent}:ptc:{number}"}
            data |= {"name": call.tool, "arguments": call.arguments}
            event = self._write("tool/ptc-dispatch-start", data)
            self.log.flush()
            started.append((call, self._plan(call, event), data))
            for entry in call.between:
                if isinstance(entry, Nested):
                    self._write_nested(entry, root, cast("str", data["subCallId"]), 1)
                else:
                    self._write_between(entry, call, cast("str", data["subCallId"]))
            if len(started) == nested.together:
                self._settle_nested(started)
        self._settle_nested(started)

    def _settle_nested(self, started: list[tuple[Call, int, Json]]) -> None:
        for call, at, data in started:
            self.wait(call.duration)
            if call.result:
                settled: Json = {**data, "isError": call.is_error, "content": [{"type": "text", "text": call.text}]}
                if call.error is not None:
                    settled["error"] = {"name": call.error[0], "code": call.error[1]}
                self._write("tool/ptc-dispatch", settled)
            self.moments.append(Moment("settle", at))
        started.clear()

    # What is planted

    def truth(
        self,
        files: tuple[PlantedFile, ...],
        seqs: Mapping[Event, int],
        settings: Sequence[NamedSetting] = SETTINGS,
    ) -> SessionTruth:
        """State what is planted in the session, with the sequence numbers of the version written."""
        tracked = [call for call in self.calls if call.tracked]
        outcomes = Counter(call.verdict.outcome for call in tracked)
        failed_by = Counter(
            "/".join((call.tool, call.verdict.reason or "", call.verdict.detail, call.verdict.evidence))
            for call in tracked
            if call.verdict.outcome == "failed"
        )
        return SessionTruth(
            name=self.name,
            summary=self.summary,
            id=self.log.header.id,
            label=self.label,
            agent="subagent" if self.log.header.origin == "subagent" else "main",
            files=files,
            turns=self.turns,
            calls=len(self.calls),
            tracked=len(tracked),
            ok=outcomes["ok"],
            failed=outcomes["failed"],
            failed_by=dict(sorted(failed_by.items())),
            undecidable=outcomes["undecidable"],
            denied=outcomes["denied"],
            not_run=outcomes["not-run"],
            not_started=self.not_started,
            open=outcomes["open"],
            clipped=sum(call.clipped for call in tracked),
            recorded_under_breaker=self.recorded_under_breaker,
            lines=self.lines,
            short_lines=self.short_lines,
            call_seqs=tuple(seqs[event] for event in self.call_events),
            observed=self._observed(settings),
        )

    def _observed(self, settings: Sequence[NamedSetting]) -> dict[str, Observed]:
        """Count what shows under each setting; rulesets that see every call alike are counted once."""
        alike = not any(call.verdicts or call.measures_under for call in self.calls)
        known: list[tuple[NamedSetting, Observed]] = []
        observed: dict[str, Observed] = {}
        for setting in settings:
            key = replace(setting, name="", ruleset=SETTINGS[0].ruleset if alike else setting.ruleset)
            seen = next((seen for other, seen in known if other == key), None)
            if seen is None:
                seen = observe_plan(self.calls, self.moments, key)
                known.append((key, seen))
            observed[setting.name] = seen
        return observed


def new_run(
    chance: Chance,
    header: Header,
    *,
    name: str,
    summary: str,
    label: Label,
    model: tuple[str, str],
    tools: tuple[str, ...],
    inherited: tuple[Event, ...] = (),
) -> Run:
    """Begin a session; `model` is the pair (provider, model)."""
    log = SessionLog(header, inherited)
    return Run(log, chance, model[0], model[1], name, summary, label, tools)


def _raw(arguments: Mapping[str, object] | str) -> str:
    """Return arguments as the model's own text: an object is written with blanks, a text stays as it is."""
    return arguments if isinstance(arguments, str) else json.dumps(dict(arguments), ensure_ascii=False)
