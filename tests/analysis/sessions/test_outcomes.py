import json
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.sessions.outcomes import Outcome
from breaker.rulesets import DEFAULT_RULESET, RULESETS
from tests.analysis.logs import ABSENT, Json, LogWriter, read_log

OWN_ASK = "repeat-tool-breaker: this call is about to be blocked"
Scene = Callable[[LogWriter], object]


@pytest.fixture
def outcome_of(tmp_path: Path) -> Callable[[Scene], Outcome]:
    """Return a reader of the outcome of the first call of a log."""

    def read(scene: Scene) -> Outcome:
        log = LogWriter()
        scene(log)
        return read_log(log.write(tmp_path)).outcomes[0]

    return read


@pytest.fixture
def outcome(outcome_of: Callable[[Scene], Outcome]) -> Callable[..., Outcome]:
    """Return a reader of the outcome of one call with this result."""

    def read(text: str = "done", *, name: str = "bash", command: str = "make", **result: object) -> Outcome:
        def scene(log: LogWriter) -> None:
            call = log.call(command, name=name)
            log.result(
                call,
                text,
                is_error=result.get("is_error", False),
                error=result.get("error", ABSENT),
                meta=result.get("meta", ABSENT),
                content=result.get("content"),
            )

        return outcome_of(scene)

    return read


def verdict(outcome: Outcome) -> tuple[str, str, str, str]:
    """Return kind, reason, detail and evidence; two empty texts where nothing failed."""
    failure = outcome.failure
    if failure is not None:
        assert failure.evidence == outcome.evidence
    return (
        outcome.kind,
        failure.reason if failure else "",
        failure.detail if failure else "",
        outcome.evidence,
    )


def moves(outcome: Outcome) -> tuple[bool, bool]:
    """Return whether the call committed and whether it settled."""
    return outcome.commits, outcome.settles


OK = ("ok", "", "", "rebuilt")

# The end of a shell's output


@pytest.mark.parametrize("name", ["bash", "pwsh", "shell"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("done", OK),
        ("", OK),
        ("(no output)", OK),
        ("x\n[exit code: 1]", ("failed", "exit", "1", "rebuilt")),
        ("(no output)\n[exit code: 127]", ("failed", "exit", "127", "rebuilt")),
        ("x\n[exit code: 3221225786]", ("failed", "exit", "3221225786", "rebuilt")),
        ("x\n[killed by signal: SIGKILL]", ("failed", "signal", "SIGKILL", "rebuilt")),
        ("x\n[timed out after 30000ms]", ("failed", "timeout", "30000ms", "rebuilt")),
        ("x\n[timed out after 30000ms]\n[killed by signal: SIGTERM]", ("failed", "timeout", "30000ms", "rebuilt")),
        ("x\n[timed out after 30000ms]\n[exit code: 124]", ("failed", "exit", "124", "rebuilt")),
        ("x\n[stopped: by the user]\n[killed by signal: SIGTERM]", ("failed", "signal", "SIGTERM", "rebuilt")),
        ("x\n[sandbox: file access denied under read-only mode]", ("failed", "sandbox", "read-only", "rebuilt")),
        (
            "x\n[sandbox: file access denied under workspace-write mode]\n"
            "[sandbox: escalation available — retry this exact command once with x]",
            ("failed", "sandbox", "workspace-write", "rebuilt"),
        ),
        (
            "[stderr]\nx\n[sandbox: file access denied under read-only mode]\n"
            "[sandbox: escalation available — retry]\n[exit code: 1]",
            ("failed", "exit", "1", "rebuilt"),
        ),
        (
            "x\n[sandbox: file access denied under read-only mode]\n[killed by signal: SIGSYS]",
            ("failed", "signal", "SIGSYS", "rebuilt"),
        ),
    ],
)
def test_the_markers_at_the_end_are_the_harness_own(
    outcome: Callable[..., Outcome], name: str, text: str, expected: tuple[str, str, str, str]
) -> None:
    read = outcome(text, name=name)
    assert verdict(read) == expected
    assert moves(read) == (True, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[exit code: 0]\nmore\n[exit code: 1]", ("failed", "exit", "1", "rebuilt")),
        ("[exit code: 2]\nmore\n[exit code: 1]", ("failed", "exit", "1", "rebuilt")),
        ("log says [exit code: 2] here", ("failed", "exit", "2", "text")),
        ("log\n[exit code: 2]\n", ("failed", "exit", "2", "text")),
        ("log\n[exit code: 2]\nlast line", ("failed", "exit", "2", "text")),
        ("[exit code: 2]", ("failed", "exit", "2", "text")),
        ("x [exit code: 2]", ("failed", "exit", "2", "text")),
        ("x\n [exit code: 2]", ("failed", "exit", "2", "text")),
        ("x\n[exit code: 2] ", ("failed", "exit", "2", "text")),
        ("[exit code: 0]\nlog\n[exit code: 2]\nlast", OK),
        ("x\n[exit code: two]", OK),
        ("x\n[killed by signal: SIGINT]\nlast", ("failed", "signal", "SIGINT", "text")),
        ("[timed out after 5ms]\nlast", ("failed", "timeout", "5ms", "text")),
        ("[sandbox: file access denied under read-only mode]\nlast", ("failed", "sandbox", "", "text")),
        ("x\n[exit code: 7]\n\n[stopped: y]", ("failed", "exit", "7", "text")),
        ("x\n[killed by signal: SIGINT]\n[exit code: 1]", ("failed", "exit", "1", "rebuilt")),
    ],
)
def test_a_quoted_marker_is_only_words(
    outcome: Callable[..., Outcome], text: str, expected: tuple[str, str, str, str]
) -> None:
    assert verdict(outcome(text)) == expected


def test_the_words_that_decided_are_named(outcome: Callable[..., Outcome]) -> None:
    read = outcome("cat log: [exit code: 2] was seen")
    assert (read.rule, read.words) == ("T1 exit code", "[exit code: 2]")
    assert outcome("x\n[exit code: 2]").words == ""


@pytest.mark.parametrize(
    "text",
    ["x\n[exit code: 1]", "x\n[killed by signal: SIGKILL]", "Traceback (most recent call last)", "HTTP Error 500"],
)
@pytest.mark.parametrize("name", ["read", "grep", "job_output", "terminal_send", "Bash", "bash2", "web_search"])
def test_prose_of_other_tools_is_never_guessed_at(outcome: Callable[..., Outcome], text: str, name: str) -> None:
    assert verdict(outcome(text, name=name)) == ("ok", "", "", "structured")


def test_a_started_subagent_is_a_success(outcome: Callable[..., Outcome]) -> None:
    assert verdict(outcome("started subagent x", name="subagent")) == ("ok", "", "", "structured")


@pytest.mark.parametrize("last", ["[shell exited: code 3]", "[shell exited]", "[shell killed by signal: SIGKILL]"])
@pytest.mark.parametrize("before", ["", "x\n", "a\nb\n"])
def test_the_end_of_a_persistent_shell_is_no_failure(outcome: Callable[..., Outcome], before: str, last: str) -> None:
    assert verdict(outcome(before + last)) == ("ok", "", "", "text")


def test_a_persistent_shells_exit_code_is_words(outcome: Callable[..., Outcome]) -> None:
    assert verdict(outcome("x\n[exit code: 3]\n[shell exited: code 3]")) == ("failed", "exit", "3", "text")


def test_several_blocks_are_one_text(outcome: Callable[..., Outcome]) -> None:
    image: Json = {"type": "image", "attachment": {}}
    blocks: list[Json] = [{"type": "text", "text": "a"}, image, {"type": "text", "text": "b"}]
    assert verdict(outcome(content=blocks)) == OK
    blocks.append({"type": "text", "text": "[exit code: 4]"})
    assert verdict(outcome(content=blocks)) == ("failed", "exit", "4", "rebuilt")
    assert verdict(outcome(content=[])) == OK


def test_a_pipe_hides_the_exit_code_but_not_the_traceback(outcome: Callable[..., Outcome]) -> None:
    text = "Traceback (most recent call last)\n  File x\nValueError: no"
    assert verdict(outcome(text, command="pytest | tail -5")) == ("failed", "exception", "ValueError", "text")


@pytest.mark.parametrize(
    ("ruleset", "kind"), [("0.5.3", "failed"), ("0.8", "failed"), ("0.5.2", "ok"), ("0.8.7", "ok"), ("0.6.1", "ok")]
)
def test_the_ruleset_decides_what_a_printed_status_means(tmp_path: Path, ruleset: str, kind: str) -> None:
    log = LogWriter()
    log.bash("curl -s -o /dev/null -w '%{http_code}' https://a.example/x", "404")
    assert read_log(log.write(tmp_path), ruleset=RULESETS[ruleset]).kinds == [kind]


# Cut outputs

SPILL = "\n\n(Omitted 1417 bytes. Full formatted result stored at: /tmp/s/b.txt. Use read, or grep this path.)"
CLIP = "\n<response clipped><NOTE>To save on context only part of this file has been shown.</NOTE>"


@pytest.mark.parametrize("notice", [SPILL, CLIP])
@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ("head…tail", OK),
        ("head…tail\n[exit code: 1]", ("failed", "exit", "1", "rebuilt")),
        ("head…tail\n[timed out after 9ms]\n[killed by signal: SIGKILL]", ("failed", "timeout", "9ms", "rebuilt")),
        ("head [exit code: 2] tail", ("failed", "exit", "2", "text")),
    ],
)
def test_the_marker_stands_before_the_notice_of_a_cut(
    outcome: Callable[..., Outcome], notice: str, kept: str, expected: tuple[str, str, str, str]
) -> None:
    read = outcome(kept + notice)
    assert verdict(read) == expected
    assert (read.clipped, read.truncated) == (True, False)


@pytest.mark.parametrize("notice", [SPILL, CLIP])
def test_where_only_the_notice_is_left_the_output_is_truncated(outcome: Callable[..., Outcome], notice: str) -> None:
    read = outcome(notice.lstrip())
    assert (read.kind, read.clipped, read.truncated) == ("ok", False, True)
    assert moves(read) == (True, True)


@pytest.mark.parametrize(
    "text",
    [
        f"a{SPILL}\nmore output",
        f"a{SPILL} more output",
        f"a{CLIP}\nmore output",
        "a (Omitted 5 bytes.",
        "a\n\n(Omitted many bytes. Full formatted result stored at: /x. y)",
        "a\n[output truncated; full output: /tmp/x]",
    ],
)
def test_a_quoted_notice_cuts_nothing(outcome: Callable[..., Outcome], text: str) -> None:
    read = outcome(text)
    assert (read.kind, read.clipped, read.truncated) == ("ok", False, False)


def test_a_cut_output_of_another_tool_is_clipped_too(outcome: Callable[..., Outcome]) -> None:
    read = outcome(f"Session x{SPILL}", name="session_event_read")
    assert verdict(read) == ("ok", "", "", "structured")
    assert read.clipped


# Background


@pytest.mark.parametrize(
    "text",
    [
        "started background job bash-1",
        "started background job bash-1\n[exit code: 1]",
        "out\n[still running after 120000ms; moved to background job bash-3]",
        "out\n\n[still running after 120000ms; moved to background job bash-3]\nRead it with job_output.",
        "[still running after 5ms; moved to background job b]",
        "[exit code: 2] quoted\n\nx\n[still running after 120000ms; moved to background job bash-3]",
    ],
)
def test_a_background_job_has_not_failed(outcome: Callable[..., Outcome], text: str) -> None:
    read = outcome(text)
    assert verdict(read) == OK
    assert read.rule == "background"


@pytest.mark.parametrize(
    "text",
    [
        "I started background job bash-1\n[exit code: 1]",
        "[still running after 5ms; moved to background job b]\n\nmore\n[exit code: 1]",
        "x [still running after 5ms; moved to background job b]\n[exit code: 1]",
    ],
)
def test_the_words_of_a_background_job_elsewhere_are_output(outcome: Callable[..., Outcome], text: str) -> None:
    assert verdict(outcome(text)) == ("failed", "exit", "1", "rebuilt")


# What the log keeps of a structure


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (ABSENT, ""),
        (None, ""),
        ({"name": "FsError", "code": "FS_NOT_FOUND"}, "FS_NOT_FOUND"),
        ({"name": "ToolError", "reason": "x"}, "ToolError"),
        ({"code": 5, "name": "E"}, ""),
        ({}, ""),
    ],
)
@pytest.mark.parametrize("name", ["bash", "read"])
def test_the_error_flag_is_a_failure_with_the_code_as_found(
    outcome: Callable[..., Outcome], name: str, error: object, detail: str
) -> None:
    read = outcome("Error: x\n[exit code: 3]", name=name, is_error=True, error=error)
    assert verdict(read) == ("failed", "error", detail, "structured")
    assert moves(read) == (True, True)


@pytest.mark.parametrize("flag", [False, ABSENT])
def test_an_error_object_is_a_failure_without_the_flag(outcome: Callable[..., Outcome], flag: object) -> None:
    read = outcome("x", name="read", is_error=flag, error={"code": "E"})
    assert verdict(read) == ("failed", "error", "E", "structured")


@pytest.mark.parametrize("error", [ABSENT, None])
@pytest.mark.parametrize("flag", [False, ABSENT])
def test_without_flag_and_object_there_is_no_error(
    outcome: Callable[..., Outcome], flag: object, error: object
) -> None:
    assert verdict(outcome("x", name="read", is_error=flag, error=error)) == ("ok", "", "", "structured")


@pytest.mark.parametrize(
    ("name", "text", "meta", "expected"),
    [
        ("web_fetch", "x", {"statusCode": 404}, ("failed", "http", "404", "structured")),
        ("web_fetch", "x", {"statusCode": 400}, ("failed", "http", "400", "structured")),
        ("web_fetch", "HTTP Error 500", {"statusCode": 200}, ("ok", "", "", "structured")),
        ("web_fetch", "Fetched u (HTTP 500)\n\nx", {"statusCode": 200}, ("ok", "", "", "structured")),
        ("web_fetch", "Fetched https://a.b/c (HTTP 404)\n\nx", None, ("failed", "http", "404", "rebuilt")),
        ("web_fetch", "Fetched https://a.b/c (HTTP 404)", {}, ("failed", "http", "404", "rebuilt")),
        ("web_fetch", "Fetched https://a.b/c (HTTP 404)", {"statusCode": "404"}, ("failed", "http", "404", "rebuilt")),
        ("web_fetch", "Fetched https://a.b/c (HTTP 399)\n\n(HTTP 500)", None, OK),
        ("web_fetch", "x\nFetched https://a.b/c (HTTP 404)", None, ("ok", "", "", "structured")),
        ("web_fetch", "Fetched https://a.b/c\n(HTTP 404)", None, ("ok", "", "", "structured")),
        ("web_fetch", "Fetched https://a.b/c (HTTP 4040)\n", None, ("ok", "", "", "structured")),
        ("web_fetch", "Fetched (HTTP 404) -> out.html", None, ("ok", "", "", "structured")),
        ("web_fetch_file", "Fetched (HTTP 404) -> out.html (3 bytes)", None, ("failed", "http", "404", "rebuilt")),
        ("web_fetch_file", "Fetched (HTTP 200) -> out.html", None, OK),
        ("web_fetch_file", "x\nFetched (HTTP 404) -> out.html", None, ("ok", "", "", "structured")),
        ("web_search", "Fetched https://a.b/c (HTTP 404)\n\nx", None, ("ok", "", "", "structured")),
        ("bash", "x", {"exitCode": 3}, ("failed", "exit", "3", "structured")),
        ("bash", "x", {"opsShell": {"exitCode": 4}}, ("failed", "exit", "4", "structured")),
        ("bash", "x\n[exit code: 9]", {"exitCode": 3}, ("failed", "exit", "3", "structured")),
        ("other", "x", {"exitCode": 3}, ("failed", "exit", "3", "structured")),
        ("bash", "x", {"exitCode": 0}, ("ok", "", "", "structured")),
        ("bash", "x\n[exit code: 2]", {"exitCode": "0"}, ("failed", "exit", "2", "rebuilt")),
        ("bash", "x", {"exitCode": True, "opsShell": {"exitCode": 4}}, ("failed", "exit", "4", "structured")),
        ("bash", "x", {"opsShell": 4}, OK),
        ("bash", "x", {"statusCode": 503}, ("failed", "http", "503", "structured")),
    ],
)
def test_numbers_beside_the_text(
    outcome: Callable[..., Outcome], name: str, text: str, meta: Json | None, expected: tuple[str, str, str, str]
) -> None:
    assert verdict(outcome(text, name=name, meta=ABSENT if meta is None else meta)) == expected


def test_a_number_no_double_holds_is_still_an_outcome(tmp_path: Path) -> None:
    log = LogWriter()
    call = log.call()
    log.result(call, meta={"exitCode": 7777777})
    log.lines[-1] = log.lines[-1].replace(b"7777777", b"9" * 400)
    assert read_log(log.write(tmp_path)).kinds == ["failed"]


# Denied, declined, not run


def code(name: str, code: str) -> Json:
    return {"name": name, "code": code}


def error_result(log: LogWriter, call: int, text: str, error: object = ABSENT) -> None:
    log.result(call, text, is_error=True, error=error)


@pytest.mark.parametrize(
    ("text", "error", "kind", "engine"),
    [
        ("Error: tool call aborted", code("AbortError", "ABORTED"), "failed", (True, True)),
        (
            "Error: tool call aborted before dispatch",
            code("AbortError", "ABORTED_BEFORE_DISPATCH"),
            "not-run",
            (False, False),
        ),
        ('Error: unknown tool "x"', code("ToolNotFoundError", "UNKNOWN_TOOL"), "failed", (True, True)),
        (
            'Error: unknown tool "x": it is callable directly only inside run_code',
            code("ToolNotFoundError", "UNKNOWN_TOOL"),
            "not-run",
            (False, False),
        ),
        ("it is callable directly only inside run_code", ABSENT, "failed", (True, True)),
        ("Error: invalid arguments: x", code("ToolArgsError", "INVALID_ARGS"), "failed", (True, True)),
        ("Error: tool call timed out after 5ms", code("ToolTimeoutError", "TOOL_TIMEOUT"), "failed", (True, True)),
        ("x", code("ToolOutputError", "INVALID_TOOL_OUTPUT"), "failed", (True, True)),
        ("Error: the plan must be approved first", ABSENT, "failed", (True, True)),
        ("x", code("AutoReviewDeniedError", "AUTO_REVIEW_DENIED"), "failed", (False, True)),
        ("x", code("PermissionError", "AUTO_REVIEW_DENIED"), "failed", (False, True)),
        ("x", {"name": "AutoReviewDeniedError"}, "failed", (True, True)),
        ("interrupted", code("ToolOutcomeUnknownError", "TOOL_OUTCOME_UNKNOWN"), "open", (True, False)),
        ("interrupted", code("Renamed", "TOOL_OUTCOME_UNKNOWN"), "open", (True, False)),
    ],
)
def test_error_codes_decide_whether_the_call_met_the_guard(
    outcome: Callable[..., Outcome], text: str, error: object, kind: str, engine: tuple[bool, bool]
) -> None:
    read = outcome(text, is_error=True, error=error)
    assert (read.kind, moves(read)) == (kind, engine)


@pytest.mark.parametrize(
    ("decision", "is_error", "kind", "engine"),
    [
        ("block", True, "failed", (False, True)),
        ("deny", True, "failed", (False, True)),
        ("ask", True, "failed", (False, True)),
        ("pass", True, "failed", (True, True)),
        ("stop", True, "failed", (True, True)),
        ("ask", False, "ok", (True, True)),
        ("pass", False, "ok", (True, True)),
    ],
)
def test_a_hook_before_the_call(
    outcome_of: Callable[[Scene], Outcome], decision: str, is_error: bool, kind: str, engine: tuple[bool, bool]
) -> None:
    def scene(log: LogWriter) -> None:
        call = log.call()
        log.hook("PreToolUse", decision)
        log.result(call, "Error: bash is disabled", is_error=is_error)

    read = outcome_of(scene)
    assert (read.kind, moves(read)) == (kind, engine)
    if read.kind == "failed":
        assert read.evidence == "structured"


def test_the_strictest_of_several_hooks_counts(outcome_of: Callable[[Scene], Outcome]) -> None:
    def scene(log: LogWriter) -> None:
        call = log.call()
        for decision in ("pass", "ask", "block", "pass"):
            log.hook("PreToolUse", decision)
        log.result(call, "Error: no", is_error=True)

    assert moves(outcome_of(scene)) == (False, True)


@pytest.mark.parametrize(
    ("answer", "is_error", "kind", "engine"),
    [
        ("allowed-once", False, "ok", (True, True)),
        ("approved", False, "ok", (True, True)),
        ("allowed-once", True, "failed", (True, True)),
        ("rejected", True, "failed", (False, True)),
    ],
)
def test_a_hook_that_asks_leaves_it_to_the_answer(
    outcome_of: Callable[[Scene], Outcome], answer: str, is_error: bool, kind: str, engine: tuple[bool, bool]
) -> None:
    def scene(log: LogWriter) -> None:
        call = log.call(call_id="c")
        log.hook("PreToolUse", "ask")
        log.asked("a", "the hook wants to know", "c")
        log.decided("a", answer)
        log.result(call, "x", is_error=is_error)

    read = outcome_of(scene)
    assert (read.kind, moves(read)) == (kind, engine)


def test_a_hook_row_belongs_to_the_last_call_before_it(tmp_path: Path) -> None:
    log = LogWriter()
    first, second = log.call(name="read"), log.call(name="read")
    log.hook("PreToolUse", "block")
    log.result(first, "Error: a", is_error=True)
    log.result(second, "Error: b", is_error=True)
    assert [moves(one) for one in read_log(log.write(tmp_path)).outcomes] == [(True, True), (False, True)]


@pytest.mark.parametrize(
    ("decision", "kind", "engine"),
    [("block", "undecidable", (True, False)), ("pass", "failed", (True, True)), ("stop", "failed", (True, True))],
)
def test_a_hook_after_the_call(
    outcome_of: Callable[[Scene], Outcome], decision: str, kind: str, engine: tuple[bool, bool]
) -> None:
    def scene(log: LogWriter) -> None:
        call = log.call()
        log.hook("PostToolUse", decision)
        log.result(call, "the feedback", is_error=True)

    read = outcome_of(scene)
    assert (read.kind, moves(read)) == (kind, engine)
    assert read.evidence == ("none" if kind == "undecidable" else "structured")


def test_a_hook_after_the_call_belongs_to_the_next_result(tmp_path: Path) -> None:
    log = LogWriter()
    first, second = log.call(name="read"), log.call(name="read")
    log.hook("PostToolUse", "block")
    log.result(first, "the feedback", is_error=True)
    log.result(second)
    third = log.call()
    log.result(third, is_error=True)
    assert read_log(log.write(tmp_path)).kinds == ["undecidable", "ok", "failed"]


@pytest.mark.parametrize(
    ("answer", "kind", "engine"),
    [
        ("rejected", "failed", (False, True)),
        ("cancelled", "failed", (False, True)),
        ("unavailable", "failed", (False, True)),
        ("allowed-once", "failed", (True, True)),
        ("approved", "failed", (True, True)),
        (None, "failed", (True, True)),
    ],
)
def test_an_approval_that_is_not_the_guards(
    outcome_of: Callable[[Scene], Outcome], answer: str | None, kind: str, engine: tuple[bool, bool]
) -> None:
    def scene(log: LogWriter) -> None:
        call = log.call(call_id="c")
        log.asked("a", "the plan says so", "c")
        if answer is not None:
            log.decided("a", answer)
        log.result(call, 'Error: the user rejected tool "bash"', is_error=True)

    read = outcome_of(scene)
    assert (read.kind, moves(read)) == (kind, engine)


@pytest.mark.parametrize("answer", ["rejected", "cancelled", "unavailable"])
@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("escalate sandbox to danger-full-access: it must write", "Error: no"),
        ("because", 'Error: the user rejected escalating this command to "danger-full-access"'),
    ],
)
def test_a_rejected_escalation_had_begun(
    outcome_of: Callable[[Scene], Outcome], answer: str, reason: str, text: str
) -> None:
    def scene(log: LogWriter) -> None:
        call = log.call(call_id="c")
        log.asked("a", reason, "c")
        log.decided("a", answer)
        log.result(call, text, is_error=True)

    read = outcome_of(scene)
    assert verdict(read) == ("failed", "error", "", "structured")
    assert moves(read) == (True, True)


def test_an_approval_without_call_id_is_about_the_last_open_call_of_its_tool(tmp_path: Path) -> None:
    log = LogWriter()
    first, second, third = log.call(), log.call(), log.call("x", name="read")
    log.asked("a", "because", tool="bash")
    log.decided("a", "rejected")
    for call in (first, second, third):
        log.result(call, "Error: no", is_error=True)
    assert [one.commits for one in read_log(log.write(tmp_path)).outcomes] == [True, False, True]


def test_an_approval_without_call_id_passes_over_settled_calls(tmp_path: Path) -> None:
    log = LogWriter()
    first, second = log.call(), log.call()
    log.result(second, "Error: no", is_error=True)
    log.asked("a", "because", tool="bash")
    log.decided("a", "rejected")
    log.result(first, "Error: no", is_error=True)
    assert [one.commits for one in read_log(log.write(tmp_path)).outcomes] == [False, True]


@pytest.mark.parametrize(("answers", "commits"), [(("approved", "rejected"), True), (("rejected", "approved"), False)])
def test_the_first_decision_of_an_approval_counts(
    outcome_of: Callable[[Scene], Outcome], answers: tuple[str, str], commits: bool
) -> None:
    def scene(log: LogWriter) -> None:
        call = log.call(call_id="c")
        log.asked("a", "because", "c")
        for answer in answers:
            log.decided("a", answer)
        log.result(call, "x", is_error=True)

    assert outcome_of(scene).commits is commits


# This guard in the record


@pytest.mark.parametrize(
    "text",
    ["Error: REPEAT_TOOL_BLOCKED: host:a.b", "Error: SHELL_HTTP_BLOCKED", f"Error: {OWN_ASK}: host:a.b 12/12"],
)
def test_the_guards_own_denials(tmp_path: Path, text: str) -> None:
    log = LogWriter()
    log.bash("curl x", text, is_error=True)
    read = read_log(log.write(tmp_path))
    assert [(one.kind, *moves(one)) for one in read.outcomes] == [("denied", True, False)]
    assert read.session.recorded_under_breaker


@pytest.mark.parametrize(
    ("text", "is_error", "kind"),
    [
        ("Error: REPEAT_TOOL_BLOCKED", False, "ok"),
        ("x Error: REPEAT_TOOL_BLOCKED", True, "failed"),
        ("REPEAT_TOOL_BLOCKED", True, "failed"),
    ],
)
def test_the_same_words_elsewhere_are_no_denial(tmp_path: Path, text: str, is_error: bool, kind: str) -> None:
    log = LogWriter()
    log.bash("cat log", text, is_error=is_error)
    read = read_log(log.write(tmp_path))
    assert read.kinds == [kind]
    assert not read.session.recorded_under_breaker


@pytest.mark.parametrize(
    ("answer", "text", "is_error", "kind"),
    [
        ("allowed-once", "done", False, "ok"),
        ("approved", "done", False, "ok"),
        ("approved", "Error: x", True, "failed"),
        ("rejected", 'Error: the user rejected tool "bash"', True, "denied"),
        ("cancelled", 'Error: approval for tool "bash" was cancelled', True, "denied"),
        ("unavailable", "Error: no approval channel is available", True, "denied"),
        (None, 'Error: approval for tool "bash" was cancelled', True, "denied"),
        (None, "done", False, "ok"),
    ],
)
def test_the_guards_own_asks(tmp_path: Path, answer: str | None, text: str, is_error: bool, kind: str) -> None:
    log = LogWriter()
    call = log.call("curl x", call_id="c")
    log.asked("a", f"{OWN_ASK}: host:a.b", "c")
    if answer is not None:
        log.decided("a", answer)
    log.result(call, text, is_error=is_error)
    read = read_log(log.write(tmp_path))
    assert read.kinds == [kind]
    assert read.session.recorded_under_breaker


@pytest.mark.parametrize(
    ("source", "flagged"),
    [
        ({"kind": "plugin", "plugin": "repeat-tool-breaker"}, True),
        ({"kind": "plugin:dsh-repeat-tool-breaker"}, True),
        ({"kind": "repeat-tool-reminder"}, False),
    ],
)
def test_the_guards_own_notices_flag_the_session(tmp_path: Path, source: dict[str, str], flagged: bool) -> None:
    log = LogWriter()
    log.user("slow down", **source)
    assert read_log(log.write(tmp_path)).session.recorded_under_breaker is flagged


def test_the_flag_does_not_depend_on_what_the_classifier_is_fed(tmp_path: Path) -> None:
    log = LogWriter()
    log.bash("curl x", "Error: REPEAT_TOOL_BLOCKED", is_error=True)
    assert read_log(log.write(tmp_path), source="log").session.recorded_under_breaker


# Where several signs meet

BLOCKED = "Error: REPEAT_TOOL_BLOCKED"
ABORTED_EARLY = code("AbortError", "ABORTED_BEFORE_DISPATCH")


@pytest.mark.parametrize(
    ("own", "approval", "early", "before", "after", "kind", "engine"),
    [
        (True, "cancelled", True, True, True, "denied", (True, False)),
        (False, "cancelled", True, True, True, "failed", (False, True)),
        (False, "rejected", True, True, True, "not-run", (False, False)),
        (False, None, True, True, True, "not-run", (False, False)),
        (False, None, False, True, True, "failed", (False, True)),
        (False, "rejected", False, False, True, "failed", (False, True)),
        (False, "unavailable", False, False, True, "failed", (False, True)),
        (False, None, False, False, True, "undecidable", (True, False)),
        (False, "approved", False, False, True, "undecidable", (True, False)),
        (False, "approved", False, False, False, "failed", (True, True)),
    ],
)
def test_where_several_signs_meet_the_first_of_the_order_holds(
    outcome_of: Callable[[Scene], Outcome],
    own: bool,
    approval: str | None,
    early: bool,
    before: bool,
    after: bool,
    kind: str,
    engine: tuple[bool, bool],
) -> None:
    def scene(log: LogWriter) -> None:
        call = log.call(call_id="c")
        if before:
            log.hook("PreToolUse", "block")
        if approval is not None:
            log.asked("a", "because", "c")
            log.decided("a", approval)
        if after:
            log.hook("PostToolUse", "block")
        log.result(call, BLOCKED if own else "Error: x", is_error=True, error=ABORTED_EARLY if early else ABSENT)

    read = outcome_of(scene)
    assert (read.kind, moves(read)) == (kind, engine)


def test_a_cancelled_approval_settles_though_the_call_was_aborted_before_dispatch(
    outcome_of: Callable[[Scene], Outcome],
) -> None:
    def scene(log: LogWriter) -> None:
        call = log.call(call_id="c")
        log.asked("a", "because", "c")
        log.decided("a", "cancelled")
        log.result(call, "Error: tool call aborted before dispatch", is_error=True, error=ABORTED_EARLY)

    read = outcome_of(scene)
    assert verdict(read) == ("failed", "error", "ABORTED_BEFORE_DISPATCH", "structured")
    assert moves(read) == (False, True)


# What the published scripts fed the classifier


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        ("x\n[exit code: 1]", {}, ("failed", "exit", "1", "text")),
        ("done", {"is_error": True}, ("ok", "", "", "structured")),
        ("done", {"error": None}, ("failed", "error", "", "structured")),
        ("done", {"error": {"code": "E"}}, ("failed", "error", "E", "structured")),
        ("done", {"meta": {"exitCode": 3}}, ("ok", "", "", "structured")),
        ("done", {"meta": {"statusCode": 404}}, ("failed", "http", "404", "structured")),
        ("Error: REPEAT_TOOL_BLOCKED", {"error": {"code": "X"}}, ("failed", "error", "X", "structured")),
        ("x", {"error": code("AbortError", "ABORTED_BEFORE_DISPATCH")}, None),
    ],
)
def test_the_log_alone(tmp_path: Path, text: str, fields: Json, expected: tuple[str, str, str, str] | None) -> None:
    log = LogWriter()
    call = log.call()
    log.result(
        call,
        text,
        is_error=fields.get("is_error", False),
        error=fields.get("error", ABSENT),
        meta=fields.get("meta", ABSENT),
    )
    (read,) = read_log(log.write(tmp_path), source="log").outcomes
    if expected is not None:
        assert verdict(read) == expected
    else:
        assert (read.kind, *moves(read)) == ("failed", True, True)


def test_the_log_alone_joins_texts_without_a_separator(tmp_path: Path) -> None:
    log = LogWriter()
    call = log.call()
    log.result(call, content=[{"type": "text", "text": "[exit co"}, {"type": "text", "text": "de: 6]"}])
    path = log.write(tmp_path)
    assert verdict(read_log(path, source="log").outcomes[0]) == ("failed", "exit", "6", "text")
    assert verdict(read_log(path).outcomes[0]) == OK


def test_the_default_ruleset_is_the_documented_one() -> None:
    assert RULESETS["0.8"] is DEFAULT_RULESET
    assert json.dumps(sorted(RULESETS))


# Long outputs cost their length


def test_a_long_output_is_read_in_one_go(outcome: Callable[..., Outcome]) -> None:
    assert verdict(outcome("[" * 300_000 + "\n[exit code: 1]")) == ("failed", "exit", "1", "rebuilt")
    assert verdict(outcome("(Omitted 5 bytes." * 30_000)) == OK
    assert verdict(outcome("\n[stopped: x]" * 30_000)) == OK
