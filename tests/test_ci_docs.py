"""The documented jobs and hooks, held to what their commands do."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from analysis.regress import load_check, number_names
from tests.analysis.regress.known_good import write_good
from tests.analysis.regress.test_changes import git
from tests.cli.commands import breaker

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
FEW = 10

pytest_plugins = ["pytester"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def commands(node: Any) -> Iterator[str]:
    """Give every command of a job: what stands under `run`, `script` and `entry`."""
    if isinstance(node, dict):
        for key, value in cast("dict[str, Any]", node).items():
            if key in {"run", "script", "entry"}:
                yield from [value] if isinstance(value, str) else cast("list[str]", value)
            else:
                yield from commands(value)
    elif isinstance(node, list):
        for item in cast("list[Any]", node):
            yield from commands(item)


YAML_COMMANDS = [
    command for block in blocks("yaml") for command in commands(yaml.safe_load(block)) if command.startswith("breaker")
]
HOOKS = cast("list[dict[str, Any]]", yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository that follows the page, as the working folder."""
    write_good(tmp_path, sessions=FEW)
    (tmp_path / "sessions").mkdir()
    shutil.move(tmp_path / "good", tmp_path / "sessions" / "good")
    (tmp_path / "breaker.toml").write_text(blocks("toml")[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "all")
    return tmp_path


def run(command: str, project: Path) -> int:
    words = shlex.split(command.replace("$GITHUB_STEP_SUMMARY", str(project / "summary.md")))
    assert words[0] == "breaker"
    return breaker(*words[1:]).returncode


@pytest.mark.parametrize("command", [*YAML_COMMANDS, *(hook["entry"] for hook in HOOKS)])
def test_the_commands_of_the_jobs_are_green_and_red(command: str, project: Path) -> None:
    assert run(command, project) == 0
    config = project / "breaker.toml"
    config.write_text("limits.host = 8\n" + config.read_text())
    assert run(command, project) == 1
    if "markdown=" in command:
        assert "### Failures" in (project / "summary.md").read_text()


def test_there_are_jobs_for_both_and_a_hook() -> None:
    assert len(YAML_COMMANDS) == 3
    assert [hook["id"] for hook in HOOKS] == ["breaker-check"]
    assert "breaker-check" in TEXT
    files = re.compile(HOOKS[0]["files"])
    assert all(files.search(name) for name in ("breaker.toml", "a/session.v4.jsonl.zstd", "b/session.jsonl"))
    assert not files.search("README.md")


def test_the_first_steps_work(project: Path) -> None:
    lines = [line for block in blocks("console") for line in block.splitlines()]
    assert lines[0] == "breaker check"
    assert [run(line, project) for line in lines] == [0] * len(lines)
    assert (project / "breaker.baseline.json").is_file()


def test_the_snippets_of_the_configuration_are_read(project: Path) -> None:
    config = project / "breaker.toml"
    config.write_text("\n".join(blocks("toml")))
    loaded = load_check(config)
    assert (len(loaded.limits), len(loaded.expectations), len(loaded.waivers)) == (3, 2, 1)


def test_every_limit_the_page_names_is_one() -> None:
    names = set(number_names())
    section = TEXT.split("### Limits")[1].split("### Expectations")[0]
    bullets = " ".join(re.findall(r"^\* .*?(?=^\*|^$)", section, re.DOTALL | re.MULTILINE))
    told = set(re.findall(r"`([a-z][\w.-]*)`", bullets))
    assert len(told) > 25
    assert told <= names


def test_the_test_of_the_page_passes(project: Path, pytester: pytest.Pytester) -> None:
    shutil.copytree(project / "sessions", pytester.path / "sessions")
    pytester.makepyfile(blocks("python")[0])
    pytester.runpytest().assert_outcomes(passed=1)
