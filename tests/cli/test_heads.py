"""What every JSON document begins with, and that a verdict on the corpus comes after what was printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from breaker.version import __version__
from tests.analysis.logs import LogWriter
from tests.cli.commands import Json, breaker, violations

TOOL = {"name": "breaker", "version": __version__}
SET = ("--set", "warnAt=3")


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """Return a corpus of one session whose log ends within a row."""
    log = LogWriter("session-torn")
    log.user()
    for _ in range(4):
        log.bash("make", "[exit code: 1]")
    log.raw(b'{"type":')
    log.write(tmp_path / "corpus")
    return tmp_path / "corpus"


def document(name: str, *arguments: str | Path) -> Json:
    done = breaker(*arguments, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert violations(name, told) == []
    assert (told["schema"], told["tool"]) == (f"breaker/{name}/1", TOOL)
    return told


def test_documents_over_a_run_tell_ruleset_policy_and_settings(torn: Path) -> None:
    replayed = document("replay", "replay", torn, *SET)
    head = {key: replayed[key] for key in ("ruleset", "ruleset_note", "result_source", "settings", "settings_hash")}
    explained = document("explain", "explain", "session-torn", torn, *SET)
    checked = document("lint", "lint", *SET)
    looked = document("lint", "lint", torn, *SET)
    for told in (explained, checked, looked):
        assert {key: told[key] for key in head} == head
        assert told["policy"] == "unattended"
        assert told["shell_http"].items() <= replayed["shell_http"].items()
    assert looked["corpus"] == replayed["corpus"]
    assert (checked["sessions"], "corpus" in checked) == (None, False)
    assert looked["shell_http"] == replayed["shell_http"]


def test_proposed_labels_tell_what_they_rest_on(torn: Path) -> None:
    told = document("label-suggest", "label", "suggest", torn)
    replayed = document("replay", "replay", torn)
    for key in ("ruleset", "policy", "settings", "settings_hash", "corpus"):
        assert told[key] == replayed[key]
    assert told["proposals"][0]["session"] == "session-torn"


def test_lists_tell_their_schema_and_the_tool() -> None:
    assert [row["name"] for row in document("rulesets", "rulesets")["rulesets"]][-1] == "0.8"
    assert "reminder" in {row["name"] for row in document("detectors", "detectors")["detectors"]}
    told = document("detectors-demo", "detectors", "--demo", "--detector", "reminder")
    assert list(told["fires_in"]) == ["breaker", "reminder"]
    assert told["settings"] == document("lint", "lint")["settings"]


@pytest.mark.parametrize("command", [("label", "suggest"), ("lint",), ("replay",)], ids=" ".join)
@pytest.mark.parametrize("output", ["table", "json"])
def test_what_does_not_read_ok_is_judged_after_printing(torn: Path, command: tuple[str, ...], output: str) -> None:
    loose = breaker(*command, torn, "--format", output)
    strict = breaker(*command, torn, "--format", output, "--strict")
    assert (loose.returncode, strict.returncode) == (0, 3)
    assert strict.stdout == loose.stdout != ""
    assert strict.stderr == "breaker: error: --strict: 1 of 1 session file did not read ok\n"


@pytest.mark.parametrize("command", [("label", "suggest"), ("lint",)], ids=" ".join)
def test_a_folder_without_sessions_prints_nothing(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = breaker(*command, tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
