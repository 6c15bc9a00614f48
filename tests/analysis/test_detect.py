"""Detectors over logs: what they are told, in which order, and what becomes of one that fails."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.configs import ConfigError
from analysis.detect import (
    DetectorError,
    DetectorFault,
    DetectorReplay,
    DetectorRun,
    DetectorSpec,
    happened,
    known_detectors,
    parse_detectors,
    read_detector_config,
    sum_detectors,
)
from analysis.replay import POLICIES, Policy, ReplayPlan, SessionReplay, SessionRun, replay_session
from analysis.sessions.facts import CallFact, Fact, SettleFact, TurnFact
from analysis.sessions.find import find_sessions
from analysis.sessions.outcomes import OPEN, Outcome
from analysis.sessions.session import SessionReader
from breaker.detectors import (
    DETECTORS,
    BreakerDetector,
    Detector,
    FailGuard,
    Finding,
    SeenCall,
    SeenOutcome,
    SeenStep,
    SeenTurn,
)
from breaker.failure import Failure
from breaker.measures import Call
from breaker.settings import Settings
from tests.analysis.logs import LogWriter

EXIT_1 = "out\n[exit code: 1]"
Placed = tuple[int, str, int]
"""The call, the stage, the count."""


def _replay(log: Path, *specs: DetectorSpec, policy: Policy = "unattended") -> SessionReplay:
    (file,) = find_sessions([log]).files
    plan = ReplayPlan(policy=policy, keep_events=True, keep_messages=True, detectors=specs)
    replay = replay_session(SessionReader(file), plan)
    assert replay is not None
    return replay


def _seen(log: Path, text: str) -> DetectorReplay:
    (seen,) = _replay(log, *parse_detectors([text])).detectors
    return seen


def _placed(log: Path, text: str) -> list[Placed]:
    return [(event.call, event.stage, event.count) for event in _seen(log, text).events]


@pytest.fixture
def log() -> LogWriter:
    return LogWriter()


# -- what detectors are told -------------------------------------------------------------------------------------


@dataclass
class Listener:
    """Writes down what it is told."""

    told: list[str] = field(default_factory=list[str])

    def on_turn(self, turn: SeenTurn) -> None:
        self.told.append(f"turn {turn.number} {turn.cause}")

    def on_step(self, step: SeenStep) -> Sequence[Finding]:
        self.told.append(f"step {step.number} of turn {step.turn} from #{step.next_call}")
        return ()

    def on_call(self, call: SeenCall) -> Sequence[Finding]:
        nested = " nested" if call.nested else ""
        self.told.append(f"#{call.index} {call.name} step {call.step}{nested}")
        return ()

    def on_outcome(self, call: SeenCall, outcome: SeenOutcome) -> Sequence[Finding]:
        code = "" if outcome.exit_code is None else f" {outcome.exit_code:g}{'~' if outcome.exit_code_rebuilt else ''}"
        error = " error" if outcome.is_error else ""
        self.told.append(f"#{call.index} {outcome.kind}{error}{code}{' closer' if outcome.closer else ''}")
        return ()


def _listened(log: Path) -> list[str]:
    listener = Listener()
    _replay(log, DetectorSpec("listener", "listener", lambda config: listener))
    return listener.told


def test_events_come_in_the_order_of_the_log(log: LogWriter, tmp_path: Path) -> None:
    log.user()
    first, second = log.call("make"), log.call("test")
    log.result(first, EXIT_1)
    log.result(second, is_error=True)
    log.user()
    log.bash("date")
    assert _listened(log.write(tmp_path)) == [
        "turn 1 human",
        "step 0 of turn 1 from #0",
        "#0 bash step 0",
        "#1 bash step 0",
        "#0 failed 1~",
        "#1 failed error 0~",
        "turn 2 human",
        "#2 bash step 0",
        "#2 ok 0~",
    ]


def test_a_step_belongs_to_the_turn_whose_message_stands_inside_it(log: LogWriter, tmp_path: Path) -> None:
    for turn in (1, 2):
        log.add("step/start", {"turn": turn, "step": 1})
        log.user()
        log.says()
        log.result(log.call(turn=turn))
        log.add("step/start", {"turn": turn, "step": 2})
        log.says()
    assert [one for one in _listened(log.write(tmp_path)) if one.startswith(("turn", "step"))] == [
        "turn 1 human",
        "step 0 of turn 1 from #0",
        "step 1 of turn 1 from #1",
        "turn 2 human",
        "step 2 of turn 2 from #1",
        "step 3 of turn 2 from #2",
    ]


def test_steps_without_rows_begin_with_their_first_call(log: LogWriter, tmp_path: Path) -> None:
    for step in (1, 1, 2):
        log.result(log.call(step=step))
    told = _listened(log.write(tmp_path))
    assert [one for one in told if one.startswith("#") and "bash" in one] == [
        "#0 bash step 0",
        "#1 bash step 0",
        "#2 bash step 1",
    ]


def test_nested_calls_are_told_where_their_rows_stand(log: LogWriter, tmp_path: Path) -> None:
    outer = log.call(name="run_code", arguments='{"code":"x"}', call_id="c")
    inner = log.nested({"command": "false"}, sub_id="c:1", parent="c")
    log.result(inner, is_error=True)
    log.result(outer)
    assert _listened(log.write(tmp_path)) == [
        "step 0 of turn 0 from #0",
        "#0 run_code step 0",
        "#1 bash step 0 nested",
        "#1 failed error 0~",
        "#0 ok",
    ]


def test_a_nested_call_begins_no_step(log: LogWriter, tmp_path: Path) -> None:
    log.result(log.nested({"command": "ls"}, sub_id="c:1", parent="c"))
    log.result(log.call())
    told = _listened(log.write(tmp_path))
    assert told == ["#0 bash step 0 nested", "#0 ok 0~", "step 0 of turn 0 from #1", "#1 bash step 0", "#1 ok 0~"]


def test_a_code_in_the_record_is_not_rebuilt(log: LogWriter, tmp_path: Path) -> None:
    for meta in ({"opsShell": {"exitCode": 3}}, {"exitCode": 4}, {"opsShell": {"exitCode": "5"}}):
        log.result(log.call(), "out\n[exit code: 1]", meta=meta)
    assert [one for one in _listened(log.write(tmp_path)) if "failed" in one] == [
        "#0 failed 3",
        "#1 failed 4",
        "#2 failed 1~",
    ]


# -- over logs ---------------------------------------------------------------------------------------------------


def test_fail_guard_counts_rows_of_results(log: LogWriter, tmp_path: Path) -> None:
    log.user()
    log.bash(text=EXIT_1)  # 0: failure 1
    log.user()
    log.bash(text=EXIT_1)  # 1: failure 2, trips although a human spoke
    outer = log.call(name="run_code", arguments="{}", call_id="c")  # 2
    inner = log.nested({"command": "false"}, sub_id="c:1", parent="c")  # 3: nested, not counted
    log.result(inner, EXIT_1, is_error=True)
    log.result(outer)
    log.bash(text=EXIT_1)  # 4: failure 1
    never = log.call()  # 5: failure 2 of a call that was not run
    log.result(never, is_error=True, error={"name": "AbortError", "code": "ABORTED_BEFORE_DISPATCH"})
    log.bash(text=EXIT_1)  # 6
    log.bash(text="fine")  # 7: clears
    log.bash(text=EXIT_1)  # 8
    seen = _seen(log.write(tmp_path), "fail-guard")
    assert [(event.call, event.count) for event in seen.events] == [(1, 2), (5, 2)]
    assert [event.on_rebuilt for event in seen.events] == [True, True]
    assert (seen.failures, seen.rebuilt_failures, seen.on_rebuilt) == (6, 5, 2)


@pytest.mark.parametrize("version", [4, 3, 0])
def test_fail_guard_reads_the_flag_of_every_format(version: int, tmp_path: Path) -> None:
    log = LogWriter(version=version, flat=version == 0)
    for _ in range(2):
        log.result(log.call(name="read", arguments="{}"), is_error=True)
    assert _placed(log.write(tmp_path), "fail-guard") == [(1, "trip", 2)]


def test_fail_guard_leaves_out_what_a_repair_wrote_and_what_replaces_a_row(log: LogWriter, tmp_path: Path) -> None:
    log.bash(text=EXIT_1)
    log.result(0, EXIT_1, op="replace")
    pending = log.call()
    log.marker(inherited=False)
    unknown = {"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"}
    log.result(pending, is_error=True, error=unknown, message_id="interrupted-tool-result-x-1")
    log.bash(text=EXIT_1)
    assert _placed(log.write(tmp_path), "fail-guard") == []


def test_fail_guard_knows_a_repair_by_its_id_alone(log: LogWriter, tmp_path: Path) -> None:
    log.bash(text=EXIT_1)
    log.result(log.call(), is_error=True, message_id="interrupted-tool-result-x-1")
    log.bash(text="fine")
    log.bash(text=EXIT_1)
    assert _placed(log.write(tmp_path), "fail-guard:threshold=1") == [(0, "trip", 1), (3, "trip", 1)]


def test_fail_guard_reads_a_recorded_code_whatever_became_of_the_call(log: LogWriter, tmp_path: Path) -> None:
    for _ in range(2):
        call = log.call()
        log.hook("PostToolUse", "block")
        log.result(call, "blocked", meta={"opsShell": {"exitCode": 2}})
    assert _placed(log.write(tmp_path), "fail-guard") == [(1, "trip", 2)]


def test_fail_guard_says_of_a_structured_code_that_it_is_none_rebuilt(log: LogWriter, tmp_path: Path) -> None:
    for _ in range(2):
        log.result(log.call(), "out", meta={"opsShell": {"exitCode": 2}})
    seen = _seen(log.write(tmp_path), "fail-guard")
    assert [(event.call, event.on_rebuilt) for event in seen.events] == [(1, False)]
    assert (seen.failures, seen.rebuilt_failures) == (2, 0)


def test_reminder_counts_todo_writes_too_and_carries_its_message(log: LogWriter, tmp_path: Path) -> None:
    for _ in range(3):
        log.result(log.call(name="todo_write", arguments='{"todos":[]}'))
    (event,) = _seen(log.write(tmp_path), "reminder").events
    assert (event.call, event.seq, event.stage, event.count, event.threshold) == (2, 4, "notice", 3, 3)
    assert event.measure == 'call:todo_write:{"todos":[]}'
    assert event.message is not None


def test_a_step_cap_names_the_first_call_of_the_step_or_none(log: LogWriter, tmp_path: Path) -> None:
    log.user()
    for step in (1, 2, 3):
        log.add("step/start", {"turn": 1, "step": step})
        log.says()
        if step < 3:
            log.result(log.call(step=step))
    path = log.write(tmp_path)
    (second,) = _seen(path, "step-cap:n=2").events
    assert (second.call, second.seq, second.tool, second.turn) == (1, 7, "bash", 1)
    (third,) = _seen(path, "step-cap:n=3").events
    assert (third.call, third.seq, third.tool) == (2, 9, "")
    assert _placed(path, "step-cap:n=4") == []


def test_events_of_all_detectors_are_in_the_order_they_happened(log: LogWriter, tmp_path: Path) -> None:
    for _ in range(8):
        log.bash(text=EXIT_1)
    specs = parse_detectors(["fail-guard:threshold=4", "consecutive:n=4", "reminder"])
    replay = _replay(log.write(tmp_path), *specs)
    assert [(name, event.stage, event.call) for name, event in happened(replay)] == [
        ("breaker", "fail-warn", 2),
        ("reminder", "notice", 2),
        ("consecutive", "trip", 3),
        ("fail-guard", "trip", 3),
        ("reminder", "notice", 4),
        ("breaker", "fail-gate", 5),
        ("breaker", "fail-gate", 6),
        ("breaker", "fail-gate", 7),
        ("consecutive", "trip", 7),
        ("fail-guard", "trip", 7),
        ("reminder", "notice", 7),
    ]


@pytest.mark.parametrize(
    ("policy", "asked", "denied", "withheld"),
    [
        ("unattended", "ask-declined", "deny", (1, 2)),
        ("approve", "ask-approved", "deny", (0, 2)),
        ("deny", "deny", "deny", (1, 2)),
        ("observe", "observed", "observed", (0, 0)),
    ],
)
def test_the_policy_answers_asks(
    log: LogWriter, tmp_path: Path, policy: Policy, asked: str, denied: str, withheld: tuple[int, int]
) -> None:
    for _ in range(3):
        log.bash()
    specs = parse_detectors(["doom-loop", "repeat-stop:n=2"])
    loop, stop = _replay(log.write(tmp_path), *specs, policy=policy).detectors
    assert [event.decision for event in loop.events] == [asked]
    assert [event.decision for event in stop.events] == [denied, denied]
    assert (loop.denials, stop.denials) == withheld
    assert (loop.false_rejections, stop.false_rejections) == withheld


def test_sums(log: LogWriter, tmp_path: Path) -> None:
    for _ in range(5):
        log.bash(text=EXIT_1)
    specs = parse_detectors(["fail-guard", "repeat-stop"])
    replay = _replay(log.write(tmp_path), *specs)
    totals = sum_detectors(specs, [replay, replay])
    assert totals["fail-guard"].stages == {"trip": 4}
    assert (totals["fail-guard"].sessions, totals["fail-guard"].failures) == (2, 10)
    assert (totals["repeat-stop"].sessions, totals["repeat-stop"].stages.total()) == (0, 0)


@pytest.mark.shared
def test_the_recorded_reminder_session_gives_its_two_notices(shared: Path) -> None:
    (folder,) = (shared / "corpus" / "recorded").glob("*/*repeat-tool-reminder*")
    seen = _seen(folder, "reminder")
    assert [(event.call, event.count, event.tool) for event in seen.events] == [
        (2, 3, "todo_write"),
        (4, 5, "todo_write"),
    ]
    assert [("consecutive_calls: 5" in (event.message or "")) for event in seen.events] == [False, True]


# -- the breaker is one of them ----------------------------------------------------------------------------------

CALLS = st.sampled_from(
    [
        Call("bash", {"command": "make"}),
        Call("bash", {"command": "curl -s https://a.example.com/x?p=1"}),
        Call("bash", {"command": "curl -s https://a.example.com/x?p=2", "description": "again"}),
        Call("web_fetch", {"url": "https://a.example.com/x?p=1"}),
        Call("read", {"path": "a"}),
        Call("todo_write", {}),
    ]
)
OUTCOMES = st.sampled_from(
    [
        Outcome("ok", commits=True, settles=True),
        Outcome("failed", commits=True, settles=True, failure=Failure("exit", "1", "rebuilt")),
        Outcome("failed", commits=False, settles=True, failure=Failure("error", "", "structured")),
        Outcome("undecidable", commits=True, settles=False),
        Outcome("denied", commits=True, settles=False),
        Outcome("not-run", commits=False, settles=False),
        OPEN,
    ]
)
LIMITS: st.SearchStrategy[int | None] = st.none() | st.integers(2, 6)
SETTINGS: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {
        "window": st.integers(4, 8),
        "warnAt": st.integers(0, 5),
        "summarizeAt": st.integers(0, 6),
        "failWarnAt": st.integers(0, 4),
        "failLimit": st.none() | st.integers(2, 4),
        "onLimit": st.sampled_from(["ask", "deny"]),
        "limits": st.fixed_dictionaries({"exact": LIMITS, "host": LIMITS, "cmd": LIMITS}),
    }
)


@st.composite
def sessions(draw: st.DrawFn) -> list[Fact]:
    """Draw a session: calls in batches, human messages in between, results in any order."""
    facts: list[Fact] = []
    calls = 0
    for batch in draw(st.lists(st.lists(st.tuples(CALLS, OUTCOMES), max_size=4), max_size=12)):
        if draw(st.integers(0, 5)) == 0:
            facts.append(TurnFact(len(facts), None, "human" if draw(st.booleans()) else "resume", 1))
        made: list[CallFact] = []
        for call, outcome in batch:
            fact = CallFact(calls, len(facts), None, 1, 1, 1, call, None, f"c{calls}", nested=False, outcome=outcome)
            calls += 1
            made.append(fact)
            facts.append(fact)
        facts += [
            SettleFact(fact, len(facts), None, is_error=False)
            for fact in draw(st.permutations(made))
            if fact.outcome.kind != "open"
        ]
    return facts


@given(sessions(), SETTINGS, st.sampled_from(POLICIES), st.booleans())
def test_the_breaker_as_a_detector_gives_exactly_its_own_events(
    facts: list[Fact], config: Mapping[str, object], policy: Policy, shell_http: bool
) -> None:
    settings = Settings.from_config(config)
    run = SessionRun(ReplayPlan(settings, policy=policy, keep_events=True), shell_http=shell_http)
    spec = DetectorSpec(
        "breaker", "breaker:", lambda config: BreakerDetector(settings, policy=policy, shell_http=shell_http)
    )
    beside = DetectorRun([spec], policy, keep_events=True, keep_messages=False)
    for fact in facts:
        run.take(fact)
        beside.take(fact)
    (seen,) = beside.finish()
    assert seen.fault is None
    names = ("seq", "turn", "call", "tool", "stage", "track", "measure", "count", "threshold", "decision", "failure")
    expected = [[getattr(event, name) for name in (*names, "position")] for event in run.replay.events]
    assert [[getattr(event, name) for name in (*names, "position")] for event in seen.events] == expected
    assert seen.stages == run.replay.stages
    assert (seen.denials, seen.false_rejections) == (run.replay.denials, run.replay.false_rejections)


# -- names and settings ------------------------------------------------------------------------------------------


def test_an_unknown_detector_names_the_known_ones() -> None:
    with pytest.raises(DetectorError) as caught:
        parse_detectors(["fail-gard"])
    assert str(caught.value) == f"unknown detector 'fail-gard'; known: {', '.join(DETECTORS)}"


def test_settings_are_json_or_text_and_commas_in_brackets_belong_to_the_value() -> None:
    (spec,) = parse_detectors(['reminder:thresholds=[2,4],exclude=["a,b","c"],argumentsPreviewChars=9'])
    assert spec.config == {"thresholds": [2, 4], "exclude": ["a,b", "c"], "argumentsPreviewChars": 9}
    (spec,) = parse_detectors(["doom-loop:scope=turn"])
    assert spec.config == {"scope": "turn"}
    assert spec.settings == {"n": 3, "scope": "turn"}


def test_entries_of_maps_are_dotted() -> None:
    (spec,) = parse_detectors(["breaker:limits.host=9,limits.family:http-fetch=4,warnAt=null"])
    assert spec.config == {"limits": {"host": 9, "family:http-fetch": 4}, "warnAt": None}


def test_one_name_twice_is_told_apart_by_its_whole_text() -> None:
    specs = parse_detectors(["fail-guard", "consecutive:n=3", "consecutive:n=4", "breaker:warnAt=3"])
    assert [spec.label for spec in specs] == ["fail-guard", "consecutive:n=3", "consecutive:n=4", "breaker:warnAt=3"]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["fail-guard:threshold"], r"detector fail-guard:threshold: 'threshold' must be key=value"),
        (["fail-guard:"], r"detector fail-guard:: '' must be key=value"),
        (["fail-guard:threshold=1,threshold=2"], r"`threshold` is given twice"),
        (["fail-guard:threshold=0"], r"detector fail-guard: `threshold` must be an integer >= 1 \(got 0\)"),
        (["fail-guard:treshold=3"], r"`treshold` is no setting of it; .*did you mean `threshold`\?"),
        (["reminder", "reminder"], r"detector reminder is given twice"),
        ([""], r"unknown detector ''; known: breaker, fail-guard"),
    ],
)
def test_what_cannot_be_read_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(DetectorError, match=message):
        parse_detectors(texts)


@pytest.mark.parametrize("name", DETECTORS)
def test_every_detector_can_be_carried_to_another_process(name: str) -> None:
    (spec,) = parse_detectors([name])
    (again,) = pickle.loads(pickle.dumps((spec,)))
    assert (again.label, again.stages, again.settings) == (spec.label, spec.stages, spec.settings)
    assert type(again.make(again.config)) is type(spec.make(spec.config))


PATCH = """
- id: dsh-fail-guard
  config:
    threshold: 5
- id: something-else
  config: !!js "() => 1"
- insert:
    - id: guard
      name: dsh-fail-guard
      config: {threshold: 3, sameToolOnly: false}
    - id: repeat-tool-reminder
      config: {thresholds: [4]}
"""


def test_rows_of_the_plugins_give_their_settings_the_last_one_counting(tmp_path: Path) -> None:
    path = tmp_path / "cordis.patch.yml"
    path.write_text(PATCH)
    configs = read_detector_config(path)
    assert configs == {"fail-guard": {"threshold": 3, "sameToolOnly": False}, "reminder": {"thresholds": [4]}}
    guard, over = (parse_detectors([text], configs)[0] for text in ("fail-guard", "fail-guard:threshold=4"))
    assert (guard.settings["threshold"], guard.settings["sameToolOnly"]) == (3, False)
    assert (over.settings["threshold"], over.settings["sameToolOnly"]) == (4, False)


def test_a_row_without_a_config_has_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "cordis.patch.yml"
    path.write_text("- id: dsh-fail-guard\n")
    assert read_detector_config(path) == {"fail-guard": {}}


def test_other_files_hold_a_table_for_each_detector(tmp_path: Path) -> None:
    path = tmp_path / "detectors.toml"
    path.write_text("[fail-guard]\nthreshold = 3\n[step-cap]\nn = 9\n")
    assert read_detector_config(path) == {"fail-guard": {"threshold": 3}, "step-cap": {"n": 9}}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yml", "- id: other\n", "has no row of a detector's plugin"),
        ("a.yml", "- id: dsh-fail-guard\n  config: 3\n", "the settings of fail-guard must be an object"),
        ("a.toml", "fail-guard = 3\n", "the settings of fail-guard must be an object"),
        ("a.json", "3", "must hold one table of settings per detector"),
        ("a.ini", "", "not a settings file"),
    ],
)
def test_a_file_that_holds_no_such_settings_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_detector_config(path)


# -- detectors of other packages ---------------------------------------------------------------------------------

MODULE = '''
from breaker.detectors import Finding, SettingsReader


class EveryNth:
    """Speaks at every n-th call."""

    def __init__(self, config):
        self.n = SettingsReader("every-nth", config, {"n": 2}).integer("n", 1)
        self.settings = {"n": self.n, "odd": {1, }}

    def on_turn(self, turn):
        pass

    def on_call(self, call):
        if (call.index + 1) % self.n == 0:
            return [Finding("notice", "call:any", call.index + 1, self.n)]

    def on_outcome(self, call, outcome):
        return []


class Fragile(EveryNth):
    def on_call(self, call):
        if call.name == "boom":
            raise KeyError("no such tool")
        return super().on_call(call)


class Quitting(EveryNth):
    def on_outcome(self, call, outcome):
        raise SystemExit(7)


class Babbling(EveryNth):
    def on_call(self, call):
        return ["stuck!"]


class Unknown(EveryNth):
    def on_call(self, call):
        return [Finding("panic", "call:any", 1, 1)]


class Innumerate(EveryNth):
    def on_call(self, call):
        return [Finding("notice", "call:any", "many", float("nan"))]


def mute(config):
    return object()


def broken(config):
    raise RuntimeError("not today")


no_factory = 3
'''
POINTS = """
[breaker.detectors]
every-nth = thirdparty_rules:EveryNth
fragile = thirdparty_rules:Fragile
quitting = thirdparty_rules:Quitting
babbling = thirdparty_rules:Babbling
unknown-stage = thirdparty_rules:Unknown
innumerate = thirdparty_rules:Innumerate
mute = thirdparty_rules:mute
broken = thirdparty_rules:broken
no-factory = thirdparty_rules:no_factory
gone = thirdparty_rules:gone
"""


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install a package that brings detectors, as an installer would leave it."""
    site = tmp_path / "site"
    info = site / "thirdparty_rules-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "thirdparty_rules.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thirdparty-rules\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    importlib.invalidate_caches()
    yield site
    sys.modules.pop("thirdparty_rules", None)


@pytest.mark.usefixtures("third_party")
def test_a_detector_of_another_package_is_found_and_used(log: LogWriter, tmp_path: Path) -> None:
    assert known_detectors()["every-nth"].origin == "thirdparty-rules (thirdparty_rules:EveryNth)"
    for _ in range(7):
        log.bash()
    path = log.write(tmp_path)
    assert _placed(path, "every-nth") == [(1, "notice", 2), (3, "notice", 4), (5, "notice", 6)]
    (spec,) = parse_detectors(["every-nth:n=3"])
    assert spec.settings == {"n": 3, "odd": [1]}
    assert _placed(path, "every-nth:n=3") == [(2, "notice", 3), (5, "notice", 6)]
    (again,) = pickle.loads(pickle.dumps((spec,)))
    assert again.make({}).on_call(SeenCall(0, Call("read", {}))) is None


@pytest.mark.usefixtures("third_party")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("every-nth:n=0", r"detector every-nth: every-nth: `n` must be an integer >= 1 \(got 0\)"),
        ("mute", r"detector mute: thirdparty-rules .* makes something without on_turn, on_call, on_outcome"),
        ("broken", r"detector broken: RuntimeError: not today"),
        ("no-factory", r"detector no-factory: thirdparty_rules:no_factory is nothing that can be called with settings"),
        ("gone", r"detector gone: thirdparty_rules:gone cannot be loaded: AttributeError: "),
    ],
)
def test_one_that_cannot_be_made_is_refused_before_anything_is_read(text: str, message: str) -> None:
    with pytest.raises(DetectorError, match=message):
        parse_detectors([text])


@pytest.mark.usefixtures("third_party")
def test_one_that_raises_is_told_of_and_the_session_goes_on_without_it(log: LogWriter, tmp_path: Path) -> None:
    for name in ("read", "read", "boom", "read", "read", "read"):
        log.result(log.call(name=name, arguments="{}"))
    path = log.write(tmp_path)
    fragile, reminder = _replay(path, *parse_detectors(["fragile", "reminder"])).detectors
    assert [event.call for event in fragile.events] == [1]
    assert fragile.fault == DetectorFault("fragile", 2, 4, "KeyError: 'no such tool'")
    assert [event.call for event in reminder.events] == [5]
    assert reminder.fault is None
    assert sum_detectors(parse_detectors(["fragile"]), [replace(_replay(path), detectors=(fragile,))])[
        "fragile"
    ].faults == (1)


@pytest.mark.usefixtures("third_party")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("quitting", "SystemExit: 7"),
        ("babbling", "answered str, no finding"),
        ("unknown-stage", "answered the unknown stage 'panic'; known: notice, trip, ask, deny"),
        ("innumerate", "answered a count or threshold that is no number: 'many', nan"),
    ],
)
def test_an_answer_that_is_no_finding_is_a_fault(log: LogWriter, tmp_path: Path, name: str, message: str) -> None:
    log.bash()
    log.bash()
    seen = _seen(log.write(tmp_path), name)
    assert seen.fault == DetectorFault(name, 0, 0, message)
    assert seen.events == []


def test_one_that_fails_when_it_is_made_anew_is_told_of(log: LogWriter, tmp_path: Path) -> None:
    made = 0

    def moody(config: Mapping[str, object]) -> Detector:
        nonlocal made
        made += 1
        if made > 1:
            message = "once is enough"
            raise ValueError(message)
        return FailGuard(config)

    log.bash()
    path = log.write(tmp_path)
    spec = DetectorSpec("moody", "moody", moody)
    assert _replay(path, spec).detectors[0].fault is None
    (seen,) = _replay(path, spec).detectors
    assert seen.fault == DetectorFault("moody", -1, 0, "ValueError: once is enough")


def test_an_interruption_by_the_person_passes(log: LogWriter, tmp_path: Path) -> None:
    class Interrupted(Listener):
        def on_call(self, call: SeenCall) -> Sequence[Finding]:
            raise KeyboardInterrupt

    log.bash()
    path = log.write(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        _replay(path, DetectorSpec("interrupted", "interrupted", lambda config: Interrupted()))


def test_two_detectors_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "usurper-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: usurper\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[breaker.detectors]\nreminder = usurper:Reminder\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    with pytest.raises(DetectorError, match=r"two detectors are named 'reminder': built in, and usurper \(usurper:Rem"):
        parse_detectors(["fail-guard"])


def test_a_refused_setting_names_the_detector_beside_its_plugin() -> None:
    with pytest.raises(DetectorError, match=r"^detector reminder: repeat-tool-reminder: `threshold` is no setting"):
        parse_detectors(["reminder:threshold=3"])
    with pytest.raises(DetectorError, match=r"^detector fail-guard: `treshold` is no setting of it"):
        parse_detectors(["fail-guard:treshold=3"])
