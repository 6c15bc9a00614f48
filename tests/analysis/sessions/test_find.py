import os
import sys
import zipfile
from pathlib import Path

import pytest

from analysis.sessions.find import Found, PathMissing, SessionFile, default_root, find_sessions


def write(path: Path, data: bytes = b'{"type":"session"}\n') -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def archive(path: Path, *names: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name in names:
            opened.writestr(name, b"x" * 1000)
    return path


def only(found: Found) -> SessionFile:
    assert not found.problems
    (file,) = found.files
    return file


def chosen(found: Found) -> list[str]:
    return [file.shown for file in found.files if file.superseded_by is None]


# Where the sessions are kept


@pytest.mark.parametrize(
    ("environ", "root"),
    [
        ({}, "/home/u/.dsh/sessions"),
        ({"DSH_HOME": ""}, "/home/u/.dsh/sessions"),
        ({"DSH_HOME": " \t"}, "/home/u/.dsh/sessions"),
        ({"DSH_HOME": "/data/dsh"}, "/data/dsh/sessions"),
        ({"DSH_HOME": "~"}, "/home/u/sessions"),
        ({"DSH_HOME": "~/dsh"}, "/home/u/dsh/sessions"),
        ({"DSH_HOME": "~\\dsh"}, "/home/u/dsh/sessions"),
        ({"DSH_HOME": "~//dsh"}, "/home/u/dsh/sessions"),
        ({"DSH_HOME": "~other/dsh"}, "~other/dsh/sessions"),
    ],
)
def test_default_root_follows_the_environment(environ: dict[str, str], root: str) -> None:
    assert default_root(environ, Path("/home/u")) == Path(root)


# What a given path may be


@pytest.mark.parametrize("given", [".", "root", "root/--p--", "root/--p--/session-1"])
def test_any_folder_above_a_log_finds_it(tmp_path: Path, given: str) -> None:
    path = write(tmp_path / "root/--p--/session-1/session.v4.jsonl.zstd", b"12345")
    file = only(find_sessions([tmp_path / given]))
    assert file == SessionFile(
        path=path,
        member=None,
        shown=str(path),
        folder=str(path.parent),
        generation=4,
        compressed=True,
        size=5,
        superseded_by=None,
        note=None,
    )


def test_a_flat_copy_and_a_deep_tree_are_both_walked(tmp_path: Path) -> None:
    write(tmp_path / "session.jsonl")
    write(tmp_path / "a/b/c/d/e/f/session.v4.jsonl")
    assert [file.generation for file in find_sessions([tmp_path]).files] == [4, 0]


def test_a_tree_deeper_than_the_recursion_limit_is_walked(tmp_path: Path) -> None:
    folders = [tmp_path]
    for _ in range(sys.getrecursionlimit() + 100):
        folders.append(folders[-1] / "d")
        folders[-1].mkdir()
    path = write(folders[-1] / "session.jsonl")
    try:
        assert only(find_sessions([tmp_path])).path == path
    finally:
        # What clears away the temporary folder goes by recursion.
        path.unlink()
        for folder in reversed(folders[1:]):
            folder.rmdir()


def test_a_folder_without_logs_gives_nothing(tmp_path: Path) -> None:
    write(tmp_path / "notes.txt")
    assert find_sessions([tmp_path]) == Found((), ())


def test_a_path_that_does_not_exist_is_refused_before_anything_is_walked(tmp_path: Path) -> None:
    with pytest.raises(PathMissing) as caught:
        find_sessions([tmp_path, tmp_path / "gone"])
    assert caught.value.path == tmp_path / "gone"
    assert "gone" in str(caught.value)


@pytest.mark.parametrize("below_a_file", ["log/x", "log/x/y"])
def test_a_path_below_a_file_does_not_exist(tmp_path: Path, below_a_file: str) -> None:
    write(tmp_path / "log")
    with pytest.raises(PathMissing):
        find_sessions([tmp_path / below_a_file])


def test_a_path_with_a_nul_does_not_exist() -> None:
    with pytest.raises(PathMissing, match="x00"):
        find_sessions([Path("a\0b")])


# Names


@pytest.mark.parametrize(
    ("name", "generation", "compressed"),
    [
        ("session.jsonl", 0, False),
        ("session.jsonl.zstd", 0, True),
        ("session.v1.jsonl", 1, False),
        ("session.v4.jsonl.zstd", 4, True),
        ("session.v10.jsonl.zstd", 10, True),
    ],
)
def test_a_session_log_is_known_by_its_name(tmp_path: Path, name: str, generation: int, compressed: bool) -> None:
    write(tmp_path / name)
    file = only(find_sessions([tmp_path]))
    assert (file.generation, file.compressed) == (generation, compressed)


ODD_NAMES = [
    "session.v0.jsonl",
    "session.v04.jsonl",
    "Session.V4.jsonl",
    "session.v4.JSONL",
    "session.v4.jsonl.zst",
    "session.v4.jsonl.zstd.1a2b.tmp",
    "session.migration.77.jsonl.zstd.tmp",
    "session.v-1.jsonl",
    "session.v٤.jsonl",
    "session.v4.jsonl\n",
    "xsession.jsonl",
    "session.lock",
    "session.json",
    "0198-aa.jsonl",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_other_names_are_left_out_of_a_walk(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    assert find_sessions([tmp_path]) == Found((), ())


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_explicitly_named_file_counts_whatever_its_name(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name)
    file = only(find_sessions([path]))
    assert file.path == path
    assert file.generation is None
    assert file.compressed == name.endswith((".zstd", ".zst"))


def test_explicitly_named_files_of_other_names_in_one_folder_are_sessions_of_their_own(tmp_path: Path) -> None:
    found = find_sessions([write(tmp_path / "a.jsonl"), write(tmp_path / "b.jsonl"), write(tmp_path / "session.jsonl")])
    assert [file.superseded_by for file in found.files] == [None, None, None]
    assert len({file.folder for file in found.files}) == 3


def test_an_explicitly_named_log_has_its_generation_and_its_folder(tmp_path: Path) -> None:
    file = only(find_sessions([write(tmp_path / "s/session.v3.jsonl")]))
    assert (file.generation, file.folder) == (3, str(tmp_path / "s"))


def test_a_name_that_is_not_utf_8_is_shown_with_escapes(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    Path(os.fsdecode(folder)).mkdir()
    path = write(Path(os.fsdecode(folder + b"/session.jsonl")))
    file = only(find_sessions([tmp_path]))
    assert file.path == path
    assert file.shown == f"{tmp_path}/caf\\xe9/session.jsonl"
    assert file.folder.encode() == os.fsencode(tmp_path) + rb"/caf\xe9"


def test_a_name_with_control_characters_is_shown_with_escapes(tmp_path: Path) -> None:
    write(tmp_path / "a\x1b[31m\nb" / "session.jsonl")
    assert only(find_sessions([tmp_path])).shown == f"{tmp_path}/a\\x1b[31m\\nb/session.jsonl"


# Generations


def test_the_numerically_highest_generation_is_chosen(tmp_path: Path) -> None:
    for name in ("session.jsonl", "session.v3.jsonl", "session.v9.jsonl.zstd", "session.v10.jsonl"):
        write(tmp_path / "s" / name)
    found = find_sessions([tmp_path])
    newest = str(tmp_path / "s/session.v10.jsonl")
    assert chosen(found) == [newest]
    assert [(file.path.name, file.superseded_by) for file in found.files] == [
        ("session.jsonl", newest),
        ("session.v10.jsonl", None),
        ("session.v3.jsonl", newest),
        ("session.v9.jsonl.zstd", newest),
    ]
    assert {file.folder for file in found.files} == {str(tmp_path / "s")}


def test_generations_of_different_folders_are_different_sessions(tmp_path: Path) -> None:
    old = write(tmp_path / "a/session.jsonl")
    new = write(tmp_path / "b/session.v4.jsonl.zstd")
    assert chosen(find_sessions([tmp_path])) == [str(old), str(new)]


def test_a_corrupt_newest_generation_is_still_the_chosen_one(tmp_path: Path) -> None:
    newest = write(tmp_path / "session.v4.jsonl.zstd", b"")
    write(tmp_path / "session.v3.jsonl.zstd")
    assert chosen(find_sessions([tmp_path])) == [str(newest)]


def test_of_both_encodings_the_compressed_one_is_chosen_with_a_note(tmp_path: Path) -> None:
    plain = write(tmp_path / "session.v4.jsonl")
    packed = write(tmp_path / "session.v4.jsonl.zstd")
    first, second = find_sessions([tmp_path]).files
    assert (first.path, first.superseded_by, first.note) == (plain, str(packed), None)
    assert (second.path, second.superseded_by) == (packed, None)
    assert second.note == "generation 4 is there in both encodings; the compressed one is read"


def test_both_encodings_of_an_older_generation_give_no_note(tmp_path: Path) -> None:
    for name in ("session.v3.jsonl", "session.v3.jsonl.zstd", "session.v4.jsonl"):
        write(tmp_path / name)
    found = find_sessions([tmp_path])
    assert [file.note for file in found.files] == [None, None, None]
    assert chosen(found) == [str(tmp_path / "session.v4.jsonl")]


def test_generations_named_one_by_one_are_still_one_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older = write(tmp_path / "s/session.v3.jsonl")
    newer = write(tmp_path / "s/session.v4.jsonl")
    monkeypatch.chdir(tmp_path)
    found = find_sessions([older, Path("s/session.v4.jsonl")])
    assert [file.superseded_by for file in found.files] == ["s/session.v4.jsonl", None]
    assert {file.folder for file in found.files} == {str(newer.parent)}


# Twice, links, order


def test_a_file_reached_twice_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "s/session.jsonl")
    monkeypatch.chdir(tmp_path)
    file = only(find_sessions([tmp_path, path, Path("s"), Path("s/../s/session.jsonl")]))
    assert file.shown == str(path)


def test_files_come_in_the_order_given_and_sorted_within_one_path(tmp_path: Path) -> None:
    for name in ("b/2", "b/1", "a/9", "a/10"):
        write(tmp_path / name / "session.jsonl")
    found = find_sessions([tmp_path / "b", tmp_path])
    names = [str(file.path.parent.relative_to(tmp_path)) for file in found.files]
    assert names == ["b/1", "b/2", "a/10", "a/9"]


def test_the_order_does_not_hang_on_the_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "cabd":
        write(tmp_path / name / "session.jsonl")
        (tmp_path / f"link-{name}").symlink_to(tmp_path / name)
    expected = find_sessions([tmp_path])

    class Reversed:
        def __init__(self, path: Path) -> None:
            with real(path) as listing:
                self.entries: list[os.DirEntry[str]] = sorted(listing, key=lambda entry: entry.name, reverse=True)

        def __enter__(self) -> list[os.DirEntry[str]]:
            return self.entries

        def __exit__(self, *_: object) -> None:
            return None

    real = os.scandir
    monkeypatch.setattr(os, "scandir", Reversed)
    assert find_sessions([tmp_path]) == expected
    assert len(expected.files) == 4


def test_links_that_form_a_loop_are_followed_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a/b/session.jsonl")
    (tmp_path / "a/b/up").symlink_to(tmp_path)
    (tmp_path / "a/self").symlink_to("self")
    assert chosen(find_sessions([tmp_path])) == [str(path)]


def test_a_log_is_named_by_its_own_path_rather_than_by_a_link(tmp_path: Path) -> None:
    path = write(tmp_path / "z/s/session.jsonl")
    (tmp_path / "a").symlink_to(tmp_path / "z")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/session.jsonl").symlink_to(path)
    assert only(find_sessions([tmp_path])).path == path


def test_a_linked_folder_outside_is_walked(tmp_path: Path) -> None:
    write(tmp_path / "outside/session.jsonl")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside/link").symlink_to(tmp_path / "outside")
    assert only(find_sessions([tmp_path / "inside"])).shown == str(tmp_path / "inside/link/session.jsonl")


# What cannot be looked into


def test_pipes_and_dangling_links_are_reported_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "session.jsonl")
    (tmp_path / "session.v2.jsonl").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "export.zip")
    sound = write(tmp_path / "session.v1.jsonl")
    found = find_sessions([tmp_path])
    assert chosen(found) == [str(sound)]
    assert [(problem.shown, problem.message) for problem in found.problems] == [
        (str(tmp_path / "export.zip"), "is not a regular file"),
        (str(tmp_path / "session.jsonl"), "is not a regular file"),
        (str(tmp_path / "session.v2.jsonl"), "cannot be looked at: No such file or directory"),
    ]


def test_a_named_pipe_or_device_is_reported_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found = find_sessions([tmp_path / "pipe", Path("/dev/null")])
    assert found.files == ()
    assert [problem.message for problem in found.problems] == ["is not a regular file", "is not a regular file"]


def test_a_folder_that_cannot_be_listed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = write(tmp_path / "a/session.jsonl")
    write(tmp_path / "b/session.jsonl")
    real = os.scandir

    def refusing(path: Path) -> object:
        if path == tmp_path / "b":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)
    found = find_sessions([tmp_path])
    assert chosen(found) == [str(sound)]
    (problem,) = found.problems
    assert (problem.shown, problem.message) == (str(tmp_path / "b"), "the folder cannot be listed: Permission denied")


# Archives


@pytest.mark.parametrize("walked", [True, False])
def test_logs_inside_an_archive_are_found(tmp_path: Path, walked: bool) -> None:
    path = archive(tmp_path / "export.ZIP", "session.jsonl", "readme.txt", "s/session.v4.jsonl", "s/session.v3.jsonl")
    found = find_sessions([tmp_path if walked else path])
    assert found.problems == ()
    assert [(file.shown, file.member, file.folder, file.generation) for file in found.files] == [
        (f"{path}!s/session.v3.jsonl", "s/session.v3.jsonl", f"{path}!s", 3),
        (f"{path}!s/session.v4.jsonl", "s/session.v4.jsonl", f"{path}!s", 4),
        (f"{path}!session.jsonl", "session.jsonl", f"{path}!", 0),
    ]
    assert chosen(found) == [f"{path}!s/session.v4.jsonl", f"{path}!session.jsonl"]
    assert {file.size for file in found.files} == {1000}


def test_a_named_archive_is_known_by_its_content(tmp_path: Path) -> None:
    path = archive(tmp_path / "download", "session.jsonl")
    assert only(find_sessions([path])).shown == f"{path}!session.jsonl"


def test_an_archive_reached_twice_counts_once(tmp_path: Path) -> None:
    path = archive(tmp_path / "export.zip", "session.jsonl")
    assert only(find_sessions([path, tmp_path])).member == "session.jsonl"


def test_an_archive_without_logs_gives_nothing(tmp_path: Path) -> None:
    archive(tmp_path / "other.zip", "photo.png")
    assert find_sessions([tmp_path]) == Found((), ())


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off"])
def test_an_archive_that_cannot_be_opened_is_reported(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path / "export.zip", content)
    found = find_sessions([tmp_path])
    assert found.files == ()
    (problem,) = found.problems
    assert problem.shown == str(path)
    assert problem.message.startswith("the archive cannot be opened: ")


def test_an_archive_damaged_anywhere_never_raises(tmp_path: Path) -> None:
    sound = archive(tmp_path / "export.zip", "a/session.jsonl").read_bytes()
    path = tmp_path / "damaged.zip"
    for place in range(len(sound)):
        damaged = bytearray(sound)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        found = find_sessions([path])
        assert len(found.files) + len(found.problems) <= 1


def test_two_entries_of_one_name_are_one_log_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("session.jsonl", b"first")
        with pytest.warns(UserWarning, match="Duplicate name"):
            opened.writestr("session.jsonl", b"second!")
    file = only(find_sessions([path]))
    assert file.size == len(b"second!")
    assert file.note == "the archive holds 2 entries of this name; the last is read"


def test_an_overlong_generation_inside_an_archive_is_no_session(tmp_path: Path) -> None:
    archive(tmp_path / "export.zip", f"session.v{'9' * 6000}.jsonl")
    assert find_sessions([tmp_path]) == Found((), ())
