"""One session, however it is written down, is the same facts and the same replay."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.corpus import replay_corpus
from analysis.replay import ReplayPlan, SessionReplay
from analysis.sessions.decode import LineReader
from analysis.sessions.find import find_sessions
from analysis.synth import VERSIONS, write_corpus
from tests.analysis.logs import LogWriter, read_log
from tests.fuzz.session_strategies import VERSIONS as SHAPES
from tests.fuzz.session_strategies import Act, Spelling, compose, sessions, spellings, write_as

PLAINLY = Spelling(
    shuffled=None,
    spaced=False,
    ending=b"\n",
    blank=0,
    frames=None,
    checksum=True,
    older=False,
    mark=False,
    last_feed=True,
)
PLAN = ReplayPlan(keep_events=True)


def facts_of(path: Path) -> list[tuple[object, ...]]:
    """Return what a log says of its calls and turns, places in the file aside."""
    reading = read_log(path.parent)
    calls = [
        (call.index, call.seq, call.time, call.turn, call.step, call.call, call.call_id, call.nested, call.outcome)
        for call in reading.calls
    ]
    assert reading.report.lost_bytes == 0
    return [*calls, *((reset.seq, reset.cause, reset.turn) for reset in reading.resets)]


def replay_of(path: Path) -> SessionReplay:
    (row,) = replay_corpus([path.parent], PLAN).sessions
    return row.replay


@settings(max_examples=120, deadline=None)
@given(acts=sessions(), spelling=spellings(), stripped=st.booleans())
def test_order_of_keys_frame_cuts_line_endings_and_generations_change_nothing(
    acts: list[Act], spelling: Spelling, stripped: bool
) -> None:
    log = compose(acts, stripped=stripped)
    with TemporaryDirectory() as name:
        plain = write_as(log, PLAINLY, Path(name) / "plain")
        other = write_as(log, spelling, Path(name) / "other")
        assert facts_of(other) == facts_of(plain)
        assert replay_of(other) == replay_of(plain)


@settings(max_examples=60, deadline=None)
@given(acts=sessions(), versions=st.tuples(st.sampled_from(SHAPES), st.sampled_from(SHAPES)))
def test_the_version_it_is_written_in_changes_nothing(acts: list[Act], versions: tuple[int, int]) -> None:
    with TemporaryDirectory() as name:
        first, second = (
            write_as(compose(acts, version=version), PLAINLY, Path(name) / str(place))
            for place, version in enumerate(versions)
        )
        assert facts_of(first) == facts_of(second)
        assert replay_of(first) == replay_of(second)


def logs_of(folder: Path) -> list[tuple[LogWriter, int]]:
    """Return the sessions of a corpus that were not cut, row by row."""
    found: list[tuple[LogWriter, int]] = []
    for file in find_sessions([folder]).files:
        reader = LineReader(file)
        head, *rows = [line.data for line in reader]
        if file.superseded_by is None and not reader.defects and file.generation is not None:
            log = LogWriter(version=file.generation)
            log.header = json.loads(head)
            log.lines = rows
            found.append((log, file.generation))
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_planted_sessions_are_the_same_however_they_are_written(tmp_path: Path, version: int) -> None:
    write_corpus(tmp_path / "synth", "demo", version=version, plain=True)
    random = Random(version)
    logs = logs_of(tmp_path / "synth")
    assert len(logs) > 25
    for number, (log, _) in enumerate(logs):
        spelling = Spelling(
            shuffled=number,
            spaced=bool(number % 2),
            ending=b"\r\n",
            blank=number % 3,
            frames=tuple(random.randrange(20_000) for _ in range(9)),
            checksum=True,
            older=number % 2 == 0,
            mark=True,
            last_feed=bool(number % 2),
        )
        plain = write_as(log, PLAINLY, tmp_path / f"{number}-plain")
        other = write_as(log, spelling, tmp_path / f"{number}-other")
        assert facts_of(other) == facts_of(plain)
        assert replay_of(other) == replay_of(plain)
