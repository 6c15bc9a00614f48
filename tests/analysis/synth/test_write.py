from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

import pytest

from analysis.synth import (
    RECIPES,
    InvalidSizeError,
    OutputNotEmptyError,
    SynthError,
    UnknownRecipeError,
    write_corpus,
)
from analysis.synth import corpus as writing


def _content(out: Path) -> dict[str, bytes]:
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.mark.parametrize("version", [4, 3, 0])
@pytest.mark.parametrize("plain", [True, False])
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, version: int, plain: bool) -> None:
    write_corpus(tmp_path / "a", "demo", version=version, plain=plain, seed=7)
    write_corpus(tmp_path / "b", "demo", version=version, plain=plain, seed=7)
    assert _content(tmp_path / "a") == _content(tmp_path / "b")


@pytest.mark.parametrize("recipe", ["demo", "calibrated", "labelled"])
def test_another_seed_gives_other_sessions(tmp_path: Path, recipe: str) -> None:
    write_corpus(tmp_path / "a", recipe, seed=1)
    write_corpus(tmp_path / "b", recipe, seed=2)
    common = set(_content(tmp_path / "a")) & set(_content(tmp_path / "b"))
    assert common == {"truth.json"}


def test_scale_is_the_same_from_the_same_seed_and_differs_from_another(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_corpus(tmp_path / name, "scale", sessions=2, calls=50, result_bytes=100, seed=seed)
    assert _content(tmp_path / "a") == _content(tmp_path / "b")
    assert set(_content(tmp_path / "a")) & set(_content(tmp_path / "c")) == {"truth.json"}


def test_an_unknown_recipe_is_refused_and_the_known_ones_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownRecipeError, match="'dmeo': choose one of calibrated, demo, labelled, scale"):
        write_corpus(tmp_path / "out", "dmeo")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("recipe", "sizes", "message"),
    [
        ("scale", {"sessions": 0}, r"sessions must be at least 1 for the recipe scale \(got 0\)"),
        ("scale", {"sessions": -3}, r"got -3"),
        ("labelled", {"sessions": 4}, r"sessions must be at least 5"),
        ("demo", {"sessions": 5}, r"sessions must be 33 for the recipe demo, or not given \(got 5\)"),
        ("calibrated", {"sessions": 108}, r"sessions must be 107"),
        ("demo", {"version": 2}, r"version must be one of 4, 3, 0 \(got 2\)"),
        ("scale", {"calls": 0}, r"calls must be at least 1"),
        ("scale", {"result_bytes": 0}, r"result_bytes must be at least 1"),
        ("demo", {"calls": 10}, r"calls belongs to the recipe scale"),
    ],
)
def test_a_size_out_of_range_is_refused_before_anything_is_written(
    tmp_path: Path, recipe: str, sizes: dict[str, int], message: str
) -> None:
    with pytest.raises(InvalidSizeError, match=message):
        write_corpus(
            tmp_path / "out",
            recipe,
            sessions=sizes.get("sessions"),
            version=sizes.get("version", 4),
            calls=sizes.get("calls"),
            result_bytes=sizes.get("result_bytes"),
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("recipe", ["demo", "calibrated"])
def test_a_fixed_recipe_takes_its_own_size(tmp_path: Path, recipe: str) -> None:
    usual = RECIPES[recipe].usual
    assert len(write_corpus(tmp_path / "out", recipe, sessions=usual).sessions) == usual


@pytest.mark.parametrize(("recipe", "sessions"), [("labelled", 5), ("labelled", 17), ("scale", 1), ("scale", 6)])
def test_other_recipes_take_any_size(tmp_path: Path, recipe: str, sessions: int) -> None:
    calls = 12 if recipe == "scale" else None
    truth = write_corpus(tmp_path / "out", recipe, sessions=sessions, calls=calls)
    assert len(truth.sessions) == len({session.id for session in truth.sessions}) == sessions


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(OutputNotEmptyError, match="is not empty"):
        write_corpus(tmp_path, "demo")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(SynthError, match="is a file, not a folder"):
        write_corpus(tmp_path / "out", "demo", force=True)


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    assert write_corpus(tmp_path, "demo").sessions


def test_force_replaces_an_earlier_corpus_and_leaves_the_rest(tmp_path: Path) -> None:
    write_corpus(tmp_path, "labelled", seed=1)
    (tmp_path / "mine.txt").write_text("mine")
    kept = tmp_path / "--home-dev-shop--" / "session-mine" / "session.v4.jsonl"
    kept.parent.mkdir()
    kept.write_text("mine")
    truth = write_corpus(tmp_path, "demo", version=3, plain=True, force=True)
    planted = {file.path for session in truth.sessions for file in session.files}
    assert set(_content(tmp_path)) == planted | {
        "truth.json",
        "mine.txt",
        "--home-dev-shop--/session-mine/session.v4.jsonl",
    }


@pytest.mark.parametrize(
    "old",
    [
        '{"sessions": [{"files": [{"path": "../outside/session.v4.jsonl"}]}]}',
        '{"sessions": [{"files": [{"path": "mine.txt"}]}]}',
        "no json",
    ],
)
def test_force_removes_nothing_but_session_files_below_the_folder(tmp_path: Path, old: str) -> None:
    outside = tmp_path / "outside" / "session.v4.jsonl"
    outside.parent.mkdir()
    outside.write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    (out / "truth.json").write_text(old)
    write_corpus(out, "demo", force=True)
    assert outside.read_text() == "mine"
    assert (out / "mine.txt").read_text() == "mine"


def test_a_full_disk_leaves_whole_files_and_no_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tmp_path / "whole"
    write_corpus(whole, "demo")
    written = 0
    real = writing.write_atomically

    def fill_up(path: Path, pieces: Iterable[bytes]) -> None:
        nonlocal written
        written += 1
        if written > 5:
            pieces = _then_full(pieces)
        real(path, pieces)

    monkeypatch.setattr(writing, "write_atomically", fill_up)
    out = tmp_path / "out"
    with pytest.raises(OSError, match="No space left"):
        write_corpus(out, "demo")
    left, complete = _content(out), _content(whole)
    assert len(left) == 5
    assert left.items() <= complete.items()
    assert "truth.json" not in left


def _then_full(pieces: Iterable[bytes]) -> Iterable[bytes]:
    for piece in pieces:
        yield piece[: len(piece) // 2]
        raise OSError(errno.ENOSPC, "No space left on device")
