import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.sessions.rows import BadRowError, Row, decode_value, parse_row

SURROGATE = b'"\\ud800"'
"""Text that only the slow decoder reads: a row that holds it goes the other way."""

scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)
envelopes = st.fixed_dictionaries(
    {"type": st.text()},
    optional={
        "seq": values,
        "seq0": values,
        "time": values,
        "time0": values,
        "data": st.dictionaries(st.text(max_size=5), values, max_size=4),
        "surfaceOp": values,
        "sourceEventSeqs": st.lists(st.integers(0, 50) | st.lists(st.integers(0, 50), max_size=3), max_size=6) | values,
        "ignorable": values,
    },
)


def encode(record: object) -> bytes:
    """Encode as JavaScript does: text as it is where UTF-8 can hold it."""
    return json.dumps(record, allow_nan=False, ensure_ascii=False).encode()


def slow(line: bytes) -> bytes:
    """Make a line only the slow decoder reads, by a member nobody looks at."""
    return line[:-1] + b', "zz": ' + SURROGATE + b"}"


def facts(row: Row) -> tuple[object, ...]:
    return row.type, row.seq, row.time, row.appended, row.sources


@given(envelopes)
def test_the_fast_and_the_slow_decoder_agree(record: dict[str, object]) -> None:
    try:
        line = encode(record)
    except (ValueError, UnicodeEncodeError):
        return
    fast, lenient = parse_row(line), parse_row(slow(line))
    assert lenient.raw is None
    assert facts(fast) == facts(lenient)
    if "data" in record:
        assert fast.data() == lenient.data() == record["data"]


def test_an_envelope_is_read() -> None:
    row = parse_row(
        b'{"surfaceOp":"append","sourceEventSeqs":[3],"data":{"a":1},"time":1790243327461,"seq":20,"type":"tool/result"}'
    )
    assert facts(row) == ("tool/result", 20, 1790243327461, True, (3,))
    assert row.data() == {"a": 1}


@pytest.mark.parametrize("seq", [b"7", b"7.0", b"7e0"])
def test_a_whole_number_is_a_seq_however_it_is_written(seq: bytes) -> None:
    assert parse_row(b'{"type":"x","seq":%s}' % seq).seq == 7


@pytest.mark.parametrize(
    "seq", [b"7.5", b'"7"', b"true", b"null", b"[7]", b"1e400", b"9" * 400, b"9" * 5000, b"-" + b"9" * 400]
)
def test_anything_else_is_no_seq_and_no_harm(seq: bytes) -> None:
    assert parse_row(b'{"type":"x","seq":%s}' % seq).seq is None


@pytest.mark.parametrize("time", [b"1e400", b"-1e400", b"9" * 400, b"9" * 5000, b'"now"', b"false", b"null"])
def test_a_time_is_a_finite_number_or_nothing(time: bytes) -> None:
    assert parse_row(b'{"type":"x","time":%s}' % time).time is None


@pytest.mark.parametrize("tail", [b"", b',"zz":"\\ud800"'])
def test_a_packed_row_is_numbered_by_its_first_part(tail: bytes) -> None:
    row = parse_row(b'{"type":"text-chunks","seq":null,"seq0":12,"time0":5,"data":{"texts":["a"]}%s}' % tail)
    assert (row.seq, row.time) == (12, 5)


@pytest.mark.parametrize(
    ("written", "seqs"),
    [
        (b"[3,4,[29,33]]", (3, 4, 29, 30, 31, 32, 33)),
        (b"[9,2,[4,6],1]", (9, 2, 4, 5, 6, 1)),
        (b"[[5,5]]", (5,)),
        (b"[[6,5]]", ()),
        (b"[[1,2,3]]", ()),
        (b'["3",null,{}]', ()),
        (b'{"0":1}', ()),
        (b"7", ()),
        (b"[]", ()),
    ],
)
def test_packed_source_seqs_are_expanded(written: bytes, seqs: tuple[int, ...]) -> None:
    assert parse_row(b'{"type":"x","sourceEventSeqs":%s}' % written).sources == seqs


@pytest.mark.parametrize("written", [b"[[0,1e15]]", b"[" + b",".join([b"[0,900000]"] * 40) + b"]"])
def test_absurd_runs_of_source_seqs_take_no_memory(written: bytes) -> None:
    sources = parse_row(b'{"type":"x","sourceEventSeqs":%s}' % written).sources
    assert sources[0] == 0
    assert len(sources) <= 2_000


@pytest.mark.parametrize(
    ("surface", "appended"),
    [
        (b'"append"', True),
        (b"null", True),
        (b'{"op":"replace","startSeq":8,"endSeq":9}', False),
        (b'{"op":"replace","start":8,"end":9}', False),
        (b'"replace"', False),
    ],
)
def test_a_row_that_does_not_append_is_a_rewrite(surface: bytes, appended: bool) -> None:
    assert parse_row(b'{"type":"x","surfaceOp":%s}' % surface).appended is appended
    assert parse_row(b'{"type":"x"}').appended


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b'{"type":"x"',
        b'{"type":"x"}{',
        b'{"type":"x","a":NaN}',
        b'{"type":"x","data":{"a":Infinity}}',
        b'{"type":"x","data":{"a":-Infinity}}',
        b"not json",
        b"[" * 100_000,
    ],
)
def test_what_is_not_strict_json_is_a_bad_row(line: bytes) -> None:
    with pytest.raises(BadRowError, match="not JSON"):
        parse_row(line)


@pytest.mark.parametrize("line", [b"5", b'"text"', b"null", b'[{"type":"x"}]', b'["\\ud800"]'])
def test_a_row_that_is_no_object_is_bad(line: bytes) -> None:
    with pytest.raises(BadRowError, match="not a JSON object"):
        parse_row(line)


@pytest.mark.parametrize(("line", "why"), [(b'{"seq":1}', "no type"), (b'{"type":5}', "type is not text")])
def test_a_row_needs_a_type(line: bytes, why: str) -> None:
    with pytest.raises(BadRowError, match=why):
        parse_row(line)
    with pytest.raises(BadRowError, match=why):
        parse_row(slow(line))


@pytest.mark.parametrize("data", [b"", b',"data":null', b',"data":[1]', b',"data":"x"', b',"data":"\\ud800"'])
def test_data_that_is_no_object_is_said_when_it_is_needed(data: bytes) -> None:
    row = parse_row(b'{"type":"tool/call"%s}' % data)
    with pytest.raises(BadRowError, match="tool/call has no data object"):
        row.data()


def test_a_lone_surrogate_is_kept() -> None:
    row = parse_row(b'{"type":"x","seq":1,"data":{"t":"a\\ud800b"}}')
    assert (row.seq, row.data()) == (1, {"t": "a\ud800b"})


def test_huge_numbers_in_the_data_are_read_as_javascript_reads_them() -> None:
    row = parse_row(b'{"type":"x","data":{"a":1e400,"b":%s}}' % (b"9" * 5000))
    data = row.data()
    assert data["a"] == data["b"] == math.inf


def test_separators_of_other_alphabets_inside_text_are_text() -> None:
    text = "a\u2028b\u0085c\fd"
    assert parse_row(encode({"type": "x", "data": {"t": text}})).data() == {"t": text}


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    assert parse_row(b'{"type":"x","data":{"t":"a\xffb"}}').data() == {"t": "a\ufffdb"}


def test_a_carriage_return_behind_a_row_is_no_fault() -> None:
    assert parse_row(b'{"type":"x","seq":1}\r').seq == 1


def test_a_value_alone_is_decoded_by_either_decoder() -> None:
    assert decode_value(b'{"a":[1,2]}') == {"a": [1, 2]}
    assert decode_value(SURROGATE) == "\ud800"
    with pytest.raises(BadRowError):
        decode_value(b"nope")
