"""One decision of the guard, taken apart: what it counted, why it said this and not something else, what avoids it.

Remedies are found by running the engine with one setting changed, up to the same call; none is derived by rule.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

import msgspec

from analysis.replay import (
    STAGES,
    CachedMeasurer,
    ReplayEvent,
    ReplayPlan,
    SessionReplay,
    StageName,
    decide,
    session_run,
)
from analysis.sessions.decode import Limits
from analysis.sessions.facts import CallFact, Fact, SettleFact, TurnFact
from analysis.sessions.find import SessionFile, find_sessions
from analysis.sessions.header import read_header
from analysis.sessions.report import ReadReport
from analysis.sessions.session import SessionReader
from analysis.sessions.session_facts import SessionFacts
from analysis.text import ELLIPSIS, counted
from breaker.engine import Breaker, Decision
from breaker.failure import describe
from breaker.kinds import kind_of, measure_rank
from breaker.measures import MeasuredCall
from breaker.rulesets import RULESETS, Ruleset
from breaker.settings import Settings, SettingsError
from breaker.shellhttp import ShellHttpPolicy

__all__ = [
    "MARKS",
    "ExplainError",
    "Explanation",
    "FailureEvidence",
    "MeasureState",
    "NoSessions",
    "Remedy",
    "SessionNotFound",
    "SessionUnreadable",
    "Target",
    "TurnLine",
    "WindowRecord",
    "explain_session",
    "find_session",
]

_NEAR = 3
_DEFAULT_LIMITS = Limits()
MARKS: dict[str, str] = {
    "ok": ".",
    "failed": "x",
    "open": "o",
    "undecidable": "?",
    "denied": "d",
    "not-run": "-",
    "warn": "w",
    "summarize": "s",
    "fail-warn": "f",
    "gate": "G",
    "fail-gate": "F",
    "shell-http": "H",
}
"""How the timeline marks a call: by the worst stage it reached, else by what became of it."""

_WORST: tuple[StageName, ...] = ("gate", "fail-gate", "shell-http", "summarize", "fail-warn", "warn")
_OFF = "off"


class ExplainError(ValueError):
    """The call asked about is not there; the message names the near ones."""


class SessionNotFound(ExplainError):
    """No session, or several, answer to the name; the message names the near ones."""


class NoSessions(ExplainError):
    """There is no session at all where one was looked for."""


class SessionUnreadable(ExplainError):
    """The session, or every file it could be in, cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """Which call to explain: by index, by sequence number, the first that reaches a stage, or the worst one."""

    call: int | None = None
    seq: int | None = None
    stage: StageName | None = None


@dataclass(frozen=True, slots=True)
class WindowRecord:
    """One record of the window: the call that left it and the measures it holds."""

    call: int
    seq: int
    tool: str
    measures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MeasureState:
    """One measure of the explained call, as the guard met it."""

    measure: str
    kind: str
    rank: int
    """Its place in tie-breaks; lower wins."""
    count: int
    """The next count, this call included."""
    cap: float | None
    """None: not enabled, on neither track."""
    streak: int
    """Consecutive failures before the call."""
    streak_after: int | None
    """After its result; None where it settled nothing."""
    exempt: bool
    refused: bool


@dataclass(frozen=True, slots=True)
class FailureEvidence:
    """One failure of a streak, and what it rests on."""

    measures: tuple[str, ...]
    """The measures whose streak it belongs to."""
    call: int
    seq: int
    told: str
    evidence: str
    rule: str
    words: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """A single change under which the stage is not reached at this call, and what happens then."""

    key: str
    before: str
    after: str
    stages: tuple[StageName, ...]
    """What the call reaches instead."""
    first: int | None
    """The call that then reaches the stage first; None where none does."""


@dataclass(frozen=True, slots=True)
class TurnLine:
    """One turn of the timeline: a mark per call."""

    turn: int
    first_call: int
    marks: str
    cursor: int | None
    """The position of the explained call in the marks."""


@dataclass(frozen=True)
class Explanation:
    """Everything about one decision."""

    plan: ReplayPlan
    path: str
    session: SessionFacts
    report: ReadReport
    replay: SessionReplay
    call: CallFact
    shell_http: bool
    """The shell-HTTP policy was engaged in the session."""
    measured: MeasuredCall
    decision: Decision | None
    """None where the call never met the guard."""
    events: tuple[ReplayEvent, ...]
    """The stages the call reached."""
    window: tuple[WindowRecord, ...]
    measures: tuple[MeasureState, ...]
    why: tuple[str, ...]
    evidence: tuple[FailureEvidence, ...]
    remedies: tuple[Remedy, ...]
    timeline: tuple[TurnLine, ...]

    @property
    def stage(self) -> StageName | None:
        """The worst stage the call reached."""
        return _worst(event.stage for event in self.events)


def _worst(stages: Iterable[StageName]) -> StageName | None:
    reached = set(stages)
    return next((stage for stage in _WORST if stage in reached), None)


# -- finding the session -----------------------------------------------------------------------------------------------


def find_session(name: str, paths: Sequence[Path]) -> SessionFile:
    """Find the session of that id, or of that path or end of a path, among the given paths.

    Raises:
        PathMissing: a given path does not exist.
        NoSessions: there is no session to choose from.
        SessionUnreadable: no file there can be read.
        SessionNotFound: none or several answer to the name.
    """
    found_there = find_sessions(paths)
    files = [file for file in found_there.files if file.superseded_by is None]
    if not files and found_there.problems:
        problem = found_there.problems[0]
        message = f"nothing could be read: {problem.shown}: {problem.message}"
        raise SessionUnreadable(message)
    if not files:
        message = f"no sessions found in {', '.join(map(str, paths))}"
        raise NoSessions(message)
    if len(files) == 1 and Path(name) in paths:
        return files[0]
    tail = name.rstrip("/")
    found = [
        file
        for file in files
        if file.shown == tail
        or file.folder == tail
        or file.shown.endswith(f"/{tail}")
        or file.folder.endswith(f"/{tail}")
    ]
    ids: dict[str, list[SessionFile]] = {}
    if not found:
        headers = [read_header(file) for file in files]
        if not any(headers):
            message = f"none of {counted(len(files), 'session file')} could be read"
            raise SessionUnreadable(message)
        for file, header in zip(files, headers, strict=True):
            if header is not None and header.session_id is not None:
                ids.setdefault(header.session_id, []).append(file)
        head, _, tail = name.partition(ELLIPSIS)  # as tables name it
        found = ids.get(name) or [
            file for known, those in ids.items() if known.startswith(head) and known.endswith(tail) for file in those
        ]
    if len(found) == 1:
        return found[0]
    if found:
        shown = ", ".join(file.shown for file in found[:_NEAR])
        message = f"{len(found)} sessions answer to {name!r}: {shown}{', …' if len(found) > _NEAR else ''}"
        raise SessionNotFound(message)
    near = get_close_matches(name, list(ids), n=_NEAR, cutoff=0) if ids else []
    hint = f"; the nearest: {', '.join(near)}" if near else ""
    message = f"no session {name!r} among {len(files)} files{hint}"
    raise SessionNotFound(message)


# -- the call ----------------------------------------------------------------------------------------------------------


def explain_session(
    file: SessionFile, plan: ReplayPlan, target: Target, limits: Limits = _DEFAULT_LIMITS
) -> Explanation:
    """Replay a session and take one of its decisions apart.

    Raises:
        SessionUnreadable: nothing in the file can be used.
        ExplainError: the call asked about is not there.
    """
    others = [ruleset for ruleset in RULESETS.values() if ruleset.name != plan.ruleset.name]
    reader = SessionReader(file, plan.ruleset, source=plan.result_source, limits=limits)
    reader.other_rulesets = tuple(others)
    facts = [
        msgspec.structs.replace(fact, texts=()) if isinstance(fact, SettleFact) else fact for fact in reader.facts()
    ]
    session = reader.session
    if session is None or not reader.report.used:
        defects = "; ".join(defect.message for defect in reader.report.defects)
        message = f"{file.shown}: nothing in it can be used ({reader.report.state}): {defects}"
        raise SessionUnreadable(message)
    runner = _Runner(facts, session, replace(plan, keep_events=True, keep_messages=False), others)
    replay = runner.replay(runner.plan)
    call = _targeted(target, runner, replay)
    seen = _Snapshot(runner, call)
    events = tuple(event for event in replay.events if event.call == call.index)
    return Explanation(
        plan=plan,
        path=file.shown,
        session=session,
        report=reader.report,
        replay=replay,
        call=call,
        shell_http=replay.shell_http,
        measured=seen.measured,
        decision=seen.decision,
        events=events,
        window=seen.window,
        measures=seen.measures,
        why=tuple(_why(runner, seen, call, events)),
        evidence=_evidence(seen, events, plan.ruleset),
        remedies=tuple(_remedies(runner, seen, call, events)),
        timeline=_timeline(runner, replay, call),
    )


def _targeted(target: Target, runner: _Runner, replay: SessionReplay) -> CallFact:
    calls = runner.calls
    if not calls:
        message = "the session has no calls"
        raise ExplainError(message)
    if target.call is not None:
        if target.call < len(calls):
            return calls[target.call]
        message = f"no call {target.call}: the session has {len(calls)}, 0 to {len(calls) - 1}"
        raise ExplainError(message)
    if target.seq is not None:
        found = next((call for call in calls if call.seq == target.seq), None)
        if found is not None:
            return found
        wanted = target.seq
        near = sorted(sorted(calls, key=lambda call: abs(call.seq - wanted))[:_NEAR], key=lambda call: call.seq)
        told = ", ".join(f"{call.seq} (call {call.index})" for call in near)
        message = f"no call at seq {wanted}; the nearest: {told}"
        raise ExplainError(message)
    stage = target.stage or _worst(event.stage for event in replay.events)
    event = next((event for event in replay.events if event.stage == stage), None)
    if event is not None:
        return calls[event.call]
    if target.stage is not None:
        reached = [name for name in STAGES if replay.stages[name]]
        message = f"no call reaches {target.stage}; reached: {', '.join(reached) or 'no stage'}"
        raise ExplainError(message)
    return calls[-1]


class _Runner:
    """Replays one session's facts under any plan, up to any call."""

    def __init__(
        self, facts: Sequence[Fact], session: SessionFacts, plan: ReplayPlan, others: Sequence[Ruleset]
    ) -> None:
        self.facts = facts
        self.session = session
        self.plan = plan
        self.calls = [fact for fact in facts if isinstance(fact, CallFact)]
        self._others = [ruleset.name for ruleset in others]

    def until(self, call: CallFact) -> int:
        """Return how many facts there are up to a call's result, or up to the call where it has none."""
        end = 0
        for number, fact in enumerate(self.facts, start=1):
            if fact is call or (isinstance(fact, SettleFact) and fact.fact is call):
                end = number
        return end

    def replay(self, plan: ReplayPlan, end: int | None = None) -> SessionReplay:
        """Replay the session, or its first facts, under a plan."""
        run = session_run(plan, self.session)
        for fact in self._judged(plan.ruleset, self.facts if end is None else self.facts[:end]):
            run.take(fact)
        return run.finish(self.session)

    def _judged(self, ruleset: Ruleset, facts: Sequence[Fact]) -> Iterable[Fact]:
        """Give the facts with the outcomes a ruleset decides."""
        if ruleset.name == self.plan.ruleset.name:
            yield from facts
            return
        number = self._others.index(ruleset.name)
        judged: dict[int, CallFact] = {}
        for fact in facts:
            if isinstance(fact, CallFact):
                others = fact.other_outcomes
                judged[fact.index] = msgspec.structs.replace(fact, outcome=others[number] if others else fact.outcome)
                yield judged[fact.index]
            elif isinstance(fact, SettleFact):
                yield msgspec.structs.replace(fact, fact=judged.pop(fact.fact.index, fact.fact))
            else:
                yield fact


class _Snapshot:
    """The guard's state as it met one call, and what it did."""

    def __init__(self, runner: _Runner, target: CallFact) -> None:
        plan = runner.plan
        self.guard = Breaker(
            plan.engine_settings(),
            plan.ruleset,
            shell_http=plan.engages_shell_http(runner.session),
            machine=plan.machine,
        )
        self._measurer = CachedMeasurer(self.guard.measurer)
        self._records: deque[CallFact] = deque(maxlen=self.guard.settings.window)
        self._failures: dict[str, list[CallFact]] = {}
        self._in_flight: dict[int, tuple[MeasuredCall, Decision | None]] = {}
        self.measured = self._measurer.measure(target)
        self.decision: Decision | None = None
        self.window: tuple[WindowRecord, ...] = ()
        self.named: dict[int, str] = {}
        """For each count the call reaches, the measure an advisory there names."""
        self.reached: dict[int, str] = {}
        """For each streak its result makes, the measure an advisory there names."""
        self.failures: dict[str, tuple[CallFact, ...]] = {}
        """For each measure the failures of its streak, this call's own among them."""
        self.measures: tuple[MeasureState, ...] = ()
        self._run(runner, plan, target)

    def _run(self, runner: _Runner, plan: ReplayPlan, target: CallFact) -> None:
        end = runner.until(target)
        for fact in runner.facts[:end]:
            if isinstance(fact, TurnFact):
                self.guard.turn()
                self._records.clear()
                self._failures.clear()
            elif isinstance(fact, CallFact):
                self._call(fact, plan, target)
            elif isinstance(fact, SettleFact):
                self._settle(fact.fact, target)

    def _call(self, fact: CallFact, plan: ReplayPlan, target: CallFact) -> None:
        measured = self._measurer.measure(fact)
        if fact is target:
            self._look(measured)
        decision = None
        if measured.tracked and fact.outcome.commits:
            before = self.guard.commits
            decision, _ = decide(self.guard, measured, plan.policy)
            if self.guard.commits > before:
                self._records.append(fact)
        if fact is target:
            self.decision = decision
        if measured.tracked and fact.outcome.settles:
            self._in_flight[fact.index] = (measured, decision)

    def _look(self, measured: MeasuredCall) -> None:
        guard = self.guard
        self.named = guard.named_at_counts(measured)
        self.window = tuple(
            WindowRecord(call.index, call.seq, call.call.name, record)
            for call, record in zip(self._records, guard.window_contents, strict=True)
        )
        self.measures = tuple(
            MeasureState(
                measure=measure,
                kind=kind_of(measure),
                rank=measure_rank(measure),
                count=guard.next_count(measure),
                cap=guard.cap(measure),
                streak=guard.streak(measure),
                streak_after=None,
                exempt=guard.is_exempt(measure),
                refused=guard.is_refused(measure),
            )
            for measure in measured.measures
        )
        self.failures = {measure: tuple(self._failures.get(measure, ())) for measure in measured.measures}

    def _settle(self, fact: CallFact, target: CallFact) -> None:
        measured, decision = self._in_flight.pop(fact.index, (None, None))
        if measured is None or (decision is not None and decision.withheld):
            return
        before = {measure: self.guard.streak(measure) for measure in measured.measures}
        settlement = self.guard.settle(measured, fact.outcome.failure)
        for measure, streak in before.items():
            now = self.guard.streak(measure)
            if not now:
                self._failures.pop(measure, None)
            elif now > streak:
                self._failures.setdefault(measure, []).append(fact)
        if fact is target:
            self.reached = dict(settlement.reached)
            self.measures = tuple(
                replace(state, streak_after=self.guard.streak(state.measure)) for state in self.measures
            )
            self.failures = {measure: tuple(self._failures.get(measure, ())) for measure in measured.measures}


# -- why ---------------------------------------------------------------------------------------------------------------


def _number(value: float) -> str:
    return f"{value:g}"


def _why(runner: _Runner, seen: _Snapshot, call: CallFact, events: Sequence[ReplayEvent]) -> Iterable[str]:
    settings = seen.guard.settings
    if not seen.measured.tracked:
        yield f"the guard does not look at {call.call.name}: `include` and `exclude` leave it out"
        return
    if seen.decision is None:
        yield f"the call never met the guard: {call.outcome.rule or call.outcome.kind}"
    elif seen.decision.shell_http and seen.measured.command is not None:
        policy = ShellHttpPolicy(settings, runner.plan.ruleset, runner.plan.machine)
        yield f"the shell-HTTP policy refuses the command: {policy.verdict(seen.measured.command).why}"
        yield "it is looked at before anything is counted, so counts and caps play no part"
    elif seen.decision.blocking:
        yield from _why_gated(seen, seen.decision, settings)
    yield from _why_spoken(seen, settings, [event.stage for event in events])
    if not events:
        yield from _why_silent(seen, settings)


def _why_gated(seen: _Snapshot, decision: Decision, settings: Settings) -> Iterable[str]:
    states = {state.measure: state for state in seen.measures}
    for hit in decision.blocking:
        if hit.track == "failure":
            told = describe(hit.failure, seen.guard.ruleset)
            yield (
                f"{hit.measure} has failed {hit.count} times in a row, and `failLimit` is {_number(hit.cap)} "
                f"(the last time: {told})"
            )
        else:
            yield f"{hit.measure} comes up {hit.count} times in the window, and its cap is {_number(hit.cap)}"
    if len(decision.blocking) > 1:
        yield f"{decision.blocking[0].measure} is named first: failures before repeats, then the order of the measures"
    refused = [hit.measure for hit in decision.blocking if (state := states.get(hit.measure)) and state.refused]
    if decision.action == "ask-declined":
        yield "an operator is asked, and nobody answers: that declines it until the next human message"
    elif decision.action == "ask-approved":
        yield "an operator is asked and approves: these measures are free for the rest of the turn, and the call runs"
    elif decision.action == "observed":
        yield "the policy only observes, so the call runs"
    elif settings.on_limit == "deny":
        yield "`onLimit` is deny: nobody is asked"
    elif refused:
        yield f"nobody is asked again: {', '.join(dict.fromkeys(refused))} was declined earlier in this turn"


def _why_spoken(seen: _Snapshot, settings: Settings, stages: Sequence[StageName]) -> Iterable[str]:
    rivals = [state for state in seen.measures if state.cap is not None]
    at_stage = {"summarize": settings.summarize_at, "warn": settings.warn_at}
    for stage, threshold in at_stage.items():
        if stage not in stages or threshold is None:
            continue
        chosen = seen.named[threshold]
        yield f"{chosen} comes up {threshold} times, which is `{stage}At`"
        same = [state.measure for state in rivals if state.count == threshold and state.measure != chosen]
        if same:
            yield f"{chosen} is named rather than {', '.join(same)}: {_rank_told(chosen, same)}"
        if stage == "summarize" and settings.warn_at in seen.named and settings.warn_at != threshold:
            yield f"{seen.named[settings.warn_at]} reaches `warnAt` too; of two stages only the higher one speaks"
    if "fail-warn" in stages and settings.fail_warn_at is not None:
        chosen = seen.reached[settings.fail_warn_at]
        yield f"{chosen} has now failed {settings.fail_warn_at} times in a row, which is `failWarnAt`"
        same = [
            state.measure for state in rivals if state.streak_after == settings.fail_warn_at and state.measure != chosen
        ]
        if same:
            yield f"{chosen} is named rather than {', '.join(same)}: {_rank_told(chosen, same)}"


def _rank_told(chosen: str, others: Sequence[str]) -> str:
    if any(measure_rank(other) == measure_rank(chosen) for other in others):
        return "of one kind, the first in the call is named"
    return f"{kind_of(chosen)} comes before {', '.join(dict.fromkeys(map(kind_of, others)))} in the order of kinds"


def _why_silent(seen: _Snapshot, settings: Settings) -> Iterable[str]:
    for state in seen.measures:
        if state.cap is None:
            continue
        parts = [f"count {state.count}, cap {_number(state.cap)}"]
        for key, threshold in (("warnAt", settings.warn_at), ("summarizeAt", settings.summarize_at)):
            if threshold is not None:
                left = threshold - state.count
                parts.append(f"{'past' if left < 0 else 'at' if not left else f'{left} below'} {key} {threshold}")
        if state.exempt:
            parts.append("exempt by an approval")
        yield f"{state.measure}: {', '.join(parts)}, streak {state.streak}"


def _evidence(seen: _Snapshot, events: Sequence[ReplayEvent], ruleset: Ruleset) -> tuple[FailureEvidence, ...]:
    named = {event.measure for event in events if event.track == "failure"}
    if seen.decision is not None:
        named |= {hit.measure for hit in seen.decision.blocking if hit.track == "failure"}
    failed: dict[int, CallFact] = {}
    measures: dict[int, list[str]] = {}
    for measure in sorted(named) or [measure for measure, failures in seen.failures.items() if failures]:
        for call in seen.failures.get(measure, ()):
            failed[call.index] = call
            measures.setdefault(call.index, []).append(measure)
    return tuple(
        FailureEvidence(
            measures=tuple(measures[index]),
            call=index,
            seq=failed[index].seq,
            told=describe(failed[index].outcome.failure, ruleset),
            evidence=failed[index].outcome.evidence,
            rule=failed[index].outcome.rule,
            words=failed[index].outcome.words,
        )
        for index in sorted(failed)
    )


# -- what would have avoided it ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Change:
    """Values of one setting, the nearest to the present one first."""

    key: str
    before: str
    values: Sequence[tuple[str, Callable[[], ReplayPlan | None]]] = field(default_factory=tuple)


def _remedies(runner: _Runner, seen: _Snapshot, call: CallFact, events: Sequence[ReplayEvent]) -> Iterable[Remedy]:
    stage = _worst(event.stage for event in events)
    if stage is None:
        return
    end = runner.until(call)

    def avoids(plan: ReplayPlan) -> bool:
        trial = runner.replay(plan, end)
        return not any(event.call == call.index and event.stage == stage for event in trial.events)

    for change in _changes(runner, seen, call):
        found = _nearest(change.values, avoids)
        if found is None:
            continue
        after, plan = found
        whole = runner.replay(plan)
        stages: tuple[StageName, ...] = tuple(event.stage for event in whole.events if event.call == call.index)
        first = next((event.call for event in whole.events if event.stage == stage), None)
        yield Remedy(change.key, change.before, after, stages, first)


def _nearest(
    values: Sequence[tuple[str, Callable[[], ReplayPlan | None]]], avoids: Callable[[ReplayPlan], bool]
) -> tuple[str, ReplayPlan] | None:
    """Return the nearest value that avoids the stage: strides that double, then halving between the last two.

    Every answer has been run; between a value that fails and one that does not, the change is taken to come once.
    """

    def tried(position: int) -> ReplayPlan | None:
        plan = values[position][1]()
        return plan if plan is not None and avoids(plan) else None

    failed, stride, position = -1, 1, 0
    plan: ReplayPlan | None = None
    while position < len(values):
        plan = tried(position)
        if plan is not None:
            break
        failed = position
        if position == len(values) - 1:
            return None
        position = min(position + stride, len(values) - 1)
        stride *= 2
    if plan is None:
        return None
    while position - failed > 1:
        middle = (position + failed) // 2
        earlier = tried(middle)
        if earlier is None:
            failed = middle
        else:
            position, plan = middle, earlier
    return values[position][0], plan


def _changes(runner: _Runner, seen: _Snapshot, call: CallFact) -> Iterable[_Change]:
    plan = runner.plan
    settings, ruleset = plan.settings, plan.ruleset
    config = settings.as_config
    highest = 2 * settings.window + 2

    def with_config(key: str, value: object) -> Callable[[], ReplayPlan | None]:
        from analysis.configs import laid_over

        def plan_of() -> ReplayPlan | None:
            try:
                return replace(plan, settings=Settings.from_config(laid_over(config, {key: value}), ruleset))
            except SettingsError:
                return None

        return plan_of

    def numbers(key: str, present: float | None, off: object) -> _Change | None:
        if present is None:
            return None
        upwards = [(str(value), with_config(key, value)) for value in range(math.floor(present) + 1, highest + 1)]
        return _Change(key, _number(present), [*upwards, (_OFF, with_config(key, off))])

    stages = (
        numbers("warnAt", settings.warn_at, 0),
        numbers("summarizeAt", settings.summarize_at, 0),
        numbers("failWarnAt", settings.fail_warn_at, 0),
        numbers("failLimit", settings.fail_limit, None),
    )
    yield from (change for change in stages if change is not None)
    enabled = [state for state in seen.measures if state.cap is not None]
    for kind in dict.fromkeys(state.kind for state in enabled):
        change = numbers(f"limits.{kind}", settings.limits.get(kind), None)
        if change is not None:
            yield change
    for state in enabled:
        if state.measure not in settings.limits and state.cap is not None:
            yield _Change(
                f"limits.{state.measure}", _number(state.cap), [(_OFF, with_config(f"limits.{state.measure}", None))]
            )
    narrower = range(settings.window - 1, 3, -1)
    yield _Change("window", str(settings.window), [(str(value), with_config("window", value)) for value in narrower])
    excluded = [*settings.exclude, call.call.name]
    yield _Change("exclude", "", [(f"with {call.call.name}", with_config("exclude", excluded))])
    if settings.local_hosts == "deny":
        yield _Change("localHosts", "deny", [("allow", with_config("localHosts", "allow"))])
    if settings.block_shell_http is True:
        yield _Change("blockShellHttp", "true", [("false", with_config("blockShellHttp", False))])
    others = [one for one in RULESETS.values() if one.name != ruleset.name]
    yield _Change("ruleset", ruleset.name, [(one.name, _under(plan, one)) for one in reversed(others)])


def _under(plan: ReplayPlan, ruleset: Ruleset) -> Callable[[], ReplayPlan | None]:
    def plan_of() -> ReplayPlan | None:
        try:
            return replace(plan, settings=Settings.from_config(plan.settings.as_config, ruleset), ruleset=ruleset)
        except SettingsError:
            return None

    return plan_of


# -- the timeline ------------------------------------------------------------------------------------------------------


def _timeline(runner: _Runner, replay: SessionReplay, target: CallFact) -> tuple[TurnLine, ...]:
    stages: dict[int, list[StageName]] = {}
    for event in replay.events:
        stages.setdefault(event.call, []).append(event.stage)
    turns: dict[int, list[CallFact]] = {}
    for call in runner.calls:
        turns.setdefault(call.turn, []).append(call)
    lines: list[TurnLine] = []
    for turn, calls in turns.items():
        marks = "".join(MARKS[_worst(stages.get(call.index, ())) or call.outcome.kind] for call in calls)
        cursor = next((number for number, call in enumerate(calls) if call is target), None)
        lines.append(TurnLine(turn, calls[0].index, marks, cursor))
    return tuple(lines)
