"""`--changed-since`: only what differs from a revision is replayed, and nothing is taken for checked that was not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from analysis.regress import CheckError, Verdict, load_check
from tests.analysis.regress.conftest import Good
from tests.analysis.regress.known_good import TODAY, checker, configure, found, log_of
from tests.analysis.regress.test_baseline import approve

CHECK = '[check]\nsessions = ["good"]\nbaseline = "base.json"\n[check.limits]\ngate = 0\nsessions_min = 6\n'


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, "-C", str(folder), *arguments], check=True, capture_output=True)


@pytest.fixture
def committed(good: Good) -> Good:
    """Return approved sessions in a repository, all of them committed."""
    approve(good.folder, CHECK)
    git(good.folder, "init", "-q")
    git(good.folder, "add", "-A")
    git(good.folder, "commit", "-q", "-m", "all")
    return good


def since(good: Good, revision: str = "HEAD", text: str = CHECK) -> Verdict:
    return checker(good.folder, text).run(revision)


def test_nothing_changed_is_fine_and_says_what_was_not_checked(committed: Good) -> None:
    result = since(committed)
    assert result.outcome == "passed"
    assert result.scope is not None
    assert (result.scope.replayed, result.scope.known, result.scope.everything) == (0, 6, "")
    assert [(one.limit.name, one.holds) for one in result.limits] == [("gate", True), ("sessions_min", None)]
    assert any("sessions_min not checked" in note for note in result.notes)


def test_only_the_changed_session_is_replayed(committed: Good) -> None:
    first = committed.ids[0]
    log = log_of(committed.folder, first)
    log.write_text(log.read_text().replace("Prepared.", "Doctored."))
    result = since(committed)
    assert [one.row.session_id for one in result.sessions] == [first]
    assert found(result) == [("baseline/log-changed", first)]


def test_new_gone_and_unreadable_sessions_are_told(committed: Good) -> None:
    first, second, third = committed.ids[:3]
    shutil.copytree(committed.folder / "good" / first, committed.folder / "good" / "other")
    log = log_of(committed.folder, "other")
    log.write_text(log.read_text().replace(first, "session-other"))
    assert found(since(committed)) == [("baseline/new", "session-other")]
    shutil.rmtree(committed.folder / "good" / "other")
    shutil.rmtree(committed.folder / "good" / second)
    assert found(since(committed)) == [("baseline/gone", second)]
    log_of(committed.folder, third).write_bytes(b"\x00")
    assert since(committed).outcome == "unreadable"


def test_a_changed_configuration_is_a_reason_to_replay_everything(committed: Good) -> None:
    result = since(committed, text="warnAt = 3\n" + CHECK)
    assert result.scope is not None
    assert result.scope.everything.startswith("breaker.toml changed")
    assert len(result.sessions) == 6
    assert ("baseline/incompatible", "base.json") in found(result)


def test_sessions_git_does_not_know_are_always_replayed(committed: Good) -> None:
    (committed.folder / ".gitignore").write_text("good\n")
    git(committed.folder, "rm", "-r", "-q", "--cached", "good")
    git(committed.folder, "add", "-A")
    git(committed.folder, "commit", "-q", "-m", "ignored")
    assert len(since(committed).sessions) == 6


@pytest.mark.parametrize("revision", ["nowhere", "--help", "-x", "HEAD:breaker.toml", "", "\x00"])
def test_an_unknown_revision_is_an_error(committed: Good, revision: str) -> None:
    with pytest.raises(CheckError, match="--changed-since"):
        since(committed, revision)


def test_without_a_repository_it_is_an_error(good: Good, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(good.folder.parent))
    approve(good.folder, CHECK)
    with pytest.raises(CheckError, match="is in no git repository"):
        since(good)


def test_without_git_it_is_an_error(committed: Good, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_check(configure(committed.folder, CHECK))
    assert config.limits
    monkeypatch.setenv("PATH", str(committed.folder))
    with pytest.raises(CheckError, match="--changed-since HEAD: there is no git to ask"):
        since(committed)


def test_a_waiver_nothing_uses_now_is_no_failure_of_a_part(committed: Good) -> None:
    waiver = '[[check.waiver]]\nsession = "nobody"\nreason = "r"\nexpires = 2026-01-01\n'
    configure(committed.folder, CHECK + waiver.replace("2026-01-01", "2026-12-31"))
    git(committed.folder, "commit", "-q", "-a", "-m", "waiver")
    assert since(committed, text=CHECK + waiver.replace("2026-01-01", "2026-12-31")).outcome == "passed"
    configure(committed.folder, CHECK + waiver)
    git(committed.folder, "commit", "-q", "-a", "-m", "expired")
    assert TODAY.isoformat() > "2026-01-01"
    assert [rule for rule, _ in found(since(committed, text=CHECK + waiver))] == ["waiver/expired"]
