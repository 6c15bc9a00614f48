"""`breaker guard`: the engine as a process."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, cast

import typer

from cli.jsonlines import BadLine, answer_lines, echoed
from cli.settings import (
    DEFAULT_RULESET_NAME,
    ConfigOption,
    MachineOption,
    RulesetOption,
    SetOption,
    load_settings,
)

if TYPE_CHECKING:
    from breaker import Breaker, Call, Decision, Failure, Hit, MeasuredCall, Messages

__all__ = ["Answer", "guard"]

_DEFAULT_AGENT = ""
_STAGE_NUMBERS = {"warn": 1, "summarize": 2}


class Answer(StrEnum):
    """What becomes of an ask."""

    approve = "approve"
    decline = "decline"


def guard(
    config: ConfigOption = None,
    sets: SetOption = None,
    ruleset: RulesetOption = DEFAULT_RULESET_NAME,
    answer: Annotated[
        Answer, typer.Option("--answer", help="What becomes of an ask whose call carries no answer of its own.")
    ] = Answer.decline,
    shell_http: Annotated[
        bool,
        typer.Option("--shell-http", help="The guard's own fetch tool is there: engage the shell-HTTP policy."),
    ] = False,
    machine: MachineOption = None,
    messages: Annotated[bool, typer.Option("--messages", help="Say what the guard would say, in `message`.")] = False,
) -> None:
    """Run the engine as a process: JSON lines in, JSON lines out, flushed at once.

    In: {"kind":"user"}, {"kind":"notice"}, {"kind":"call","id","name","arguments","answer"?} and
    {"kind":"result","id","result"}; each may name an "agent". Out: one line for a call, and one for a result that
    was settled. A bad line is answered with {"error","line"} and the stream goes on.
    """
    from breaker import Breaker, Messages
    from breaker.shellhttp import this_machine

    settings, rules = load_settings(config, sets, ruleset)
    names = this_machine(machine or [])
    words = Messages(settings, rules) if messages else None
    agents: dict[str, _Agent] = {}

    def reply(record: Mapping[str, object]) -> object | None:
        name = _agent_name(record)
        if name not in agents:
            agents[name] = _Agent(Breaker(settings, rules, shell_http=shell_http, machine=names), answer, words)
        return agents[name].take(record)

    answer_lines(reply)


def _agent_name(record: Mapping[str, object]) -> str:
    from breaker.ecmascript import canonical_json

    agent = record.get("agent")
    return _DEFAULT_AGENT if agent is None else canonical_json(agent)


class _Agent:
    """One agent's guard and its calls in flight."""

    def __init__(self, breaker: Breaker, answer: Answer, words: Messages | None) -> None:
        self._breaker = breaker
        self._answer = answer
        self._words = words
        self._in_flight: dict[str, tuple[Call, MeasuredCall, Decision]] = {}

    def take(self, record: Mapping[str, object]) -> object | None:
        kind = record.get("kind")
        if kind == "user":
            self._breaker.turn()
            return None
        if kind == "notice":
            return None
        if kind == "call":
            return self._call(record)
        if kind == "result":
            return self._result(record)
        message = f"unknown kind {kind!r}; known: user, notice, call, result"
        raise BadLine(message)

    def _call(self, record: Mapping[str, object]) -> object:
        from breaker import Call

        call = Call.from_host(record)
        wanted = record.get("answer", self._answer.value)
        if wanted not in ("approve", "decline"):
            message = f"unknown answer {wanted!r}; known: approve, decline"
            raise BadLine(message)
        breaker = self._breaker
        measured = breaker.measure(call)
        last_result = breaker.last_result
        ask = breaker.ask(measured)
        if ask is None:
            decision = breaker.guard(measured)
        else:
            decision = breaker.guard(measured, ask) if wanted == "approve" else breaker.decline(measured, ask)
        self._in_flight[_key(record)] = (call, measured, decision)
        advisory = decision.advisory
        return {
            "id": echoed(record.get("id")),
            "tracked": measured.tracked,
            "measures": list(measured.measures) if measured.tracked else [],
            "decision": decision.action,
            "refused": decision.refused,
            "hits": [_hit(hit) for hit in decision.hits],
            "blocking": [hit.measure for hit in decision.blocking],
            "advisory": None
            if advisory is None
            else {
                "stage": _STAGE_NUMBERS[advisory.stage],
                "measure": advisory.measure,
                "count": advisory.count,
            },
            "streaks": breaker.streaks(measured) if measured.tracked else {},
            "window": breaker.window_records,
            "message": self._words.decision(decision, call.name, last_result) if self._words else None,
        }

    def _result(self, record: Mapping[str, object]) -> object | None:
        from breaker.failure import classify, rendered_text
        from breaker.measures import is_shell_tool, shell_command

        key = _key(record)
        if key not in self._in_flight:
            message = f"no call with id {key} is waiting for a result"
            raise BadLine(message)
        result = record.get("result")
        if not isinstance(result, Mapping):
            message = "result must be an object"
            raise BadLine(message)
        given = cast("Mapping[str, object]", result)
        call, measured, decision = self._in_flight.pop(key)
        if not measured.tracked or decision.withheld:
            return None
        command = record.get("command")
        breaker = self._breaker
        answer = classify(
            given,
            shell=is_shell_tool(call.name),
            command=command if isinstance(command, str) else shell_command(call),
            ruleset=breaker.ruleset,
        )
        settlement = breaker.settle(measured, answer.failure, rendered_text(given))
        advisory = settlement.advisory
        return {
            "id": echoed(record.get("id")),
            "failure": _failure(settlement.failure),
            "evidence": answer.evidence,
            "failureAdvisory": None if advisory is None else {"measure": advisory.measure, "streak": advisory.streak},
            "streaks": breaker.streaks(measured),
            "message": self._words.settlement(settlement) if self._words else None,
        }


def _key(record: Mapping[str, object]) -> str:
    from breaker.ecmascript import canonical_json

    return canonical_json(record.get("id"))


def _failure(failure: Failure | None) -> object:
    return None if failure is None else {"reason": failure.reason, "detail": failure.detail}


def _hit(hit: Hit) -> object:
    shown: dict[str, object] = {
        "fp": hit.measure,
        "next": hit.count,
        "cap": hit.cap,
        "kind": "failure" if hit.track == "failure" else "repeat",
    }
    if hit.failure is not None:
        shown["detail"] = _failure(hit.failure)
    return shown
