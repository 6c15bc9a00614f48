"""What is kept of sessions that were read: the same numbers from it as from the log, or nothing."""

from __future__ import annotations

import io
import os
import shutil
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.cache import Cache, RecordingReader, ReplayAnswers, StoredReader
from analysis.cache.answers import about, report_of, session_of
from analysis.cache.keys import Content, content_of, key_of, program_digest, stamp_of
from analysis.cache.store import LARGEST_ENTRY, Store
from analysis.corpus import CorpusReplay, Period, replay_corpus
from analysis.labels import LabelRules, parse_label
from analysis.processes.pool import run_files
from analysis.reading import Item, Reading
from analysis.replay import FailureKey, FirstTrip, MeasureCount, ReplayEvent, ReplayPlan, SessionReplay
from analysis.sessions.decode import Limits
from analysis.sessions.facts import CallFact, Fact, SettleFact, TurnFact, arguments_of
from analysis.sessions.find import SessionFile, find_sessions
from analysis.sessions.header import Header, read_header
from analysis.sessions.outcomes import Outcome
from analysis.sessions.report import ReadDefect, ReadReport
from analysis.sessions.session import SessionReader
from analysis.sessions.session_facts import SessionFacts
from analysis.sweep import Base, Sweep, parse_axis, plan_sweep, sweep_corpus
from analysis.synth import write_corpus
from breaker.failure import Failure
from breaker.measures import Call
from breaker.rulesets import DEFAULT_RULESET, RULESETS
from breaker.settings import Settings
from tests.analysis.logs import LogWriter
from tests.fuzz.session_strategies import Act, compose, sessions

PLAN = ReplayPlan(keep_events=True)


def session(name: str, *commands: str, text: str = "no\n[exit code: 1]") -> LogWriter:
    log = LogWriter(f"session-{name}")
    log.user()
    for command in commands or ("make", "make", "make"):
        log.bash(command, text)
    return log


def an_hour_later() -> float:
    return time.time() + 3600


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        session(name).write(tmp_path / "corpus")
    return tmp_path / "corpus"


@pytest.fixture
def cache(tmp_path: Path) -> Callable[..., Cache]:
    """Return what opens the cache, in which every file has been left alone for long."""
    return lambda: Cache(tmp_path / "cache", clock=an_hour_later)


def tally(cache: Cache) -> tuple[int, int, int, int]:
    told = cache.tally
    return (told.log, told.facts, told.answer, told.stored)


def seen(corpus: CorpusReplay) -> object:
    return (corpus.sessions, corpus.reports, corpus.problems, corpus.filtered, corpus.warnings)


def replayed(corpus: Path, cache: Cache | None, plan: ReplayPlan = PLAN, **options: Any) -> CorpusReplay:
    return replay_corpus([corpus], plan, cache=cache, **options)


# What is looked up, and what is read


def test_an_unchanged_corpus_is_read_once(corpus: Path, cache: Callable[..., Cache]) -> None:
    plain = replayed(corpus, None)
    tallies: list[tuple[int, int, int, int]] = []
    for _ in range(2):
        opened = cache()
        assert seen(replayed(corpus, opened)) == seen(plain)
        tallies.append(tally(opened))
    assert tallies == [(3, 0, 0, 6), (0, 0, 3, 0)]


def test_a_changed_session_is_read_again_alone(corpus: Path, cache: Callable[..., Cache]) -> None:
    replayed(corpus, cache())
    session("b", "make", "make", "make", "make").write(corpus)
    opened = cache()
    assert seen(replayed(corpus, opened)) == seen(replayed(corpus, None))
    assert tally(opened) == (1, 0, 2, 2)


def test_a_change_that_keeps_size_and_time_is_seen(corpus: Path, cache: Callable[..., Cache]) -> None:
    replayed(corpus, cache())
    path = next(corpus.rglob("session-b/*.jsonl"))
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"exit code: 1", b"exit code: 0"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    opened = cache()
    assert seen(replayed(corpus, opened)) == seen(replayed(corpus, None))
    assert tally(opened) == (1, 0, 2, 2)


def test_other_settings_need_no_log(corpus: Path, cache: Callable[..., Cache]) -> None:
    replayed(corpus, cache())
    for changed in (
        replace(PLAN, settings=Settings.from_config({"warnAt": 2, "limits": {"cmd": 3}})),
        replace(PLAN, policy="approve"),
        replace(PLAN, keep_events=False),
        replace(PLAN, shell_http="on"),
        replace(PLAN, machine=frozenset({"here"})),
    ):
        opened = cache()
        assert seen(replayed(corpus, opened, changed)) == seen(replayed(corpus, None, changed))
        assert tally(opened) == (0, 3, 0, 3)


@pytest.mark.parametrize(
    "options",
    [
        {"plan": replace(PLAN, ruleset=RULESETS["0.5.0"], settings=Settings.from_config({}, RULESETS["0.5.0"]))},
        {"plan": replace(PLAN, result_source="log")},
        {"digests": True},
    ],
    ids=["ruleset", "source", "digests"],
)
def test_what_decides_the_facts_needs_the_log(
    corpus: Path, cache: Callable[..., Cache], options: dict[str, Any]
) -> None:
    replayed(corpus, cache())
    opened = cache()
    assert seen(replayed(corpus, opened, **options)) == seen(replayed(corpus, None, **options))
    assert tally(opened) == (3, 0, 0, 6)


def test_messages_quote_results_and_so_need_the_log_once(corpus: Path, cache: Callable[..., Cache]) -> None:
    plan = replace(PLAN, keep_messages=True, settings=Settings.from_config({"failWarnAt": 2, "failLimit": 3}))
    plain = seen(replayed(corpus, None, plan))
    replayed(corpus, cache())
    tallies: list[tuple[int, int, int, int]] = []
    for _ in range(2):
        opened = cache()
        assert seen(replayed(corpus, opened, plan)) == plain
        tallies.append(tally(opened))
    assert tallies == [(3, 0, 0, 3), (0, 0, 3, 0)]


def test_a_close_reading_does_without(corpus: Path, cache: Callable[..., Cache]) -> None:
    replayed(corpus, cache())
    opened = cache()
    assert seen(replayed(corpus, opened, closely=True)) == seen(replayed(corpus, None, closely=True))
    assert tally(opened) == (0, 0, 0, 0)


def test_another_program_finds_nothing(
    corpus: Path, cache: Callable[..., Cache], monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed(corpus, cache())
    monkeypatch.setattr("analysis.cache.cache.program_digest", lambda: b"another")
    opened = cache()
    replayed(corpus, opened)
    assert tally(opened) == (3, 0, 0, 6)


def test_a_program_that_cannot_read_its_sources_keeps_nothing(
    corpus: Path, cache: Callable[..., Cache], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("analysis.cache.cache.program_digest", lambda: None)
    opened = cache()
    assert seen(replayed(corpus, opened)) == seen(replayed(corpus, None))
    assert (tally(opened), (tmp_path / "cache").exists()) == ((0, 0, 0, 0), False)


def test_copies_and_other_names_are_known_by_what_they_hold(
    corpus: Path, cache: Callable[..., Cache], tmp_path: Path
) -> None:
    replayed(corpus, cache())
    moved = tmp_path / "moved"
    shutil.copytree(corpus, moved)
    (moved / "--p--" / "session-a").rename(moved / "z")
    opened = cache()
    found = replayed(moved, opened)
    assert seen(found) == seen(replayed(moved, None))
    assert all(row.path.startswith(str(moved)) for row in found.sessions)
    assert tally(opened) == (0, 0, 3, 0)


def test_a_member_of_an_archive_is_known_by_how_it_is_packed(
    corpus: Path, cache: Callable[..., Cache], tmp_path: Path
) -> None:
    def pack(path: Path, text: bytes) -> Path:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo("s/session.v4.jsonl"), text)
        return path

    text = next(corpus.rglob("session-a/*.jsonl")).read_bytes()
    first = pack(tmp_path / "one.zip", text)
    second = pack(tmp_path / "two.zip", text)
    third = pack(tmp_path / "three.zip", text.replace(b"exit code: 1", b"exit code: 0"))
    tallies: list[tuple[int, int, int, int]] = []
    for path in (first, second, third):
        opened = cache()
        assert seen(replayed(path, opened)) == seen(replayed(path, None))
        tallies.append(tally(opened))
    assert tallies == [(1, 0, 0, 2), (0, 0, 1, 0), (1, 0, 0, 2)]


def test_the_note_and_the_generation_a_name_tells_are_part_of_it(
    corpus: Path, cache: Callable[..., Cache], tmp_path: Path
) -> None:
    path = next(corpus.rglob("session-a/*.jsonl"))
    folders: list[Path] = []
    for name in ("session.v4.jsonl", "session.v3.jsonl", "log.txt"):
        folders.append(tmp_path / name)
        folders[-1].mkdir()
        shutil.copy(path, folders[-1] / name)
    for place in (folders[0], folders[1], folders[2] / "log.txt"):
        opened = cache()
        assert seen(replayed(place, opened)) == seen(replayed(place, None))
        assert opened.tally.log == 1


def test_labels_copies_and_missing_parents_are_told_anew(corpus: Path, cache: Callable[..., Cache]) -> None:
    shutil.copytree(corpus / "--p--" / "session-a", corpus / "copy")
    LogWriter("session-fork", isSeeded=True, parentSession="session-nowhere").write(corpus)

    def run(label: str, cache: Cache | None) -> CorpusReplay:
        return replay_corpus([corpus], PLAN, labels=LabelRules([parse_label(label)]), cache=cache)

    run("good=session-b", cache())
    for label in ("good=session-b", "stuck=session-c"):
        opened = cache()
        found = run(label, opened)
        assert seen(found) == seen(run(label, None))
        assert opened.tally.answer == 5
    assert {report.state for report in found.reports} == {"ok", "duplicate"}


def test_what_cannot_be_used_is_kept_too(corpus: Path, cache: Callable[..., Cache]) -> None:
    (corpus / "x").mkdir()
    (corpus / "x" / "session.v4.jsonl").write_bytes(b"no log\n")
    replayed(corpus, cache())
    opened = cache()
    assert seen(replayed(corpus, opened)) == seen(replayed(corpus, None))
    assert tally(opened) == (0, 0, 4, 0)


def test_what_the_system_failed_to_give_is_not_kept(
    corpus: Path, cache: Callable[..., Cache], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(io.FileIO):
        def read(self, *_: object) -> bytes:
            raise OSError(5, "Input/output error")

        readinto = readall = read

    with monkeypatch.context() as patch:
        patch.setattr("analysis.sessions.decode.io.FileIO", Failing)
        opened = cache()
        assert replayed(corpus, opened).read_counts["ok"] == 0
        assert tally(opened) == (3, 0, 0, 0)
    opened = cache()
    assert replayed(corpus, opened).read_counts["ok"] == 3
    assert tally(opened) == (3, 0, 0, 6)


def test_a_log_that_grows_while_it_is_read_is_not_kept(
    corpus: Path, cache: Callable[..., Cache], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = next(corpus.rglob("session-b/*.jsonl"))

    unchanged = Cache.is_unchanged

    def grow(self: Cache, file: SessionFile, content: Content) -> bool:
        if file.path == path:
            path.write_bytes(path.read_bytes() + b"\n")
        return unchanged(self, file, content)

    monkeypatch.setattr(Cache, "is_unchanged", grow)
    opened = cache()
    replayed(corpus, opened)
    assert tally(opened) == (3, 0, 0, 4)


def test_a_header_read_before_a_log_changed_is_not_remembered(
    corpus: Path, cache: Callable[..., Cache], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = next(corpus.rglob("session-b/*.jsonl"))

    def read_then_change(file: SessionFile, limits: Limits) -> Header | None:
        header = read_header(file, limits)
        if file.path == path:
            path.write_bytes(path.read_bytes().replace(b'"createdAt": 1', b'"createdAt": 2'))
        return header

    with monkeypatch.context() as patch:
        patch.setattr("analysis.corpus.read_header", read_then_change)
        replayed(corpus, cache())
    late = Period(since=2e12)
    found = replay_corpus([corpus], PLAN, period=late, cache=cache())
    assert seen(found) == seen(replay_corpus([corpus], PLAN, period=late))
    assert [row.session_id for row in found.sessions] == ["session-b"]


def test_what_is_no_regular_file_is_not_looked_at(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "session.jsonl")
    file = SessionFile(tmp_path / "session.jsonl", None, "x", "x", 0, False, 0, None, None)
    assert content_of(file) is None
    assert content_of(msgspec.structs.replace(file, path=tmp_path / "missing")) is None


def test_times_vouch_for_a_file_only_once_it_was_left_alone(corpus: Path, tmp_path: Path) -> None:
    (file,) = find_sessions([corpus / "--p--" / "session-a"]).files
    for later, known in ((0, False), (3600, True)):
        opened = Cache(tmp_path / "cache", clock=lambda later=later: time.time() + later)
        opened.look_at(file, None, stamp_of(file), Limits())
        assert (opened.recall(file, Limits()) is not None) is known
        assert opened.recall(file, Limits(max_line=9)) is None


# What goes wrong


def entries(folder: Path, kind: str) -> list[Path]:
    return sorted(folder.rglob(f"*.{kind}"))


def swapped(paths: list[Path]) -> None:
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)


def resealed(path: Path, payload: bytes) -> None:
    """Put another payload in an entry's place, sealed as it should be."""
    key = bytes.fromhex(path.stem)
    Store(path.parent.parent.parent).put(path.suffix[1:], key, payload)


DAMAGES: dict[str, Callable[[list[Path]], object]] = {
    "truncated": lambda paths: [path.write_bytes(path.read_bytes()[:-5]) for path in paths],
    "emptied": lambda paths: [path.write_bytes(b"") for path in paths],
    "foreign": lambda paths: [path.write_bytes(b"{}") for path in paths],
    "swapped": swapped,
    "removed": lambda paths: [path.unlink() for path in paths],
    "too large": lambda paths: [path.write_bytes(bytes(LARGEST_ENTRY + 1)) for path in paths],
    "of another shape": lambda paths: [resealed(path, b"\x93\x01\x02\x03") for path in paths],
    "nothing inside": lambda paths: [resealed(path, b"") for path in paths],
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["facts", "replay", "seen"])
def test_a_damaged_entry_counts_as_missing_and_is_replaced(
    corpus: Path, cache: Callable[..., Cache], tmp_path: Path, kind: str, damage: str
) -> None:
    plan = replace(PLAN, policy="observe") if kind == "facts" else PLAN
    replayed(corpus, cache())
    paths = entries(tmp_path / "cache", kind)
    assert len(paths) == 3
    DAMAGES[damage](paths)
    opened = cache()
    assert seen(replayed(corpus, opened, plan)) == seen(replayed(corpus, None, plan))
    assert tally(opened)[:3] == {"facts": (3, 0, 0), "replay": (0, 3, 0), "seen": (0, 0, 3)}[kind]
    again = cache()
    replayed(corpus, again, plan)
    assert tally(again) == (0, 0, 3, 0)


def test_facts_that_fail_half_way_are_given_up_for_the_log(
    corpus: Path, cache: Callable[..., Cache], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analysis.cache.facts._FACTS_AT_ONCE", 2)
    replayed(corpus, cache())
    for path in entries(tmp_path / "cache", "facts"):
        payload = Store(tmp_path / "cache").get("facts", bytes.fromhex(path.stem))
        assert payload is not None
        first = 4 + int.from_bytes(payload[:4], "little")
        resealed(path, payload[: first + 4] + b"\xc1" + payload[first + 5 :])
    plan = replace(PLAN, policy="observe")
    opened = cache()
    assert seen(replayed(corpus, opened, plan)) == seen(replayed(corpus, None, plan))
    assert tally(opened) == (3, 0, 0, 6)


def test_a_full_disk_ends_writing_and_nothing_else(
    corpus: Path, cache: Callable[..., Cache], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    puts = 0

    def full(*_: object) -> bool:
        nonlocal puts
        puts += 1
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "put", full)
    opened = cache()
    assert seen(replayed(corpus, opened)) == seen(replayed(corpus, None))
    assert opened.fault == f"the cache {tmp_path / 'cache'} cannot be written: No space left on device"
    assert (tally(opened), puts) == ((3, 0, 0, 0), 1)


def test_a_folder_that_cannot_be_one_is_a_fault_of_writing_alone(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    opened = Cache(tmp_path / "file" / "cache")
    assert seen(replayed(corpus, opened)) == seen(replayed(corpus, None))
    assert opened.fault == f"the cache {tmp_path / 'file' / 'cache'} cannot be written: Not a directory"


def test_a_folder_that_vanishes_during_the_run_costs_nothing(
    corpus: Path, cache: Callable[..., Cache], tmp_path: Path
) -> None:
    replayed(corpus, cache())
    opened = cache()

    class Vanishing:
        def start(self, total_bytes: int) -> None:
            assert total_bytes > 0

        def advance(self, read_bytes: int) -> None:
            assert read_bytes > 0
            shutil.rmtree(tmp_path / "cache", ignore_errors=True)

    found = replay_corpus([corpus], PLAN, cache=opened, progress=Vanishing())
    assert seen(found) == seen(replayed(corpus, None))
    assert (opened.fault, opened.tally.answer, opened.tally.log) == (None, 1, 2)


def test_a_run_that_wrote_keeps_the_cache_within_its_limit(corpus: Path, tmp_path: Path) -> None:
    opened = Cache(tmp_path / "cache", limit=10_000)
    replayed(corpus, opened)
    assert sum(entry.size for entry in opened.store.entries()) > 10_000
    opened.close()
    assert 0 < sum(entry.size for entry in opened.store.entries()) <= 10_000


# Several processes


@pytest.mark.parametrize("order", [1, -1])
def test_several_processes_come_to_the_same_and_are_started_for_what_is_missing_alone(
    corpus: Path, cache: Callable[..., Cache], monkeypatch: pytest.MonkeyPatch, order: int
) -> None:
    begun: list[list[str]] = []

    def watched(items: Sequence[Item], work: Reading, **options: Any) -> object:
        begun.append([item.file.path.parent.name for item in items])
        return run_files(items, work, **options)

    monkeypatch.setattr("analysis.corpus.run_files", watched)
    paths = [path.parent for path in sorted(corpus.rglob("session.v4.jsonl"))][::order]
    tallies: list[tuple[int, int, int, int]] = []
    for _ in range(2):
        opened = cache()
        assert seen(replay_corpus(paths, PLAN, jobs=2, cache=opened)) == seen(replay_corpus(paths, PLAN))
        tallies.append(tally(opened))
    session("a", "ls").write(corpus)
    session("c", "ls").write(corpus)
    opened = cache()
    assert seen(replay_corpus(paths, PLAN, jobs=2, cache=opened)) == seen(replay_corpus(paths, PLAN))
    assert [*tallies, tally(opened)] == [(3, 0, 0, 6), (0, 0, 3, 0), (2, 0, 1, 4)]
    names = ["session-a", "session-b", "session-c"][::order]
    assert begun == [names, [name for name in names if name != "session-b"]]


def test_a_fault_of_the_disk_in_another_process_is_told(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    opened = Cache(tmp_path / "file" / "cache")
    found = replay_corpus([corpus], PLAN, jobs=2, cache=opened)
    assert seen(found) == seen(replayed(corpus, None))
    assert opened.fault == f"the cache {tmp_path / 'file' / 'cache'} cannot be written: Not a directory"


# Sweeps


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labelled")
    write_corpus(folder, "demo")
    return folder


GRID = ("warnAt=2..4", "limits.cmd=3,4,null", "failLimit=3,null", "policy=deny,observe")


def swept(
    corpus: Path,
    cache: Cache | None,
    label: str | None = "good=*",
    jobs: int = 1,
    grid: Sequence[str] = GRID,
    **base: Any,
) -> Sweep:
    axes = [parse_axis(text) for text in grid]
    plan = plan_sweep(Base(), axes, [], sample=None, seed=0)
    labels = LabelRules([] if label is None else [parse_label(label)])
    return sweep_corpus([corpus], plan, ReplayPlan(**base), labels=labels, jobs=jobs, cache=cache)


def counts(sweep: Sweep) -> object:
    return (sweep.rows, sweep.labels, sweep.work, sweep.sessions, sweep.corpus.reports, sweep.front)


def test_a_second_sweep_runs_neither_reader_nor_engine(
    labelled: Path, cache: Callable[..., Cache], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = {label: counts(swept(labelled, None, label)) for label in ("good=*", "stuck=*a*")}
    opened = cache()
    assert counts(swept(labelled, opened)) == plain["good=*"]
    sessions = opened.tally.log
    monkeypatch.setattr("analysis.sweep.corpus.run_script", None)
    monkeypatch.setattr("analysis.read_session.SessionReader", None)
    for label, expected in plain.items():
        opened = cache()
        assert counts(swept(labelled, opened, label)) == expected
        assert tally(opened) == (0, 0, sessions, 0)


def test_labels_given_later_get_peaks_from_the_same_facts(labelled: Path, cache: Callable[..., Cache]) -> None:
    opened = cache()
    assert counts(swept(labelled, opened, None)) == counts(swept(labelled, None, None))
    sessions = opened.tally.log
    opened = cache()
    assert counts(swept(labelled, opened)) == counts(swept(labelled, None))
    assert tally(opened) == (0, sessions, 0, sessions)
    opened = cache()
    assert counts(swept(labelled, opened, None)) == counts(swept(labelled, None, None))
    assert tally(opened) == (0, 0, sessions, 0)


def test_a_sweep_reads_the_facts_a_replay_left_and_the_other_way_round(
    labelled: Path, cache: Callable[..., Cache]
) -> None:
    replayed(labelled, opened := cache())
    sessions = opened.tally.log
    opened = cache()
    assert counts(swept(labelled, opened)) == counts(swept(labelled, None))
    assert tally(opened)[:3] == (0, sessions, 0)
    opened = cache()
    assert counts(swept(labelled, opened, policy="observe")) == counts(swept(labelled, None, policy="observe"))
    assert tally(opened)[:3] == (0, sessions, 0)


def test_another_grid_is_another_answer_from_the_same_facts(labelled: Path, cache: Callable[..., Cache]) -> None:
    swept(labelled, opened := cache())
    sessions = opened.tally.log
    for grid in (("warnAt=2..5",), ("warnAt=5,4,3,2",), ("warnAt=2..5", "policy=unattended,approve")):
        opened = cache()
        assert counts(swept(labelled, opened, grid=grid)) == counts(swept(labelled, None, grid=grid))
        assert tally(opened) == (0, sessions, 0, sessions)


def test_a_sweep_in_several_processes_comes_to_the_same(labelled: Path, cache: Callable[..., Cache]) -> None:
    plain = counts(swept(labelled, None))
    assert counts(swept(labelled, None, jobs=2)) == plain
    opened = cache()
    assert counts(swept(labelled, opened, jobs=2)) == plain
    assert opened.tally.stored == 2 * opened.tally.log > 0


# Exactly what was read


def texts() -> st.SearchStrategy[str]:
    return st.text(max_size=6) | st.sampled_from(["\ud800", "a\0b", "\u2028", "é"])


def times() -> st.SearchStrategy[float | None]:
    return st.none() | st.sampled_from([0, 0.0, -0.0, 1, 1.0, 1.5, -3, 2**53, 2**64])


def numbers() -> st.SearchStrategy[float]:
    return (
        st.integers() | st.floats() | st.sampled_from([1, 1.0, True, 0, -0.0, 2**63, 2**64, -(2**63) - 1, float("nan")])
    )


def json_values() -> st.SearchStrategy[object]:
    return st.recursive(
        st.none() | st.booleans() | numbers() | texts(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3),
        max_leaves=8,
    )


def failures() -> st.SearchStrategy[Failure]:
    return st.builds(Failure, texts(), texts(), texts())


def outcomes() -> st.SearchStrategy[Outcome]:
    return st.builds(
        Outcome,
        kind=st.sampled_from(["ok", "failed", "open"]),
        commits=st.booleans(),
        settles=st.booleans(),
        failure=st.none() | failures(),
        words=texts(),
        clipped=st.booleans(),
        exit_code=st.none() | st.sampled_from([0, 0.0, -0.0, 1, 1.0, 2**70, 1.5]),
    )


def spelled(value: object) -> str:
    """Return a value as text that tells types, order and every digit."""
    if isinstance(value, Call):
        return f"{value.name!r} {value.arguments!r}"
    if isinstance(value, SettleFact):
        return repr((spelled(value.fact), value.seq, value.time, value.is_error, value.closer))
    if isinstance(value, CallFact):
        return repr([(name, spelled(getattr(value, name))) for name in value.__struct_fields__])
    return repr(value)


class Given:
    """Reads what it is given."""

    def __init__(self, facts: list[Fact], session: SessionFacts) -> None:
        self._facts = facts
        self.session: SessionFacts | None = session
        self.report = ReadReport("x")

    def facts(self) -> Iterator[Fact]:
        yield from self._facts

    def again(self) -> Given:
        raise NotImplementedError


FILE = SessionFile(Path("x"), None, "shown", "folder", None, False, 7, None, None)
SESSION = SessionFacts(Header(4, "id", 1, None, None, False, False, None))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(json_values(), st.none() | texts(), outcomes(), st.lists(outcomes(), max_size=2), times()),
        max_size=4,
    )
)
def test_facts_come_back_exactly_or_are_not_kept(
    given_calls: list[tuple[object, str | None, Outcome, list[Outcome], float | None]],
) -> None:
    facts: list[Fact] = []
    for index, (arguments, raw, outcome, others, time_of_it) in enumerate(given_calls):
        fact = CallFact(
            index,
            index,
            time_of_it,
            1,
            None,
            2,
            Call("bash", arguments if raw is None else arguments_of(raw)),
            raw,
            "c",
            raw is None,
            outcome,
            True,
            tuple(others),
        )
        facts += [fact, SettleFact(fact, index, time_of_it, True, ("text",))]
    reader = RecordingReader(Given(facts, SESSION))
    assert list(reader.facts()) == facts
    payload = reader.payload()
    if payload is not None:
        assert [spelled(fact) for fact in StoredReader(FILE, payload).facts()] == [spelled(fact) for fact in facts]


def test_outcomes_that_are_equal_and_not_the_same_stay_apart() -> None:
    told = [Outcome("failed", True, True, exit_code=code) for code in (1, 1.0, 0.0, -0.0, 0, None, 1)]
    facts: list[Fact] = [
        CallFact(index, index, None, 1, None, None, Call("bash", {}), "{}", "c", False, outcome, True, (outcome,))
        for index, outcome in enumerate(told)
    ]
    reader = RecordingReader(Given(facts, SESSION))
    list(reader.facts())
    payload = reader.payload()
    assert payload is not None
    assert [spelled(fact) for fact in StoredReader(FILE, payload).facts()] == [spelled(fact) for fact in facts]


def test_plain_values_are_kept_and_odd_ones_are_not() -> None:
    def kept(arguments: object) -> bool:
        fact = CallFact(0, 0, None, 1, None, None, Call("x", arguments), None, "c", nested=True)
        reader = RecordingReader(Given([fact], SESSION))
        list(reader.facts())
        return reader.payload() is not None

    nested: object = 1
    for _ in range(300):
        nested = [nested]
    plain: tuple[object, ...] = ({"b": 1, "a": [1.0, True, None, "é", float("inf")]}, 2**64 - 1, -(2**63), "", {})
    odd = ("\ud800", {"\ud800": 1}, 2**64, -(2**63) - 1, nested, (1,), b"x", {1: 2})
    assert [kept(value) for value in plain] == [True] * len(plain)
    assert [kept(value) for value in odd] == [False] * len(odd)


@settings(max_examples=60, deadline=None)
@given(acts=sessions(), others=st.booleans(), digests=st.booleans())
def test_sessions_come_back_exactly(acts: list[Act], others: bool, digests: bool) -> None:
    log = compose(acts)
    with TemporaryDirectory() as name:
        log.write(Path(name))
        (file,) = find_sessions([Path(name)]).files
        reader = SessionReader(file, digests=digests, short_line=20)
        reader.other_rulesets = (RULESETS["0.5.0"],) if others else ()
        recorder = RecordingReader(reader)
        facts = [spelled(fact) for fact in recorder.facts()]
        payload = recorder.payload()
        assert payload is not None
        stored = StoredReader(file, payload)
        assert [spelled(fact) for fact in stored.facts()] == facts
        assert [spelled(fact) for fact in stored.again().facts()] == facts
        assert (repr(stored.session), repr(stored.report)) == (repr(reader.session), repr(reader.report))


def test_the_texts_of_results_are_not_there_and_asking_is_a_fault(corpus: Path) -> None:
    file, *_ = find_sessions([corpus]).files
    recorder = RecordingReader(SessionReader(file))
    list(recorder.facts())
    payload = recorder.payload()
    assert payload is not None
    assert b"exit code" not in payload
    (settled, *_) = [fact for fact in StoredReader(file, payload).facts() if isinstance(fact, SettleFact)]
    for ask in (lambda: settled.text, lambda: len(settled.texts), lambda: settled.texts[0]):
        with pytest.raises(LookupError, match="not kept"):
            ask()


def test_a_session_with_more_facts_than_an_entry_holds_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.cache.facts.LARGEST_ENTRY", 3000)
    monkeypatch.setattr("analysis.cache.facts._FACTS_AT_ONCE", 10)
    for turns, kept in ((20, True), (900, False)):
        reader = RecordingReader(Given([TurnFact(seq, None, "human", seq) for seq in range(turns)], SESSION))
        assert len(list(reader.facts())) == turns
        assert (reader.payload() is not None) is kept


def test_every_member_of_a_replay_and_of_a_report_is_written_down() -> None:
    trip = FirstTrip(1, 2, 3, 4.0, None, 6, 7, 8)
    event = ReplayEvent(1, 2, 3, "t", "gate", "occurrence", "m", 4, 5.0, "deny", Failure("a", "b", "c"), "w", True, 9)
    replay = SessionReplay(
        True,
        2,
        3,
        4,
        Counter({"ok": 0, "failed": 2}),
        5,
        6,
        7,
        8,
        Counter({FailureKey("t", "r", "d", "e"): 3}),
        Counter({"warn": 1}),
        {"host": Counter({"gate": 1})},
        9,
        10,
        11,
        MeasureCount("m", 12),
        MeasureCount("n", 13),
        -2,
        {"gate": trip, "warn": msgspec.structs.replace(trip, seconds=4)},
        [event, replace(event, threshold=5, failure=None)],
        {("gate", "host"): 3},
    )
    untouched = {"detectors", "observer"}
    blank = SessionReplay()
    for each in fields(SessionReplay):
        assert (getattr(replay, each.name) == getattr(blank, each.name)) is (each.name in untouched), each.name
    answers = ReplayAnswers(PLAN)
    assert repr(answers.decode(answers.encode(replay))) == repr(replay)
    report = ReadReport(
        "shown",
        "torn",
        "id",
        4,
        7,
        8,
        9,
        10,
        11,
        12,
        [ReadDefect("torn", "m", 1, 2, 3, 4, 5)],
        13,
        ["note"],
    )
    untouched = {"close", "remarks", "remark_counts", "counts_instead"}
    for name in ReadReport.__struct_fields__:
        assert (getattr(report, name) == getattr(ReadReport(""), name)) is (name in untouched), name
    session = SessionFacts(
        Header(4, "id", 1.5, "/p", "parent", True, True, 3), 1, 2, 3, 4, 5.0, ["m"], True, True, True, True, [b"d"]
    )
    for name in SessionFacts.__struct_fields__:
        assert getattr(session, name) != getattr(SESSION, name), name
    told = about(report, session)
    assert repr(report_of(told, "shown", 7)) == repr(report)
    assert repr(session_of(told)) == repr(session)


# Keys


def test_keys_tell_types_order_and_depth_and_not_the_order_of_sets() -> None:
    told = [
        1,
        1.0,
        True,
        "1",
        [1],
        (1,),
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
        {1},
        None,
        -0.0,
        0.0,
        DEFAULT_RULESET,
        PLAN,
    ]
    assert len({key_of(value) for value in told}) == len(told)
    assert key_of(frozenset("abcdef")) == key_of(frozenset("fedcba"))
    assert key_of("a", "b") != key_of("ab") != key_of(["a", "b"])
    with pytest.raises(TypeError, match="object has no text"):
        key_of(object())


def test_the_program_is_known_by_its_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    program_digest.cache_clear()
    before = program_digest()
    assert before is not None
    monkeypatch.setattr("analysis.cache.keys._SOURCES", (".py",))
    program_digest.cache_clear()
    assert program_digest() != before
    program_digest.cache_clear()
