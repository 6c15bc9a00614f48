"""Six planted decisions: what was said, why, and that each remedy changes it."""

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.configs import apply_sets
from analysis.explain import ExplainError, Explanation, SessionNotFound, Target, explain_session, find_session
from analysis.replay import ReplayPlan, StageName
from breaker.rulesets import ruleset_named
from breaker.settings import Settings
from tests.analysis.logs import LogWriter

EXIT_1 = "x\n[exit code: 1]"
PLAN = ReplayPlan()


def hosts(log: LogWriter, count: int) -> None:
    for number in range(count):
        log.bash(f"curl -s https://a.org/{number}")


@pytest.fixture
def logs(tmp_path: Path) -> dict[StageName, Path]:
    """Return a log for each stage whose last call reaches it first."""
    made: dict[StageName, LogWriter] = {}
    repeats: dict[StageName, int] = {"warn": 7, "summarize": 11, "gate": 16}
    for stage, calls in repeats.items():
        made[stage] = log = LogWriter(f"session-{stage}")
        log.user()
        hosts(log, calls)
    failures: dict[StageName, int] = {"fail-warn": 3, "fail-gate": 6}
    for stage, calls in failures.items():
        made[stage] = log = LogWriter(f"session-{stage}")
        log.user()
        for _ in range(calls):
            log.bash("make", EXIT_1)
    made["shell-http"] = log = LogWriter("session-shell-http")
    log.user()
    log.result(log.call(name="web_fetch_file", arguments='{"url": "https://b.org/"}'))
    log.bash("curl -s https://a.org/")
    return {stage: log.write(tmp_path) for stage, log in made.items()}


CAUSES: dict[StageName, tuple[str, str]] = {
    "warn": ("host:a.org comes up 7 times, which is `warnAt`", "warnAt"),
    "summarize": ("host:a.org comes up 11 times, which is `summarizeAt`", "summarizeAt"),
    "gate": ("host:a.org comes up 16 times in the window, and its cap is 16", "limits.host"),
    "fail-warn": ("cmd:make:make has now failed 3 times in a row, which is `failWarnAt`", "failWarnAt"),
    "fail-gate": ("has failed 5 times in a row, and `failLimit` is 5", "failLimit"),
    "shell-http": ("the shell-HTTP policy refuses the command", "blockShellHttp"),
}


def explained(
    path: Path,
    plan: ReplayPlan = PLAN,
    *,
    call: int | None = None,
    seq: int | None = None,
    stage: StageName | None = None,
) -> Explanation:
    return explain_session(find_session(str(path), [path]), plan, Target(call, seq, stage))


def changed(explanation: Explanation, key: str, after: str) -> ReplayPlan:
    """Apply a remedy as a person would."""
    plan = explanation.plan
    if key == "ruleset":
        ruleset = ruleset_named(after)
        return replace(plan, ruleset=ruleset, settings=Settings.from_config({}, ruleset))
    if key == "exclude":
        value = '["todo_write", "bash"]'
    elif after == "off":
        value = "null"
    else:
        value = after
    return replace(plan, settings=Settings.from_config(apply_sets({}, [f"{key}={value}"])))


@pytest.mark.parametrize("stage", CAUSES)
def test_a_decision_states_its_cause_and_every_remedy_changes_it(logs: dict[StageName, Path], stage: StageName) -> None:
    cause, key = CAUSES[stage]
    explanation = explained(logs[stage], stage=stage)
    assert explanation.stage == stage
    assert any(cause in line for line in explanation.why), explanation.why
    keys = [remedy.key for remedy in explanation.remedies]
    assert key in keys
    assert len(keys) == len(set(keys))
    for remedy in explanation.remedies:
        again = explained(logs[stage], changed(explanation, remedy.key, remedy.after), call=explanation.call.index)
        assert stage not in [event.stage for event in again.events], remedy
        assert tuple(event.stage for event in again.events) == remedy.stages


@pytest.mark.parametrize("stage", CAUSES)
def test_one_less_than_the_nearest_number_is_no_remedy(logs: dict[StageName, Path], stage: StageName) -> None:
    explanation = explained(logs[stage], stage=stage)
    for remedy in explanation.remedies:
        if not remedy.after.isdigit() or remedy.key == "window" or int(remedy.after) - 1 == int(remedy.before):
            continue
        plan = changed(explanation, remedy.key, str(int(remedy.after) - 1))
        again = explained(logs[stage], plan, call=explanation.call.index)
        assert stage in [event.stage for event in again.events], remedy


def test_the_window_and_the_counts_at_that_moment(logs: dict[StageName, Path]) -> None:
    explanation = explained(logs["gate"])
    assert [record.call for record in explanation.window] == list(range(15))
    states = {state.kind: (state.count, state.cap, state.streak) for state in explanation.measures}
    assert states["host"] == (16, 16, 0)
    assert states["exact"] == (1, 12, 0)
    assert states["site"] == (16, None, 0)
    (line,) = explanation.timeline
    assert (line.marks, line.cursor) == ("......w...s....G", 15)


def test_the_failures_of_the_streak_and_the_words_that_decided(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.bash("make")
    for _ in range(3):
        log.bash("make", "Traceback (most recent call last)\nKeyError: 'x'")
    explanation = explained(log.write(tmp_path))
    assert [(one.call, one.evidence, one.rule, one.words) for one in explanation.evidence] == [
        (number, "text", "T6 traceback", "KeyError:") for number in (1, 2, 3)
    ]
    assert explanation.evidence[0].measures == ("cmd:make:make",)
    assert ("ruleset", "0.5.0") in [(remedy.key, remedy.after) for remedy in explanation.remedies]


def test_why_this_measure_and_not_another(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    for _ in range(7):
        log.bash("curl -s https://a.org/x")
    explanation = explained(log.write(tmp_path))
    (event,) = explanation.events
    assert event.measure == "host:a.org"
    assert any("rather than exact:" in line and "host comes before" in line for line in explanation.why)


def test_a_declined_measure_is_not_asked_about_again(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    hosts(log, 18)
    explanation = explained(log.write(tmp_path), call=17)
    assert "nobody is asked again: host:a.org was declined earlier in this turn" in explanation.why


def test_a_silent_call_says_how_far_it_is_from_each_stage(logs: dict[StageName, Path]) -> None:
    explanation = explained(logs["gate"], call=8)
    assert (explanation.events, explanation.remedies) == ((), ())
    assert "host:a.org: count 9, cap 16, past warnAt 7, 2 below summarizeAt 11, streak 0" in explanation.why


def test_calls_that_are_not_there_name_the_near_ones(logs: dict[StageName, Path]) -> None:
    with pytest.raises(ExplainError, match="no call 99: the session has 7, 0 to 6"):
        explained(logs["warn"], call=99)
    with pytest.raises(ExplainError, match=r"no call at seq 2; the nearest: 1 \(call 0\), 3 \(call 1\), 5 \(call 2\)"):
        explained(logs["warn"], seq=2)
    with pytest.raises(ExplainError, match="no call reaches gate; reached: warn"):
        explained(logs["warn"], stage="gate")


def test_sessions_are_found_by_id_beginning_path_or_as_tables_name_them(
    logs: dict[StageName, Path], tmp_path: Path
) -> None:
    for name in (
        "session-gate",
        "session-g",
        "session-g…e",
        "session-gate…",
        "session-gate…",
        "session-gate/session.v4.jsonl",
        str(logs["gate"].parent),
    ):
        assert find_session(name, [tmp_path]).path == logs["gate"]
    with pytest.raises(SessionNotFound, match="nearest: session-gate"):
        find_session("session-gaet", [tmp_path])
    with pytest.raises(SessionNotFound, match="2 sessions answer to 'session-s'"):
        find_session("session-s", [tmp_path])
