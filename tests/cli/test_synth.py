"""`breaker synth` and `breaker demo`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.app import invoke
from cli.exits import run_guarded

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process: arguments in, exit code and both outputs back."""

    def act(*arguments: str) -> tuple[int, str, str]:
        code = run_guarded(lambda: invoke(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return act


def test_the_calibrated_corpus_replays_to_the_published_figures(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("synth", "--out", str(tmp_path / "c"), "--recipe", "calibrated")
    assert code == 0
    assert "107 sessions of recipe calibrated" in out
    code, out, _ = run("replay", str(tmp_path / "c"))
    assert code == 0
    assert "111 of 3083 settled calls: 3.60 %" in out
    assert "sessions that reach 2: 17 · 3: 9 · 4: 6 · 5: 5 · 8: 4" in out


def test_the_shell_http_policy_engages_where_its_tool_was_offered_or_forced(run: Run, tmp_path: Path) -> None:
    run("synth", "--out", str(tmp_path / "c"), "--recipe", "demo")
    counts = {}
    for mode in ("auto", "on", "off"):
        _, out, _ = run("replay", str(tmp_path / "c"), "--shell-http", mode, "--format", "json")
        document = json.loads(out)
        counts[mode] = (document["shell_http"]["engaged_sessions"], document["totals"]["events"]["shell-http"])
    assert counts["off"] == (0, 0)
    assert counts["on"][0] == document["corpus"]["sessions"]
    assert counts["on"][1] > 0


def test_an_unknown_recipe_names_the_known_ones(run: Run, tmp_path: Path) -> None:
    code, out, err = run("synth", "--out", str(tmp_path / "x"), "--recipe", "demoo")
    assert (code, out) == (2, "")
    assert err == "breaker: error: unknown recipe 'demoo': choose one of calibrated, demo, labelled, scale\n"
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "arguments",
    [("--sessions", "0"), ("--version", "5"), ("--calls", "0"), ("--result-bytes", "-1")],
)
def test_a_bad_size_is_a_usage_error_and_writes_nothing(run: Run, tmp_path: Path, arguments: tuple[str, str]) -> None:
    code, _, err = run("synth", "--out", str(tmp_path / "x"), "--recipe", "scale", *arguments)
    assert code == 2
    assert err.startswith("breaker: error: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_a_folder_that_is_not_empty_needs_force(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    arguments = ("synth", "--out", str(tmp_path), "--recipe", "scale", "--sessions", "1", "--calls", "2")
    code, _, err = run(*arguments)
    assert code == 2
    assert "not empty" in err
    assert run(*arguments, "--force")[0] == 0
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_demo_says_what_each_session_is_and_leaves_nothing(run: Run) -> None:
    code, out, _ = run("demo")
    assert code == 0
    listed = out.split("What each session is\n")[1].splitlines()
    assert len(listed) == 33
    assert any("the same test fails nine times between edits" in line for line in listed)
    assert "worst sessions" in out


def test_demo_keeps_the_sessions_where_it_is_told(run: Run, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    code, out, _ = run("demo", "--keep", str(kept), "--set", "warnAt=3")
    assert code == 0
    assert f"The sessions are in {kept}" in out
    assert (kept / "truth.json").is_file()
    assert run("demo", "--keep", str(kept))[0] == 2
    assert run("demo", "--keep", str(kept), "--force")[0] == 0


@pytest.mark.parametrize("verb", [("synth", "--recipe", "demo", "--out"), ("demo", "--keep")])
def test_a_folder_that_cannot_be_made_is_2_and_named(run: Run, tmp_path: Path, verb: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("")
    code, out, err = run(*verb, str(tmp_path / "file" / "below"))
    assert (code, out) == (2, "")
    assert err.startswith(f"breaker: error: {tmp_path}/file/below")
    assert err.endswith(": cannot write: Not a directory\n")
    assert err.count("\n") == 1
