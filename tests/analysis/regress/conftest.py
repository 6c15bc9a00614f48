"""A few known-good sessions, written once and copied for each test."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.analysis.regress.known_good import write_good

FEW = 10


@dataclass(frozen=True)
class Good:
    """A folder with the sessions of six good runs in `good`."""

    folder: Path
    ids: list[str]


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Good:
    """Return sessions nobody may change."""
    folder = tmp_path_factory.mktemp("known-good")
    return Good(folder, write_good(folder, sessions=FEW))


@pytest.fixture
def good(written: Good, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Good:
    """Return sessions of the test's own; its folder is the working folder."""
    shutil.copytree(written.folder / "good", tmp_path / "good")
    monkeypatch.chdir(tmp_path)
    return Good(tmp_path, written.ids)
