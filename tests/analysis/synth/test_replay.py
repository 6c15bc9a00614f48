"""The replay measures every planted number, in every version and encoding, under every setting of the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import settings as property_settings
from hypothesis import strategies as st

from analysis.replay import POLICIES, FirstTrip, MeasureCount, ReplayPlan, SessionReplay, replay_session
from analysis.sessions.facts import CallFact
from analysis.sessions.find import find_sessions
from analysis.sessions.session import SessionReader
from analysis.synth import SETTINGS, NamedSetting, Observed, SessionTruth, Truth
from analysis.synth.truth import Extreme, Moment, PlannedCall, Verdict, observe_plan
from breaker.engine import Breaker, Decision
from breaker.failure import Failure
from breaker.measures import MeasuredCall
from breaker.rulesets import ruleset_named
from breaker.settings import Settings

Corpora = Callable[[str, int, bool], tuple[Path, Truth]]
Shown = dict[str, object]

VARIANTS = [(version, plain) for version in (4, 3, 0) for plain in (True, False)]
RUNS = [(recipe, *variant) for recipe in ("demo", "labelled", "scale") for variant in VARIANTS]
CALIBRATED = [
    pytest.param("calibrated", version, plain, marks=[] if plain == (version == 3) else pytest.mark.slow)
    for version, plain in VARIANTS
]
FEWER_SETTINGS = 3
"""The demo is held to every setting; the others, whose calls all rulesets see alike, to the first: default, observe and
strict."""


def _plan(setting: NamedSetting) -> ReplayPlan:
    ruleset = ruleset_named(setting.ruleset)
    settings = Settings.from_config(setting.overrides(), ruleset)
    return ReplayPlan(settings, ruleset, setting.policy, keep_events=True)


def _planted(session: SessionTruth, observed: Observed) -> Shown:
    return {
        "read": session.files[0].state,
        "turns": session.turns,
        "calls": session.calls,
        "tracked": session.tracked,
        "ok": observed.ok,
        "failed": observed.failed,
        "failed by words alone": observed.failed_text_only,
        "undecidable": session.undecidable,
        "denied": session.denied,
        "not run": session.not_run,
        "not started": session.not_started,
        "open": session.open,
        "clipped": session.clipped,
        "under breaker": session.recorded_under_breaker,
        "peak": _pair(observed.peak),
        "longest streak": _pair(observed.longest_streak),
        "margin": observed.gate_margin,
        "withheld": (observed.asks, observed.denials, observed.false_rejections),
        "events": [(e.stage, e.call, e.measure, e.count, e.decision) for e in observed.events],
        "first trips": {
            stage: (trip.call, trip.turn, trip.seconds, trip.tokens, trip.calls_after)
            for stage, trip in observed.first_trips.items()
        },
    }


def _replayed(reader: SessionReader, replay: SessionReplay) -> Shown:
    assert reader.session is not None
    outcomes = replay.outcomes
    return {
        "read": reader.report.state,
        "turns": replay.turns,
        "calls": replay.calls,
        "tracked": replay.tracked,
        "ok": outcomes["ok"],
        "failed": outcomes["failed"],
        "failed by words alone": replay.failed_text_only,
        "undecidable": outcomes["undecidable"],
        "denied": outcomes["denied"],
        "not run": outcomes["not-run"],
        "not started": replay.not_started,
        "open": outcomes["open"],
        "clipped": replay.clipped,
        "under breaker": reader.session.recorded_under_breaker,
        "peak": _pair(replay.peak),
        "longest streak": _pair(replay.longest_streak),
        "margin": replay.gate_margin,
        "withheld": (replay.asks, replay.denials, replay.false_rejections),
        "events": [(e.stage, e.call, e.measure, e.count, e.decision) for e in replay.events],
        "first trips": {stage: _trip(trip) for stage, trip in replay.first_trips.items()},
    }


def _trip(trip: FirstTrip) -> tuple[object, ...]:
    return (trip.call, trip.turn, trip.seconds, trip.tokens, trip.calls_after)


def _pair(extreme: Extreme | MeasureCount | None) -> tuple[str, int] | None:
    return None if extreme is None else (extreme.measure, extreme.count)


def _readers(out: Path, truth: Truth, ruleset: str) -> Iterator[tuple[SessionTruth, SessionReader]]:
    found = {file.path.relative_to(out).as_posix(): file for file in find_sessions([out]).files}
    for session in truth.sessions:
        yield session, SessionReader(found[session.files[0].path], ruleset_named(ruleset))


@pytest.mark.parametrize(("recipe", "version", "plain"), [*RUNS, *CALIBRATED])
def test_the_replay_measures_what_is_planted(corpus: Corpora, recipe: str, version: int, plain: bool) -> None:
    out, truth = corpus(recipe, version, plain)
    for setting in truth.settings if recipe == "demo" else truth.settings[:FEWER_SETTINGS]:
        for session, reader in _readers(out, truth, setting.ruleset):
            replay = replay_session(reader, _plan(setting))
            place = (session.name, setting.name)
            assert replay is not None, place
            assert _replayed(reader, replay) == _planted(session, session.observed[setting.name]), place
            if session.call_seqs:
                seqs = [event.seq for event in replay.events]
                assert seqs == [session.call_seqs[event.call] for event in replay.events], place


@pytest.mark.parametrize("recipe", ["demo", "calibrated", "labelled"])
def test_failures_have_the_planted_reason_detail_and_evidence(corpus: Corpora, recipe: str) -> None:
    out, truth = corpus(recipe, 4, True)
    for session, reader in _readers(out, truth, SETTINGS[0].ruleset):
        replay = replay_session(reader, _plan(SETTINGS[0]))
        assert replay is not None
        failed_by = {
            f"{key.tool}/{key.reason}/{key.detail}/{key.evidence}": count for key, count in replay.failed_by.items()
        }
        assert failed_by == session.failed_by, session.name


@pytest.mark.parametrize(
    ("cap", "fail_limit", "separated"),
    [(9, 2, True), (11, 5, True), (10, 3, True), (8, 3, False), (12, 3, False), (10, 6, False)],
)
def test_labelled_runs_are_gated_as_stated(corpus: Corpora, cap: int, fail_limit: int, separated: bool) -> None:
    out, truth = corpus("labelled", 4, True)
    limits = dict.fromkeys(("exact", "cmd", "net", "sink", "host"), cap)
    plan = _plan(replace(SETTINGS[0], fail_limit=fail_limit, limits=limits))
    gated: dict[str, bool] = {}
    for session, reader in _readers(out, truth, "0.8"):
        replay = replay_session(reader, plan)
        assert replay is not None
        gated[session.name] = replay.denials > 0
    assert (gated == {session.name: session.label == "stuck" for session in truth.sessions}) is separated


def test_only_an_older_generation_is_superseded(corpus: Corpora) -> None:
    out, truth = corpus("demo", 4, False)
    superseded = [
        file.path.relative_to(out).as_posix() for file in find_sessions([out]).files if file.superseded_by is not None
    ]
    planted = [file.path for session in truth.sessions for file in session.files if file.state == "superseded"]
    assert superseded == planted


def test_facts_stand_where_the_truth_says(corpus: Corpora) -> None:
    out, truth = corpus("demo", 3, True)
    for session, reader in _readers(out, truth, SETTINGS[0].ruleset):
        seqs = [fact.seq for fact in reader.facts() if isinstance(fact, CallFact)]
        assert sorted(seqs) == list(session.call_seqs), session.name


# The naive model and the engine agree on sessions nobody thought of

ON_LIMIT: tuple[Literal["ask", "deny"], ...] = ("ask", "deny")
MEASURES = ("host:a", "net:b", "site:c", "sink:d", "cmd:e", "exact:f", "verb:g")


@st.composite
def _planned_calls(draw: st.DrawFn) -> PlannedCall:
    shown = draw(st.lists(st.sampled_from(MEASURES), min_size=1, max_size=5, unique=True))
    verdict = draw(st.sampled_from([Verdict("ok"), Verdict("failed", "exit", "1"), Verdict("open")]))
    return PlannedCall("bash", 1, tuple(shown), verdict, met_guard=True, settles=verdict.outcome != "open")


@st.composite
def _settings(draw: st.DrawFn) -> NamedSetting:
    return replace(
        draw(st.sampled_from(SETTINGS[:3])),
        ruleset="0.8",
        policy=draw(st.sampled_from(POLICIES)),
        on_limit=draw(st.sampled_from(ON_LIMIT)),
        window=draw(st.sampled_from([4, 12, 16])),
        warn_at=draw(st.sampled_from([None, 3, 7])),
    )


@property_settings(deadline=None)
@given(
    st.lists(_planned_calls(), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 24)), min_size=30, max_size=80),
    _settings(),
)
def test_the_naive_model_says_what_the_engine_says(
    kinds: list[PlannedCall], order: list[tuple[int, int]], setting: NamedSetting
) -> None:
    calls: list[PlannedCall] = []
    moments: list[Moment] = []
    for pick, roll in order:
        at = len(calls)
        calls.append(kinds[pick % len(kinds)])
        if roll == 0:
            moments.append(Moment("reset"))
        # A pool: this call is guarded while the one before it has not settled.
        if roll % 3 == 1 and moments and moments[-1].kind == "settle":
            last = moments.pop()
            moments += [Moment("guard", at), last, Moment("settle", at)]
        else:
            moments += [Moment("guard", at), Moment("settle", at)]
    expected = observe_plan(calls, moments, setting)
    events, peak = _run_engine(calls, moments, setting)
    assert [(event.stage, event.call, event.measure, event.count) for event in expected.events] == events
    assert (expected.peak.count if expected.peak else 0) == peak


def _run_engine(
    calls: list[PlannedCall], moments: list[Moment], setting: NamedSetting
) -> tuple[list[tuple[str, int, str, int]], int]:
    overrides = setting.overrides() | ({"onLimit": "deny"} if setting.policy == "deny" else {})
    breaker = Breaker(Settings.from_config(overrides))
    events: list[tuple[str, int, str, int]] = []
    withheld: set[int] = set()
    peak = 0
    for moment in moments:
        if moment.kind == "reset":
            breaker.turn()
            continue
        planned_call = calls[moment.call]
        call = MeasuredCall("bash", planned_call.measures, tracked=True, local=False)
        if moment.kind == "guard":
            counts = [breaker.next_count(name) for name in call.measures if breaker.cap(name) is not None]
            peak = max([peak, *counts])
            decision = _decide(breaker, call, setting)
            if decision.blocking:
                first = decision.blocking[0]
                stage = "fail-gate" if first.track == "failure" else "gate"
                events.append((stage, moment.call, first.measure, first.count))
            if decision.advisory is not None:
                advisory = decision.advisory
                events.append((advisory.stage, moment.call, advisory.measure, advisory.count))
            if decision.withheld:
                withheld.add(moment.call)
        elif planned_call.settles and moment.call not in withheld:
            failure = Failure("exit", "1") if planned_call.verdict.outcome == "failed" else None
            told = breaker.settle(call, failure).advisory
            if told is not None:
                events.append(("fail-warn", moment.call, told.measure, told.streak))
    return events, peak


def _decide(breaker: Breaker, call: MeasuredCall, setting: NamedSetting) -> Decision:
    if setting.policy == "observe":
        return breaker.observe(call)
    ask = breaker.ask(call)
    if ask is None:
        return breaker.guard(call)
    return breaker.guard(call, ask) if setting.policy == "approve" else breaker.decline(call, ask)
