from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from analysis.synth import write_corpus

Row = dict[str, object]
Log = tuple[Row, list[Row], list[bytes]]

MEGABYTE = 1_000_000


def test_a_call_takes_about_twelve_kilobytes(tmp_path: Path) -> None:
    truth = write_corpus(tmp_path, "scale", sessions=2, plain=True)
    size = sum((tmp_path / session.files[0].path).stat().st_size for session in truth.sessions)
    calls = sum(session.calls for session in truth.sessions)
    assert calls == 400
    assert 11_000 < size / calls < 13_000


@pytest.mark.parametrize("calls", [1, 39, 40, 41, 80, 100])
def test_any_number_of_calls_is_written(tmp_path: Path, read_log: Callable[[Path], Log], calls: int) -> None:
    truth = write_corpus(tmp_path, "scale", sessions=3, calls=calls, result_bytes=64)
    for session in truth.sessions:
        _, rows, _ = read_log(tmp_path / session.files[0].path)
        assert sum(row["type"] == "tool/call" for row in rows) == session.calls == calls
        assert session.turns == -(-calls // 40)


def test_turns_follow_each_other_in_time_and_number(tmp_path: Path, read_log: Callable[[Path], Log]) -> None:
    truth = write_corpus(tmp_path, "scale", sessions=1, calls=130, result_bytes=64)
    _, rows, _ = read_log(tmp_path / truth.sessions[0].files[0].path)
    times = [cast("int", row["time"]) for row in rows]
    assert times == sorted(times)
    starts = [cast("Row", row["data"])["turn"] for row in rows if row["type"] == "turn/start"]
    assert starts == [1, 2, 3, 4]


def test_every_turn_repeats_fails_and_trips(tmp_path: Path) -> None:
    truth = write_corpus(tmp_path, "scale", sessions=2, calls=80, result_bytes=64)
    narrow, wide = (session.observed["default"] for session in truth.sessions)
    assert [(event.stage, event.call) for event in narrow.events] == [
        ("warn", 16),
        ("summarize", 20),
        ("fail-warn", 26),
        ("warn", 56),
        ("summarize", 60),
        ("fail-warn", 66),
    ]
    assert [event.call for event in wide.events if event.stage == "gate"] == [25, 26, 65, 66]
    assert (wide.denials, wide.false_rejections, wide.failed) == (4, 4, 8)
