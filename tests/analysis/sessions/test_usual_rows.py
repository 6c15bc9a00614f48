"""Rows in their usual shape are decoded in one step; it must come to the same as reading them piece by piece."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.sessions.events import UsualRow, read_event, read_row
from analysis.sessions.rows import parse_row
from tests.analysis.logs import LogWriter, read_log

ODD = st.none() | st.booleans() | st.integers(-3, 3) | st.just(2.0) | st.just(0.5) | st.text(max_size=3) | st.just([])
COUNTS = st.integers(0, 9) | ODD
TEXTS = st.text(max_size=5) | ODD
BLOCKS = st.fixed_dictionaries({}, optional={"type": st.sampled_from(["text", "image", "tool-result"]), "text": TEXTS})
CONTENT = st.lists(BLOCKS, max_size=3) | ODD
SOURCE = st.fixed_dictionaries({}, optional={"callId": TEXTS, "model": TEXTS, "kind": TEXTS}) | ODD
NESTED = st.fixed_dictionaries(
    {"type": st.just("tool-result")}, optional={"toolCallId": TEXTS, "isError": ODD, "content": CONTENT}
).map(lambda block: [block])
MESSAGE = st.fixed_dictionaries(
    {"content": CONTENT | NESTED}, optional={"toolCallId": TEXTS, "id": TEXTS, "isError": ODD, "source": SOURCE}
)
DATA = st.fixed_dictionaries(
    {},
    optional={
        "message": MESSAGE | ODD,
        "content": CONTENT,
        "turn": COUNTS,
        "step": COUNTS,
        "callId": TEXTS,
        "name": TEXTS,
        "arguments": TEXTS,
        "error": st.fixed_dictionaries({"code": TEXTS}) | ODD,
        "meta": st.dictionaries(st.sampled_from(["statusCode", "exitCode"]), ODD) | ODD,
        "usage": st.dictionaries(st.sampled_from(["inputTokens", "outputTokens"]), COUNTS) | ODD,
    },
)
TYPES = st.sampled_from(["tool/call", "tool/result", "assistant/message", "step/start"])
ENVELOPE = st.fixed_dictionaries(
    {"type": TYPES, "data": DATA},
    optional={
        "seq": COUNTS,
        "time": COUNTS,
        "seq0": st.integers(0, 9),
        "time0": st.integers(0, 9),
        "surfaceOp": ODD | st.just("append"),
        "sourceEventSeqs": st.lists(st.integers(0, 9) | st.lists(st.integers(0, 9), min_size=2, max_size=2)) | ODD,
    },
)


@given(ENVELOPE)
def test_one_step_comes_to_the_same_as_many(record: dict[str, object]) -> None:
    line = json.dumps(record).encode()
    one, many = read_row(line), parse_row(line)
    assert (one.seq, one.time, one.appended, one.sources) == (many.seq, many.time, many.appended, many.sources)
    try:
        expected = read_event(many)
    except ValueError as error:
        with pytest.raises(type(error), match=str(error)):
            read_event(one)
    else:
        assert read_event(one) == expected


def test_the_rows_of_a_log_are_usual(tmp_path: Path) -> None:
    log = LogWriter()
    log.says("on it", 7)
    log.bash("make", "[exit code: 2]")
    log.add("step/start", {"turn": 1, "step": 2})
    log.add("step/end", {"turn": 1, "step": 2})
    assert [isinstance(read_row(line), UsualRow) for line in log.lines] == [True] * 5


STEP = b'{"type":"step/end","seq":%d,"time":5,"data":{}}'
BEGUN = b'{"type":"step/end","seq":%d,'
ENDED = b'"time":5,"data":{}}'


@pytest.mark.parametrize(
    ("lines", "lost"),
    [
        ([STEP % 1 + STEP % 2, b"", STEP % 3], [3]),
        ([STEP % 1 + b" " + STEP % 2, STEP % 3, b"  ", STEP % 4], [3]),
        ([BEGUN % 1, ENDED + STEP % 2], [3, 4]),
        ([STEP % 1 + BEGUN % 2, ENDED, STEP % 3], [3, 4]),
        ([STEP % 1 + STEP % 2, BEGUN % 3, ENDED], [3, 4, 5]),
        ([STEP % 1 + b"\r", STEP % 2], []),
        ([b" " + STEP % 1, STEP % 2 + b" "], []),
        ([b"[" + STEP % 1 + b"]", STEP % 2], [3]),
    ],
)
def test_a_row_is_a_line_and_a_line_a_row(tmp_path: Path, lines: list[bytes], lost: list[int]) -> None:
    log = LogWriter()
    log.user()
    for line in lines:
        log.raw(line)
    log.next = 9
    log.bash()
    read = read_log(log.write(tmp_path))
    assert [defect.line for defect in read.report.defects] == lost
    assert read.kinds == ["ok"]


def test_the_order_of_members_is_free() -> None:
    row = read_row(b'{"data":{"step":2,"turn":1},"time":5,"seq":3,"type":"step/start"}')
    assert isinstance(row, UsualRow)
    assert read_event(row) == read_event(parse_row(b'{"type":"step/start","data":{"turn":1,"step":2}}'))


@pytest.mark.parametrize(
    "broken",
    [
        b'{"type":"step/end","seq":1,"time":5,"data":{"tu',
        b'{"type":"step/end","seq":1,"time":5,"data":{"tu{"type":"step/end","seq":2,"time":6,"data":{}}',
        b'{"type":"step/end","seq":1,"time":5,"data":{}}}',
        b'{"type":"step/end","seq":1,"time":5,"data":{},}',
    ],
)
def test_a_broken_row_is_told_even_where_nobody_would_read_it(tmp_path: Path, broken: bytes) -> None:
    log = LogWriter()
    log.user()
    log.raw(broken)
    log.bash()
    report = read_log(log.write(tmp_path)).report
    assert (report.state, report.lost_rows, [defect.line for defect in report.defects]) == ("partial", 1, [3])


def test_a_row_after_a_broken_one_keeps_its_number(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.raw(b'{"type":"step/end","seq":1,"time":5,"data":{"tu')
    log.next = 1
    log.bash("make")
    read = read_log(log.write(tmp_path))
    assert [(call.seq, call.outcome.kind) for call in read.calls] == [(1, "ok")]
