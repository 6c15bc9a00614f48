"""What is planted adds up, and is what the behaviours say; numbers here are counted by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from analysis.synth import SETTINGS, NamedSetting, SessionTruth, Truth
from analysis.synth.truth import Extreme, Moment, PlannedCall, Verdict, observe_plan

Corpora = Callable[[str, int, bool], tuple[Path, Truth]]


@pytest.fixture(scope="module")
def demo(corpus: Corpora) -> Mapping[str, SessionTruth]:
    return {session.name: session for session in corpus("demo", 4, True)[1].sessions}


def _stages(session: SessionTruth, setting: str = "default") -> list[tuple[str, int, str, int]]:
    events = session.observed[setting].events
    return [(event.stage, event.call, event.measure.split(":", 1)[0], event.count) for event in events]


@pytest.mark.parametrize("recipe", ["demo", "calibrated", "labelled", "scale"])
def test_outcomes_add_up(corpus: Corpora, recipe: str) -> None:
    for session in corpus(recipe, 4, True)[1].sessions:
        outcomes = (session.ok, session.failed, session.undecidable, session.denied, session.not_run, session.open)
        assert session.tracked == sum(outcomes), session.name
        assert session.failed == sum(session.failed_by.values())
        assert session.calls >= session.tracked
        default = session.observed["default"]
        assert (default.ok, default.failed) == (session.ok, session.failed)


def test_the_demo_holds_every_behaviour_once(demo: Mapping[str, SessionTruth]) -> None:
    assert list(demo) == [
        "known-good",
        "host-grind",
        "endpoint-guesser",
        "failing-tests",
        "a-b-a-b",
        "page-sweep",
        "polling",
        "parallel-batches",
        "run-code",
        "background-jobs",
        "repeated-ids",
        "steered",
        "spiral",
        "denials",
        "odd-failures",
        "under-breaker",
        "under-reminder",
        "fork-parent",
        "fork-child",
        "fork-open-call",
        "subagent-parent",
        "subagent-1",
        "subagent-2",
        "imported",
        "resumed",
        "aborted",
        "crashed",
        "torn",
        "generations",
        "text-rules",
        "write-out-probes",
        "odd-urls",
        "same-step",
    ]
    assert len({session.id for session in demo.values()}) == len(demo)
    assert len({session.files[0].path.split("/")[0] for session in demo.values()}) == 4
    assert all(session.summary for session in demo.values())


def test_a_known_good_run_reaches_nothing(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["known-good"]
    assert session.label == "good"
    assert (session.turns, session.failed) == (2, 3)
    assert session.failed_by == {"bash/exit/1/rebuilt": 3}
    assert _stages(session) == []
    assert session.observed["default"].longest_streak == Extreme("cmd:pytest:pytest -q tests/test_part_1.py", 1)


def test_a_host_grind_is_warned_at_7_summarised_at_11_and_gated_from_16(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["host-grind"]
    assert _stages(session) == [
        ("warn", 6, "host", 7),
        ("summarize", 10, "host", 11),
        ("gate", 15, "host", 16),
        ("gate", 16, "host", 17),
        ("gate", 17, "host", 17),
    ]
    default = session.observed["default"]
    assert (default.asks, default.denials, default.false_rejections) == (1, 3, 3)
    assert default.peak == Extreme("host:search.example.org", 17)
    assert default.gate_margin == -1
    assert default.longest_streak is None


def test_an_endpoint_guesser_fails_by_three_means(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["endpoint-guesser"]
    assert session.failed_by == {
        "bash/exception/KeyError/text": 3,
        "bash/http/404/text": 2,
        "web_fetch/http/404/structured": 4,
    }
    assert _stages(session) == [("fail-warn", 2, "host", 3), ("fail-gate", 5, "host", 5)]
    # Without the write-out rule the two probes succeed and clear the streak of four.
    assert session.observed["observe 0.8.7"].longest_streak == Extreme("host:api.example.net", 4)
    assert session.observed["observe"].longest_streak == Extreme("host:api.example.net", 6)


def test_a_failing_test_is_warned_of_at_its_3rd_and_gated_from_its_6th_run(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["failing-tests"]
    assert _stages(session) == [
        ("fail-warn", 5, "cmd", 3),
        ("fail-gate", 11, "exact", 5),
        ("fail-gate", 13, "exact", 5),
        ("fail-gate", 15, "exact", 5),
        ("fail-gate", 17, "exact", 5),
    ]
    decisions = [event.decision for event in session.observed["default"].events]
    assert decisions == ["allow", "ask-declined", "deny", "deny", "deny"]
    approved = session.observed["approve 0.5.2"]
    assert [event.decision for event in approved.events if event.stage == "fail-gate"] == ["ask-approved"]
    assert approved.denials == 0


def test_alternation_is_warned_of_once_for_each_side(demo: Mapping[str, SessionTruth]) -> None:
    assert _stages(demo["a-b-a-b"]) == [("warn", 12, "exact", 7), ("warn", 13, "exact", 7)]


def test_a_parallel_batch_meets_the_guard_before_it_has_failed(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["parallel-batches"]
    assert _stages(session) == [("fail-warn", 7, "host", 3), ("fail-gate", 11, "host", 6)]
    assert session.failed == 7


def test_nested_calls_count(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["run-code"]
    assert (session.calls, session.failed) == (9, 2)
    assert session.failed_by == {
        "bash/exit/1/rebuilt": 1,
        "run_code/error/CODE_RUN_FAILED/structured": 1,
    }


def test_steering_resets_and_a_clipped_result_still_fails(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["steered"]
    assert (session.turns, session.failed, session.clipped) == (2, 6, 6)
    assert session.observed["default"].longest_streak == Extreme("cmd:make:make check", 4)
    assert _stages(session) == [("fail-warn", 2, "cmd", 3)]


def test_refusals_fail_unless_the_body_had_run(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["denials"]
    assert (session.ok, session.failed, session.undecidable, session.calls) == (2, 8, 1, 11)
    assert session.failed_by == {
        "bash/error//structured": 7,
        "bash/error/AUTO_REVIEW_DENIED/structured": 1,
    }


def test_denials_of_a_recording_breaker_are_no_failures(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["under-breaker"]
    assert session.recorded_under_breaker
    assert (session.denied, session.failed, session.ok) == (4, 0, 16)
    assert [name for name, other in demo.items() if other.recorded_under_breaker] == ["under-breaker"]


def test_notes_of_the_reminder_reset_nothing(demo: Mapping[str, SessionTruth]) -> None:
    assert _stages(demo["under-reminder"]) == [("warn", 6, "exact", 7)]


def test_inherited_calls_count_in_the_parent_only(demo: Mapping[str, SessionTruth]) -> None:
    names = ("fork-parent", "fork-child", "fork-open-call")
    assert [demo[name].calls for name in names] == [7, 4, 1]
    assert _stages(demo["fork-child"]) == []


def test_each_subagent_has_a_window_of_its_own(demo: Mapping[str, SessionTruth]) -> None:
    assert [demo[name].agent for name in ("subagent-parent", "subagent-1", "subagent-2")] == [
        "main",
        "subagent",
        "subagent",
    ]
    for name in ("subagent-1", "subagent-2"):
        assert _stages(demo[name]) == [("warn", 6, "host", 7)]


def test_imported_history_counts_and_a_human_word_ends_its_count(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["imported"]
    assert (session.calls, session.turns, _stages(session)) == (7, 2, [])


def test_a_resumed_process_remembers_nothing(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["resumed"]
    assert (session.calls, session.open, session.not_started, session.turns) == (10, 1, 1, 1)
    assert session.observed["default"].peak == Extreme('exact:read:{"path":"state.json"}', 5)
    assert _stages(session) == []


def test_what_never_ran_is_no_failure(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["aborted"]
    assert (session.failed, session.not_run, session.failed_by) == (1, 6, {"web_fetch/error/ABORTED/structured": 1})
    assert session.observed["default"].peak == Extreme("host:slow.example.com", 1)


@pytest.mark.parametrize("name", ["crashed", "torn"])
def test_a_lost_result_leaves_its_call_open(demo: Mapping[str, SessionTruth], name: str) -> None:
    assert demo[name].open == 1


def test_a_spiral_is_mostly_short_lines(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["spiral"]
    # Two long sentences and the answer, then six steps of six phrases each.
    assert (session.lines, session.short_lines) == (2 + 36 + 1, 36 + 1)


def test_untracked_calls_stand_outside(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["odd-failures"]
    assert (session.calls, session.tracked, session.not_run) == (13, 12, 1)


def test_releases_read_words_differently(demo: Mapping[str, SessionTruth]) -> None:
    observed = demo["text-rules"].observed
    assert (observed["observe"].failed, observed["observe 0.5.2"].failed, observed["observe 0.5.0"].failed) == (6, 6, 2)
    assert observed["observe"].failed_text_only == 6


def test_only_two_rulesets_read_a_printed_status(demo: Mapping[str, SessionTruth]) -> None:
    failed = {name: seen.failed for name, seen in demo["write-out-probes"].observed.items() if "observe" in name}
    assert failed == {
        "observe": 4,
        "observe 0.5.0": 0,
        "observe 0.5.2": 0,
        "observe 0.5.3": 4,
        "observe 0.6.1": 0,
        "observe 0.7.0": 0,
        "observe 0.8.7": 0,
    }


def test_releases_read_addresses_differently(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["odd-urls"]
    assert _stages(session, "observe") == []
    # Before 0.6.1 an IPv6 host is not local, and an escaped separator ends the address.
    assert _stages(session, "observe 0.5.2") == [("warn", 6, "host", 7), ("warn", 14, "net", 7)]
    assert _stages(session, "observe 0.6.1") == []


def test_the_calibrated_corpus_shows_the_published_figures(corpus: Corpora) -> None:
    truth = corpus("calibrated", 4, True)[1]
    assert len(truth.sessions) == 107
    assert f"{100 * truth.failed / truth.settled:.1f}" == "3.6"
    assert truth.streaks == {2: 17, 3: 9, 4: 6, 5: 5, 8: 4}
    assert truth.good_streaks[3] == 0
    assert truth.good_streaks[2] > 0
    labels = [session.label for session in truth.sessions]
    assert {label: labels.count(label) for label in ("good", "stuck", "unknown")} == {
        "good": 20,
        "stuck": 4,
        "unknown": 83,
    }
    reasons: dict[str, int] = {}
    for session in truth.sessions:
        for key, count in session.failed_by.items():
            reasons[key] = reasons.get(key, 0) + count
    assert reasons == {
        "bash/exit/1/rebuilt": 67,
        "read/error/FS_NOT_FOUND/structured": 41,
        "web_fetch/http/404/structured": 3,
    }
    stages = [{event.stage for event in session.observed["default"].events} for session in truth.sessions]
    assert (sum("warn" in reached for reached in stages), sum("gate" in reached for reached in stages)) == (26, 10)


def test_labelled_runs_are_separated_by_exactly_the_stated_thresholds(corpus: Corpora) -> None:
    truth = corpus("labelled", 4, True)[1]
    peaks = {session.id: session.observed["observe"].peak for session in truth.sessions}
    streaks = {session.id: session.observed["observe"].longest_streak for session in truth.sessions}

    def separates(repeats: int, failures: int) -> bool:
        for session in truth.sessions:
            peak, streak = peaks[session.id], streaks[session.id]
            reached = (peak is not None and peak.count >= repeats) or (streak is not None and streak.count >= failures)
            if reached != (session.label == "stuck"):
                return False
        return True

    found = {
        (repeats, failures) for repeats in range(2, 15) for failures in range(2, 10) if separates(repeats, failures)
    }
    assert found == {(repeats, failures) for repeats in (9, 10, 11) for failures in (3, 4, 5, 6)}
    assert truth.best["gate"] == {"limits": [9, 11], "failLimit": [2, 5]}
    assert truth.best["touch"] == {"warnAt": [9, 11], "failWarnAt": [3, 6]}
    labels = [session.label for session in truth.sessions]
    assert (truth.best["good"], truth.best["stuck"]) == (labels.count("good"), labels.count("stuck"))


def test_truth_is_written_beside_the_sessions(corpus: Corpora) -> None:
    out, truth = corpus("demo", 4, True)
    written = json.loads((out / "truth.json").read_text())
    assert written == json.loads(json.dumps(truth.to_json()))
    assert written["totals"]["read"] == {"ok": 32, "torn": 1, "superseded": 1}
    assert [setting["name"] for setting in written["settings"]] == [setting.name for setting in SETTINGS]
    strict = next(setting for setting in written["settings"] if setting["name"] == "strict")
    assert strict["set"]["failLimit"] == 3
    assert strict["set"]["limits"]["host"] == 9


# The naive model itself, on the traces the releases are known by


def _same(count: int, measures: tuple[str, ...], verdict: Verdict) -> tuple[list[PlannedCall], list[Moment]]:
    calls = [PlannedCall("bash", 1, measures, verdict, met_guard=True, settles=True)] * count
    moments = [moment for at in range(count) for moment in (Moment("guard", at), Moment("settle", at))]
    return calls, moments


def test_fourteen_same_reads() -> None:
    seen = observe_plan(*_same(14, ("exact:x",), Verdict("ok")), SETTINGS[0])
    events = [(event.stage, event.call + 1, event.count, event.decision) for event in seen.events]
    assert events == [
        ("warn", 7, 7, "allow"),
        ("summarize", 11, 11, "allow"),
        ("gate", 12, 12, "ask-declined"),
        ("gate", 13, 13, "deny"),
        ("gate", 14, 14, "deny"),
    ]


def test_an_approved_measure_speaks_again_while_its_records_slide_out() -> None:
    seen = observe_plan(
        *_same(40, ("exact:ls", "verb:ls", "cmd:ls"), Verdict("ok")), NamedSetting("approve", policy="approve")
    )
    assert [(event.stage, event.call + 1) for event in seen.events] == [
        ("warn", 7),
        ("summarize", 11),
        ("gate", 12),
        ("summarize", 18),
        ("warn", 22),
    ]


def test_a_denied_measure_that_hits_on_both_tracks_is_recorded_twice() -> None:
    calls, moments = _same(30, ("exact:false",), Verdict("failed", "exit", "1"))
    deny = NamedSetting("deny", on_limit="deny", fail_limit=5)
    seen = observe_plan(calls, moments, deny)
    assert seen.events[3].stage == "fail-gate"
    assert seen.peak is not None
    assert seen.peak.count == 33


def test_a_cap_of_window_plus_one_can_be_reached() -> None:
    limits = MappingProxyType({"exact": 17})
    seen = observe_plan(*_same(18, ("exact:ls",), Verdict("ok")), NamedSetting("wide", limits=limits))
    gates = [(event.call + 1, event.count) for event in seen.events if event.stage == "gate"]
    assert gates == [(17, 17), (18, 17)]


def test_a_reset_clears_everything() -> None:
    calls, moments = _same(8, ("exact:x",), Verdict("failed", "exit", "1"))
    halves = [*moments[:8], Moment("reset"), *moments[8:]]
    seen = observe_plan(calls, halves, replace(SETTINGS[0], fail_warn_at=None))
    assert seen.events == ()
    assert seen.longest_streak == Extreme("exact:x", 4)


def test_three_same_calls_of_one_step_reach_no_stage_of_the_breaker(demo: Mapping[str, SessionTruth]) -> None:
    session = demo["same-step"]
    assert session.calls == 3
    assert _stages(session) == []
    assert session.observed["default"].peak == Extreme('exact:read:{"path":"docs/plan.md"}', 3)
