"""Baselines: what they hold, what they tell apart, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from analysis.regress import Approval, CheckError, load_check, read_baseline, render_baseline
from analysis.synth import write_corpus
from tests.analysis.regress.conftest import Good
from tests.analysis.regress.known_good import configure, found, log_of, verdict
from tests.cli.commands import violations

CHECK = '[check]\nsessions = ["good"]\nbaseline = "base.json"\n'


def approve(folder: Path, text: str = CHECK) -> Approval:
    config = load_check(configure(folder, text))
    approval = Approval.of(config, config.plan(), None)
    approval.write()
    return approval


def document(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "base.json").read_text())


def rewrite(folder: Path, change: dict[str, Any]) -> None:
    (folder / "base.json").write_text(json.dumps(change, indent=1))


def test_approved_sessions_pass(good: Good) -> None:
    assert approve(good.folder).changes == ()
    result = verdict(good.folder, CHECK)
    assert (result.outcome, result.baseline) == ("passed", "base.json")


def test_the_file_is_sorted_one_session_a_line_and_valid(good: Good) -> None:
    approve(good.folder)
    text = (good.folder / "base.json").read_text()
    assert [line.split('"')[1] for line in text.splitlines() if line.startswith('    "session-')] == sorted(good.ids)
    assert violations("baseline", document(good.folder)) == []
    assert render_baseline(read_baseline(good.folder / "base.json")) == text
    approve(good.folder)
    assert (good.folder / "base.json").read_text() == text
    assert {path.name for path in good.folder.iterdir()} == {"good", "breaker.toml", "base.json"}


def test_it_holds_no_measure_and_no_word(good: Good) -> None:
    approve(
        good.folder,
        'hostAliases = { "secret.example" = "other.example" }\nlimits = { "host:rows.example.org" = 8 }\n' + CHECK,
    )
    text = (good.folder / "base.json").read_text()
    for word in ("example", "rows", "state.json", "make check", "good/"):
        assert word not in text


def test_it_does_not_hang_on_version_or_encoding_of_the_logs(
    good: Good, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folders = [tmp_path_factory.mktemp("corpus") for _ in range(3)]
    for folder, version, plain in zip(folders, (4, 4, 3), (True, False, False), strict=True):
        write_corpus(folder / "good", "labelled", sessions=10, version=version, plain=plain)
        approve(folder)
    texts = {(folder / "base.json").read_text() for folder in folders}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("stage", "kind", "fired", "rule"),
    [
        ("warn", "host", None, "baseline/newly-firing"),
        ("gate", "exact", {"count": 1, "first": 3}, "baseline/stopped"),
        ("warn", "host", {"count": 1, "first": 100}, "baseline/earlier"),
        ("warn", "host", {"count": 1, "first": 0}, "baseline/later"),
        ("warn", "host", {"count": 2, "first": 17}, "baseline/fewer"),
    ],
)
def test_each_difference_has_its_name(
    good: Good, stage: str, kind: str, fired: dict[str, int] | None, rule: str
) -> None:
    approve(good.folder)
    changed = document(good.folder)
    first = good.ids[0]
    events = changed["sessions"][first]["events"]
    assert events == {"warn": {"host": {"count": 1, "first": 17}}}
    events.setdefault(stage, {})[kind] = fired
    if fired is None:
        events.clear()
    rewrite(good.folder, changed)
    result = verdict(good.folder, CHECK)
    assert found(result) == [(rule, first)]
    assert result.failures[0].places[0].explain.startswith(f"breaker explain good/{first}/")
    assert result.failures[0].origin is not None
    assert result.failures[0].origin.line is not None


def test_other_measures_with_the_same_counts_are_told(good: Good) -> None:
    approve(good.folder)
    changed = document(good.folder)
    changed["sessions"][good.ids[0]]["shows"] = "0" * 16
    rewrite(good.folder, changed)
    assert found(verdict(good.folder, CHECK)) == [("baseline/changed", good.ids[0])]


def test_new_and_gone_sessions_fail(good: Good) -> None:
    approve(good.folder)
    first, second = good.ids[:2]
    shutil.move(good.folder / "good" / first, good.folder / "kept")
    assert found(verdict(good.folder, CHECK)) == [("baseline/gone", first)]
    approve(good.folder)
    assert verdict(good.folder, CHECK).outcome == "passed"
    shutil.move(good.folder / "kept", good.folder / "good" / first)
    assert found(verdict(good.folder, CHECK)) == [("baseline/new", first)]
    log_of(good.folder, second).write_bytes(b"\x00")
    result = verdict(good.folder, CHECK)
    assert ("baseline/gone", second) in found(result)
    assert "can no longer be read" in next(one.message for one in result.failures if one.subject == second)


def test_a_doctored_log_is_told_whether_or_not_its_events_change(good: Good) -> None:
    approve(good.folder)
    first = good.ids[0]
    log = log_of(good.folder, first)
    text = log.read_text()
    log.write_text(text.replace("Prepared.", "Doctored."))
    assert text != log.read_text()
    assert found(verdict(good.folder, CHECK)) == [("baseline/log-changed", first)]
    log.write_text(text.replace("rows.example.org", "other.example.org", 3))
    assert found(verdict(good.folder, CHECK))[0] == ("baseline/log-changed", first)


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("warnAt = 3\n", "warnAt 7, now 3"),
        ("[settings.limits]\nhost = 9\n", "limits.host 16, now 9"),
        ('exclude = ["bash"]\n', "other exclude"),
        ('[settings.limits]\n"host:a.example" = 9\n', "other limits of single measures"),
    ],
)
def test_other_settings_are_named_instead_of_compared(good: Good, head: str, told: str) -> None:
    approve(good.folder)
    result = verdict(good.folder, head + CHECK)
    assert found(result) == [("baseline/incompatible", "base.json")]
    assert told in result.failures[0].message


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('ruleset = "0.5.2"\n', "ruleset 0.8, now 0.5.2"),
        ('policy = "approve"\n', "policy unattended, now approve"),
        ('shell_http = "on"\n', "shell-http auto, now on"),
        ('machine = "box"\n', "other machine names"),
        ('result_source = "log"\n', "result-source rebuilt, now log"),
    ],
)
def test_another_replay_is_named_instead_of_compared(good: Good, more: str, told: str) -> None:
    approve(good.folder)
    result = verdict(good.folder, CHECK + more)
    assert found(result) == [("baseline/incompatible", "base.json")]
    assert told in result.failures[0].message


def test_other_semantics_are_named_instead_of_compared(good: Good) -> None:
    approve(good.folder)
    rewrite(good.folder, {**document(good.folder), "semantics": 0})
    result = verdict(good.folder, CHECK)
    assert found(result) == [("baseline/incompatible", "base.json")]
    assert "semantics 0, now 1" in result.failures[0].message


def test_a_missing_baseline_is_an_error_only_where_it_is_asked_for(good: Good) -> None:
    with pytest.raises(CheckError, match=r"base\.json: no such baseline; `breaker approve` writes one"):
        verdict(good.folder, CHECK)
    default = '[check]\nsessions = ["good"]\n[check.limits]\ngate = 0\n'
    assert verdict(good.folder, default).baseline is None
    approve(good.folder, default)
    assert verdict(good.folder, default).baseline == "breaker.baseline.json"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"semantics": 1', '"semantics": "1"', "base.json:3: `semantics` must be a whole number, not below 0"),
        ('"schema": "breaker/baseline/1"', '"schema": "x"', 'base.json:2: `schema` must be "breaker/baseline/1"'),
        ('"policy"', '"polizy"', "base.json:5: `polizy` is unknown"),
        ('"sessions": {', '"sessions": {,', "base.json:"),
        ("<<<<<<< HEAD", "", ""),
    ],
)
def test_a_malformed_baseline_is_told_with_its_line(good: Good, old: str, new: str, told: str) -> None:
    approve(good.folder)
    path = good.folder / "base.json"
    path.write_text(path.read_text().replace(old, new) if new else old + "\n" + path.read_text())
    with pytest.raises(CheckError) as refused:
        verdict(good.folder, CHECK)
    assert str(refused.value).startswith(told or "base.json:1: not JSON")


@pytest.mark.parametrize(
    "text", ["[]", "NaN", "[" * 100_000, '{"a": 1, "a": 2}', '{"schema": "breaker/baseline/1"}', ""]
)
def test_what_is_no_baseline_is_one_clear_error(good: Good, text: str) -> None:
    (good.folder / "base.json").write_text(text)
    with pytest.raises(CheckError, match=r"^base\.json"):
        verdict(good.folder, CHECK)


def test_approving_anew_says_what_changes(good: Good) -> None:
    approve(good.folder)
    shutil.rmtree(good.folder / "good" / good.ids[1])
    log = log_of(good.folder, good.ids[0])
    log.write_text(log.read_text().replace("rows.example.org", "other.example.org", 3))
    changes = approve(good.folder).changes
    assert len(changes) == 2
    assert f"- {good.ids[1]}" in changes
    assert any(line.startswith(f"~ {good.ids[0]}: ") and "another log" in line for line in changes)


def test_sessions_that_share_an_id_are_told_apart_by_their_logs(good: Good) -> None:
    first = good.ids[0]
    shutil.copytree(good.folder / "good" / first, good.folder / "good" / "twin")
    log = log_of(good.folder, "twin")
    log.write_text(log.read_text().replace("rows.example.org", "other.example.org"))
    approve(good.folder)
    keys = [key for key in document(good.folder)["sessions"] if key.startswith(first)]
    assert [key.partition("#")[1] for key in keys] == ["#", "#"]
    assert verdict(good.folder, CHECK).outcome == "passed"
