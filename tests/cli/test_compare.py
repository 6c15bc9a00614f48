"""`breaker compare`: one comparison in three renderings, and the exit codes of its gate."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.analysis.logs import LogWriter
from tests.cli.commands import Json, breaker, violations


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return sessions that make the same call 2, 4 and 8 times."""
    for name, length in (("short", 2), ("middle", 4), ("long", 8)):
        log = LogWriter(name)
        log.user()
        for _ in range(length):
            log.bash()
        log.write(tmp_path / "sessions")
    return tmp_path / "sessions"


def _document(*arguments: str | Path) -> Json:
    done = breaker("compare", *arguments, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert violations("compare", document) == []
    return document


def test_two_settings_session_by_session(corpus: Path) -> None:
    document = _document(corpus, "--a", "warnAt=7", "--b", "warnAt=3")
    assert document["schema"] == "breaker/compare/1"
    assert (document["a"]["spec"], document["b"]["spec"]) == ("warnAt=7", "warnAt=3")
    assert (document["a"]["settings"]["warnAt"], document["b"]["settings"]["warnAt"]) == (7, 3)
    assert document["a"]["settings_hash"] != document["b"]["settings_hash"]
    changes = {one["id"]: one["stages"]["warn"]["change"] for one in document["sessions"]}
    assert changes == {"short": "silent", "middle": "newly-firing", "long": "earlier"}
    (long,) = [one for one in document["sessions"] if one["id"] == "long"]
    assert long["stages"]["warn"]["first"] == {"a": 6, "b": 2}
    warned = document["totals"]["warn"]
    assert (warned["newly-firing"], warned["earlier"], warned["silent"]) == (1, 1, 1)
    assert warned["sessions"] == {"a": 1, "b": 2}
    assert document["by_kind"]["cmd"]["events"] == {"a": 1, "b": 2}


def test_the_breaker_beside_detectors(corpus: Path) -> None:
    document = _document(
        corpus, "--a", "breaker", "--b", "reminder", "--detector", "repeat-stop", "--label", "stuck=l*"
    )
    assert document["b"]["detector"] == "reminder"
    assert document["by_label"]["stuck"] == {"sessions": 1, "both": 1, "neither": 0, "only_a": [], "only_b": []}
    assert document["by_label"]["unknown"]["only_b"] == ["middle"]
    agreement = document["agreement"]
    assert [(one["detector"], one["fires"], one["fires_alone"]) for one in agreement["detectors"]] == [
        ("breaker", 1, 0),
        ("reminder", 2, 1),
        ("repeat-stop", 1, 0),
    ]
    pairs = {(one["first"], one["second"]): one for one in agreement["pairs"]}
    assert pairs["breaker", "repeat-stop"]["kappa"] == 1
    assert pairs["breaker", "repeat-stop"]["interval"] is None
    assert pairs["breaker", "reminder"]["kappa"] == pytest.approx(0.4)
    assert len(pairs["breaker", "reminder"]["interval"]) == 2


def test_the_table_and_the_markdown_hold_the_same_numbers(corpus: Path) -> None:
    options = (corpus, "--a", "warnAt=7", "--b", "warnAt=3", "--label", "good=middle")
    table, markdown = (breaker("compare", *options, "--format", form).stdout for form in ("table", "markdown"))
    assert re.search(r"^ warn +1 +· +1 +· +· +1 +1 +2 +1 +2 *$", table, re.MULTILINE)
    assert "| warn | 1 | · | 1 | · | · | 1 | 1 | 2 | 1 | 2 |" in markdown
    assert re.search(r"^ long +unknown +warn +earlier +#6 +#2 +1 +1 *$", table, re.MULTILINE)
    assert "| long | unknown | warn | earlier | #6 | #2 | 1 | 1 |" in markdown
    for text in (table, markdown):
        assert "wrongly touched by B only (good): middle" in text
    assert markdown.startswith("# breaker compare\n")
    assert re.search(r"\n\n## By stage: sessions\n\n\|", markdown)


def test_only_so_many_sessions_are_shown(corpus: Path) -> None:
    shown = breaker("compare", corpus, "--a", "warnAt=7", "--b", "warnAt=3", "--top", "1").stdout
    assert "Sessions that differ: 2 of 3" in shown
    assert "… and 1 more (--top 0 shows all)" in shown


def test_it_says_what_rests_on_rebuilt_codes(tmp_path: Path) -> None:
    log = LogWriter()
    for _ in range(2):
        log.bash(text="x\n[exit code: 1]")
    log.write(tmp_path)
    shown = breaker("compare", tmp_path, "--a", "breaker", "--b", "fail-guard").stdout
    assert "fail-guard: 2 of 2 failed results rest on an exit code rebuilt from the output" in shown


@pytest.mark.parametrize(
    ("a", "b", "fail_on", "code"),
    [
        ("warnAt=7", "warnAt=3", "newly-firing", 1),
        ("warnAt=7", "warnAt=3", "stopped", 0),
        ("warnAt=7", "warnAt=3", "any", 1),
        ("warnAt=3", "warnAt=7", "newly-firing", 0),
        ("warnAt=3", "warnAt=7", "stopped", 1),
        ("warnAt=3", "warnAt=2", "any", 1),
        ("warnAt=7", "warnAt=7", "any", 0),
        ("breaker", "limits.exact=8,limits.cmd=8", "newly-firing", 1),
    ],
)
def test_the_gate_fails_on_what_it_is_told_to(corpus: Path, a: str, b: str, fail_on: str, code: int) -> None:
    done = breaker("compare", corpus, "--a", a, "--b", b, "--fail-on", fail_on)
    assert done.returncode == code
    assert (f"--fail-on {fail_on}: " in done.stderr) == bool(code)


def test_options_hold_for_both_sides(corpus: Path, tmp_path: Path) -> None:
    config = tmp_path / "mine.toml"
    config.write_text("warnAt = 4\nsummarizeAt = 8\n")
    document = _document(corpus, "--config", config, "--set", "warnAt=5", "--a", "0.5.2", "--b", "summarizeAt=6")
    assert [document[side]["settings"]["warnAt"] for side in "ab"] == [5, 5]
    assert [document[side]["settings"]["summarizeAt"] for side in "ab"] == [8, 6]
    assert [document[side]["ruleset"] for side in "ab"] == ["0.5.2", "0.8"]


def test_an_unknown_key_of_a_settings_file_is_a_warning(corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("warnatt = 4\n")
    done = breaker("compare", corpus, "--a", path, "--b", "breaker", "--format", "json")
    assert done.returncode == 0
    assert f"--a: {path}: `warnatt` is no setting of ruleset 0.8; did you mean `warnAt`?; it is ignored" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--a", "breaker"], "Missing option '--b'"),
        (["--a", "breaker", "--b", "nope"], "--b: 'nope' is neither a settings file"),
        (["--a", "warnAt=x", "--b", "breaker"], "--a: repeat-tool-breaker: `warnAt` must be a number"),
        (["--a", "breaker", "--b", "fail-guard:threshold=0"], "--b: detector fail-guard: `threshold` must be"),
        (["--a", "breaker", "--b", "reminder", "--detector", "reminder"], "detector reminder is given twice"),
        (["--a", "breaker", "--b", "reminder", "--detector", "nope"], "unknown detector 'nope'; known: breaker"),
        (["--a", "breaker", "--b", "0.8", "--label", "good"], "--label good: must be NAME=GLOB"),
    ],
)
def test_wrong_usage_is_2(corpus: Path, options: list[str], message: str) -> None:
    done = breaker("compare", corpus, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_corpus_without_sessions_is_4_and_a_path_that_does_not_exist_2(tmp_path: Path) -> None:
    sides = ("--a", "breaker", "--b", "fail-guard")
    assert breaker("compare", tmp_path, *sides).returncode == 4
    assert breaker("compare", tmp_path / "absent", *sides).returncode == 2


def test_what_cannot_be_read_is_3_whatever_the_gate_says(corpus: Path) -> None:
    (corpus / "--p--" / "bad").mkdir()
    (corpus / "--p--" / "bad" / "session.v4.jsonl").write_text("no header\n")
    options = ("--a", "warnAt=7", "--b", "warnAt=3", "--fail-on", "any")
    assert breaker("compare", corpus, *options).returncode == 1
    assert breaker("compare", corpus, *options, "--strict").returncode == 3


def test_names_out_of_logs_are_shown_and_do_not_act(tmp_path: Path) -> None:
    log = LogWriter("<b>|`\x1b[31m")
    for _ in range(3):
        log.bash()
    log.write(tmp_path, folder="one")
    table, markdown = (
        breaker("compare", tmp_path, "--a", "breaker", "--b", "reminder", "--format", form).stdout
        for form in ("table", "markdown")
    )
    assert r"<b>|`\x1b[31m" in table
    assert r"\<b\>\|\`\\x1b\[31m" in markdown


def test_the_warnings_of_a_corpus_are_told_once(corpus: Path) -> None:
    done = breaker("compare", corpus, "--a", "0.5.2", "--b", "0.8", "--label", "good=nobody")
    assert done.returncode == 0
    assert done.stderr.count("no session matches") == 1
