"""Facts to events: one session replayed through the engine, call by call, in the order of the log.

Open loop: the recorded run goes on unchanged after a call the guard would have withheld.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Protocol

import msgspec

from analysis.plan import POLICIES, SHELL_HTTP_MODES, Policy, ReplayPlan, ShellHttpMode
from analysis.replayed import (
    STAGES,
    FailureKey,
    FirstTrip,
    MeasureCount,
    ReplayEvent,
    RunObserver,
    SessionReplay,
    StageName,
)
from analysis.sessions.facts import CallFact, Fact, MessageFact, SettleFact, TurnFact
from analysis.sessions.report import ReadDefect, ReadReport
from analysis.sessions.session_facts import SessionFacts
from breaker.engine import Breaker, Decision
from breaker.failure import Failure
from breaker.kinds import kind_of, measure_rank
from breaker.measures import MeasuredCall, Measurer
from breaker.messages import Messages

__all__ = [
    "POLICIES",
    "SHELL_HTTP_MODES",
    "STAGES",
    "CachedMeasurer",
    "FactsReader",
    "FailureKey",
    "FirstTrip",
    "MeasureCount",
    "Policy",
    "ReplayEvent",
    "ReplayPlan",
    "RunObserver",
    "SessionReplay",
    "SessionRun",
    "ShellHttpMode",
    "StageName",
    "decide",
    "replay_session",
    "session_run",
    "stage_of",
]

_TRACKS: dict[StageName, str] = {
    "warn": "occurrence",
    "summarize": "occurrence",
    "gate": "occurrence",
    "fail-warn": "failure",
    "fail-gate": "failure",
    "shell-http": "shell-http",
}
_NO_COUNTS: Mapping[str, int] = {}
_WITHHOLDING = frozenset({"ask-declined", "deny", "deny-shell-http"})
_MILLISECONDS = 1000
_CALLS_REMEMBERED = 1024
_LONGEST_REMEMBERED = 4096
"""Characters of arguments up to which a call's measures are remembered; stuck agents repeat short calls."""


class _OpenTrip(msgspec.Struct):
    seq: int
    turn: int
    call: int
    time: float | None
    tokens: int


class _RecordedStreaks:
    """The failure streaks of the record itself, as if nothing were ever withheld."""

    def __init__(self, plan: ReplayPlan) -> None:
        self._settings = plan.settings
        self._everything = plan.result_source == "log"
        self._streaks: dict[str, int] = {}

    def clear(self) -> None:
        """End every streak, as at a human message; published measurements end none there."""
        if not self._everything:
            self._streaks.clear()

    def take(self, measured: MeasuredCall, *, failed: bool) -> Mapping[str, int]:
        """Take a result; return the streaks above 0 of the call's measures, in measure order.

        Every enabled measure has one; published measurements count every measure.
        """
        streaks = self._streaks
        if self._everything:
            counted = measured.measures
        elif failed or streaks:
            counted = [measure for measure, _ in measured.enabled(self._settings).capped]
        else:
            counted = ()
        if failed:
            grown: dict[str, int] = {}
            for measure in counted:
                grown[measure] = streaks[measure] = streaks.get(measure, 0) + 1
            return grown
        for measure in counted:
            streaks.pop(measure, None)
        return _NO_COUNTS


class SessionRun:
    """Takes one session's facts in order and keeps what the replay saw. Use one per session.

    Args:
        plan: settings, ruleset, policy.
        shell_http: the shell-HTTP policy is engaged.
        observer: sees what happens.
        offered: where it is not yet known whether the session is offered the tool that replaces shell HTTP: tells
            whether it has been so far. The policy is asked until it first refuses a call, and up to there both ways
            the session can go are one; from there on it stays engaged only where the tool has been offered by then.
    """

    def __init__(
        self,
        plan: ReplayPlan,
        *,
        shell_http: bool,
        observer: RunObserver | None = None,
        offered: Callable[[], bool] | None = None,
    ) -> None:
        self.replay = SessionReplay(shell_http=shell_http)
        self.facts_taken = 0
        self._plan = plan
        self._observer = observer
        self._offered = offered if shell_http else None
        self._awaits_refusal = self._offered is not None
        self._disengaged = False
        self._guard = Breaker(plan.engine_settings(), plan.ruleset, shell_http=shell_http, machine=plan.machine)
        self._recorded = _RecordedStreaks(plan)
        self._messages = Messages(self._guard.settings, plan.ruleset) if plan.keep_messages else None
        self._everything = plan.result_source == "log"
        self._measurer = CachedMeasurer(self._guard.measurer)
        self._in_flight: dict[int, tuple[MeasuredCall, Decision | None]] = {}
        self._trips: dict[StageName, _OpenTrip] = {}
        self._tokens = 0
        self._tokens_known = False

    def take(self, fact: Fact) -> None:
        """Take one fact."""
        self.facts_taken += 1
        if type(fact) is CallFact:
            self._call(fact)
        elif type(fact) is SettleFact:
            self._settle(fact)
        elif type(fact) is MessageFact:
            if self._observer is not None:
                self._observer.on_message(fact)
            if fact.tokens is not None:
                self._tokens_known = True
                self._tokens += fact.tokens
        elif type(fact) is TurnFact:
            self._guard.turn()
            self._recorded.clear()
            if self._observer is not None:
                self._observer.on_turn(fact, clears_streaks=not self._everything)

    def finish(self, session: SessionFacts) -> SessionReplay:
        """Close the session: totals, and what remained after each first trip."""
        replay = self.replay
        if self._offered is not None:
            replay.shell_http = session.offers_fetch_file
        replay.turns = session.turns
        replay.calls = session.calls
        replay.not_started = session.not_started
        for stage, trip in self._trips.items():
            replay.first_trips[stage] = FirstTrip(
                seq=trip.seq,
                turn=trip.turn,
                call=trip.call,
                seconds=_seconds(session.first_time, trip.time),
                tokens=trip.tokens if self._tokens_known else None,
                calls_after=session.calls - trip.call - 1,
                seconds_after=_seconds(trip.time, session.last_time),
                tokens_after=self._tokens - trip.tokens if self._tokens_known else None,
            )
        if self._observer is not None:
            self._observer.on_end(session)
            replay.observer = self._observer
        return replay

    @property
    def missed_an_offer(self) -> bool:
        """Tell whether the run went on without the shell-HTTP policy, and its tool has been offered since."""
        return self._disengaged and self._offered is not None and self._offered()

    # -- calls ---------------------------------------------------------------------------------------------------

    def _call(self, fact: CallFact) -> None:
        measured = self._measurer.measure(fact)
        if not measured.tracked and not self._everything:
            if self._observer is not None:
                self._observer.on_call(fact, measured, {}, None)
            return
        replay = self.replay
        outcome = fact.outcome
        replay.tracked += 1
        replay.outcomes[outcome.kind] += 1
        replay.clipped += outcome.clipped
        replay.truncated += outcome.truncated
        if outcome.failure is not None and outcome.kind == "failed":
            failure = outcome.failure
            replay.failed_by[FailureKey(measured.name, failure.reason, failure.detail, failure.evidence)] += 1
            replay.failed_text_only += failure.evidence == "text"
        decision = None
        if outcome.commits and measured.tracked:
            decision = self._decide(fact, measured)
        elif self._observer is not None:
            self._observer.on_call(fact, measured, {}, None)
        if outcome.settles:
            self._in_flight[fact.seq] = (measured, decision)

    def _decide(self, fact: CallFact, measured: MeasuredCall) -> Decision:
        if self._awaits_refusal:
            self._await_refusal(measured)
        counts = self._look_at_counts(measured)
        decision, asked = decide(self._guard, measured, self._plan.policy)
        self.replay.asks += asked
        if decision.withheld:
            self.replay.denials += 1
            self.replay.false_rejections += fact.outcome.kind == "ok"
        if self._observer is not None:
            self._observer.on_call(fact, measured, counts, decision)
        self._note_decision(fact, decision)
        return decision

    def _look_at_counts(self, measured: MeasuredCall) -> Mapping[str, int]:
        """Follow the gate's margin and the peak; return the counts."""
        replay = self.replay
        counts = self._guard.next_counts(measured)
        if not counts:
            return counts
        left = min([cap - counts[measure] for measure, cap in self._guard.enabled(measured)])
        if replay.gate_margin is None or left < replay.gate_margin:
            replay.gate_margin = left
        replay.peak = _higher(replay.peak, counts)
        return counts

    def _await_refusal(self, measured: MeasuredCall) -> None:
        if self._guard.refuses_shell_http(measured):
            self._awaits_refusal = False
            if self._offered is None or not self._offered():
                self._guard.disengage_shell_http()
                self._disengaged = True

    def _note_decision(self, fact: CallFact, decision: Decision) -> None:
        stage = stage_of(decision)
        if stage == "shell-http":
            words = self._messages.shell_http(fact.call.name) if self._messages else None
            self._note(fact, "shell-http", "", 0, 0, decision.action, message=words)
        elif stage is not None:
            first = decision.blocking[0]
            self._note(
                fact,
                stage,
                first.measure,
                first.count,
                first.cap,
                decision.action,
                failure=first.failure,
                message=self._gate_message(fact, decision),
            )
        if decision.advisory is not None:
            advisory = decision.advisory
            settings = self._guard.settings
            threshold = settings.summarize_at if advisory.stage == "summarize" else settings.warn_at
            words = self._messages.advisory(advisory) if self._messages else None
            self._note(
                fact,
                advisory.stage,
                advisory.measure,
                advisory.count,
                threshold or 0,
                decision.action,
                message=words,
            )

    def _gate_message(self, fact: CallFact, decision: Decision) -> str | None:
        """Return the question to the operator where there was one, else the reason of the denial."""
        if self._messages is None:
            return None
        if decision.action in {"ask-approved", "ask-declined"}:
            return self._messages.ask(decision)
        return self._messages.denial(decision, fact.call.name, self._guard.last_result)

    def _settle(self, settle: SettleFact) -> None:
        fact = settle.fact
        in_flight = self._in_flight.pop(fact.seq, None)
        if in_flight is None:
            if self._observer is not None:
                self._observer.on_settle(settle, None, {})
            return
        measured, decision = in_flight
        outcome = fact.outcome
        streaks = self._recorded.take(measured, failed=outcome.failure is not None)
        self.replay.longest_streak = _higher(self.replay.longest_streak, streaks)
        if self._observer is not None:
            self._observer.on_settle(settle, measured, streaks)
        if decision is not None and decision.withheld:
            return
        text = settle.text if self._messages is not None else ""
        settlement = self._guard.settle(measured, outcome.failure, text)
        advisory = settlement.advisory
        if advisory is not None:
            action = "allow" if decision is None else decision.action
            threshold = self._guard.settings.fail_warn_at or 0
            self._note(
                fact,
                "fail-warn",
                advisory.measure,
                advisory.streak,
                threshold,
                action,
                failure=advisory.failure,
                message=self._messages.advisory(advisory) if self._messages else None,
            )

    def _note(
        self,
        fact: CallFact,
        stage: StageName,
        measure: str,
        count: int,
        threshold: float,
        decision: str,
        *,
        failure: Failure | None = None,
        message: str | None = None,
    ) -> None:
        replay = self.replay
        replay.stages[stage] += 1
        if measure:
            replay.stages_by_kind.setdefault(kind_of(measure), Counter())[stage] += 1
        replay.first_calls.setdefault((stage, kind_of(measure)), fact.index)
        if stage not in self._trips:
            self._trips[stage] = _OpenTrip(fact.seq, fact.turn, fact.index, fact.time, self._tokens)
        if self._plan.keep_events or self._observer is not None:
            event = ReplayEvent(
                seq=fact.seq,
                turn=fact.turn,
                call=fact.index,
                tool=fact.call.name,
                stage=stage,
                track=_TRACKS[stage],
                measure=measure,
                count=count,
                threshold=threshold,
                decision=decision,
                failure=failure,
                message=message,
                false_rejection=fact.outcome.kind == "ok" and decision in _WITHHOLDING,
                position=self.facts_taken,
            )
            if self._plan.keep_events:
                replay.events.append(event)
            if self._observer is not None:
                self._observer.on_event(event)


def _seconds(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else max(end - start, 0) / _MILLISECONDS


def _higher(so_far: MeasureCount | None, counts: Mapping[str, int]) -> MeasureCount | None:
    """Return the highest of what was so far and the counts of one call.

    The earlier one where calls are equal; within a call the lowest rank, then the first.
    """
    if not counts:
        return so_far
    highest = max(counts.values())
    if highest <= (0 if so_far is None else so_far.count):
        return so_far
    best = min((measure for measure, count in counts.items() if count == highest), key=measure_rank)
    return MeasureCount(best, highest)


def decide(guard: Breaker, measured: MeasuredCall, policy: Policy) -> tuple[Decision, bool]:
    """Have a guard decide one call under a policy, and tell whether it asked."""
    if policy == "observe":
        return guard.observe(measured), False
    answer = guard.ask_or_guard(measured)
    if isinstance(answer, Decision):
        return answer, False
    return (guard.guard(measured, answer) if policy == "approve" else guard.decline(measured, answer)), True


def stage_of(decision: Decision) -> StageName | None:
    """Return the stage of the gate, or of the shell-HTTP policy, that a decision reached; None for neither."""
    if decision.shell_http:
        return "shell-http"
    if not decision.blocking:
        return None
    return "fail-gate" if decision.blocking[0].track == "failure" else "gate"


class CachedMeasurer:
    """Remembers the measures of short calls by tool and argument text."""

    def __init__(self, measurer: Measurer) -> None:
        self._measurer = measurer
        self._known: dict[tuple[str, str], MeasuredCall] = {}

    def measure(self, fact: CallFact) -> MeasuredCall:
        """Return the measures of a call."""
        raw = fact.raw_arguments
        if raw is None or len(raw) > _LONGEST_REMEMBERED:
            return self._measurer.measure(fact.call)
        key = (fact.call.name, raw)
        measured = self._known.get(key)
        if measured is None:
            measured = self._measurer.measure(fact.call)
            if len(self._known) >= _CALLS_REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[key] = measured
        return measured


def session_run(plan: ReplayPlan, session: SessionFacts, observer: RunObserver | None = None) -> SessionRun:
    """Return what takes the facts of a session that has been read to its end; an observer sees what it does."""
    return SessionRun(plan, shell_http=plan.engages_shell_http(session), observer=observer)


class FactsReader(Protocol):
    """Reads one session: iterate `facts()` to its end, then look at `session` and `report`."""

    @property
    def session(self) -> SessionFacts | None:
        """What is known of the session so far; None where there is none."""
        ...

    @property
    def report(self) -> ReadReport:
        """How the reading went."""
        ...

    def facts(self) -> Iterator[Fact]:
        """Give out the facts in order."""
        ...

    def again(self) -> FactsReader:
        """Return a reader of the same session that has read nothing yet."""
        ...


def replay_session(
    reader: FactsReader, plan: ReplayPlan, make_observer: Callable[[], RunObserver] | None = None
) -> SessionReplay | None:
    """Read one session and replay it; None where nothing in it could be used (the reader's report says why).

    Args:
        reader: a reader that has read nothing yet.
        plan: how it is replayed.
        make_observer: makes what watches the replay.
    """

    def offered() -> bool:
        return reader.session is not None and reader.session.offers_fetch_file

    run = SessionRun(
        plan,
        shell_http=plan.shell_http != "off" and plan.has_shell_http,
        observer=make_observer() if make_observer is not None else None,
        offered=offered if plan.shell_http == "auto" else None,
    )
    beside = None
    if plan.detectors:
        from analysis.detect import DetectorRun

        kept = {"keep_events": plan.keep_events, "keep_messages": plan.keep_messages}
        beside = DetectorRun(plan.detectors, plan.policy, **kept)
    for fact in reader.facts():
        run.take(fact)
        if beside is not None:
            beside.take(fact)
    session = reader.session
    if session is None or not reader.report.used:
        return None
    if run.missed_an_offer:
        run = _second_run(reader, plan, run.facts_taken, make_observer)
        if run is None:
            return None
    replay = run.finish(session)
    if beside is not None:
        replay.detectors = beside.finish()
    return replay


def _second_run(
    reader: FactsReader, plan: ReplayPlan, facts: int, make_observer: Callable[[], RunObserver] | None
) -> SessionRun | None:
    """Read a session once more, the shell-HTTP policy engaged from its begin; None where its file no longer has it all.

    Its tool was offered only after the policy would first have refused a call: too rare to follow both ways always.
    """
    run = SessionRun(
        plan,
        shell_http=True,
        observer=make_observer() if make_observer is not None else None,
    )
    for fact in islice(reader.again().facts(), facts):
        run.take(fact)
    if run.facts_taken == facts:
        return run
    reader.report.state = "corrupt"
    reader.report.add(ReadDefect("unreadable", "the file changed while it was read", lost_bytes=reader.report.size))
    return None
