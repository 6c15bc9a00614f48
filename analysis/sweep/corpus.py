"""The sweep itself: every session is read once, and all configurations are counted over it before the next one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

from analysis.cache import Cache
from analysis.corpus import CorpusReplay, Period, SessionRow, replay_corpus
from analysis.labels import LABELS, Label, LabelRules
from analysis.progress import NO_PROGRESS, Progress
from analysis.replay import STAGES, FactsReader, ReplayPlan, StageName
from analysis.sessions.decode import Limits
from analysis.sweep.answers import SweepAnswers
from analysis.sweep.front import Front, find_front
from analysis.sweep.grid import SweepConfig, SweepPlan
from analysis.sweep.metrics import ConfigMetrics, Increments, Lead, SessionView, Tally, increments
from analysis.sweep.peaks import SessionPeaks, peaks_of
from analysis.sweep.requirements import Choosing
from analysis.sweep.runs import Choice, EngineRun, Mode, Said, Thresholds, Trip, run_script, whole_limit
from analysis.sweep.script import MeasuredColumn, ScriptRecorder, SessionScript
from analysis.sweep.sessions import Counted, SweepSession, SweptReplay, session_values
from breaker.engine import Breaker
from breaker.measures import Measurer
from breaker.rulesets import Ruleset
from breaker.shellhttp import ShellHttpPolicy

__all__ = ["SessionSweeper", "Sweep", "SweepWork", "sweep_corpus"]

_MILLISECONDS = 1000
_STAGE_ORDER = {stage: number for number, stage in enumerate(STAGES)}
_NO_LABELS = LabelRules()
_DEFAULT_LIMITS = Limits()
_USUAL = Choosing()

_Speech: TypeAlias = "tuple[int | None, int | None, int | None]"
"""`warnAt`, `summarizeAt`, `failWarnAt`."""


@dataclass(frozen=True, slots=True)
class SweepWork:
    """What a sweep did, in numbers."""

    sessions: int
    engine_runs: int
    """Runs of the engine; each configuration of each session without sharing would be one."""
    unshared_runs: int


@dataclass(frozen=True)
class Sweep:
    """Every configuration with what it costs and catches, and the corpus it was counted over."""

    plan: SweepPlan
    corpus: CorpusReplay
    """What was read. Its sessions carry no replay of their own."""
    rows: tuple[ConfigMetrics, ...]
    """In the order of the plan's configurations."""
    labels: Mapping[Label, int]
    """How many sessions carry each label."""
    work: SweepWork
    sessions: tuple[SweepSession, ...]
    """What each session of the corpus adds to each configuration, in the corpus' order."""
    choosing: Choosing = _USUAL
    """How one configuration is chosen."""

    @cached_property
    def front(self) -> Front:
        """The Pareto front, and the choice."""
        return find_front(self.rows, self.labels, self.choosing)


def sweep_corpus(
    paths: Sequence[Path],
    plan: SweepPlan,
    base: ReplayPlan,
    *,
    labels: LabelRules = _NO_LABELS,
    choosing: Choosing = _USUAL,
    period: Period | None = None,
    limits: Limits = _DEFAULT_LIMITS,
    progress: Progress = NO_PROGRESS,
    jobs: int | None = 1,
    cache: Cache | None = None,
) -> Sweep:
    """Count every configuration over every session found under the given paths.

    Args:
        paths: sessions roots, projects, session folders, files, exported archives, in any mix.
        plan: the configurations.
        base: what they share: where the shell-HTTP policy is engaged, the machine, what results are classified from.
        labels: what a person knows of the sessions.
        choosing: how one configuration is chosen.
        period: only sessions created in it.
        limits: bounds on what one file may take.
        progress: told how many bytes were read.
        jobs: processes that read; the result is the same. None leaves it to the size of the corpus.
        cache: what earlier runs came to, and where this one's results go.

    Raises:
        PathMissing: a given path does not exist.
        LabelConflict: two labels for one session.
    """
    work = SweepReplayer(plan.configs, base, with_peaks=bool(labels.rules))
    tallies = [Tally() for _ in plan.configs]
    held: dict[str, list[Counted]] = {}
    kept: dict[str, SweepSession] = {}
    sessions = runs = 0

    def take(row: SessionRow, contested: bool) -> None:
        nonlocal sessions, runs
        if not isinstance(row.replay, SweptReplay):
            return
        sessions += 1
        runs += row.replay.engine_runs
        counted, row.replay.counted = row.replay.counted, []
        peaks = None if row.label == "unknown" else row.replay.peaks
        kept[row.path] = SweepSession(row.label, row.project, row.models, session_values(counted), peaks)
        if contested:
            held[row.path] = counted
        else:
            _add(tallies, counted, row.label)

    corpus = replay_corpus(
        paths,
        base,
        labels=labels,
        period=period,
        limits=limits,
        progress=progress,
        work=work,
        take=take,
        jobs=jobs,
        cache=cache,
    )
    for row in corpus.sessions:
        _add(tallies, held.pop(row.path, []), row.label)
    by_label: Counter[Label] = Counter(row.label for row in corpus.sessions)
    return Sweep(
        plan=plan,
        corpus=corpus,
        rows=tuple(tally.metrics(by_label) for tally in tallies),
        labels={label: by_label[label] for label in LABELS},
        work=SweepWork(sessions, runs, sessions * len(plan.configs)),
        sessions=tuple(kept[row.path] for row in corpus.sessions),
        choosing=choosing,
    )


def _add(tallies: Sequence[Tally], counted: Sequence[Counted], label: Label) -> None:
    for view, members in counted:
        added: Increments = increments(view, label)
        lead = view.lead if label == "stuck" else None
        for member in members:
            tallies[member].add(added, lead)


class SweepReplayer:
    """Counts all configurations over one session after another; what is sent to another process is what they are.

    Args:
        configs: the configurations.
        base: what they share.
        with_peaks: give every session's peaks, too.
    """

    def __init__(self, configs: Sequence[SweepConfig], base: ReplayPlan, *, with_peaks: bool) -> None:
        self._configs = configs
        self._base = base
        self._with_peaks = with_peaks
        self._sweeper = SessionSweeper(configs, base)
        self.answers = SweepAnswers(configs, base, with_peaks=with_peaks)

    def __reduce__(self) -> tuple[Callable[..., SweepReplayer], tuple[object, ...]]:
        """Make a new one elsewhere: what the settings are compiled to stays here."""
        return partial(SweepReplayer, with_peaks=self._with_peaks), (self._configs, self._base)

    @property
    def other_rulesets(self) -> tuple[Ruleset, ...]:
        """The rulesets under which outcomes are decided besides the base's."""
        return self._sweeper.other_rulesets

    def __call__(self, reader: FactsReader) -> SweptReplay | None:
        """Read a session to its end and count; None where nothing in it could be used."""
        sweeper = self._sweeper
        script = sweeper.read(reader)
        session = reader.session
        if script is None or session is None:
            return None
        runs = sweeper.engine_runs
        counted = sweeper.count_script(script)
        return SweptReplay(
            shell_http=sweeper.engages_shell_http(offered=session.offers_fetch_file),
            turns=session.turns,
            calls=session.calls,
            engine_runs=sweeper.engine_runs - runs,
            counted=counted,
            peaks=sweeper.peaks(script) if self._with_peaks else None,
        )


@dataclass(slots=True)
class _EngineClass:
    """Configurations that differ in their advisory thresholds alone: one run of the engine answers them all."""

    config: SweepConfig
    """One of them."""
    measurer: int
    judge: int
    shell_http: int | None
    """Which shell-HTTP policy, where the ruleset and the settings have one."""
    mode: Mode
    members: dict[_Speech, list[int]] = field(default_factory=dict["_Speech", "list[int]"])

    @property
    def leniency(self) -> tuple[float, ...]:
        """What the classes are ordered by, the most lenient first: its runs speak for the most of the others."""
        settings = self.config.settings
        caps = [cap for cap in settings.limits.values() if cap is not None]
        limit = math.inf if settings.fail_limit is None else settings.fail_limit
        return (-limit, -sum(caps), -len(caps), -settings.window)


class SessionSweeper:
    """Counts all configurations of a sweep over one session after another."""

    def __init__(self, configs: Sequence[SweepConfig], base: ReplayPlan) -> None:
        self._base = base
        self.engine_runs = 0
        """Runs of the engine so far."""
        measurers: dict[object, Measurer] = {}
        self._measurer_numbers: dict[object, int] = {}
        judges: dict[object, int] = {_judge_key(base.ruleset): 0}
        self._other_rulesets: list[Ruleset] = []
        policies: dict[object, int] = {}
        self._policies: list[ShellHttpPolicy] = []
        classes: dict[object, _EngineClass] = {}
        for number, config in enumerate(configs):
            settings, ruleset = config.settings, config.ruleset
            measure_key = _measure_key(config)
            if measure_key not in measurers:
                self._measurer_numbers[measure_key] = len(measurers)
                measurers[measure_key] = Measurer(settings, ruleset)
            judge_key = _judge_key(ruleset)
            if judge_key not in judges:
                judges[judge_key] = len(judges)
                self._other_rulesets.append(ruleset)
            policy_key = _policy_key(config)
            if policy_key is not None and base.shell_http != "off" and policy_key not in policies:
                policies[policy_key] = len(policies)
                self._policies.append(ShellHttpPolicy(settings, ruleset, base.machine))
            mode = _mode(config)
            key = (measure_key, judge_key, policy_key, mode, _commit_key(config))
            if key not in classes:
                classes[key] = _EngineClass(
                    config=config,
                    measurer=self._measurer_numbers[measure_key],
                    judge=judges[judge_key],
                    shell_http=policies.get(policy_key),
                    mode=mode,
                )
            speech = (settings.warn_at, settings.summarize_at, settings.fail_warn_at)
            classes[key].members.setdefault(speech, []).append(number)
        base_config = SweepConfig(base.settings, base.ruleset, base.policy, None, {})
        base_key = _measure_key(base_config)
        self._base_measurer = self._measurer_numbers.setdefault(base_key, len(measurers))
        measurers.setdefault(base_key, Measurer(base.settings, base.ruleset))
        self._measurers = list(measurers.values())
        self._judges = len(judges)
        self._classes = sorted(classes.values(), key=lambda one: one.leniency)
        limits = {entry for config in configs for entry in config.settings.limits}
        self._named = frozenset(entry for entry in limits if ":" in entry)
        settings = [config.settings for config in configs]
        self._thresholds = Thresholds(
            occurrence=frozenset(
                value for each in settings for value in (each.warn_at, each.summarize_at) if value is not None
            ),
            failure=frozenset(each.fail_warn_at for each in settings if each.fail_warn_at is not None),
        )

    def engages_shell_http(self, *, offered: bool) -> bool:
        """Tell whether any configuration has the shell-HTTP policy engaged in a session."""
        return bool(self._policies) and (self._base.shell_http == "on" or offered)

    @property
    def other_rulesets(self) -> tuple[Ruleset, ...]:
        """The rulesets under which outcomes are decided besides the base's: one of each way of judging."""
        return tuple(self._other_rulesets)

    def recorder(self) -> ScriptRecorder:
        """Return what takes the next session's facts, read with `other_rulesets`."""
        return ScriptRecorder(self._measurers, self._judges, self._named, keep_commands=bool(self._policies))

    def read(self, reader: FactsReader) -> SessionScript | None:
        """Read a session, with `other_rulesets`, to its end and return its script; None where nothing can be used."""
        recorder = self.recorder()
        for fact in reader.facts():
            recorder.take(fact)
        if reader.session is None or not reader.report.used:
            return None
        return recorder.finish(reader.session)

    def peaks(self, script: SessionScript) -> SessionPeaks:
        """Return how high the counts of a session go under the settings the sweep starts from."""
        guard = Breaker(self._base.settings, self._base.ruleset, machine=self._base.machine)
        return peaks_of(script, script.measured[self._base_measurer], guard)

    def count_script(self, script: SessionScript) -> list[Counted]:
        """Return what a session shows, for every configuration that it shows anything for; what is alike together."""
        session = _SessionWork(script, self._named)
        known: dict[tuple[int, _Speech], Counted] = {}
        alike: dict[object, Counted] = {}
        for one in self._classes:
            run = self._run(session, one)
            stopped, first_stop = run.stopped, _first_stop(run)
            for speech, members in one.members.items():
                key = (id(run), speech)
                if key not in known:
                    warn_at, summarize_at, fail_warn_at = speech
                    warn = run.occurrence.at(warn_at, unless=summarize_at)
                    summarize = run.occurrence.at(summarize_at)
                    fail_warn = run.failure.at(fail_warn_at)
                    spoken: _Spoken = (("warn", warn), ("summarize", summarize), ("fail-warn", fail_warn))
                    trip = _first_trip(first_stop, spoken)
                    shown = (stopped, warn.told, summarize.told, fail_warn.told, trip)
                    if shown not in alike:
                        alike[shown] = (_view(run, spoken, trip, script), [])
                    known[key] = alike[shown]
                known[key][1].extend(members)
        return [(view, members) for view, members in alike.values() if not view.silent]

    def _run(self, session: _SessionWork, one: _EngineClass) -> EngineRun:
        """Return a run that is proven to go as this class would; a new one only where there is none."""
        measurer = session.measurers[one.measurer]
        judge = session.judges[one.judge]
        policy = None
        if one.shell_http is not None and self.engages_shell_http(offered=session.script.offers_fetch_file):
            policy = one.shell_http
        refused = session.refused(policy, self._policies, measurer)
        slots = session.slots(measurer)
        settings = one.config.settings
        choice = Choice(
            caps=tuple(whole_limit(settings.cap(slot)) for slot in slots.names),
            window=settings.window,
            fail_limit=math.inf if settings.fail_limit is None else math.ceil(settings.fail_limit),
            mode=one.mode,
        )
        runs = session.runs.setdefault((measurer, judge, refused), [])
        for run in runs:
            if run.speaks_for(choice):
                return run
        if one.mode == "deny":
            settings = replace(settings, on_limit="deny")
        guard = Breaker(settings, one.config.ruleset, shell_http=bool(refused), machine=self._base.machine)
        run = run_script(
            session.script,
            session.script.measured[measurer],
            session.script.judged[judge],
            slots.numbers,
            choice,
            guard,
            self._thresholds,
            withholds_fetches=bool(refused),
        )
        self.engine_runs += 1
        runs.append(run)
        return run


@dataclass(frozen=True, slots=True)
class _Slots:
    """The caps that matter in a session: the kinds it has, and measures of its own with a cap of their own."""

    names: tuple[str, ...]
    numbers: Mapping[str, int]
    """For each measure the position of its slot."""


class _SessionWork:
    """What is worked out for one session, once."""

    def __init__(self, script: SessionScript, named: frozenset[str]) -> None:
        self.script = script
        self.measurers, self.judges = script.distinct()
        self.runs: dict[object, list[EngineRun]] = {}
        self._named = named
        self._slots: dict[int, _Slots] = {}
        self._refused: dict[tuple[int, int], frozenset[int]] = {}

    def slots(self, measurer: int) -> _Slots:
        """Return the slots of the measures under one way of measuring."""
        if measurer not in self._slots:
            numbers: dict[str, int] = {}
            names: dict[str, int] = {}
            for call in self.script.measured[measurer]:
                for measure in call.measures if call is not None else ():
                    if measure not in numbers:
                        name = measure if measure in self._named else measure.partition(":")[0]
                        numbers[measure] = names.setdefault(name, len(names))
            self._slots[measurer] = _Slots(tuple(names), numbers)
        return self._slots[measurer]

    def refused(self, policy: int | None, policies: Sequence[ShellHttpPolicy], measurer: int) -> frozenset[int]:
        """Return the calls a shell-HTTP policy refuses; empty where none is engaged."""
        if policy is None:
            return frozenset()
        key = (policy, measurer)
        if key not in self._refused:
            calls: MeasuredColumn = self.script.measured[measurer]
            self._refused[key] = frozenset(
                position
                for position, call in enumerate(calls)
                if call is not None and call.command is not None and policies[policy].refuses(call.command)
            )
        return self._refused[key]


_Spoken: TypeAlias = "tuple[tuple[StageName, Said], ...]"
_Place: TypeAlias = "tuple[int, int, Trip]"
"""Where a stage was first reached, to be compared: by call, then by stage."""


def _first_stop(run: EngineRun) -> _Place | None:
    """Return where a run first stopped a call; the shell-HTTP policy does not count."""
    trips = run.first_gates.items()
    return min(((trip.call, _STAGE_ORDER[stage], trip) for stage, trip in trips if stage != "shell-http"), default=None)


def _first_trip(first: _Place | None, spoken: _Spoken) -> Trip | None:
    """Return where the guard first spoke or stopped a call: of the first such call the first stage."""
    for stage, said in spoken:
        if said.first is not None:
            place = (said.first.call, _STAGE_ORDER[stage], said.first)
            first = place if first is None or place < first else first
    return None if first is None else first[2]


def _view(run: EngineRun, spoken: _Spoken, trip: Trip | None, script: SessionScript) -> SessionView:
    kinds = run.gates | {stage: said.kinds for stage, said in spoken}
    return SessionView(
        stages={stage: kinds[stage] for stage in STAGES if kinds.get(stage)},
        asks=run.asks,
        denials=run.denials,
        false_rejections=run.false_rejections,
        lead=None if trip is None else _lead(trip, script),
    )


def _lead(trip: Trip, script: SessionScript) -> Lead:
    seconds = None
    if trip.time is not None and script.last_time is not None:
        seconds = max(script.last_time - trip.time, 0) / _MILLISECONDS
    tokens = None if script.tokens is None else script.tokens - trip.tokens
    return Lead(calls=script.calls - trip.call - 1, seconds=seconds, tokens=tokens)


def _mode(config: SweepConfig) -> Mode:
    if config.policy == "observe":
        return "observe"
    return "deny" if config.settings.on_limit == "deny" else config.policy


def _measure_key(config: SweepConfig) -> object:
    """Return what decides the measures of a call, and whether it is tracked."""
    settings, ruleset = config.settings, config.ruleset
    shaping: dict[str, Any] = {
        key: settings.as_config[key]
        for key in ("ignoreArgs", "hostAliases", "localHosts", "includeLocal", "include", "exclude")
    }
    return (repr(shaping), ruleset.unescape_urls, ruleset.drop_bad_ports)


def _judge_key(ruleset: Ruleset) -> object:
    """Return what decides the outcome of a call."""
    return (
        ruleset.text_rules_for_exceptions,
        ruleset.text_rules_for_shells_only,
        ruleset.low_status_is_final,
        ruleset.write_out_status,
    )


def _policy_key(config: SweepConfig) -> object | None:
    """Return what decides which shell commands are refused; None without a shell-HTTP policy."""
    settings = config.settings
    if config.ruleset.shell_http is None or settings.block_shell_http is not True:
        return None
    listed = (settings.shell_http_block, settings.shell_http_allow)
    return (config.ruleset.shell_http, settings.block_local_http, listed, _measure_key(config))


def _commit_key(config: SweepConfig) -> object:
    """Return what else decides the commits: everything but the advisory thresholds."""
    settings = config.settings
    return (settings.window, settings.fail_limit, tuple(sorted(settings.limits.items())))
