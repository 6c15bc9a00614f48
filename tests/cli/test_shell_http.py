"""`breaker shell-http`, `breaker rulesets`, and `--messages`."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from breaker.rulesets import RULESETS
from cli.app import invoke
from cli.exits import run_guarded

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in this process: arguments and standard input in, exit code and both outputs back."""

    def act(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin.encode())))
        code = run_guarded(lambda: invoke(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return act


def test_a_refused_command_names_the_candidate_that_decided(run: Run) -> None:
    code, out, _ = run("shell-http", "cd /tmp && curl -s https://x.org | head")
    assert code == 0
    assert out.splitlines()[0].startswith("refused: ")
    assert [line for line in out.splitlines() if line.startswith("* ")] == ["* curl -s https://x.org"]


def test_an_allowed_command_says_so(run: Run) -> None:
    code, out, _ = run("shell-http", "git clone https://x.org/y")
    assert code == 0
    assert out.startswith("allowed: ")


def test_json_lines_answer_refused_and_why_and_go_on_after_a_bad_line(run: Run) -> None:
    stdin = '{"command": "wget https://x.org"}\n{"command": 5}\nnot json\n{"command": "ls"}\n'
    code, out, _ = run("shell-http", "--jsonl", stdin=stdin)
    answers = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [answer.get("refused") for answer in answers] == [True, None, None, False]
    assert answers[1] == {"error": "command must be text", "line": 2}
    assert answers[2]["line"] == 3


def test_a_name_of_this_machine_makes_an_ssh_local(run: Run) -> None:
    command = "ssh build7 'curl https://x.org'"
    assert run("shell-http", command)[1].startswith("allowed: ")
    assert run("shell-http", command, "--machine", "build7.example.com")[1].startswith("refused: ")


def test_a_ruleset_without_a_policy_is_a_usage_error(run: Run) -> None:
    code, out, err = run("shell-http", "curl https://x.org", "--ruleset", "0.5.2")
    assert (code, out) == (2, "")
    assert err == "breaker: error: ruleset 0.5.2 has no shell-HTTP policy; it came with 0.6\n"


def test_no_command_is_a_usage_error(run: Run) -> None:
    code, _, err = run("shell-http")
    assert code == 2
    assert err.count("\n") == 1


def test_rulesets_are_listed_oldest_first_with_what_holds_them(run: Run) -> None:
    code, out, _ = run("rulesets", "--format", "json")
    listed = json.loads(out)["rulesets"]
    assert code == 0
    assert [row["name"] for row in listed] == [
        "0.5.0",
        "0.5.1",
        "0.5.2",
        "0.5.3",
        "0.6.1",
        "0.7.0",
        "0.8.2",
        "0.8.3",
        "0.8.7",
        "0.8",
    ]
    assert {row["name"] for row in listed if row["held_by"] == "vectors"} == {"0.5.0", "0.5.2", "0.8.7"}
    assert [row["name"] for row in listed if row["default"]] == ["0.8"]
    assert all(row["differences"] for row in listed[1:])


def test_the_text_of_rulesets_names_every_one(run: Run) -> None:
    _, out, _ = run("rulesets")
    assert all(any(line.startswith(name) for line in out.splitlines()) for name in RULESETS)


def call(number: int) -> str:
    return json.dumps({"kind": "call", "id": number, "name": "bash", "arguments": {"command": "false"}})


def failed(number: int) -> str:
    return json.dumps({"kind": "result", "id": number, "result": {"value": {"exitCode": 1}}})


def test_guard_says_its_messages_when_asked_to(run: Run) -> None:
    stdin = "\n".join(line for number in range(6) for line in (call(number), failed(number)))
    _, out, _ = run("guard", "--messages", stdin=stdin)
    answers = [json.loads(line) for line in out.splitlines()]
    assert [bool(answer["message"]) for answer in answers] == [False] * 5 + [True] + [False] * 4 + [True]
    assert answers[5]["message"].startswith("CONVERGENCE_CHECK")
    assert "command exited 1" in answers[5]["message"]
    assert answers[10]["message"].startswith("repeat-tool-breaker: this call is about to be blocked")


def test_guard_keeps_silent_without_it(run: Run) -> None:
    _, out, _ = run("guard", stdin="\n".join((call(1), failed(1))))
    assert [json.loads(line)["message"] for line in out.splitlines()] == [None, None]


def test_guard_refuses_shell_http_only_where_its_own_tool_is_there(run: Run) -> None:
    stdin = json.dumps({"kind": "call", "id": 1, "name": "bash", "arguments": {"command": "curl https://x.org"}})
    assert json.loads(run("guard", stdin=stdin)[1])["decision"] == "allow"
    answer = json.loads(run("guard", "--shell-http", "--messages", stdin=stdin)[1])
    assert answer["decision"] == "deny-shell-http"
    assert answer["window"] == 0
    assert answer["message"].startswith("SHELL_HTTP_BLOCKED: bash")
