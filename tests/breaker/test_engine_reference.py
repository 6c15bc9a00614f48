"""The engine against a plain second writing of the same rules: lists, recounts, nothing clever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import settings as runs
from hypothesis import strategies as st

from breaker.engine import Ask, Breaker, Decision, Hit, Settlement
from breaker.failure import Failure
from breaker.measures import MeasuredCall
from breaker.rulesets import DEFAULT_RULESET
from breaker.settings import Settings

MEASURES = ("exact:a", "exact:b", "verb:v", "cmd:c", "cmd:d", "net:n", "site:s", "host:h", "host:i", "sink:k")
RANKS = ("host", "net", "site", "sink", "cmd", "exact")
FAILURES = (Failure("exit", "1"), Failure("http", "404"))

HitRecord = tuple[str, str, float, float, Failure | None]


@dataclass
class Reference:
    """The state of one agent as the rules tell it, recounted at every call."""

    window: int
    ask_first: bool
    warn_at: int | None
    summarize_at: int | None
    fail_warn_at: int | None
    fail_limit: float | None
    limits: dict[str, float | None]
    calls: list[list[str]] = field(default_factory=list[list[str]])
    exempt: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])
    failures: dict[str, list[Failure]] = field(default_factory=dict[str, list[Failure]])

    def reset(self) -> None:
        self.calls, self.exempt, self.refused, self.failures = [], [], [], {}

    def enabled(self, measure: str) -> bool:
        return self.cap(measure) != float("inf")

    def cap(self, measure: str) -> float:
        kind = measure.split(":")[0]
        cap = self.limits[measure] if measure in self.limits else self.limits.get(kind)
        return float("inf") if cap is None else cap

    def next(self, measure: str) -> int:
        return sum(entry == measure for record in self.calls[-self.window :] for entry in record) + 1

    def hits(self, call: tuple[str, ...]) -> list[HitRecord]:
        found: list[HitRecord] = []
        for measure in call:
            streak = self.failures.get(measure, [])
            if self.fail_limit is not None and self.enabled(measure) and len(streak) >= self.fail_limit:
                found.append(("failure", measure, len(streak), self.fail_limit, streak[-1]))
        reached = [measure for measure in call if self.next(measure) >= self.cap(measure)]
        return found + [("occurrence", measure, self.next(measure), self.cap(measure), None) for measure in reached]

    def blocking(self, hits: list[HitRecord]) -> list[HitRecord]:
        return [hit for hit in hits if hit[1] not in self.exempt]

    def commit(self, call: tuple[str, ...], hits: list[HitRecord]) -> None:
        record = [hit[1] for hit in hits] or list(call)
        record = [measure for measure in record if measure not in self.exempt]
        if record:
            self.calls = [*self.calls, record][-self.window :]

    def question(self, call: tuple[str, ...]) -> tuple[list[HitRecord], list[HitRecord]] | None:
        hits = self.hits(call)
        blocking = self.blocking(hits)
        if not self.ask_first or not blocking or any(hit[1] in self.refused for hit in blocking):
            return None
        return hits, blocking

    def decline(self, call: tuple[str, ...], blocking: list[HitRecord]) -> None:
        self.refused += [hit[1] for hit in blocking]
        self.commit(call, blocking)

    def advisory(self, call: tuple[str, ...]) -> tuple[int, str, int] | None:
        best: tuple[int, str, int] | None = None
        for measure in call:
            count = self.next(measure)
            stage = 2 if count == self.summarize_at else 1 if count == self.warn_at else 0
            if not stage or not self.enabled(measure):
                continue
            better = best is None or (stage, count, -rank(measure)) > (best[0], best[2], -rank(best[1]))
            best = (stage, measure, count) if better else best
        return best

    def settle(self, call: tuple[str, ...], failure: Failure | None) -> tuple[str, int] | None:
        warned: list[str] = []
        for measure in call:
            if measure in self.exempt or not self.enabled(measure):
                continue
            if failure is None:
                self.failures[measure] = []
                continue
            self.failures[measure] = [*self.failures.get(measure, []), failure]
            if len(self.failures[measure]) == self.fail_warn_at:
                warned.append(measure)
        best: str | None = None
        for measure in warned:
            if best is None or rank(measure) < rank(best):
                best = measure
        return None if best is None else (best, len(self.failures[best]))


def rank(measure: str) -> int:
    kind = measure.split(":")[0]
    return RANKS.index(kind) if kind in RANKS else len(RANKS)


@dataclass(frozen=True)
class Event:
    kind: str
    measures: tuple[str, ...] = ()
    which: int = 0
    approved: bool = False
    failure: Failure | None = None


CALLS = st.lists(st.sampled_from(MEASURES), min_size=1, max_size=4, unique=True).map(tuple)
EVENTS = st.one_of(
    st.builds(Event, st.just("call"), CALLS),
    st.builds(Event, st.just("call"), st.sampled_from([("exact:a", "cmd:c"), ("exact:b", "host:h"), ("verb:v",)])),
    st.builds(Event, st.just("answer"), which=st.integers(0, 3), approved=st.booleans()),
    st.builds(Event, st.just("settle"), which=st.integers(0, 3), failure=st.none() | st.sampled_from(FAILURES)),
    st.builds(Event, st.just("settle"), which=st.integers(0, 3), failure=st.sampled_from(FAILURES)),
)
STREAMS = st.lists(st.lists(EVENTS, min_size=10, max_size=60), min_size=1, max_size=3)
CAPS = st.none() | st.integers(2, 6) | st.sampled_from([2.5, 3.5])
KINDS = ("exact", "cmd", "net", "site", "host", "sink", "verb")
CONFIGS: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {
        "window": st.integers(4, 8),
        "onLimit": st.sampled_from(["ask", "ask", "deny"]),
        "warnAt": st.none() | st.integers(1, 5),
        "summarizeAt": st.none() | st.integers(1, 6),
        "failWarnAt": st.none() | st.integers(1, 3),
        "failLimit": st.none() | st.integers(2, 4) | st.just(2.5),
        "limits": st.tuples(
            st.fixed_dictionaries(dict.fromkeys(KINDS, CAPS)),
            st.dictionaries(st.sampled_from(["host:h", "exact:a", "verb:v"]), CAPS),
        ).map(lambda both: {**both[0], **both[1]}),
    }
)


class Pair:
    """The engine and its reference, fed the same events."""

    def __init__(self, config: dict[str, object]) -> None:
        settings = Settings.from_config(config)
        self.engine = Breaker(settings, DEFAULT_RULESET)
        self.reference = Reference(
            window=settings.window,
            ask_first=settings.on_limit == "ask",
            warn_at=settings.warn_at,
            summarize_at=settings.summarize_at,
            fail_warn_at=settings.fail_warn_at,
            fail_limit=settings.fail_limit,
            limits=dict(settings.limits),
        )
        self.waiting: list[tuple[MeasuredCall, Ask, list[HitRecord]]] = []
        self.running: list[MeasuredCall] = []

    def take(self, event: Event) -> None:
        if event.kind == "call":
            self.call(event.measures)
        elif event.kind == "answer" and self.waiting:
            self.answer(event)
        elif event.kind == "settle" and self.running:
            self.settle(event)
        self.compare_state()

    def turn(self) -> None:
        """A human message arrives; questions and calls under way stay so."""
        self.engine.turn()
        self.reference.reset()
        self.compare_state()

    def call(self, measures: tuple[str, ...]) -> None:
        call = MeasuredCall("tool", measures, tracked=True, local=False)
        ask, question = self.engine.ask(call), self.reference.question(measures)
        assert (ask is None) == (question is None)
        if ask is not None and question is not None:
            assert (shown(ask.hits), shown(ask.blocking)) == question
            self.waiting.append((call, ask, question[1]))
        else:
            self.guard(call, None, [])

    def answer(self, event: Event) -> None:
        call, ask, blocking = self.waiting.pop(event.which % len(self.waiting))
        if event.approved:
            self.guard(call, ask, blocking)
            return
        decision = self.engine.decline(call, ask)
        self.reference.decline(call.measures, blocking)
        assert (decision.action, shown(decision.blocking), decision.advisory) == ("ask-declined", blocking, None)

    def guard(self, call: MeasuredCall, ask: Ask | None, freed: list[HitRecord]) -> None:
        reference, measures = self.reference, call.measures
        reference.exempt += [hit[1] for hit in freed]
        hits = reference.hits(measures)
        blocking = reference.blocking(hits)
        decision = self.engine.guard(call, ask)
        assert shown(decision.hits) == hits
        if blocking:
            refused = all(hit[1] in reference.refused for hit in blocking)
            reference.commit(measures, blocking)
            assert (decision.action, decision.refused) == ("deny", refused)
            assert (shown(decision.blocking), decision.advisory) == (blocking, None)
            return
        assert decision.action == ("allow" if ask is None else "ask-approved")
        assert shown(decision.blocking) == freed
        assert said(decision) == reference.advisory(measures)
        reference.commit(measures, [])
        self.running.append(call)

    def settle(self, event: Event) -> None:
        call = self.running.pop(event.which % len(self.running))
        settlement = self.engine.settle(call, event.failure)
        assert warned(settlement) == self.reference.settle(call.measures, event.failure)
        assert settlement.advisory is None or settlement.advisory.failure == event.failure

    def compare_state(self) -> None:
        engine, reference = self.engine, self.reference
        assert engine.window_records == len(reference.calls)
        assert [engine.next_count(measure) for measure in MEASURES] == [reference.next(measure) for measure in MEASURES]
        assert [engine.streak(measure) for measure in MEASURES] == [
            len(reference.failures.get(measure, [])) for measure in MEASURES
        ]
        whole = MeasuredCall("tool", MEASURES, tracked=True, local=False)
        assert list(engine.streaks(whole)) == [measure for measure in MEASURES if reference.failures.get(measure)]


def shown(hits: Sequence[Hit]) -> list[HitRecord]:
    return [(hit.track, hit.measure, hit.count, hit.cap, hit.failure) for hit in hits]


def said(decision: Decision) -> tuple[int, str, int] | None:
    advisory = decision.advisory
    return advisory and (2 if advisory.stage == "summarize" else 1, advisory.measure, advisory.count)


def warned(settlement: Settlement) -> tuple[str, int] | None:
    advisory = settlement.advisory
    return advisory and (advisory.measure, advisory.streak)


@runs(max_examples=300, deadline=None)
@given(CONFIGS, STREAMS)
def test_the_engine_decides_as_its_reference_does(config: dict[str, object], turns: list[list[Event]]) -> None:
    pair = Pair(config)
    for events in turns:
        for event in events:
            pair.take(event)
        pair.turn()
