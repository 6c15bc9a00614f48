"""`breaker check` and `breaker approve`: what turns them red, and every exit code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.analysis.regress.known_good import log_of, write_good
from tests.cli.commands import Ran, breaker, violations

CONFIG = """
[check]
sessions = ["good"]
baseline = "breaker.baseline.json"

[check.limits]
sessions_gated = 0
false_rejections = 0
warn = 9
failure_rate = "7%"
sessions_min = 24
sessions_with_streak_3 = 0
"""
CAP = "--set=limits.host=8"


@pytest.fixture(scope="module")
def approved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the known-good sessions of the labelled corpus at the defaults, approved."""
    folder = tmp_path_factory.mktemp("approved")
    write_good(folder)
    (folder / "breaker.toml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = breaker("approve")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "24 sessions approved in breaker.baseline.json\n"
    return folder


@pytest.fixture
def folder(approved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of them that may be changed, as the working folder."""
    shutil.copytree(approved, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(*arguments: str) -> Ran:
    return breaker("check", "--today", "2026-03-01", *arguments)


def some(folder: Path) -> str:
    """Return a known-good session that is warned once, for a host."""
    sessions = json.loads((folder / "breaker.baseline.json").read_text())["sessions"]
    return next(key for key, entry in sessions.items() if "host" in entry["events"].get("warn", {}))


# Green, and red with each cause named


def test_known_good_sessions_are_green_at_the_defaults(folder: Path) -> None:
    done = check()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("check passed\n")
    assert "24 sessions · 6 of 6 limits hold · baseline breaker.baseline.json" in done.stdout


def test_it_is_found_from_a_folder_below(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "good")
    assert check().returncode == 0


@pytest.mark.parametrize(
    ("arguments", "causes"),
    [
        (["--set", "warnAt=3"], ["warn is 19, must be at most 9 (breaker.toml:9)", "made with warnAt 7, now 3"]),
        (
            [CAP],
            ["sessions_gated is 3, must be at most 0 (breaker.toml:7)", "limits.host 16, now 8", "8/8 (ask-declined)"],
        ),
    ],
)
def test_a_changed_threshold_is_red(folder: Path, arguments: list[str], causes: list[str]) -> None:
    done = check(*arguments)
    assert done.returncode == 1
    for cause in causes:
        assert cause in done.stdout
    assert "breaker explain good/" in done.stdout


def doctor(folder: Path) -> str:
    """Make a session ask other hosts than the one it asked."""
    session = some(folder)
    log = log_of(folder, session)
    rows = log.read_text().split("\n")
    log.write_text("\n".join(row.replace("rows.example.org", "x.example.org", 1) for row in rows))
    return session


def remove(folder: Path) -> str:
    session = some(folder)
    shutil.rmtree(folder / "good" / session)
    return session


def add(folder: Path) -> str:
    session = some(folder)
    shutil.copytree(folder / "good" / session, folder / "good" / "session-added")
    log = log_of(folder, "session-added")
    log.write_text(log.read_text().replace(session, "session-added"))
    return "session-added"


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (doctor, "is not the one that was approved"),
        (remove, "the session is gone"),
        (add, "the session is not in the baseline"),
    ],
)
def test_changed_sessions_are_red_and_named(folder: Path, change: Callable[[Path], str], cause: str) -> None:
    session = change(folder)
    done = check()
    assert done.returncode == 1
    told = done.stdout.splitlines()
    assert any(session in one and cause in two for one, two in pairwise(told))


def test_every_file_unreadable_is_exit_3(folder: Path) -> None:
    for log in (folder / "good").rglob("session*.jsonl"):
        log.write_bytes(b"\x00\x01")
    done = check()
    assert done.returncode == 3
    assert "none of 24 logs could be read; the first: good/session-" in done.stdout
    assert breaker("approve").returncode == 3


def test_an_empty_folder_is_exit_4(folder: Path) -> None:
    shutil.rmtree(folder / "good")
    (folder / "good").mkdir()
    done = check()
    assert done.returncode == 4
    assert "no sessions in good" in done.stdout
    assert breaker("approve").returncode == 4


# The other exit codes


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["goood"], 2, "goood: no such file or folder"),
        (["good/*/nothing*"], 4, "no sessions in good/*/nothing*"),
        (["good", "breaker.t*"], 3, "nothing in breaker.t* could be read: breaker.toml is corrupt"),
        (["--config", "none.toml"], 2, "none.toml: cannot read the configuration"),
        (["--baseline", "none.json"], 2, "none.json: no such baseline"),
        (["--settings", "none.toml"], 2, "none.toml: cannot read the settings"),
        (["--set", "warnAt"], 2, "--set warnAt: must be key=value"),
        (["--set", "window=1"], 2, "`window` must be an integer >= 4"),
        (["--ruleset", "9"], 2, "9"),
        (["--today", "soon"], 2, "--today soon: not a date"),
        (["--report", "xml"], 2, "--report xml: must be FORMAT or FORMAT=FILE; formats are terminal, json"),
        (["--report", "json", "--report", "sarif"], 2, "cannot share standard output"),
        (["--report", "json=x", "--report", "sarif=./x"], 2, "two reports into one file"),
        (["--report", "json=no/x.json"], 2, "its folder does not exist"),
        (["--report", "json=good"], 2, "is a folder"),
        (["--report", "json="], 2, "must be FORMAT or FORMAT=FILE"),
    ],
)
def test_wrong_usage_is_never_green(folder: Path, arguments: list[str], code: int, told: str) -> None:
    done = check(*arguments)
    assert done.returncode == code
    assert told in done.stdout + done.stderr


def test_a_mistyped_path_in_the_configuration_is_exit_2(folder: Path) -> None:
    (folder / "breaker.toml").write_text(CONFIG.replace('["good"]', '["good", "goood"]'))
    done = check()
    assert (done.returncode, done.stdout) == (2, "")
    assert "goood: no such file or folder" in done.stderr


def test_without_a_configuration_it_is_exit_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = breaker("check", ".")
    assert done.returncode == 2
    assert "no configuration: neither a breaker.toml with [check] nor a pyproject.toml" in done.stderr


def test_a_check_that_could_not_fail_is_exit_2(folder: Path) -> None:
    (folder / "breaker.toml").write_text('[check]\nsessions = ["good"]\nbaseline = false\n')
    done = check()
    assert done.returncode == 2
    assert "nothing to check" in done.stderr
    assert breaker("approve").returncode == 2


def test_no_session_with_the_label_asked_for_is_exit_4(folder: Path) -> None:
    (folder / "breaker.toml").write_text(CONFIG + "".join(["[[label]]\nsession = 'good'\nlabel = 'stuck'\n"]))
    assert check().returncode == 0
    (folder / "breaker.toml").write_text(CONFIG.replace("[check]\n", '[check]\nonly = "good"\n'))
    done = check()
    assert done.returncode == 4
    assert "no session is labelled good" in done.stdout


def test_a_contradiction_of_labels_is_exit_2(folder: Path) -> None:
    labels = "".join(f"[[label]]\nsession = 'good'\nlabel = '{label}'\n" for label in ("good", "stuck"))
    (folder / "breaker.toml").write_text(CONFIG + labels)
    done = check()
    assert done.returncode == 2
    assert "two labels for session" in done.stderr


def test_strict_is_exit_3_for_one_torn_log(folder: Path) -> None:
    log = log_of(folder, some(folder))
    log.write_text(log.read_text()[:-9])
    assert check("--baseline", "breaker.baseline.json").returncode == 1
    done = check("--strict")
    assert done.returncode == 3
    assert "strict: 1 of 24 logs not ok" in done.stdout


def test_a_failing_check_still_fails_beside_a_glob_without_sessions(folder: Path) -> None:
    assert check(CAP, "good", "nobody*").returncode == 1
    assert check("good", "nobody*").returncode == 4


def test_changed_since_outside_a_repository_is_exit_2(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))
    done = check("--changed-since", "HEAD")
    assert done.returncode == 2
    assert "--changed-since HEAD: " in done.stderr


def test_what_is_read_is_never_written_over(folder: Path) -> None:
    log = log_of(folder, some(folder))
    for path in (log, folder / "breaker.toml"):
        before = path.read_bytes()
        assert check("--report", f"json={path}").returncode == 2
        assert breaker("approve", "--baseline", str(path)).returncode == 2
        assert path.read_bytes() == before


# Reports


def test_several_reports_in_one_run(folder: Path) -> None:
    files = {"json": "c.json", "junit": "j.xml", "sarif": "s.sarif", "markdown": "m.md", "github": "g.txt"}
    done = check(CAP, *(f"--report={name}={file}" for name, file in files.items()))
    assert done.returncode == 1
    assert done.stdout.endswith("failures\n")
    assert all((folder / file).stat().st_size > 0 for file in files.values())
    assert [path.name for path in folder.iterdir() if path.name.endswith(".tmp")] == []
    document = json.loads((folder / "c.json").read_text())
    assert violations("check", document) == []


def test_one_document_alone_on_standard_output(folder: Path) -> None:
    done = check("--report", "json")
    assert json.loads(done.stdout)["outcome"] == "passed"


def test_annotations_may_follow_the_terminal_report(folder: Path) -> None:
    done = check(CAP, "--report", "terminal", "--report", "github")
    assert "failures\n::error file=breaker.toml,line=7" in done.stdout


def test_explain_lines_carry_what_was_checked_with(folder: Path) -> None:
    (folder / "guard.toml").write_text("limits.host = 8\n")
    done = check("--settings", "guard.toml", "--ruleset", "0.7.0", "--set", "warnAt=6")
    assert "--config guard.toml --set warnAt=6 --ruleset 0.7.0" in done.stdout


# Approving


def test_approving_anew_tells_what_changes_and_check_is_green_again(folder: Path) -> None:
    session = remove(folder)
    (folder / "breaker.toml").write_text(CONFIG.replace("24", "23").replace("7%", "1/14"))
    assert check().returncode == 1
    done = breaker("approve")
    assert (done.returncode, done.stdout) == (0, f"- {session}\n23 sessions approved in breaker.baseline.json\n")
    assert check().returncode == 0


def test_a_baseline_that_cannot_be_written_leaves_the_old_one(folder: Path) -> None:
    done = breaker("approve", "--baseline", "no/base.json")
    assert done.returncode == 2
    assert "no/base.json: cannot write the baseline: No such file or directory" in done.stderr
