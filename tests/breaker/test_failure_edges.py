"""The classifier's smaller promises: texts as they are joined and quoted, and what its answers hold by default."""

from __future__ import annotations

import pytest

from breaker.failure import Classification, Failure, asks_for_status, classify, rendered_text, result_text


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
