"""The words of the guard: every message carries its facts, in order, and cuts what is long."""

from __future__ import annotations

import pytest

from breaker.engine import Advisory, Ask, Breaker, Decision, FailureAdvisory, Hit, Settlement
from breaker.failure import Failure, describe
from breaker.measures import Call
from breaker.messages import Messages, summary
from breaker.rulesets import RULESETS, Ruleset
from breaker.settings import Settings

RULES = RULESETS["0.8.7"]
WARN = Advisory("warn", "host:a.com", 7)
SUMMARIZE = Advisory("summarize", "host:a.com", 11)
FAILING = FailureAdvisory("host:a.com", 3, Failure("http", "404"))
FAILURE_HIT = Hit("host:a.com", 5, 5, "failure", Failure("http", "503"))
REPEAT_HIT = Hit("net:a.com/x", 12, 12, "occurrence")
FRACTION_HIT = Hit("cmd:ls:ls", 3, 2.5, "occurrence")


def messages(ruleset: Ruleset = RULES, **config: object) -> Messages:
    return Messages(Settings.from_config(config, ruleset), ruleset)


def assert_in_order(text: str, *facts: str) -> None:
    position = 0
    for fact in facts:
        found = text.find(fact, position)
        assert found >= 0, f"{fact!r} is missing after {text[:position]!r}"
        position = found + len(fact)


def denied(*hits: Hit, refused: bool = False) -> Decision:
    return Decision(action="deny", hits=hits, blocking=hits, refused=refused)


# -- descriptions of failures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (None, ""),
        (Failure("exit", "2"), "command exited 2"),
        (Failure("exit", ""), "command exited non-zero"),
        (Failure("http", "404"), "request returned HTTP 404"),
        (Failure("http", ""), "request returned an error status"),
        (Failure("timeout", "30000ms"), "call timed out (30000ms)"),
        (Failure("timeout", ""), "call timed out"),
        (Failure("signal", "SIGKILL"), "command killed by signal SIGKILL"),
        (Failure("signal", ""), "command killed"),
        (Failure("sandbox", "read-only"), "sandbox denied the operation (read-only)"),
        (Failure("sandbox", ""), "sandbox denied the operation"),
        (Failure("error", "{}"), "call raised an error ({})"),
        (Failure("error", ""), "call raised an error"),
        (Failure("exception", "ValueError"), "script raised ValueError"),
        (Failure("exception", ""), "script raised an uncaught exception"),
        (Failure("curl", "6"), "curl failed (code 6)"),
        (Failure("other", "x"), "the call failed"),
    ],
)
def test_descriptions(failure: Failure | None, words: str) -> None:
    assert describe(failure, RULESETS["0.5.2"]) == words
    assert describe(failure, RULESETS["0.5.3"]) == words


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (Failure("timeout", "30000ms"), "call timed out ( 30000ms)"),
        (Failure("sandbox", "read-only"), "sandbox denied the operation ( read-only)"),
        (Failure("error", "E"), "call raised an error ( E)"),
        (Failure("exception", "X"), "script raised  X"),
        (Failure("curl", "6"), "curl failed (code  6)"),
        (Failure("exit", "2"), "command exited 2"),
        (Failure("http", "404"), "request returned HTTP 404"),
        (Failure("signal", "SIGKILL"), "command killed by signal SIGKILL"),
        (Failure("exit", ""), "command exited"),
        (Failure("http", ""), "request returned"),
        (Failure("signal", ""), "command killed"),
        (Failure("timeout", ""), "call timed out"),
    ],
)
def test_early_descriptions_double_a_space_and_drop_words(failure: Failure, words: str) -> None:
    assert describe(failure, RULESETS["0.5.1"]) == words


def test_the_first_release_describes_neither_exceptions_nor_curl() -> None:
    assert describe(Failure("exception", "X"), RULESETS["0.5.0"]) == "the call failed"
    assert describe(Failure("curl", "6"), RULESETS["0.5.0"]) == "the call failed"
    assert describe(Failure("error", "E"), RULESETS["0.5.0"]) == "call raised an error ( E)"


def test_curl_is_not_described_from_0_6_on() -> None:
    described = {name: describe(Failure("curl", "6"), ruleset) for name, ruleset in RULESETS.items()}
    later = {name: words for name, words in described.items() if not name.startswith("0.5")}
    assert set(later.values()) == {"the call failed"}
    assert len(later) == 6
    assert describe(Failure("exception", "X"), RULES) == "script raised X"


# -- advisories --------------------------------------------------------------------------------------------------------


def test_a_warning_names_measure_and_count_and_asks_to_think_again() -> None:
    text = messages().advisory(WARN)
    assert text.startswith("CONVERGENCE_CHECK")
    assert_in_order(text, "repeats itself", "host:a.com", "7", "route")


def test_a_summary_is_demanded_in_four_points() -> None:
    text = messages().advisory(SUMMARIZE)
    assert text.startswith("CONVERGENCE_CHECK")
    assert_in_order(text, "host:a.com", "11", "no result", "1.", "established", "how you know", "2.", "assumed")
    assert_in_order(text, "3.", "failed", "why", "4.", "at least two", "not tried", "Do not repeat", "larger batches")


def test_a_failure_warning_describes_the_failure_and_gives_three_steps() -> None:
    text = messages().advisory(FAILING)
    assert text.startswith("CONVERGENCE_CHECK")
    assert_in_order(text, "host:a.com", "3", "request returned HTTP 404", "1.", "2.", "exists", "3.", "cause")


def test_descriptions_in_messages_follow_the_release() -> None:
    failing = FailureAdvisory("host:a.com", 3, Failure("curl", "6"))
    assert "curl failed (code 6)" in messages(RULESETS["0.5.2"]).advisory(failing)
    assert "curl failed (code  6)" in messages(RULESETS["0.5.1"]).advisory(failing)
    assert "the call failed" in messages(RULES).advisory(failing)


def test_measures_are_cut_in_utf_16_units_in_texts_but_not_in_summaries() -> None:
    measure = "cmd:x:" + "😀" * 10
    rendered = messages(previewChars=8)
    assert "cmd:x:😀… (+18 more chars)" in rendered.advisory(Advisory("warn", measure, 7))
    assert "cmd:x:😀… (+18 more chars)" in rendered.advisory(Advisory("summarize", measure, 11))
    assert "cmd:x:😀… (+18 more chars)" in rendered.advisory(FailureAdvisory(measure, 3, Failure("exit", "1")))
    assert "cmd:x:😀… (+18 more chars)" in rendered.denial(denied(Hit(measure, 12, 12, "occurrence")), "bash")
    assert "cmd:x:😀… (+18 more chars)" in rendered.ask(Ask((), (Hit(measure, 12, 12, "occurrence"),)))
    assert summary(Advisory("warn", measure, 7)) == f"{measure} × 7"
    assert "\ud83d… (+19 more chars)" in messages(previewChars=7).advisory(Advisory("warn", measure, 7))


def test_summaries() -> None:
    assert summary(WARN) == "host:a.com × 7"
    assert summary(FAILING) == "host:a.com failed x3"


def test_a_notice_labels_its_source_as_the_release_does() -> None:
    for name, ruleset in RULESETS.items():
        notice = messages(ruleset).notice(WARN)
        assert notice.text == messages(ruleset).advisory(WARN)
        assert notice.summary == "host:a.com × 7"
        kind = {"kind": "plugin:dsh-repeat-tool-breaker"}
        if not name.startswith("0.8"):
            kind = {"kind": "plugin", "plugin": "repeat-tool-breaker"}
        assert notice.source == {**kind, "form": "notice", "summary": "host:a.com × 7"}


# -- the question to the operator --------------------------------------------------------------------------------------


def test_a_question_lists_failures_before_repeats_and_tells_both_answers() -> None:
    text = messages().ask(Ask(hits=(), blocking=(FAILURE_HIT, REPEAT_HIT, FRACTION_HIT)))
    assert text.startswith("repeat-tool-breaker: this call is about to be blocked")
    assert_in_order(text, "target keeps failing", "host:a.com", "5", "as a repeat", "net:a.com/x", "12/12")
    assert_in_order(text, "cmd:ls:ls", "3/2.5", "Approve", "rest of the turn", "Decline", "next message")


def test_a_question_about_one_track_has_one_heading() -> None:
    repeats = messages().ask(Ask((), (REPEAT_HIT,)))
    failures = messages().ask(Ask((), (FAILURE_HIT,)))
    assert repeats.startswith("repeat-tool-breaker: this call is about to be blocked")
    assert "failing" not in repeats
    assert "as a repeat" not in failures


# -- denials -----------------------------------------------------------------------------------------------------------


def test_a_denial_for_failures() -> None:
    text = messages().denial(denied(FAILURE_HIT), "web_fetch", "oops")
    assert text.startswith("REPEAT_TOOL_BLOCKED")
    assert_in_order(
        text, "web_fetch", "consecutive failures", "not executed", "host:a.com", "5", "HTTP 503", "not blocked"
    )
    assert_in_order(text, "not blocked", "oops", "Find out why")
    assert "semantic match" not in text
    assert "not granted" not in text


def test_a_denial_for_repeats() -> None:
    text = messages().denial(denied(REPEAT_HIT), "bash", "oops")
    assert text.startswith("REPEAT_TOOL_BLOCKED")
    assert_in_order(text, "bash", "semantic match", "not executed", "net:a.com/x", "12/12", "description", "timeoutMs")
    assert_in_order(text, "--max-time", "host", "oops", "Work with what you have")
    assert "consecutive failures" not in text


def test_a_denial_on_both_tracks_says_both_with_the_closing_for_repeats() -> None:
    both = Hit("host:a.com", 16, 16, "occurrence")
    text = messages().denial(denied(FAILURE_HIT, both), "bash")
    assert text.count("REPEAT_TOOL_BLOCKED") == 2
    assert_in_order(text, "consecutive failures", "host:a.com", "\n\nREPEAT_TOOL_BLOCKED", "host:a.com", "16/16")
    assert "Work with what you have" in text
    assert "Find out why" not in text


def test_a_denial_of_what_was_refused_says_until_when() -> None:
    text = messages().denial(denied(REPEAT_HIT, refused=True), "bash")
    assert_in_order(text, "12/12", "not granted", "declined", "next message of a human", "history")


def test_a_denial_without_a_name_or_a_result() -> None:
    text = messages().denial(denied(REPEAT_HIT), "")
    assert_in_order(text, "tool call", "history")


def test_the_quoted_result_is_the_last_one_cut_when_it_was_kept() -> None:
    guard = Breaker(
        Settings.from_config({"resultPreviewChars": 4, "onLimit": "deny", "limits": {"exact": 2}}, RULES), RULES
    )
    call = guard.measure(Call("read", {"path": "a"}))
    guard.guard(call)
    guard.settle(call, None, "abcdefgh")
    text = Messages(guard.settings, RULES).decision(guard.guard(call), "read", guard.last_result)
    assert text is not None
    assert "abcd\n" in text
    assert "more chars" not in text


# -- shell HTTP --------------------------------------------------------------------------------------------------------


def test_a_refused_shell_fetch_is_told_what_to_use() -> None:
    text = messages().shell_http("bash")
    assert text.startswith("SHELL_HTTP_BLOCKED")
    assert_in_order(
        text, "bash", "not executed", "hides", "web_fetch_file", "1.", "2.", "still works", "Local addresses"
    )
    assert_in_order(text, "Local addresses", "Do not look for another way")
    assert messages().shell_http("").startswith("SHELL_HTTP_BLOCKED: shell")


def test_local_addresses_are_not_offered_where_they_are_blocked() -> None:
    assert "Local addresses" not in messages(blockLocalHttp=True).shell_http("bash")


# -- which message an answer carries -----------------------------------------------------------------------------------


def test_every_answer_gets_its_own_message() -> None:
    rendered = messages()
    allowed = Decision(action="allow", advisory=WARN)
    asked = (REPEAT_HIT,)
    assert rendered.decision(Decision(action="allow"), "bash") is None
    assert rendered.decision(allowed, "bash") == rendered.advisory(WARN)
    assert rendered.decision(Decision(action="ask-approved", blocking=asked), "bash") is None
    assert rendered.decision(Decision(action="observed", blocking=asked), "bash") is None
    assert rendered.decision(Decision(action="ask-declined", blocking=asked), "bash") == rendered.ask(Ask((), asked))
    assert rendered.decision(denied(REPEAT_HIT), "bash", "x") == rendered.denial(denied(REPEAT_HIT), "bash", "x")
    assert rendered.decision(Decision(action="deny-shell-http"), "bash") == rendered.shell_http("bash")


def test_a_settled_call_speaks_when_it_earned_an_advisory() -> None:
    rendered = messages()
    assert rendered.settlement(Settlement(FAILING.failure, FAILING)) == rendered.advisory(FAILING)
    assert rendered.settlement(Settlement(FAILING.failure, None)) is None
