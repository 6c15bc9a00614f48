"""The released policy's own verdicts, line by line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from breaker.ecmascript import parse_json
from breaker.rulesets import RULESETS
from breaker.settings import Settings
from breaker.shellhttp import ShellHttpPolicy

pytestmark = pytest.mark.shared

LINES, REFUSED = 1500, 441


def test_the_verdict_on_every_command(shared: Path) -> None:
    ruleset = RULESETS["0.8.7"]
    policy = ShellHttpPolicy(Settings.from_config({}, ruleset), ruleset)
    text = (shared / "vectors" / ruleset.name / "shell_http.jsonl").read_text(encoding="utf-8")
    seen = refused = 0
    for number, line in enumerate(text.split("\n"), 1):
        if not line:
            continue
        row = cast("Mapping[str, object]", parse_json(line))
        verdict = policy.verdict(cast("str", row["command"]))
        assert {"refused": verdict.refused} == row["expect"], f"line {number}: {verdict.why}"
        seen += 1
        refused += verdict.refused
    assert (seen, refused) == (LINES, REFUSED)
