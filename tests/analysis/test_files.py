"""Files that are whole or not there, and never among recorded sessions."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

import pytest

from analysis.files import OutputError, atomic_file, atomic_folder, refuse_inside


class Interrupted(Exception):
    pass


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def interrupted_file(path: Path) -> None:
    with atomic_file(path, force=True) as file:
        file.write(b"half")
        raise Interrupted


def interrupted_folder(folder: Path) -> None:
    with atomic_folder(folder, ["a"], force=True) as work:
        (work / "a").write_bytes(b"1")
        raise Interrupted


def test_a_file_appears_with_all_that_was_written(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "deep" / "a.html", force=False) as file:
        file.write(b"all")
        assert not (tmp_path / "deep" / "a.html").exists()
    assert (tmp_path / "deep" / "a.html").read_bytes() == b"all"
    assert names(tmp_path / "deep") == ["a.html"]


def test_an_interrupted_file_leaves_nothing_and_the_old_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(Interrupted):
        interrupted_file(path)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_file_that_stands_is_only_replaced_by_force(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(OutputError, match=r"a: exists already; --force replaces it"), atomic_file(path, force=False):
        pass
    with atomic_file(path, force=True) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


def test_a_file_has_the_rights_a_new_file_has(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_file(tmp_path / "a", force=False):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_folder_is_no_file_and_a_file_no_folder(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a folder"), atomic_file(tmp_path, force=True):
        pass
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(OutputError, match="not a folder"), atomic_folder(tmp_path / "a", ["x"], force=True):
        pass
    with pytest.raises(OutputError, match="cannot write"), atomic_file(tmp_path / "a" / "b", force=True):
        pass
    with pytest.raises(OutputError, match="cannot write"), atomic_folder(tmp_path / "a" / "b", ["x"], force=True):
        pass


def test_files_of_a_folder_appear_together(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "out", ["a", "b"], force=False) as work:
        (work / "a").write_bytes(b"1")
        (work / "b").write_bytes(b"2")
        assert not (tmp_path / "out" / "a").exists()
    assert names(tmp_path / "out") == ["a", "b"]


def test_an_interrupted_folder_is_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        interrupted_folder(tmp_path / "new")
    assert names(tmp_path) == []
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a").write_bytes(b"old")
    with pytest.raises(Interrupted):
        interrupted_folder(tmp_path / "old")
    assert names(tmp_path / "old") == ["a"]
    assert (tmp_path / "old" / "a").read_bytes() == b"old"


def test_a_folder_with_such_files_needs_force_and_loses_what_is_replaced(tmp_path: Path) -> None:
    for name in ("a", "stale", "other"):
        (tmp_path / name).write_bytes(b"old")
    with pytest.raises(OutputError, match="holds a already"), atomic_folder(tmp_path, ["a"], force=False):
        pass
    with atomic_folder(tmp_path, ["a"], force=True, replaced=["stale"]) as work:
        (work / "a").write_bytes(b"new")
    assert names(tmp_path) == ["a", "other"]


def test_what_cannot_be_written_is_told_with_its_place(tmp_path: Path) -> None:
    told = pytest.raises(OutputError, match="out: cannot write: No space left")
    with told, atomic_folder(tmp_path / "out", ["a"], force=False):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert names(tmp_path) == []


def test_a_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OutputError, match="pipe: is no file"), atomic_file(pipe, force=True):
        pass
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_killed_runs_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / ".0123abcd.part").mkdir(parents=True)
    (out / ".0123abcd.part" / "a").write_bytes(b"half")
    (out / ".0123abcd.party").mkdir()
    for name in (".page[1].html.0123abcd.part", ".page1.html.0123abcd.part", ".page[1].html.part", "page.part"):
        (tmp_path / name).write_bytes(b"half")
    with atomic_file(tmp_path / "page[1].html", force=False) as file:
        file.write(b"all")
    assert names(tmp_path) == [".page1.html.0123abcd.part", ".page[1].html.part", "out", "page.part", "page[1].html"]
    with atomic_folder(out, ["a"], force=False) as work:
        (work / "a").write_bytes(b"1")
    assert names(out) == [".0123abcd.party", "a"]


def test_what_another_run_is_writing_is_no_leftover(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "out", ["a"], force=False) as first, atomic_file(tmp_path / "f", force=False) as one:
        with atomic_folder(tmp_path / "out", ["b"], force=False) as second:
            (second / "b").write_bytes(b"2")
        with atomic_file(tmp_path / "f", force=False) as other:
            other.write(b"other")
        (first / "a").write_bytes(b"1")
        one.write(b"one")
    assert names(tmp_path) == ["f", "out"]
    assert (tmp_path / "f").read_bytes() == b"one"
    assert names(tmp_path / "out") == ["a", "b"]


def test_a_file_taken_for_a_leftover_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []
    lock = fcntl.flock

    def late(descriptor: int, how: int) -> None:
        if not taken:
            (part,) = tmp_path.glob(".f.*.part")
            taken.append(part.name)
            part.unlink()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with atomic_file(tmp_path / "f", force=False) as file:
        file.write(b"all")
    assert len(taken) == 1
    assert (tmp_path / "f").read_bytes() == b"all"


@pytest.mark.parametrize("inside", ["corpus", "corpus/x", "corpus/--p--/s/x.html"])
def test_nothing_is_written_inside_a_corpus(tmp_path: Path, inside: str) -> None:
    (tmp_path / "corpus").mkdir()
    with pytest.raises(OutputError, match="lies inside the corpus"):
        refuse_inside(tmp_path / inside, [tmp_path / "corpus"])
    with pytest.raises(OutputError, match="lies inside the corpus"):
        refuse_inside(tmp_path / "corpus" / ".." / inside, [tmp_path / "corpus"])


def test_nothing_is_written_beside_a_sessions_log(tmp_path: Path) -> None:
    log = tmp_path / "session.v4.jsonl.zstd"
    log.write_bytes(b"")
    with pytest.raises(OutputError):
        refuse_inside(tmp_path / "report.html", [log])


def test_beside_a_corpus_or_an_archive_there_is_room(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "export.zip").write_bytes(b"")
    refuse_inside(tmp_path / "out", [tmp_path / "corpus", tmp_path / "export.zip"])
    refuse_inside(tmp_path, [tmp_path / "corpus"])
    with pytest.raises(OutputError):
        refuse_inside(tmp_path / "export.zip", [tmp_path / "export.zip"])


def test_a_link_into_the_corpus_lies_inside_it(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "corpus")
    with pytest.raises(OutputError):
        refuse_inside(tmp_path / "link" / "out", [tmp_path / "corpus"])
