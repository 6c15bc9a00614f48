"""The folder of entries: what is written is what is read, and whatever else lies there counts as missing."""

from __future__ import annotations

import multiprocessing
import os
import stat
import time
from pathlib import Path

import pytest
import zstandard

from analysis.cache import Store
from analysis.cache.place import default_folder, fault_of_default
from analysis.cache.store import LARGEST_ENTRY, PruneLock, sealed

KEY, OTHER = bytes(range(20)), bytes(range(1, 21))
PAYLOAD = b"what a session came to" * 9
HOUR = 3600


def path_of(folder: Path, key: bytes = KEY, kind: str = "facts") -> Path:
    return folder / "v1" / key.hex()[:2] / f"{key.hex()}.{kind}"


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_what_is_written_is_read_by_its_kind_and_key_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "a" / "cache")
    assert store.get("facts", KEY) is None
    assert store.put("facts", KEY, PAYLOAD)
    assert store.put("facts", OTHER, b"")
    assert (store.get("facts", KEY), store.get("facts", OTHER)) == (PAYLOAD, b"")
    assert (store.get("replay", KEY), store.has("facts", KEY), store.has("replay", KEY)) == (None, True, False)
    store.put("facts", KEY, b"newer")
    assert store.get("facts", KEY) == b"newer"


def test_only_the_owner_may_look(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    Store(folder).put("facts", KEY, PAYLOAD)
    path = path_of(folder)
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (folder, folder / "v1", path.parent, path)]
    assert modes == [0o700, 0o700, 0o700, 0o600]


def forms(data: bytes, other: bytes) -> dict[str, bytes]:
    """Return what could stand in an entry's place."""
    bomb = zstandard.ZstdCompressor().compress(bytes(LARGEST_ENTRY + 1))
    magic = data[:8]
    return {
        "empty": b"",
        "foreign": b"#!/bin/sh\nexit 1\n",
        "truncated": data[:-1],
        "cut to its head": data[:28],
        "longer": data + b"\0",
        "one bit changed": data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
        "another's": other,
        "another's payload": data[:28] + other[28:],
        "of another format": b"breaker\2" + data[8:],
        "a bomb": magic + sealed("facts", KEY, bomb) + bomb,
        "no frame": magic + sealed("facts", KEY, b"text") + b"text",
    }


@pytest.mark.parametrize("form", forms(b"x" * 60, b"y" * 60))
def test_whatever_is_not_as_it_was_written_is_missing_and_is_replaced(tmp_path: Path, form: str) -> None:
    store = Store(tmp_path)
    store.put("facts", KEY, PAYLOAD)
    store.put("facts", OTHER, PAYLOAD + b"2")
    path = path_of(tmp_path)
    path.write_bytes(forms(path.read_bytes(), path_of(tmp_path, OTHER).read_bytes())[form])
    assert store.get("facts", KEY) is None
    store.put("facts", KEY, PAYLOAD)
    assert store.get("facts", KEY) == PAYLOAD


def test_links_pipes_and_folders_in_an_entrys_place_are_no_entries(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("facts", OTHER, PAYLOAD)
    path = path_of(tmp_path)
    path.parent.mkdir(parents=True)
    for place in (lambda: path.symlink_to(path_of(tmp_path, OTHER)), lambda: os.mkfifo(path), path.mkdir):
        place()
        assert (store.get("facts", KEY), store.has("facts", KEY)) == (None, False)
        assert [entry.path for entry in store.entries()] == [path_of(tmp_path, OTHER)]
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()


def test_a_payload_that_is_too_large_is_not_kept(tmp_path: Path) -> None:
    assert not Store(tmp_path).put("facts", KEY, bytes(LARGEST_ENTRY + 1))
    assert files(tmp_path) == []


def test_a_fault_of_the_disk_leaves_no_part_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    store = Store(tmp_path)
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        store.put("facts", KEY, PAYLOAD)
    assert files(tmp_path) == []


def test_pruning_removes_what_was_of_no_use_for_longest(tmp_path: Path) -> None:
    store = Store(tmp_path)
    keys = [bytes([number]) * 20 for number in range(10)]
    for number, key in enumerate(keys):
        store.put("facts", key, os.urandom(1000))
        age(path_of(tmp_path, key), (10 - number) * HOUR * 2)
    assert store.get("facts", keys[0]) is not None  # and so it was of use now
    size = next(entry.size for entry in store.entries())
    assert size >= path_of(tmp_path, keys[1]).stat().st_size
    assert store.prune(10 * size) == []
    removed = store.prune(5 * size)
    assert [entry.path for entry in removed] == [path_of(tmp_path, key) for key in keys[1:7]]
    assert {entry.path for entry in store.entries()} == {path_of(tmp_path, key) for key in (keys[0], *keys[7:])}
    assert sum(entry.size for entry in store.entries()) <= 5 * size


def test_pruning_by_age(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("facts", KEY, PAYLOAD)
    store.put("replay", OTHER, PAYLOAD)
    age(path_of(tmp_path), 3 * HOUR)
    removed = store.prune(10**9, older_than=2 * HOUR)
    assert [(entry.path, entry.kind) for entry in removed] == [(path_of(tmp_path), "facts")]
    assert store.get("replay", OTHER) == PAYLOAD


def test_only_stale_parts_of_the_caches_own_are_removed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("facts", KEY, PAYLOAD)
    shelf = path_of(tmp_path).parent
    old, new, foreign = (shelf / name for name in (f".{'a' * 16}.part", f".{'b' * 16}.part", ".notes.part"))
    for path in (old, new, foreign):
        path.write_bytes(b"x")
    age(old, 2 * HOUR)
    age(foreign, 2 * HOUR)
    store.prune(10**9)
    assert [path.exists() for path in (old, new, foreign)] == [False, True, True]


def test_one_process_prunes_at_a_time(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("facts", KEY, PAYLOAD)
    with PruneLock(tmp_path / "v1" / "prune.lock") as lock:
        assert lock.held
        assert store.prune(0) == []
    assert len(store.prune(0)) == 1


def test_clearing_leaves_everything_that_is_no_entry(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("facts", KEY, PAYLOAD)
    store.put("seen", OTHER, PAYLOAD)
    store.prune(10**9)
    mine = (
        "notes.txt",
        "v1/readme",
        f"v1/zz/{KEY.hex()}.facts",
        f"v1/{KEY.hex()[:2]}/{OTHER.hex()}.facts",
        f"v1/{KEY.hex()[:2]}/{KEY.hex()}.txt",
        f"{KEY.hex()[:2]}/{KEY.hex()}.facts",
    )
    for name in mine:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / f"{'ab' * 20}.facts").write_text("mine")
    (tmp_path / "v1" / "ab").symlink_to(elsewhere)
    assert len(store.clear()) == 2
    assert files(tmp_path) == sorted((*mine, f"elsewhere/{'ab' * 20}.facts"))


def test_clearing_an_empty_or_missing_folder_is_fine(tmp_path: Path) -> None:
    assert Store(tmp_path / "missing").clear() == []
    assert Store(tmp_path / "missing").prune(0) == []
    store = Store(tmp_path / "cache")
    store.put("facts", KEY, PAYLOAD)
    assert (len(store.clear()), list((tmp_path / "cache").iterdir())) == (1, [])


def write_many(folder: str, seed: int) -> None:
    store = Store(Path(folder))
    for number in range(120):
        key = bytes([number % 40]) * 20
        store.put("facts", key, bytes([number % 40]) * 500)
        found = store.get("facts", key)
        assert found in {None, bytes([number % 40]) * 500}
        if number % 20 == seed:
            store.prune(2000)


def test_several_processes_write_read_and_prune_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=write_many, args=(str(tmp_path), seed)) for seed in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    store = Store(tmp_path)
    assert all(store.get("facts", bytes.fromhex(entry.path.stem)) is not None for entry in store.entries())
    assert [name for name in files(tmp_path) if name.endswith(".part")] == []


# Where it lies


@pytest.mark.parametrize(
    ("platform", "environ", "folder"),
    [
        ("linux", {"HOME": "/h"}, "/h/.cache/breaker"),
        ("linux", {"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/x/breaker"),
        ("linux", {"HOME": "/h", "XDG_CACHE_HOME": "not/absolute"}, "/h/.cache/breaker"),
        ("linux", {"HOME": ""}, None),
        ("linux", {}, None),
        ("darwin", {"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/h/Library/Caches/breaker"),
        ("win32", {"LOCALAPPDATA": "/l", "HOME": "/h"}, "/l/breaker/Cache"),
        ("win32", {"HOME": "/h"}, None),
    ],
)
def test_the_platforms_folder(platform: str, environ: dict[str, str], folder: str | None) -> None:
    assert default_folder(environ, platform) == (None if folder is None else Path(folder))


def test_a_folder_that_others_could_write_is_not_used_unasked(tmp_path: Path) -> None:
    fine, open_to_all, link, file = (tmp_path / name for name in ("fine", "open", "link", "file"))
    fine.mkdir(mode=0o700)
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    link.symlink_to(fine)
    file.write_text("")
    assert fault_of_default(fine) is None
    assert fault_of_default(tmp_path / "not there yet") is None
    told = [fault_of_default(path) for path in (open_to_all, link, file)]
    assert told == [
        f"{open_to_all}: can be written by other users",
        f"{link}: is a symbolic link",
        f"{file}: is not a folder",
    ]


def test_a_folder_of_another_user_is_not_used_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: theirs.stat().st_uid + 1)
    assert fault_of_default(theirs) == f"{theirs}: belongs to another user"
