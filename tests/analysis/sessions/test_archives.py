"""An archive's table of contents is read once for all its members, as long as it is the same archive."""

from __future__ import annotations

import gc
import os
import zipfile
from io import FileIO
from pathlib import Path

import pytest

from analysis.cache.keys import content_of
from analysis.sessions import archives
from analysis.sessions.decode import LineReader
from analysis.sessions.find import SessionFile, find_sessions


def members(path: Path, texts: list[bytes]) -> list[SessionFile]:
    """Write an archive with so many sessions, and find them."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, text in enumerate(texts):
            archive.writestr(f"{number}/session.jsonl", text)
    return list(find_sessions([path]).files)


def read(file: SessionFile) -> list[bytes]:
    return [bytes(line.data) for line in LineReader(file)]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by one entry for every table of contents read."""
    times: list[int] = []

    class Noted(zipfile.ZipFile):
        def __init__(self, stream: FileIO) -> None:
            times.append(1)
            super().__init__(stream)

    monkeypatch.setattr(archives, "ZipFile", Noted)
    return times


def test_all_members_are_read_out_of_one(tmp_path: Path, opened: list[int]) -> None:
    files = members(tmp_path / "a.zip", [b"[%d]\n" % number for number in range(9)])
    for file in files:
        assert content_of(file) is not None
    assert [read(file) for file in files] == [[b"[%d]" % number] for number in range(9)]
    assert len(opened) == 1


def test_two_that_are_read_at_the_same_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    first, second = members(tmp_path / "a.zip", [b"[1]\n" * 200_000, b"[2]\n" * 200_000])
    pairs = zip(LineReader(first), LineReader(second), strict=True)
    assert all((one.data, two.data) == (b"[1]", b"[2]") for one, two in pairs)


def test_one_that_is_still_read_stays_open_while_another_is(tmp_path: Path) -> None:
    (first,), (second,) = (members(tmp_path / name, [b"[1]\n" * 200_000]) for name in ("a.zip", "b.zip"))
    pairs = zip(LineReader(first), LineReader(second), strict=True)
    assert sum(one.data == two.data == b"[1]" for one, two in pairs) == 200_000


def test_another_archive_under_the_same_name_is_another(tmp_path: Path, opened: list[int]) -> None:
    path = tmp_path / "a.zip"
    for number in range(3):
        (file,) = members(path, [b"[%d]\n" % number])
        assert read(file) == [b"[%d]" % number]
        os.utime(path, ns=(number, number))
    assert len(opened) == 3


def test_one_that_is_left_is_closed(tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip", "c.zip"):
        (file,) = members(tmp_path / name, [b"[1]\n"])
        assert read(file) == [b"[1]"]
        gc.collect()  # what has read a member points at itself, and so at the archive's handle, until then
        opened = [path.resolve() for path in Path("/proc/self/fd").iterdir()]
        assert [path.name for path in opened if path.parent == tmp_path.resolve()] == [name]
