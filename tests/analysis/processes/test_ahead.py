"""Whether processes are started before the sessions have been looked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from analysis.processes.ahead import WORTH_PROCESSES, available_processors, reading_ahead
from analysis.processes.worker import are_ahead
from analysis.reading import Reading
from tests.analysis.processes.pool_work import children


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.processes.ahead.available_processors", lambda: 2)


def started(*paths: Path, jobs: int | None) -> int:
    """Return how many processes are started at once for reading these."""
    with reading_ahead(paths, jobs):
        number = len(children())
    assert children() == set()
    return number


def logs(folder: Path, *sizes: int, name: str = "session.v4.jsonl.zstd") -> Path:
    """Write files that look like logs, one a folder, of so many bytes."""
    for number, size in enumerate(sizes):
        path = folder / f"project/{number}" / name
        path.parent.mkdir(parents=True)
        path.touch()
        os.truncate(path, size)
    return folder


def test_as_many_as_asked_for_are_started_where_there_are_several_logs(tmp_path: Path) -> None:
    assert started(logs(tmp_path, 1, 1), jobs=2) == 2


def test_never_more_than_there_are_processors(tmp_path: Path) -> None:
    assert started(logs(tmp_path, 1, 1), jobs=999) == 2


def test_never_more_than_there_are_logs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("analysis.processes.ahead.available_processors", lambda: 8)
    folder = logs(tmp_path, WORTH_PROCESSES, 1, 1)
    assert (started(folder, jobs=8), started(folder, jobs=2), started(folder, jobs=None)) == (3, 2, 3)


def test_of_itself_none_where_there_is_one_processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("analysis.processes.ahead.available_processors", lambda: 1)
    folder = logs(tmp_path, WORTH_PROCESSES, 1)
    assert (started(folder, jobs=2), started(folder, jobs=None)) == (1, 0)


def test_what_is_started_is_what_a_reading_loads(tmp_path: Path) -> None:
    with reading_ahead([logs(tmp_path, 1, 1)], 2):
        assert are_ahead(Reading.loads)


def test_none_for_one_process_or_one_log_or_none(tmp_path: Path) -> None:
    several = logs(tmp_path / "several", 1, 1)
    assert started(several, jobs=1) == 0
    assert started(logs(tmp_path / "one", WORTH_PROCESSES), jobs=2) == 0
    assert started(tmp_path / "nowhere", jobs=2) == 0


def test_of_itself_only_where_there_is_much_to_read(tmp_path: Path) -> None:
    assert started(logs(tmp_path / "much", WORTH_PROCESSES // 2, WORTH_PROCESSES // 2), jobs=None) == 2
    assert started(logs(tmp_path / "little", WORTH_PROCESSES // 2, WORTH_PROCESSES // 2 - 1), jobs=None) == 0


def test_files_given_by_name_count_whatever_they_are_called(tmp_path: Path) -> None:
    folder = logs(tmp_path, 1, 1, name="a.log")
    assert started(folder, jobs=2) == 0
    assert started(*folder.rglob("a.log"), jobs=2) == 2


def test_what_cannot_be_looked_at_is_somebody_else_s_to_tell(tmp_path: Path) -> None:
    folder = logs(tmp_path, 1, 1)
    (folder / "project/0/session.jsonl").symlink_to(folder / "nowhere")
    (folder / "project/loop").symlink_to(folder)
    assert started(Path("\0"), tmp_path / "nowhere", folder, jobs=2) == 2


def test_a_glance_at_very_many_other_files_tells_nothing(tmp_path: Path) -> None:
    folder = logs(tmp_path / "late", 1, 1)
    for number in range(2001):
        (folder / f"other-{number}").touch()
    assert started(folder, jobs=2) == 0


def test_there_is_always_a_processor() -> None:
    assert available_processors() >= 1
