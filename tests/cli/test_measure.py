"""`breaker measure`: a call's measures, line by line or explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import (
    Json,
    breaker,
    breaker_process,
    json_lines,
    lines_of,
    raw_members,
    vector_lines,
    violations,
)

SHELL_CALL: Json = {"name": "bash", "arguments": {"command": "make test"}}


@pytest.mark.shared
@pytest.mark.parametrize(("release", "count"), [("0.5.2", 500), ("0.8.7", 1500)])
def test_every_recorded_call_has_the_recorded_measures(shared: Path, release: str, count: int) -> None:
    rows = [raw_members(line) for line in vector_lines(shared, release, "measures.jsonl")]
    stdin = "".join(row["call"] + "\n" for row in rows).encode()
    done = breaker_process("measure", "--jsonl", "--ruleset", release, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    answers = json_lines(done.stdout)
    assert len(answers) == len(rows) == count
    differing = [
        number
        for number, (row, answer) in enumerate(zip(rows, answers, strict=True), 1)
        if json.loads(row["expect"])
        != {"fps": answer["measures"], "local": answer["local"], "tracked": answer["tracked"]}
    ]
    assert differing == []
    assert [violation for answer in answers for violation in violations("measure", answer)] == []


def test_a_call_is_answered_with_its_measures() -> None:
    done = breaker("measure", "--jsonl", stdin=lines_of([SHELL_CALL, {"name": "todo_write", "arguments": {}}]))
    assert json_lines(done.stdout) == [
        {
            "measures": ['exact:bash:{"command":"make test"}', "verb:make", "cmd:make:make test"],
            "local": False,
            "tracked": True,
        },
        {"measures": ["exact:todo_write:{}"], "local": False, "tracked": False},
    ]


def test_numbers_are_read_as_javascript_reads_them() -> None:
    stdin = b'{"name":"sum","arguments":{"a":1.0,"b":1e21,"c":-0,"d":123456789012345678901234567890}}\n'
    (answer,) = json_lines(breaker("measure", "--jsonl", stdin=stdin).stdout)
    assert answer["measures"] == ['exact:sum:{"a":1,"b":1e+21,"c":0,"d":1.2345678901234568e+29}']


def test_settings_decide_what_is_measured() -> None:
    stdin = lines_of([{"name": "read", "arguments": {"path": "a", "note": "x"}}])
    done = breaker("measure", "--jsonl", "--set", 'ignoreArgs.read=["note"]', "--set", 'exclude=["read"]', stdin=stdin)
    (answer,) = json_lines(done.stdout)
    assert (answer["measures"], answer["tracked"]) == (['exact:read:{"path":"a"}'], False)


def test_a_bad_line_is_answered_in_place() -> None:
    stdin = b"{\n" + lines_of([SHELL_CALL]) + b"[1]\n\n\xff\n" + b"[" * 100_000 + b"\n" + lines_of([SHELL_CALL])
    done = breaker("measure", "--jsonl", stdin=stdin)
    answers = json_lines(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert [answer.get("line") for answer in answers] == [1, None, 3, 5, 6, None]
    assert [answer["error"] for answer in answers if "error" in answer] == [
        "not JSON: Expecting property name enclosed in double quotes at character 2",
        "not a JSON object",
        "not UTF-8: invalid start byte at byte 0",
        "nested too deeply",
    ]
    assert answers[1] == answers[5]
    assert [violation for answer in answers for violation in violations("measure", answer)] == []


def test_one_command_is_explained() -> None:
    done = breaker("measure", "cd /x && curl -s 'https://api.example.com/?b=2&a=1#top' -o out.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "words     [cd] [/x] [&&] [curl] [-s] [https://api.example.com/?b=2&a=1#top] [-o] [out.json]",
        "verb      cd",
        "stripped  cd /x && curl https://api.example.com/?b=2&a=1#top -o out.json",
        "url       https://api.example.com/?b=2&a=1#top -> api.example.com/?a=1&b=2",
        "sink      out.json",
        "tracked   yes; ruleset 0.8",
        "measures",
        '  cap 12  exact:bash:{"command":"cd /x && curl -s \'https://api.example.com/?b=2&a=1#top\' -o out.json"}',
        "  off     verb:cd",
        "  cap 12  cmd:cd:cd /x && curl https://api.example.com/?b=2&a=1#top -o out.json",
        "  cap 12  net:api.example.com/?a=1&b=2",
        "  off     site:example.com",
        "  cap 16  host:api.example.com",
        "  cap 12  sink:out.json",
    ]


def test_an_explanation_shows_what_a_terminal_would_obey() -> None:
    done = breaker("measure", "echo \x1b[31m\u202e'[bold]x'\n")
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert r"[echo] [\x1b[31m\u202e[bold]x]" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a command, or --jsonl to read calls from standard input"),
        (["--jsonl", "ls"], "--jsonl reads standard input; give either it or a command"),
    ],
)
def test_a_command_or_lines_but_one_of_them(arguments: list[str], message: str) -> None:
    done = breaker("measure", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"breaker: error: {message}\n")


def test_a_tool_that_is_no_shell_is_refused() -> None:
    done = breaker("measure", "ls", "--tool", "read")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "breaker: error: --tool read: no shell; known: bash, pwsh, shell\n"
