"""`breaker classify`: whether a result counts as a failure, and what that rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, cast

import typer

from cli.exits import USAGE, Failed
from cli.jsonlines import BadLine, answer_lines
from cli.settings import DEFAULT_RULESET_NAME, RulesetOption, load_settings

__all__ = ["classify"]


def classify(
    text: Annotated[str | None, typer.Argument(help="What a shell printed.", show_default=False)] = None,
    command: Annotated[str, typer.Option("--command", help="The command that printed it.")] = "",
    jsonl: Annotated[
        bool,
        typer.Option(
            "--jsonl", help='Read {"result","shell","command"?} lines, print {"failure","evidence","rule"…} lines.'
        ),
    ] = False,
    ruleset: RulesetOption = DEFAULT_RULESET_NAME,
) -> None:
    """Tell whether a result counts as a failure, by which rule, and on what evidence."""
    from breaker.failure import classify as classify_result

    _, rules = load_settings(None, None, ruleset)
    if jsonl:
        if text is not None:
            raise Failed(USAGE, "--jsonl reads standard input; give either it or a text")

        def reply(record: Mapping[str, object]) -> object:
            result = record.get("result")
            if not isinstance(result, Mapping):
                message = "result must be an object"
                raise BadLine(message)
            given = record.get("command")
            answer = classify_result(
                cast("Mapping[str, object]", result),
                shell=record.get("shell") is True,
                command=given if isinstance(given, str) else "",
                ruleset=rules,
            )
            failure = answer.failure
            return {
                "failure": None if failure is None else {"reason": failure.reason, "detail": failure.detail},
                "evidence": answer.evidence,
                "rule": answer.rule,
                "words": answer.words or None,
            }

        answer_lines(reply)
        return
    if text is None:
        raise Failed(USAGE, "give a text, or --jsonl to read results from standard input")
    from cli.text import plain

    result: dict[str, object] = {"content": [{"type": "text", "text": text}]}
    answer = classify_result(result, shell=True, command=command, ruleset=rules)
    if answer.failure is None:
        print(f"no failure (ruleset {rules.name})")
        return
    print(f"failed: {answer.failure.reason} {plain(answer.failure.detail)}".rstrip())
    print(f"rule: {answer.rule} (ruleset {rules.name}); evidence: {answer.evidence}")
    print(f"words: {plain(answer.words)}")
