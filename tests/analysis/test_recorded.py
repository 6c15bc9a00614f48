"""Recordings of the harness' own test suites and of other readers' authors, told by hand."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from analysis.corpus import replay_corpus
from analysis.replay import ReplayPlan
from analysis.sessions.outcome_kinds import OUTCOME_KINDS
from analysis.sessions.outcomes import Outcome
from tests.analysis.logs import LogWriter, Reading, read_log

pytestmark = pytest.mark.shared

Told = tuple[int, str, bool, str, bool, bool, str, str]
"""Seq, tool, nested, outcome, commits, settles, failure (reason and detail), evidence."""

BODY = (True, True)


def told(read: Reading) -> list[Told]:
    return [
        (
            call.seq,
            call.call.name,
            call.nested,
            call.outcome.kind,
            call.outcome.commits,
            call.outcome.settles,
            _failure(call.outcome),
            call.outcome.evidence,
        )
        for call in read.calls
    ]


def _failure(outcome: Outcome) -> str:
    failure = outcome.failure
    return "" if failure is None else f"{failure.reason} {failure.detail}".strip()


@pytest.fixture
def recorded(shared: Path) -> Path:
    return shared / "corpus" / "recorded" / "--harness--"


@pytest.fixture
def fixtures(shared: Path) -> Path:
    return shared / "corpus" / "fixtures"


def test_every_recording_is_read_and_none_is_a_duplicate(shared: Path) -> None:
    corpus = replay_corpus([shared / "corpus" / "recorded"], ReplayPlan())
    assert corpus.read_counts["ok"] == len(corpus.sessions) == len(corpus.reports) == 73
    assert corpus.spotless
    assert [report.shown for report in corpus.reports if report.defects or report.lost_bytes] == []
    assert {row.version for row in corpus.sessions} == {0, 3, 4}
    totals = corpus.totals
    assert (totals.calls, totals.tracked, totals.not_started) == (136, 129, 0)
    assert {kind: totals.outcomes[kind] for kind in OUTCOME_KINDS} == {
        "ok": 102,
        "failed": 23,
        "undecidable": 2,
        "denied": 0,
        "not-run": 2,
        "open": 0,
    }


def test_every_fixture_is_read(fixtures: Path) -> None:
    roots = sorted(path for path in fixtures.iterdir() if path.is_dir())
    assert len(roots) == 28
    for root in roots:
        corpus = replay_corpus([root], ReplayPlan())
        assert (len(corpus.sessions), corpus.read_counts["ok"], corpus.totals.untold) == (1, 1, 0), root.name


# Format 0


def test_a_sandbox_denial_and_an_approved_escalation(recorded: Path) -> None:
    """The first bash ends in the sandbox's markers and `[exit code: 1]`; the second was allowed once."""
    read = read_log(recorded / "v0-apps.web.approval-composer")
    assert told(read) == [
        (848, "bash", False, "failed", *BODY, "exit 1", "rebuilt"),
        (1733, "bash", False, "ok", *BODY, "", "rebuilt"),
        (1772, "read", False, "ok", *BODY, "", "structured"),
    ]
    assert (read.session.turns, read.session.header.version) == (1, 0)
    assert [(call.turn, call.recorded_turn, call.step) for call in read.calls] == [(1, 1, 1), (1, 1, 2), (1, 1, 3)]


def test_an_escalation_the_user_rejected_had_begun(recorded: Path) -> None:
    read = read_log(recorded / "v0-examples.acp-agent.escalation-rejected")
    assert told(read) == [(157, "bash", False, "failed", *BODY, "error", "structured")]


@pytest.mark.parametrize("name", ["hook-cc-pretool-deny", "packed-chunks"])
def test_a_call_a_hook_denied_never_met_the_guard(recorded: Path, name: str) -> None:
    """The hook said `block` before the call; both recordings hold the same one, and one id."""
    read = read_log(recorded / f"v0-examples.acp-agent.{name}")
    assert told(read) == [(58, "bash", False, "failed", False, True, "error", "structured")]
    assert read.outcomes[0].rule == "hook before the call"


def test_a_result_a_hook_blocked_leaves_the_outcome_unknown(recorded: Path) -> None:
    """The retry is printed in full: HELLO, exit 0."""
    read = read_log(recorded / "v0-examples.acp-agent.hook-cc-posttool-block")
    assert told(read) == [
        (78, "bash", False, "undecidable", True, False, "", "none"),
        (139, "bash", False, "ok", *BODY, "", "rebuilt"),
    ]
    codex = read_log(recorded / "v0-examples.acp-agent.hook-codex-posttool-block")
    assert told(codex) == [(69, "bash", False, "undecidable", True, False, "", "none")]


@pytest.mark.parametrize(
    ("name", "seqs"),
    [("v0-examples.acp-agent.cancel-tool-calls", (18, 20)), ("v3-snapshots.acp.cancel-tool-calls", (14, 16))],
)
def test_of_two_cancelled_calls_one_was_running(recorded: Path, name: str, seqs: Sequence[int]) -> None:
    read = read_log(recorded / name)
    assert told(read) == [
        (seqs[0], "bash", False, "failed", *BODY, "error ABORTED", "structured"),
        (seqs[1], "bash", False, "not-run", False, False, "", "structured"),
    ]


def test_parallel_reads_of_the_earliest_shape(recorded: Path) -> None:
    """Two reads are called at 136 and 137, before the results at 138 and 139; the second turn makes no call."""
    read = read_log(recorded / "v0-apps.web.navigation-panes")
    assert told(read) == [
        (134, "bash", False, "ok", *BODY, "", "rebuilt"),
        (136, "read", False, "ok", *BODY, "", "structured"),
        (137, "read", False, "ok", *BODY, "", "structured"),
    ]
    order = [(type(fact).__name__, fact.seq) for fact in read.facts if 134 <= fact.seq <= 139]
    assert order == [
        ("CallFact", 134),
        ("SettleFact", 135),
        ("CallFact", 136),
        ("CallFact", 137),
        ("SettleFact", 138),
        ("SettleFact", 139),
    ]
    assert read.session.turns == 2


def test_a_program_with_two_shell_calls(recorded: Path) -> None:
    read = read_log(recorded / "v0-examples.acp-agent.code-mode-turn")
    assert told(read) == [
        (189, "run_code", False, "ok", *BODY, "", "structured"),
        (190, "bash", True, "ok", *BODY, "", "rebuilt"),
        (192, "bash", True, "ok", *BODY, "", "rebuilt"),
    ]
    assert [call.call_id.rpartition(":")[2] for call in read.calls[1:]] == ["1", "2"]
    assert read.calls[1].call.arguments == {"command": "echo CODE_ONE", "description": "Print CODE_ONE"}


def test_a_program_that_caught_the_failure_of_its_call(recorded: Path) -> None:
    read = read_log(recorded / "v0-apps.web.code-mode-round")
    assert told(read)[2] == (209, "read", True, "failed", *BODY, "error", "structured")
    assert read.kinds == ["ok", "ok", "failed"]


def test_background_jobs(recorded: Path) -> None:
    """Two starts are answered `started background job`; the last command really ended with exit code 1."""
    read = read_log(recorded / "v0-examples.acp-agent.background-job-admission")
    assert told(read) == [
        (15, "bash", False, "ok", *BODY, "", "rebuilt"),
        (25, "bash", False, "ok", *BODY, "", "rebuilt"),
        (35, "job_kill", False, "ok", *BODY, "", "structured"),
        (45, "bash", False, "failed", *BODY, "exit 1", "rebuilt"),
    ]
    assert [outcome.rule for outcome in read.outcomes[:2]] == ["background", "background"]


def test_a_missing_sandbox_runner(recorded: Path) -> None:
    """A job's output that speaks of a failed sandbox is prose of another tool."""
    read = read_log(recorded / "v0-examples.acp-agent.missing-sandbox-runner")
    assert told(read) == [
        (15, "bash", False, "failed", *BODY, "error SANDBOX_UNAVAILABLE", "structured"),
        (25, "bash", False, "ok", *BODY, "", "rebuilt"),
        (36, "job_output", False, "ok", *BODY, "", "structured"),
    ]


def test_a_spilled_output(recorded: Path) -> None:
    read = read_log(recorded / "v0-examples.acp-agent.bash-spill")
    assert told(read) == [(15, "bash", False, "ok", *BODY, "", "rebuilt")]
    assert (read.outcomes[0].clipped, read.outcomes[0].truncated) == (True, False)


def test_a_web_page(recorded: Path) -> None:
    read = read_log(recorded / "v0-examples.acp-agent.web-fetch")
    assert told(read) == [(84, "web_fetch", False, "ok", *BODY, "", "structured")]
    assert read.outcomes[0].rule == "statusCode"


def test_turns_that_a_goal_opened_are_no_human_turns(recorded: Path) -> None:
    read = read_log(recorded / "v0-apps.web.goal-multi-turn-actions")
    assert read.session.turns == 0
    assert {call.turn for call in read.calls} == {0}
    assert sorted({call.recorded_turn for call in read.calls if call.recorded_turn}) == [1, 2]
    assert read.kinds.count("failed") == 1


# Formats 3 and 4


def test_a_fork_that_made_no_call_of_its_own(recorded: Path) -> None:
    """The parent's one turn stands before the marker at 16; the child's own begins with its delegated prompt."""
    read = read_log(recorded / "v3-snapshots.sdk.subagent-fork-in-process.1")
    assert (read.calls, read.session.turns, read.session.fork) == ([], 1, True)
    assert [(reset.seq, reset.cause, reset.turn) for reset in read.resets] == [(25, "human", 1)]


def test_a_tool_call_of_format_4(recorded: Path) -> None:
    read = read_log(recorded / "v4-snapshots.session.tool-call-turn")
    assert told(read) == [(14, "bash", False, "ok", *BODY, "", "rebuilt")]
    assert read.calls[0].call.arguments == {"command": "echo SNAPSHOT_OK", "description": "Run echo SNAPSHOT_OK"}


def test_auto_review_denied_a_call_and_one_inside_a_program(recorded: Path) -> None:
    read = read_log(recorded / "v4-snapshots.sdk.tool-error-details")
    assert told(read) == [
        (14, "bash", False, "failed", False, True, "error AUTO_REVIEW_DENIED", "structured"),
        (19, "run_code", False, "ok", *BODY, "", "structured"),
        (20, "bash", True, "failed", False, True, "error AUTO_REVIEW_DENIED", "structured"),
    ]


def test_a_checkpoint_is_no_turn(recorded: Path) -> None:
    read = read_log(recorded / "v4-snapshots.session.compaction-output-reserve")
    assert (read.session.turns, len(read.resets), read.kinds) == (1, 1, ["ok"])


def test_a_subagent_of_format_4_opens_with_its_prompt(recorded: Path) -> None:
    read = read_log(recorded / "v4-python-sdk-single-exe.advanced.1")
    assert (read.session.header.subagent, read.session.turns, read.calls) == (True, 1, [])


# Other authors' files


def test_a_denial_goes_by_the_code_whatever_its_name(fixtures: Path) -> None:
    read = read_log(fixtures / "insights-auto-denied")
    assert told(read) == [
        (4, "run_code", False, "ok", *BODY, "", "structured"),
        (5, "bash", True, "failed", False, True, "error AUTO_REVIEW_DENIED", "structured"),
    ]
    assert read.calls[1].call.arguments == "npm test"


@pytest.mark.parametrize(
    ("name", "kind", "commits"),
    [
        ("insights-human-allowed", "ok", True),
        ("insights-human-denied", "failed", False),
        ("insights-no-call-id", "failed", False),
    ],
)
def test_approvals_inside_a_program(fixtures: Path, name: str, kind: str, commits: bool) -> None:
    inner = read_log(fixtures / name).outcomes[1]
    assert (inner.kind, inner.commits, inner.settles) == (kind, commits, True)


def test_imported_history_with_a_call_open_at_the_marker(fixtures: Path) -> None:
    read = read_log(fixtures / "insights-inherited-denied")
    assert read.kinds == ["ok", "failed"]
    assert [(reset.seq, reset.cause) for reset in read.resets] == [(2, "human"), (8, "import"), (11, "human")]
    assert read.report.notes == ["imported history: no parent file, all of it counts"]


def test_nested_calls_of_nested_calls_may_stay_open(fixtures: Path) -> None:
    complete = read_log(fixtures / "insights-nested-complete")
    pending = read_log(fixtures / "insights-nested-pending")
    assert complete.kinds == ["ok", "ok", "ok"]
    assert pending.kinds == ["ok", "ok", "open"]


def test_calls_that_settle_in_another_order_and_a_rewritten_users_message(fixtures: Path) -> None:
    read = read_log(fixtures / "insights-rc2-extended")
    assert [(seq, kind, failure) for seq, _, _, kind, _, _, failure, _ in told(read)] == [
        (5, "ok", ""),
        (17, "ok", ""),
        (18, "ok", ""),
        (19, "failed", "error"),
        (20, "open", ""),
    ]
    assert [(reset.seq, reset.turn) for reset in read.resets] == [(3, 1), (7, 2), (12, 2)]
    assert read.session.models == ["synthetic-model"]


def test_what_a_recovery_wrote_for_calls_that_had_started_and_that_had_not(fixtures: Path) -> None:
    read = read_log(fixtures / "insights-recovery-followed-by-success")
    assert told(read) == [
        (4, "bash", False, "ok", *BODY, "", "rebuilt"),
        (9, "bash", False, "failed", *BODY, "error", "structured"),
        (12, "bash", False, "open", True, False, "", "structured"),
        (22, "bash", False, "ok", *BODY, "", "rebuilt"),
    ]
    assert (read.session.not_started, read.report.notes) == (1, [])


def test_an_id_resumed_in_a_later_turn_that_never_started(fixtures: Path) -> None:
    read = read_log(fixtures / "insights-recovery-id-boundary")
    assert (read.kinds, read.session.not_started, read.session.turns) == (["ok"], 1, 2)
    repeated = read_log(fixtures / "insights-recovery-repeated-identity")
    assert (repeated.kinds, repeated.session.not_started) == ([], 2)


def test_an_error_without_a_code_is_an_ordinary_failure(fixtures: Path) -> None:
    read = read_log(fixtures / "insights-recovery-no-code")
    assert told(read) == [(4, "bash", False, "failed", *BODY, "error ToolError", "structured")]


def test_a_crash_leaves_a_call_open(fixtures: Path) -> None:
    for name in ("insights-recovery-outcome-unknown", "insights-recovery-surface-replace"):
        read = read_log(fixtures / name)
        assert told(read) == [(4, "bash", False, "open", True, False, "", "structured")]
        assert read.session.turns == 1


def test_three_parallel_reads_of_format_4(fixtures: Path) -> None:
    read = read_log(fixtures / "v4-code-language")
    assert [(seq, kind) for seq, _, _, kind, *_ in told(read)] == [(14, "ok"), (15, "ok"), (16, "ok")]
    assert [type(fact).__name__ for fact in read.facts if fact.seq in range(14, 20)] == [
        *["CallFact"] * 3,
        *["SettleFact"] * 3,
    ]


# A recording as the parent of a fork


def test_a_fork_of_a_recording_counts_once(recorded: Path, tmp_path: Path) -> None:
    source = (recorded / "v4-snapshots.session.tool-call-turn" / "session.v4.jsonl").read_bytes()
    header, *rows = source.split(b"\n")[:-1]
    parent = tmp_path / "root" / "--p--" / "parent" / "session.v4.jsonl"
    parent.parent.mkdir(parents=True)
    parent.write_bytes(source)
    assert b"{{session:1}}" in header
    child = LogWriter("child", parentSession="{{session:1}}")
    child.header["isSeeded"] = True
    child.stripped = True
    child.lines, child.next = rows[:15], 15
    child.marker()
    child.result(
        14,
        "The history inherited by this branch…",
        call_id="call_00_Rn2Mz1y8uZN62ukEXiNO2077",
        is_error=True,
        error={"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"},
        message_id="forked-tool-result-call_00_Rn2Mz1y8uZN62ukEXiNO2077-14",
    )
    child.user("and now?")
    child.bash("ls", "x\n[exit code: 2]")
    child.write(tmp_path / "root")
    corpus = replay_corpus([tmp_path / "root"], ReplayPlan())
    rows_told = {row.session_id: (row.replay.calls, row.replay.outcomes, row.notes) for row in corpus.sessions}
    assert rows_told == {
        "{{session:1}}": (1, {"ok": 1}, ()),
        "child": (1, {"failed": 1}, ("1 result of an inherited call, ignored",)),
    }
    assert corpus.totals.calls == 2
