"""What is planted in a corpus, and what a guard must say of it.

The truth is known by construction. A planned call states its measures and its outcome by hand; `observe_plan` then
counts, under named settings, what a guard would see. It is a second, deliberately naive reading of the rules: a list
of the last calls that is counted anew for every call, no shared code with the engine, nothing clever.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Outcome = Literal["ok", "failed", "undecidable", "denied", "not-run", "open"]
Evidence = Literal["structured", "rebuilt", "text", "none"]
Label = Literal["good", "stuck", "unknown"]
Policy = Literal["unattended", "approve", "deny", "observe"]
Track = Literal["occurrence", "failure"]
Decision = Literal["allow", "ask-approved", "ask-declined", "deny", "observed"]

RULESETS: Final = ("0.5.0", "0.5.1", "0.5.2", "0.5.3", "0.6.1", "0.7.0", "0.8.2", "0.8.3", "0.8.7", "0.8")
"""The released behaviours a verdict or a measure may differ under, oldest first; the last is the default."""

STREAK_LENGTHS: Final = (2, 3, 4, 5, 8)
"""The failure streaks the published census counts sessions by."""

_RANK: Final = ("host", "net", "site", "sink", "cmd", "exact")
_DEFAULT_LIMITS: Final[Mapping[str, int | None]] = MappingProxyType(
    {"exact": 12, "cmd": 12, "net": 12, "sink": 12, "host": 16}
)


def _default_limits() -> Mapping[str, int | None]:
    return _DEFAULT_LIMITS


@dataclass(frozen=True, slots=True)
class Verdict:
    """State what became of a call, why it failed, and what that rests on."""

    outcome: Outcome
    reason: str | None = None
    detail: str = ""
    evidence: Evidence = "structured"


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """State everything a replay must find out about one call.

    `met_guard` is false for calls refused before the guard or never offered to it; `settles` says whether the
    recorded result moves the streaks. `verdicts` and `measures_under` give the rulesets that see the call otherwise.
    """

    tool: str
    turn: int
    measures: tuple[str, ...]
    verdict: Verdict
    met_guard: bool
    settles: bool
    tracked: bool = True
    clipped: bool = False
    seconds: float = 0.0
    tokens: int = 0
    verdicts: Mapping[str, Verdict] = field(default_factory=dict[str, Verdict])
    measures_under: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def verdict_under(self, ruleset: str) -> Verdict:
        """Return what became of the call as one ruleset classifies it."""
        return self.verdicts.get(ruleset, self.verdict)

    def measures_of(self, ruleset: str) -> tuple[str, ...]:
        """Return the measures one ruleset gives the call, in order."""
        return self.measures_under.get(ruleset, self.measures)


@dataclass(frozen=True, slots=True)
class Moment:
    """Stand for one thing the guard lives through: a reset, a call offered (`guard`) or its result (`settle`)."""

    kind: Literal["reset", "guard", "settle"]
    call: int = -1


@dataclass(frozen=True, slots=True)
class NamedSetting:
    """Name settings under which the truth is stated; what is not given is the default of the breaker."""

    name: str
    ruleset: str = "0.8"
    policy: Policy = "unattended"
    on_limit: Literal["ask", "deny"] = "ask"
    window: int = 16
    warn_at: int | None = 7
    summarize_at: int | None = 11
    fail_warn_at: int | None = 3
    fail_limit: int | None = 5
    limits: Mapping[str, int | None] = field(default_factory=_default_limits)

    def cap(self, measure: str) -> int | None:
        """Return the cap of a measure; None when it is not enabled."""
        return self.limits.get(measure, self.limits.get(measure.split(":", 1)[0]))

    def overrides(self) -> dict[str, object]:
        """Return the breaker's own setting keys that differ from the defaults."""
        usual = NamedSetting("default").as_config()
        return {key: value for key, value in self.as_config().items() if value != usual[key]}

    def as_config(self) -> dict[str, object]:
        """Return the settings under the breaker's own keys."""
        return {
            "window": self.window,
            "onLimit": self.on_limit,
            "warnAt": self.warn_at,
            "summarizeAt": self.summarize_at,
            "failWarnAt": self.fail_warn_at,
            "failLimit": self.fail_limit,
            "limits": dict(self.limits),
        }


SETTINGS: Final = (
    NamedSetting("default"),
    NamedSetting("observe", policy="observe"),
    NamedSetting(
        "strict",
        on_limit="deny",
        warn_at=3,
        summarize_at=6,
        fail_warn_at=2,
        fail_limit=3,
        limits=MappingProxyType({"exact": 9, "cmd": 9, "net": 9, "sink": 9, "host": 9}),
    ),
    NamedSetting("approve 0.5.2", ruleset="0.5.2", policy="approve"),
    NamedSetting("observe 0.5.0", ruleset="0.5.0", policy="observe"),
    NamedSetting("observe 0.5.2", ruleset="0.5.2", policy="observe"),
    NamedSetting("observe 0.5.3", ruleset="0.5.3", policy="observe"),
    NamedSetting("observe 0.6.1", ruleset="0.6.1", policy="observe"),
    NamedSetting("observe 0.7.0", ruleset="0.7.0", policy="observe"),
    NamedSetting("observe 0.8.7", ruleset="0.8.7", policy="observe"),
)
"""The settings under which every session's truth is stated. Shell-HTTP refusal is off or not engaged in all."""


@dataclass(frozen=True, slots=True)
class PlantedEvent:
    """State one stage reached: by which call, on which measure, with which count."""

    stage: str
    call: int
    measure: str
    count: int
    decision: Decision


@dataclass(frozen=True, slots=True)
class FirstTrip:
    """State where a stage was first reached: the call, its human turn, and what had been used by then.

    `seconds` count from the session's first event, `tokens` are input, cache reads and output of the answers before.
    """

    call: int
    turn: int
    seconds: float
    tokens: int
    calls_after: int


@dataclass(frozen=True, slots=True)
class Extreme:
    """Name a measure and the count it reached first."""

    measure: str
    count: int


@dataclass(frozen=True, slots=True)
class Observed:
    """State what one session shows under one setting.

    `ok`, `failed` and `longest_streak` describe the record, so they are the same under every policy of a ruleset.
    `gate_margin` is the least of cap minus count over the enabled measures seen; None where there were none.
    """

    ok: int
    failed: int
    failed_text_only: int
    longest_streak: Extreme | None
    peak: Extreme | None
    events: tuple[PlantedEvent, ...]
    asks: int
    denials: int
    false_rejections: int
    gate_margin: int | None
    first_trips: Mapping[str, FirstTrip]


@dataclass(slots=True)
class _State:
    """Hold what a guard remembers of one agent."""

    records: list[list[str]] = field(default_factory=list[list[str]])
    exempt: set[str] = field(default_factory=set[str])
    refused: set[str] = field(default_factory=set[str])
    streaks: dict[str, int] = field(default_factory=dict[str, int])


class _Extremes:
    """Keep the largest count seen: the earliest of equals, and of one moment the measure of the better rank."""

    def __init__(self) -> None:
        self.best: Extreme | None = None

    def see(self, counts: Mapping[str, int]) -> None:
        for measure in sorted(counts, key=rank):
            if self.best is None or counts[measure] > self.best.count:
                self.best = Extreme(measure, counts[measure])


def rank(measure: str) -> int:
    """Return the place of a measure's kind among equals; a kind that is not ranked comes last."""
    kind = measure.split(":", 1)[0]
    return _RANK.index(kind) if kind in _RANK else len(_RANK)


def observe_plan(calls: Sequence[PlannedCall], moments: Sequence[Moment], setting: NamedSetting) -> Observed:
    """Count what one session shows under one setting, by the most literal reading of the rules."""
    verdicts = [call.verdict_under(setting.ruleset) for call in calls if call.tracked]
    failures = [verdict for verdict in verdicts if verdict.outcome == "failed"]
    watch = _Watch(calls, setting)
    watch.run(moments)
    record = watch
    if setting.policy != "observe":
        record = _Watch(calls, replace(setting, policy="observe"))
        record.run(moments)
    return Observed(
        ok=sum(verdict.outcome == "ok" for verdict in verdicts),
        failed=len(failures),
        failed_text_only=sum(verdict.evidence == "text" for verdict in failures),
        longest_streak=record.streaks.best,
        peak=watch.peaks.best,
        events=tuple(watch.events),
        asks=watch.asks,
        denials=len(watch.withheld),
        false_rejections=sum(calls[at].verdict_under(setting.ruleset).outcome == "ok" for at in watch.withheld),
        gate_margin=min(watch.margins, default=None),
        first_trips=_first_trips(calls, watch.events),
    )


def _first_trips(calls: Sequence[PlannedCall], events: Sequence[PlantedEvent]) -> dict[str, FirstTrip]:
    trips: dict[str, FirstTrip] = {}
    for event in events:
        call = calls[event.call]
        trip = FirstTrip(event.call, call.turn, call.seconds, call.tokens, len(calls) - event.call - 1)
        trips.setdefault(event.stage, trip)
    return trips


class _Watch:
    """Live through a session once."""

    def __init__(self, calls: Sequence[PlannedCall], setting: NamedSetting) -> None:
        self._calls = calls
        self._setting = setting
        self._state = _State()
        self._decisions: dict[int, Decision] = {}
        self.events: list[PlantedEvent] = []
        self.peaks = _Extremes()
        self.streaks = _Extremes()
        self.withheld: set[int] = set()
        self.asks = 0
        self.margins: list[int] = []

    def run(self, moments: Sequence[Moment]) -> None:
        for moment in moments:
            if moment.kind == "reset":
                self._state = _State()
                continue
            call = self._calls[moment.call]
            if not call.tracked:
                continue
            measures = call.measures_of(self._setting.ruleset)
            if moment.kind == "guard" and call.met_guard:
                self._guard(moment.call, measures)
            elif moment.kind == "settle" and call.settles and moment.call not in self.withheld:
                failed = call.verdict_under(self._setting.ruleset).outcome == "failed"
                self._settle(moment.call, measures, failed=failed)

    def _guard(self, at: int, measures: tuple[str, ...]) -> None:
        setting, state = self._setting, self._state
        recent = [measure for record in state.records[-setting.window :] for measure in record]
        nexts = {measure: recent.count(measure) + 1 for measure in measures}
        enabled = [measure for measure in measures if setting.cap(measure) is not None]
        self.peaks.see({measure: nexts[measure] for measure in enabled})
        hits: list[tuple[Track, str, int]] = []
        if setting.fail_limit is not None:
            for measure in enabled:
                streak = state.streaks.get(measure, 0)
                if streak >= setting.fail_limit:
                    hits.append(("failure", measure, streak))
        for measure in enabled:
            cap = setting.cap(measure)
            if cap is None:
                continue
            self.margins.append(cap - nexts[measure])
            if nexts[measure] >= cap:
                hits.append(("occurrence", measure, nexts[measure]))
        blocking = [hit for hit in hits if hit[1] not in state.exempt]
        decision = self._decide(blocking)
        if blocking:
            track, measure, count = blocking[0]
            stage = "fail-gate" if track == "failure" else "gate"
            self.events.append(PlantedEvent(stage, at, measure, count, decision))
        if decision in ("ask-declined", "deny"):
            self.withheld.add(at)
            self._commit([measure for _, measure, _ in blocking])
            return
        self._decisions[at] = decision
        self._advise(at, enabled, nexts, decision)
        self._commit(list(measures))

    def _decide(self, blocking: Sequence[tuple[Track, str, int]]) -> Decision:
        setting, state = self._setting, self._state
        names = {measure for _, measure, _ in blocking}
        if not names:
            return "allow"
        if setting.policy == "observe":
            return "observed"
        if setting.policy == "deny" or setting.on_limit == "deny" or names & state.refused:
            return "deny"
        self.asks += 1
        if setting.policy == "approve":
            state.exempt |= names
            return "ask-approved"
        state.refused |= names
        return "ask-declined"

    def _advise(self, at: int, enabled: Sequence[str], nexts: Mapping[str, int], decision: Decision) -> None:
        best: tuple[int, int, int] | None = None
        chosen = ""
        for measure in enabled:
            if nexts[measure] == self._setting.summarize_at:
                stage = 2
            elif nexts[measure] == self._setting.warn_at:
                stage = 1
            else:
                continue
            merit = (stage, nexts[measure], -rank(measure))
            if best is None or merit > best:
                best, chosen = merit, measure
        if best is not None:
            stage_name = "summarize" if best[0] > 1 else "warn"
            self.events.append(PlantedEvent(stage_name, at, chosen, nexts[chosen], decision))

    def _commit(self, measures: list[str]) -> None:
        record = [measure for measure in measures if measure not in self._state.exempt]
        if record:
            self._state.records.append(record)

    def _settle(self, at: int, measures: tuple[str, ...], *, failed: bool) -> None:
        setting, state = self._setting, self._state
        warned: list[str] = []
        grown: dict[str, int] = {}
        for measure in measures:
            if setting.cap(measure) is None or measure in state.exempt:
                continue
            if not failed:
                state.streaks.pop(measure, None)
                continue
            state.streaks[measure] = state.streaks.get(measure, 0) + 1
            grown[measure] = state.streaks[measure]
            if state.streaks[measure] == setting.fail_warn_at:
                warned.append(measure)
        self.streaks.see(grown)
        if warned:
            chosen = min(warned, key=rank)
            decision = self._decisions.get(at, "allow")
            self.events.append(PlantedEvent("fail-warn", at, chosen, state.streaks[chosen], decision))


@dataclass(frozen=True, slots=True)
class PlantedFile:
    """Name one file of the corpus, relative to its folder, and the state a reader must report for it."""

    path: str
    state: Literal["ok", "torn", "superseded"]


@dataclass(frozen=True, slots=True)
class SessionTruth:
    """State what is planted in one session.

    Counts are those of the default ruleset. `call_seqs` gives the sequence number of each call's row in the version
    written, in order; `observed` maps the name of a setting to what shows under it. `lines` and `short_lines` count
    the non-blank lines of the model's own text and those of at most 40 characters.
    """

    name: str
    summary: str
    id: str
    label: Label
    agent: Literal["main", "subagent"]
    files: tuple[PlantedFile, ...]
    turns: int
    calls: int
    tracked: int
    ok: int
    failed: int
    failed_by: Mapping[str, int]
    undecidable: int
    denied: int
    not_run: int
    not_started: int
    open: int
    clipped: int
    recorded_under_breaker: bool
    lines: int
    short_lines: int
    call_seqs: tuple[int, ...]
    observed: Mapping[str, Observed]


@dataclass(frozen=True, slots=True)
class Truth:
    """State what is planted in a corpus.

    `streaks` counts the sessions whose longest failure streak reaches each length; `good_streaks` those of them that
    are labelled good. `best` says, for a labelled corpus, which settings separate good runs from stuck ones.
    """

    recipe: str
    seed: int
    version: int
    plain: bool
    settings: tuple[NamedSetting, ...]
    sessions: tuple[SessionTruth, ...]
    best: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def failed(self) -> int:
        """Count the failed calls."""
        return sum(session.failed for session in self.sessions)

    @property
    def settled(self) -> int:
        """Count the calls that succeeded or failed."""
        return sum(session.ok + session.failed for session in self.sessions)

    @property
    def streaks(self) -> dict[int, int]:
        """Count the sessions that reach each streak length, under the default limits."""
        return self._reaching(self.sessions)

    @property
    def good_streaks(self) -> dict[int, int]:
        """Count the sessions labelled good that reach each streak length."""
        return self._reaching([session for session in self.sessions if session.label == "good"])

    @staticmethod
    def _reaching(sessions: Sequence[SessionTruth]) -> dict[int, int]:
        longest = [session.observed["observe"].longest_streak for session in sessions]
        return {length: sum(best is not None and best.count >= length for best in longest) for length in STREAK_LENGTHS}

    def to_json(self) -> dict[str, object]:
        """Return the truth as plain data, the totals included."""
        files = [file.state for session in self.sessions for file in session.files]
        return {
            "schema": "breaker/truth/1",
            "recipe": self.recipe,
            "seed": self.seed,
            "version": self.version,
            "plain": self.plain,
            "totals": {
                "sessions": len(self.sessions),
                "files": len(files),
                "read": {state: files.count(state) for state in ("ok", "torn", "superseded")},
                "turns": sum(session.turns for session in self.sessions),
                "calls": sum(session.calls for session in self.sessions),
                "tracked": sum(session.tracked for session in self.sessions),
                "failed": self.failed,
                "settled": self.settled,
                "failure_rate": self.failed / self.settled if self.settled else None,
                "streaks": {str(length): count for length, count in self.streaks.items()},
                "streaks_by_label": {"good": {str(length): count for length, count in self.good_streaks.items()}},
            },
            "settings": [
                {"name": setting.name, "ruleset": setting.ruleset, "policy": setting.policy, "set": setting.overrides()}
                for setting in self.settings
            ],
            "best": dict(self.best),
            "sessions": [msgspec.to_builtins(session) for session in self.sessions],
        }
