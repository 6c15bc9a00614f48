"""A small share of the fuzz run, always the same files; the whole run is a script of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.bases import gather
from tests.fuzz.fuzz_sessions import RECORDED, Figures, Fuzzer
from tests.fuzz.invariants import hold
from tests.fuzz.mutations import MUTATIONS, Base, mutant

SHARE = 800
SEED = 3


@pytest.fixture(scope="module")
def bases() -> list[Base]:
    return gather(None)


def test_damaged_logs_raise_nothing_hide_nothing_and_make_nothing_up(bases: list[Base], tmp_path: Path) -> None:
    fuzzer = Fuzzer(bases, SEED, tmp_path)
    for number in range(SHARE):
        fuzzer.take(number)
    figures = fuzzer.figures
    assert figures.faults == []
    assert set(figures.kinds) == set(MUTATIONS)
    assert {"ok", "torn", "partial", "corrupt"} <= set(figures.states)


def test_sound_logs_are_read_whole(bases: list[Base], tmp_path: Path) -> None:
    for number, base in enumerate(bases):
        path = tmp_path / str(number) / base.name
        path.parent.mkdir()
        path.write_bytes(base.text)
        assert hold(path) == "ok"


@pytest.mark.shared
def test_recorded_logs_are_among_what_is_damaged(tmp_path: Path) -> None:
    bases = gather(RECORDED)
    assert len(bases) > len(gather(None)) + 50
    fuzzer = Fuzzer(bases[-60:], SEED, tmp_path)
    for number in range(SHARE // 4):
        fuzzer.take(number)
    assert fuzzer.figures.faults == []


def test_a_number_gives_the_same_file_again(bases: list[Base]) -> None:
    assert [mutant(bases, 7, number) for number in range(20)] == [mutant(bases, 7, number) for number in range(20)]
    assert mutant(bases, 7, 1) != mutant(bases, 8, 1)


def test_a_fault_is_kept_and_the_run_goes_on(
    bases: list[Base], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, limits: object, *, render: bool) -> str:
        raise AssertionError("no")

    monkeypatch.setattr("tests.fuzz.fuzz_sessions.hold", refuse)
    fuzzer = Fuzzer(bases, SEED, tmp_path / "work", tmp_path / "kept")
    fuzzer.take(0)
    fuzzer.take(1)
    assert [fault.split(" ")[0] for fault in fuzzer.figures.faults] == ["0", "1"]
    assert (tmp_path / "kept" / "0" / "traceback.txt").exists()
    (tmp_path / "state.json").write_text(fuzzer.figures.text, encoding="utf-8")
    assert Figures.read(tmp_path / "state.json") == fuzzer.figures
