"""The classifier's smaller promises: texts as they are joined and quoted, and what its answers hold by default."""

from __future__ import annotations

import pytest

from breaker.failure import Classification, Failure, asks_for_status, classify, describe, rendered_text, result_text
from breaker.rulesets import RULESETS


def block(text: object) -> dict[str, object]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("content", "joined", "quoted"),
    [
        ([block("a"), block("b")], "a\nb", "a\nb"),
        ([block("a"), block(""), block("b")], "a\n\nb", "a\nb"),
        ((block("a"), block("b")), "a\nb", "a\nb"),
        ([block(None), block(7), "x", {}], "\n\n\n", ""),
        ([], "", ""),
        ("text", "", ""),
        ({"text": "a"}, "", ""),
        (None, "", ""),
    ],
)
def test_texts_are_joined_for_the_rules_and_quoted_without_empty_ones(
    content: object, joined: str, quoted: str
) -> None:
    assert result_text({"content": content}) == joined
    assert rendered_text({"content": content}) == quoted


def test_a_result_without_content_has_no_text() -> None:
    assert (result_text({}), rendered_text({})) == ("", "")


def test_what_an_answer_holds_by_default() -> None:
    assert Failure("exit", "1").evidence == "structured"
    assert Classification(None, "none", "a rule").words == ""


def test_no_sign_of_failure_is_an_answer() -> None:
    answer = classify({"content": [block("fine")]}, shell=True)
    assert (answer.failure, answer.evidence, answer.rule, answer.words) == (None, "none", "no sign of failure", "")


@pytest.mark.parametrize(
    ("command", "asks"),
    [
        ("curl -s -o /dev/null -w '%{http_code}' https://a.example/", True),
        ("curl -s https://a.example/", False),
        ("echo '%{http_code}'", False),
        ("", False),
        ("echo curl -o x '%{http_code}'", False),
    ],
)
def test_a_command_asks_for_a_status_or_does_not(command: str, asks: bool) -> None:
    assert asks_for_status(command) is asks


@pytest.mark.parametrize("reason", ["exit", "http", "timeout", "signal", "sandbox", "error", "exception", "curl"])
def test_a_failure_without_a_detail_has_words_of_its_own(reason: str) -> None:
    words = {
        "exit": ("command exited non-zero", "command exited"),
        "http": ("request returned an error status", "request returned"),
        "timeout": ("call timed out", "call timed out"),
        "signal": ("command killed", "command killed"),
        "sandbox": ("sandbox denied the operation", "sandbox denied the operation"),
        "error": ("call raised an error", "call raised an error"),
        "exception": ("script raised an uncaught exception", "script raised an uncaught exception"),
        "curl": ("curl failed", "curl failed"),
    }[reason]
    later, earlier = (describe(Failure(reason, ""), RULESETS[name]) for name in ("0.5.3", "0.5.1"))
    assert (later, earlier) == words


def test_no_failure_has_no_words_and_an_unknown_one_a_few() -> None:
    assert describe(None) == ""
    assert describe(Failure("odd", "x")) == "the call failed"


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("", True),
        ("x\n", True),
        ("x\r", True),
        ("x\u2028", True),
        ("x\u2029", True),
        ("x\n \t\u00a0\ufeff", True),
        ("~", False),
        ("x~", False),
        ("x\n~", False),
        ("x ", False),
    ],
)
def test_an_exception_stands_at_the_beginning_of_a_line(before: str, found: bool) -> None:
    answer = classify({"content": [block(f"{before}ValueError: no")]}, shell=True, ruleset=RULESETS["0.5.3"])
    assert (answer.failure is not None) is found


@pytest.mark.parametrize(("printed", "failed"), [("404", True), (" \n404", True), ("~404", False), ("4040", False)])
def test_a_status_that_was_asked_for_stands_first(printed: str, failed: bool) -> None:
    command = "curl -s -o /dev/null -w '%{http_code}' https://a.example/"
    given = {"content": [block(printed)]}
    answer = classify(given, shell=True, command=command, ruleset=RULESETS["0.5.3"])
    assert (answer.failure is not None) is failed
    assert classify(given, shell=True, ruleset=RULESETS["0.5.3"]).failure is None


@pytest.mark.parametrize(
    ("text", "reason", "detail", "rule", "words"),
    [
        ("a [exit code: 2] b", "exit", "2", "T1 exit code", "[exit code: 2]"),
        ("a [exit code: -1] b", "exit", "-1", "T1 exit code", "[exit code: -1]"),
        ("a (HTTP 404) b", "http", "404", "T2 HTTP status", "(HTTP 404)"),
        ("a [timed out after 5ms] b", "timeout", "5ms", "T3 timed out", "[timed out after 5ms]"),
        ("a [killed by signal: KILL] b", "signal", "KILL", "T4 signal", "[killed by signal: KILL]"),
        ("a [sandbox: file access denied", "sandbox", "", "T5 sandbox", "[sandbox: file access denied"),
        (
            "Traceback (most recent call last)\nKeyError: x",
            "exception",
            "KeyError",
            "T6 traceback",
            "KeyError:",
        ),
        ("Traceback (most recent call last)", "exception", "", "T6 traceback", "Traceback (most recent call last)"),
        ("json.DecodeError: x", "exception", "DecodeError", "T7 exception line", "json.DecodeError:"),
        ("a HTTP Error 503 b", "http", "503", "T8 HTTP Error", "HTTP Error 503"),
        ("a curl: (6) b", "curl", "6", "T9 curl", "curl: (6)"),
    ],
)
def test_a_text_rule_names_itself_and_its_words(text: str, reason: str, detail: str, rule: str, words: str) -> None:
    answer = classify({"content": [block(text)]}, shell=True, ruleset=RULESETS["0.5.3"])
    assert answer.failure == Failure(reason, detail, "text")
    assert (answer.evidence, answer.rule, answer.words) == ("text", rule, words)


@pytest.mark.parametrize("code", ["0", "00", "-0"])
def test_an_exit_code_of_nothing_is_no_failure(code: str) -> None:
    assert classify({"content": [block(f"[exit code: {code}]")]}, shell=True).failure is None


def test_a_signal_without_an_end_is_none() -> None:
    assert classify({"content": [block("[killed by signal: KILL")]}, shell=True).failure is None


@pytest.mark.parametrize(
    ("value", "member", "reason"),
    [
        ({"exitCode": 2}, "exitCode", "exit"),
        ({"timedOut": True, "timeoutMs": 5}, "timedOut", "timeout"),
        ({"signal": "KILL"}, "signal", "signal"),
        ({"statusCode": 404}, "statusCode", "http"),
        ({"sandbox": {"denied": True, "mode": "read-only"}}, "sandbox", "sandbox"),
        ({"kind": "background"}, "kind", None),
        ({"statusCode": 200}, "statusCode", None),
    ],
)
@pytest.mark.parametrize(("rebuilt", "evidence"), [(True, "rebuilt"), (False, "structured")])
def test_a_value_names_its_member_and_what_it_rests_on(
    value: dict[str, object], member: str, reason: str | None, rebuilt: bool, evidence: str
) -> None:
    given = frozenset({member}) if rebuilt else frozenset({"another"})
    answer = classify({"value": value}, shell=True, rebuilt=given)
    assert (answer.failure and answer.failure.reason, answer.evidence) == (reason, evidence)
    assert answer.failure is None or answer.failure.evidence == evidence
    assert answer.rule == ("background" if member == "kind" else member)


@pytest.mark.parametrize(
    ("options", "asks"),
    [
        ("-w '%{http_code}'", True),
        ("-sw '%{http_code}'", True),
        ("-w'%{http_code}'", True),
        ("--write-out '%{response_code}'", True),
        ("--write-out='%{http_code}'", True),
        ("'%{http_code}' -w", False),
        ("-o '%{http_code}'", False),
        ("-d '%{http_code}' -w x", False),
        ("-w x '%{http_code}'", False),
    ],
)
def test_spellings_of_what_curl_writes_out(options: str, asks: bool) -> None:
    assert asks_for_status(f"curl {options} https://a.example/") is asks
    assert asks_for_status(f"/usr/bin/curl {options}") is asks
    assert asks_for_status(f"X=$(curl {options})") is asks


@pytest.mark.parametrize(
    ("word", "asks"),
    [("A=1/curl", True), ("A=$(/usr/bin/curl", True), ("A=1/B=curl", False), ("curls", False), ("my-curl", False)],
)
def test_what_stands_before_curl_is_taken_off_once(word: str, asks: bool) -> None:
    assert asks_for_status(f"{word} -w '%{{http_code}}'") is asks
