"""A sweep is clever about which sessions need which run, never about what the engine says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from analysis.corpus import replay_corpus
from analysis.replay import STAGES, Policy, ReplayPlan, SessionReplay, ShellHttpMode, session_run
from analysis.sessions.facts import Fact, FactBuilder
from analysis.sessions.header import parse_header
from analysis.sessions.report import ReadReport
from analysis.sessions.session_facts import SessionFacts
from analysis.sweep import Base, GridAxis, GridError, SweepConfig, plan_sweep, sweep_corpus
from analysis.sweep.corpus import SessionSweeper
from analysis.sweep.metrics import ADVISORIES, GATES, Lead, SessionView
from analysis.sweep.runs import Choice, EngineRun
from analysis.synth import write_corpus
from breaker.rulesets import DEFAULT_RULESET, Ruleset
from tests.analysis.logs import LogWriter

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

FAILING = ("[exit code: 1]", "Traceback (most recent call last)\nKeyError: 'x'", "404", "curl: (6) no host")
CALLS: Sequence[tuple[str, dict[str, object]]] = (
    ("bash", {"command": "curl -s https://a.org/1"}),
    ("bash", {"command": "curl -s https://a.org/2 -o out.txt"}),
    ("bash", {"command": "curl -s -w '%{http_code}' https://b.org/1 https://a.org/1", "reason": "x"}),
    ("bash", {"command": r"curl https://a.org/x\?q=1"}),
    ("bash", {"command": "curl http://127.0.0.1:3000/x"}),
    ("bash", {"command": "make check"}),
    ("web_fetch", {"url": "https://open-data.canada.ca/a"}),
    ("web_fetch", {"url": "https://open.canada.ca/b"}),
    ("web_fetch_file", {"url": "https://a.org/1"}),
    ("read", {"path": "a", "title": "one"}),
    ("read", {"path": "a", "title": "two"}),
    ("todo_write", {"items": []}),
)
USER, SAYS = "user", "says"

Batch: TypeAlias = "tuple[tuple[tuple[int, int], ...], int]"
"""Calls that start side by side, each with how it ends, and how often that happens."""
Action: TypeAlias = "str | Batch"

ENDS = st.sampled_from([0, 0, 0, 1, 2, 3, 4, 5, 6])
"""0 succeeds, 1 to 4 print what may be a failure, 5 has no result, 6 is denied before the guard."""
PICKS = st.tuples(st.integers(0, len(CALLS) - 1), ENDS)
BATCHES = st.tuples(st.lists(PICKS, min_size=1, max_size=3).map(tuple), st.integers(1, 14))
ACTIONS = st.lists(st.one_of(BATCHES, BATCHES, BATCHES, st.sampled_from([USER, SAYS])), max_size=10)

AXES: dict[str, Sequence[object]] = {
    "warnAt": [*range(19), None],
    "summarizeAt": [*range(19), None],
    "failWarnAt": [0, 1, 2, 3, 4, 5, None],
    "failLimit": [2, 3, 4.5, 5, 6, None],
    "window": [4, 5, 7, 12, 16, 20],
    "limits.exact": [2, 5, 9, 12, 17, None],
    "limits.cmd": [2, 4, 7.5, 12, None],
    "limits.net": [3, 6, 12, None],
    "limits.host": [2, 5, 9, 16, 18, None],
    "limits.sink": [2, 5, None],
    "limits.site": [4, 9, None],
    "limits.verb": [6, None],
    "limits.net:a.org/1": [2, 4, None],
    "onLimit": ["ask", "deny"],
    "policy": ["unattended", "approve", "deny", "observe"],
    "ruleset": ["0.5.0", "0.5.2", "0.5.3", "0.6.1", "0.7.0", "0.8.2", "0.8.7", "0.8"],
    "localHosts": ["allow", "deny"],
    "includeLocal": [True, False],
    "exclude": [[], ["todo_write"], ["read", "todo_*"]],
    "include": [[], ["bash", "web_*"]],
    "ignoreArgs.*": [[], ["title"], ["reason", "command"]],
    "hostAliases.b.org": ["a.org", "c.org"],
    "blockShellHttp": [True, False],
    "blockLocalHttp": [True, False],
}
COMMITTING = ("failLimit", "window", "limits.exact", "limits.host", "policy")
"""What changes the commits; every grid has one of them."""


@st.composite
def grids(draw: st.DrawFn) -> tuple[SweepConfig, ...]:
    drawn = [draw(st.sampled_from(COMMITTING)), *draw(st.lists(st.sampled_from(list(AXES)), max_size=4))]
    keys = list(dict.fromkeys(drawn))
    axes = [
        GridAxis(key, tuple(draw(st.lists(st.sampled_from(AXES[key]), min_size=1, max_size=4, unique_by=repr))))
        for key in keys
    ]
    if any(key.startswith("block") for key in keys):
        axes = [axis if axis.key != "ruleset" else GridAxis("ruleset", (*axis.values, "0.8")) for axis in axes]
    base = {"limits": {"exact": 4, "host": 6}, "failLimit": 3} if draw(st.booleans()) else {}
    return plan_sweep(Base(config=base), axes, sample=12, seed=draw(st.integers(0, 9))).configs


def log_of(actions: Sequence[Action]) -> LogWriter:
    log = LogWriter()
    log.user()
    for action in actions:
        if action == USER:
            log.user()
        elif action == SAYS:
            log.says(tokens=7)
        elif not isinstance(action, str):
            batch, times = action
            for _ in range(times):
                add_batch(log, batch)
    return log


def add_batch(log: LogWriter, batch: Sequence[tuple[int, int]]) -> None:
    started: list[tuple[int, int]] = []
    for pick, end in batch:
        name, arguments = CALLS[pick]
        started.append((log.call(name=name, arguments=json.dumps(arguments)), end))
        if end == 6:
            log.hook("PreToolUse", "deny")
    for seq, end in reversed(started):
        if end == 6:
            log.result(seq, "denied", is_error=True)
        elif end != 5:
            log.result(seq, "fine" if end == 0 else FAILING[end - 1])


def facts_of(log: LogWriter, ruleset: Ruleset, others: Sequence[Ruleset] = ()) -> tuple[list[Fact], SessionFacts]:
    report = ReadReport(shown="x")
    builder = FactBuilder(parse_header(json.dumps(log.header).encode()), report, ruleset, other_rulesets=others)
    facts: list[Fact] = []
    for line in log.lines:
        builder.add(line)
        facts.extend(builder.drain())
    facts.extend(builder.finish())
    return facts, builder.session


Seen: TypeAlias = "tuple[dict[str, int], dict[str, dict[str, int]], int, int, int, Lead | None]"


def replayed(log: LogWriter, config: SweepConfig, shell_http: ShellHttpMode) -> Seen:
    """Return what a plain replay of one configuration sees."""
    plan = ReplayPlan(settings=config.settings, ruleset=config.ruleset, policy=config.policy, shell_http=shell_http)
    facts, session = facts_of(log, config.ruleset)
    run = session_run(plan, session)
    for fact in facts:
        run.take(fact)
    return seen_in_replay(run.finish(session))


def seen_in_replay(replay: SessionReplay) -> Seen:
    trips = [
        (trip.call, STAGES.index(stage), trip) for stage, trip in replay.first_trips.items() if stage != "shell-http"
    ]
    first = min(trips)[2] if trips else None
    return (
        {stage: count for stage, count in replay.stages.items() if count},
        {
            kind: {str(stage): times for stage, times in (+stages).items()}
            for kind, stages in replay.stages_by_kind.items()
        },
        replay.asks,
        replay.denials,
        replay.false_rejections,
        None if first is None else Lead(first.calls_after, first.seconds_after, first.tokens_after),
    )


def seen_in_view(view: SessionView) -> Seen:
    by_kind: dict[str, dict[str, int]] = {}
    for stage, kinds in view.stages.items():
        for kind, times in kinds.items():
            if kind:
                by_kind.setdefault(kind, {})[stage] = times
    stages = {stage: sum(kinds.values()) for stage, kinds in view.stages.items()}
    return stages, by_kind, view.asks, view.denials, view.false_rejections, view.lead


NOTHING: Seen = ({}, {}, 0, 0, 0, None)


def swept(log: LogWriter, configs: Sequence[SweepConfig], shell_http: ShellHttpMode) -> list[Seen]:
    """Return what the sweep sees under each configuration."""
    sweeper = SessionSweeper(configs, ReplayPlan(shell_http=shell_http))
    facts, session = facts_of(log, DEFAULT_RULESET, sweeper.other_rulesets)
    recorder = sweeper.recorder()
    for fact in facts:
        recorder.take(fact)
    seen = [NOTHING] * len(configs)
    for view, members in sweeper.count_script(recorder.finish(session)):
        for member in members:
            assert seen[member] == NOTHING
            seen[member] = seen_in_view(view)
    return seen


MODES: tuple[ShellHttpMode, ...] = ("auto", "on", "off")


def check(actions: Sequence[Action], configs: Sequence[SweepConfig], shell_http: ShellHttpMode) -> None:
    log = log_of(actions)
    for config, seen in zip(configs, swept(log, configs, shell_http), strict=True):
        assert seen == replayed(log, config, shell_http), config.told


ARGUMENTS = {"actions": ACTIONS, "configs": grids(), "shell_http": st.sampled_from(MODES)}


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(**ARGUMENTS)
def test_a_sweep_equals_replaying_every_configuration_from_scratch(
    actions: Sequence[Action], configs: Sequence[SweepConfig], shell_http: ShellHttpMode
) -> None:
    check(actions, configs, shell_http)


# Planted mutations: each lets a run speak for sessions it does not

Proof: TypeAlias = Callable[[EngineRun, Choice], bool]


def always(run: EngineRun, other: Choice) -> bool:
    return True


def with_cap_off_by_one(run: EngineRun, other: Choice) -> bool:
    caps = tuple(None if cap is None else cap + 1 for cap in other.caps)
    return proof(run, Choice(caps, other.window, other.fail_limit, other.mode)) or proof(run, other)


def whatever_the_window(run: EngineRun, other: Choice) -> bool:
    return proof(run, Choice(other.caps, run.choice.window, other.fail_limit, other.mode))


def whatever_the_failure_limit(run: EngineRun, other: Choice) -> bool:
    return proof(run, Choice(other.caps, other.window, run.choice.fail_limit, other.mode))


def whatever_the_policy(run: EngineRun, other: Choice) -> bool:
    return proof(run, Choice(other.caps, other.window, other.fail_limit, run.choice.mode))


proof: Proof = EngineRun.speaks_for


@pytest.mark.parametrize(
    "mutation",
    [always, with_cap_off_by_one, whatever_the_window, whatever_the_failure_limit, whatever_the_policy],
)
def test_the_property_catches_a_sweep_that_skips_a_session_that_matters(
    monkeypatch: pytest.MonkeyPatch, mutation: Proof
) -> None:
    monkeypatch.setattr(EngineRun, "speaks_for", mutation)
    quick = settings(
        max_examples=400,
        deadline=None,
        suppress_health_check=SLOW,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        report_multiple_bugs=False,
    )
    with pytest.raises(AssertionError):
        quick(given(**ARGUMENTS)(check))()


# Whole corpora, from the files

PUBLISHED = {
    "window": [12, 16],
    "warnAt": [3, 7, 9],
    "summarizeAt": [6, 11, 13],
    "limits.exact": [9, 12],
    "limits.host": [9, 16, None],
    "failLimit": [5, None],
}


@pytest.mark.parametrize(("recipe", "policy"), [("calibrated", "unattended"), ("demo", "approve")])
def test_every_row_has_the_numbers_of_a_plain_replay(tmp_path: Path, recipe: str, policy: Policy) -> None:
    write_corpus(tmp_path, recipe)
    axes = [GridAxis(key, tuple(values)) for key, values in PUBLISHED.items()]
    plan = plan_sweep(Base(policy=policy), axes, sample=6, seed=3)
    base = ReplayPlan(policy=policy)
    sweep = sweep_corpus([tmp_path], plan, base)
    assert len(sweep.rows) == 6
    assert sweep.work.engine_runs < sweep.work.unshared_runs / 2
    for config, row in zip(plan.configs, sweep.rows, strict=True):
        plain = replay_corpus([tmp_path], ReplayPlan(settings=config.settings, policy=policy))
        totals = plain.totals
        assert row.stages == {stage: totals.stages[stage] for stage in STAGES}
        rows = [each.replay.stages for each in plain.sessions]
        assert row.values["messages"] == sum(stages[stage] for stages in rows for stage in ADVISORIES)
        assert row.values["gate_calls"] == sum(stages[stage] for stages in rows for stage in GATES)
        assert row.values["sessions_warned"] == sum(any(stages[stage] for stage in ADVISORIES) for stages in rows)
        assert row.values["sessions_gated"] == sum(any(stages[stage] for stage in GATES) for stages in rows)
        assert (row.values["asks"], row.values["denials"]) == (totals.asks, totals.denials)
        assert row.values["false_rejections"] == totals.false_rejections
        assert row.values["sessions_with_false_rejection"] == totals.sessions_with_false_rejection
        kinds = {
            kind: {stage: stages[stage] for stage in STAGES} | {"sessions": totals.sessions_by_kind[kind]}
            for kind, stages in totals.stages_by_kind.items()
        }
        told = {
            kind: {name: times for name, times in numbers.items() if name != "sessions_gated"}
            for kind, numbers in row.by_kind.items()
        }
        assert told == kinds


def test_a_copy_of_a_session_counts_once(tmp_path: Path) -> None:
    log = log_of([(((9, 0),), 14)])
    log.write(tmp_path / "one")
    log.write(tmp_path / "two")
    plan = plan_sweep(Base(), [GridAxis("warnAt", (3, 4))])
    sweep = sweep_corpus([tmp_path], plan, ReplayPlan())
    assert len(sweep.corpus.sessions) == 1
    assert [row.values["sessions_warned"] for row in sweep.rows] == [1, 1]
    assert [row.values["gate_calls"] for row in sweep.rows] == [3, 3]


def test_a_grid_of_one_axis_runs_the_engine_once_where_nothing_is_gated(tmp_path: Path) -> None:
    log_of([(((9, 0),), 8)]).write(tmp_path)
    plan = plan_sweep(Base(), [GridAxis("warnAt", tuple(range(2, 12))), GridAxis("limits.exact", (9, 12, 16))])
    sweep = sweep_corpus([tmp_path], plan, ReplayPlan())
    assert (sweep.work.engine_runs, sweep.work.unshared_runs) == (1, 30)
    assert Counter(row.values["messages"] for row in sweep.rows) == {1: 21, 0: 9}


def test_a_key_given_twice_is_refused() -> None:
    with pytest.raises(GridError, match="gives warnAt twice"):
        plan_sweep(Base(), [GridAxis("warnAt", (3,)), GridAxis("warnAt", (4,))])
