"""`breaker classify`: whether a result is a failure, and what that rests on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import (
    breaker,
    breaker_process,
    json_lines,
    lines_of,
    raw_members,
    vector_lines,
    violations,
)


@pytest.mark.shared
@pytest.mark.parametrize(("release", "count"), [("0.5.0", 300), ("0.5.2", 300), ("0.8.7", 800)])
def test_every_recorded_result_is_classified_as_recorded(shared: Path, release: str, count: int) -> None:
    rows = [raw_members(line) for line in vector_lines(shared, release, "failures.jsonl")]
    stdin = "".join(f'{{"result":{row["result"]},"shell":{row["shell"]}}}\n' for row in rows).encode()
    done = breaker_process("classify", "--jsonl", "--ruleset", release, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    answers = json_lines(done.stdout)
    assert len(answers) == len(rows) == count
    differing = [
        number
        for number, (row, answer) in enumerate(zip(rows, answers, strict=True), 1)
        if json.loads(row["expect"]) != {"failure": answer["failure"]}
    ]
    assert differing == []
    assert [violation for answer in answers for violation in violations("classify", answer)] == []


def content(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def test_each_kind_of_evidence() -> None:
    records = [
        {"result": {"isError": True, "error": {"code": "ABORTED"}}, "shell": False},
        {"result": {"value": {"exitCode": 3}}, "shell": True},
        {"result": {"content": content("Traceback (most recent call last)\nKeyError: 'a'")}, "shell": True},
        {"result": {"content": content("fine")}, "shell": True},
    ]
    answers = json_lines(breaker("classify", "--jsonl", stdin=lines_of(records)).stdout)
    assert [(answer["failure"], answer["evidence"]) for answer in answers] == [
        ({"reason": "error", "detail": "ABORTED"}, "structured"),
        ({"reason": "exit", "detail": "3"}, "structured"),
        ({"reason": "exception", "detail": "KeyError"}, "text"),
        (None, "none"),
    ]
    assert [violation for answer in answers for violation in violations("classify", answer)] == []


def test_the_command_decides_what_a_leading_status_means() -> None:
    result = {"content": content("404")}
    asked = {"result": result, "shell": True, "command": "curl -s -o /dev/null -w '%{http_code}' https://x.example"}
    silent = {"result": result, "shell": True}
    failures = {
        ruleset: [
            answer["failure"]
            for answer in json_lines(
                breaker("classify", "--jsonl", "--ruleset", ruleset, stdin=lines_of([asked, silent])).stdout
            )
        ]
        for ruleset in ("0.5.3", "0.8.7", "0.8")
    }
    not_found = {"reason": "http", "detail": "404"}
    assert failures == {"0.5.3": [not_found, None], "0.8.7": [None, None], "0.8": [not_found, None]}


def test_a_bad_line_is_answered_in_place() -> None:
    stdin = b'{"shell":true}\n{"result":[]}\nnull\n\xc3\n{"result":{"isError":true}}'
    done = breaker("classify", "--jsonl", stdin=stdin)
    answers = json_lines(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert answers[:4] == [
        {"error": "result must be an object", "line": 1},
        {"error": "result must be an object", "line": 2},
        {"error": "not a JSON object", "line": 3},
        {"error": "not UTF-8: invalid continuation byte at byte 0", "line": 4},
    ]
    assert answers[4]["failure"] == {"reason": "error", "detail": ""}
    assert [violation for answer in answers for violation in violations("classify", answer)] == []


def test_one_text_is_explained() -> None:
    done = breaker("classify", "curl: (6) Could not resolve host: \x1b[1mx")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "failed: curl 6"
    assert "evidence: text" in done.stdout
    assert "words: curl: (6)" in done.stdout
    assert "\x1b" not in done.stdout
    assert breaker("classify", "done").stdout == "no failure (ruleset 0.8)\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a text, or --jsonl to read results from standard input"),
        (["--jsonl", "x"], "--jsonl reads standard input; give either it or a text"),
    ],
)
def test_a_text_or_lines_but_one_of_them(arguments: list[str], message: str) -> None:
    done = breaker("classify", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"breaker: error: {message}\n")
