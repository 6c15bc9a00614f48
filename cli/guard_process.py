"""The engine as a process, apart from the options of `breaker guard`: it starts without the command-line parser."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from breaker.ecmascript import canonical_json
from breaker.engine import Breaker, Decision, Hit
from breaker.failure import Failure, classify, rendered_text
from breaker.measures import Call, MeasuredCall, is_shell_tool, shell_command
from breaker.rulesets import DEFAULT_RULESET, Ruleset
from breaker.settings import Settings
from breaker.shellhttp import this_machine
from cli.jsonlines import BadLine, answer_lines, echoed

if TYPE_CHECKING:
    from breaker.messages import Messages

__all__ = ["ANSWERS", "DEFAULT_ANSWER", "serve"]

ANSWERS = ("approve", "decline")
"""What can become of an ask."""
DEFAULT_ANSWER = "decline"
_DEFAULT_AGENT = ""
_STAGE_NUMBERS = {"warn": 1, "summarize": 2}


def serve(
    settings: Settings | None = None,
    ruleset: Ruleset = DEFAULT_RULESET,
    *,
    answer: str = DEFAULT_ANSWER,
    shell_http: bool = False,
    machine: Iterable[str] = (),
    messages: bool = False,
) -> None:
    """Answer the lines of standard input until it ends, one guard an agent.

    Args:
        settings: the settings of every guard; the ruleset's defaults where none are given.
        ruleset: the release to be.
        answer: what becomes of an ask whose call carries no answer of its own.
        shell_http: whether the shell-HTTP policy is engaged.
        machine: names and addresses of the machine the calls ran on.
        messages: whether answers say what the guard would say.
    """
    effective = Settings.from_config({}, ruleset) if settings is None else settings
    names = this_machine(machine)
    words = _words(effective, ruleset) if messages else None
    agents: dict[str, _Agent] = {}

    def reply(record: Mapping[str, object]) -> object | None:
        name = _agent_name(record)
        if name not in agents:
            agents[name] = _Agent(Breaker(effective, ruleset, shell_http=shell_http, machine=names), answer, words)
        return agents[name].take(record)

    answer_lines(reply)


def _words(settings: Settings, ruleset: Ruleset) -> Messages:
    from breaker.messages import Messages

    return Messages(settings, ruleset)


def _agent_name(record: Mapping[str, object]) -> str:
    agent = record.get("agent")
    return _DEFAULT_AGENT if agent is None else canonical_json(agent)


class _Agent:
    """One agent's guard and its calls in flight."""

    def __init__(self, breaker: Breaker, answer: str, words: Messages | None) -> None:
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
        call = Call.from_host(record)
        wanted = record.get("answer", self._answer)
        if wanted not in ANSWERS:
            message = f"unknown answer {wanted!r}; known: {', '.join(ANSWERS)}"
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
