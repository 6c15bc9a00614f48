"""The released guard's own answers, release by release, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from breaker.ecmascript import parse_json
from breaker.engine import Breaker, Decision, Hit
from breaker.failure import Failure, classify
from breaker.measures import Call, MeasuredCall, Measurer
from breaker.rulesets import RULESETS, Ruleset
from breaker.settings import Settings, SettingsError

pytestmark = pytest.mark.shared

MEASURES = [("0.5.2", 500), ("0.8.7", 1500)]
"""Releases with recorded answers, and how many there are."""
SETTINGS = [("0.5.2", 80), ("0.8.7", 205)]
FAILURES = [("0.5.0", 300), ("0.5.2", 300), ("0.8.7", 800)]
STREAMS = [("0.5.0", 434), ("0.5.2", 787), ("0.8.7", 3503)]

Record = Mapping[str, object]


def rows(shared: Path, ruleset: Ruleset, name: str) -> Iterator[tuple[int, Record]]:
    text = (shared / "vectors" / ruleset.name / name).read_text(encoding="utf-8")
    for number, line in enumerate(text.split("\n"), 1):
        if line:
            yield number, cast("Record", parse_json(line))


def record(value: object) -> Record:
    return cast("Record", value)


def failure_record(failure: Failure | None) -> Record | None:
    return None if failure is None else {"reason": failure.reason, "detail": failure.detail}


@pytest.mark.parametrize(("release", "lines"), MEASURES)
def test_the_measures_of_every_call(shared: Path, release: str, lines: int) -> None:
    ruleset = RULESETS[release]
    measurer = Measurer(Settings.from_config({}, ruleset), ruleset)
    seen = 0
    for number, row in rows(shared, ruleset, "measures.jsonl"):
        measured = measurer.measure(Call.from_host(record(row["call"])))
        given = {"fps": list(measured.measures), "local": measured.local, "tracked": measured.tracked}
        assert given == row["expect"], f"line {number}"
        seen += 1
    assert seen == lines


@pytest.mark.parametrize(("release", "lines"), SETTINGS)
def test_the_settings_or_the_error_of_every_configuration(shared: Path, release: str, lines: int) -> None:
    ruleset = RULESETS[release]
    seen = 0
    for number, row in rows(shared, ruleset, "settings.jsonl"):
        given: Record
        try:
            given = {"ok": True, "settings": Settings.from_config(row["config"], ruleset).as_config}
        except SettingsError as error:
            given = {"ok": False, "names": error.key}
        assert given == row["expect"], f"line {number}"
        seen += 1
    assert seen == lines


@pytest.mark.parametrize(("release", "lines"), FAILURES)
def test_the_failure_of_every_result(shared: Path, release: str, lines: int) -> None:
    ruleset = RULESETS[release]
    seen = 0
    for number, row in rows(shared, ruleset, "failures.jsonl"):
        failure = classify(record(row["result"]), shell=row["shell"] is True, ruleset=ruleset).failure
        assert {"failure": failure_record(failure)} == row["expect"], f"line {number}"
        seen += 1
    assert seen == lines


def hit_record(hit: Hit) -> Record:
    kind = "failure" if hit.track == "failure" else "repeat"
    shown = {"fp": hit.measure, "next": hit.count, "cap": hit.cap, "kind": kind}
    return shown if hit.failure is None else {**shown, "detail": failure_record(hit.failure)}


def decision_record(call: MeasuredCall, decision: Decision, window: int) -> dict[str, object]:
    advisory = decision.advisory
    return {
        "tracked": call.tracked,
        "fps": list(call.measures) if call.tracked else [],
        "decision": decision.action,
        "refused": decision.refused,
        "hits": [hit_record(hit) for hit in decision.hits],
        "blocking": [hit.measure for hit in decision.blocking],
        "advisory": advisory
        and {
            "stage": 1 if advisory.stage == "warn" else 2,
            "measure": advisory.measure,
            "count": advisory.count,
        },
        "window": window,
    }


class Stream:
    """One agent's stream, driven as the plugin's hooks drive the guard."""

    def __init__(self, settings: object, ruleset: Ruleset) -> None:
        self.breaker = Breaker(Settings.from_config(settings, ruleset), ruleset)
        self.shown: list[dict[str, object]] = []
        self.running: dict[str, tuple[Call, MeasuredCall, dict[str, object]]] = {}

    def take(self, event: Record) -> None:
        kind = event["kind"]
        if kind == "user":
            self.breaker.turn()
        elif kind == "call":
            self.call(event)
        elif kind == "result":
            self.settle(event)
        else:
            assert kind == "notice"

    def call(self, event: Record) -> None:
        breaker = self.breaker
        call = Call.from_host(event)
        measured = breaker.measure(call)
        ask = breaker.ask(measured)
        if ask is None:
            decision = breaker.guard(measured)
        elif event.get("answer") == "approve":
            decision = breaker.guard(measured, ask)
        else:
            decision = breaker.decline(measured, ask)
        identity = cast("str", event["id"])
        shown = {"id": identity, **decision_record(measured, decision, breaker.window_records)}
        self.shown.append(shown)
        if decision.withheld:
            shown["streaks"] = breaker.streaks(measured)
        elif measured.tracked:
            self.running[identity] = (call, measured, shown)

    def settle(self, event: Record) -> None:
        running = self.running.pop(cast("str", event["id"]), None)
        if running is None:
            return
        call, measured, shown = running
        settlement = self.breaker.settle(measured, self.breaker.classify(call, record(event["result"])).failure)
        advisory = settlement.advisory
        shown["failure"] = failure_record(settlement.failure)
        shown["failureAdvisory"] = advisory and {"measure": advisory.measure, "streak": advisory.streak}
        shown["streaks"] = self.breaker.streaks(measured)


def without_empty(shown: Record) -> Record:
    return {key: value for key, value in shown.items() if value not in (None, False, "", [], {})}


@pytest.mark.parametrize(("release", "decisions"), STREAMS)
def test_every_decision_of_every_stream(shared: Path, release: str, decisions: int) -> None:
    ruleset = RULESETS[release]
    calls = 0
    for number, row in rows(shared, ruleset, "streams.jsonl"):
        stream = Stream(row["settings"], ruleset)
        for event in cast("Sequence[Record]", row["events"]):
            stream.take(event)
        expected = cast("Sequence[Record]", row["expect"])
        assert len(stream.shown) == len(expected), f"line {number}"
        for shown, wanted in zip(stream.shown, expected, strict=True):
            assert without_empty(shown) == wanted, f"line {number}, call {shown['id']}"
        calls += len(expected)
    assert calls == decisions
