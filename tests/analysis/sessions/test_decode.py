import errno
import io
import itertools
import json
import os
import random
import tracemalloc
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.sessions import decode
from analysis.sessions.decode import (
    BOM,
    CUT_LINE,
    ENCODING,
    EXPANDED_TOO_FAR,
    FRAME,
    GROWING,
    IO_FAULT,
    KINDS,
    LINE_TOO_LONG,
    NOTES,
    SINGLE_FRAME,
    TORN,
    Defect,
    Limits,
    Line,
    LineReader,
    Unreadable,
)
from analysis.sessions.find import SessionFile, find_sessions

MAGIC = b"\x28\xb5\x2f\xfd"
MEBI = 1024 * 1024


def pack(text: bytes, *, level: int = 3, checksum: bool = True, sized: bool = True) -> bytes:
    compressor = zstandard.ZstdCompressor(level=level, write_checksum=checksum, write_content_size=sized)
    return compressor.compress(text)


def raw_frame(*blocks: bytes, window: int = 0x40) -> bytes:
    """Build a frame, without a checksum, of blocks stored as they are."""
    frame = MAGIC + b"\x00" + bytes([window])
    for number, block in enumerate(blocks, 1):
        frame += (len(block) << 3 | (number == len(blocks))).to_bytes(3, "little") + block
    return frame


def skippable(payload: bytes) -> bytes:
    return b"\x53\x2a\x4d\x18" + len(payload).to_bytes(4, "little") + payload


def record(number: int, length: int = 30) -> bytes:
    """Compose one line; its text does not compress well, so that damage to a frame damages the text."""
    noise = random.Random(number).randbytes(length).hex()
    return json.dumps({"type": "note", "seq": number, "text": noise}).encode() + b"\n"


def log(path: Path, data: bytes, *, compressed: bool = True) -> SessionFile:
    path.write_bytes(data)
    return SessionFile(path, None, path.name, str(path.parent), 4, compressed, len(data), None, None)


class Result:
    """Hold all that one reading gave."""

    def __init__(self, file: SessionFile, limits: Limits | None = None) -> None:
        self.reader = LineReader(file, limits=limits)
        self.lines: list[Line] = list(self.reader)
        self.defects: list[Defect] = self.reader.defects

    @property
    def data(self) -> list[bytes]:
        return [line.data for line in self.lines]

    @property
    def kinds(self) -> list[str]:
        return [defect.kind for defect in self.defects]

    @property
    def faults(self) -> list[Defect]:
        return [defect for defect in self.defects if defect.kind not in NOTES]


Read = Callable[..., Result]


@pytest.fixture
def plain(tmp_path: Path) -> Read:
    def read(data: bytes, limits: Limits | None = None) -> Result:
        return Result(log(tmp_path / "session.v4.jsonl", data, compressed=False), limits)

    return read


@pytest.fixture
def packed(tmp_path: Path) -> Read:
    def read(data: bytes, limits: Limits | None = None) -> Result:
        return Result(log(tmp_path / "session.v4.jsonl.zstd", data), limits)

    return read


# Plain logs


def test_lines_carry_their_number_and_byte_offset(plain: Read) -> None:
    result = plain(b'{"a":1}\n{"b":2}\n')
    assert result.lines == [Line(1, 0, None, b'{"a":1}'), Line(2, 8, None, b'{"b":2}')]
    assert result.defects == []
    assert not result.reader.is_zstd
    assert (result.reader.bytes_read, result.reader.expanded_bytes) == (16, 16)


@pytest.mark.parametrize("compressed", [True, False])
def test_an_empty_file_has_no_lines_and_no_defect(tmp_path: Path, compressed: bool) -> None:
    result = Result(log(tmp_path / "log", b"", compressed=compressed))
    assert (result.lines, result.defects) == ([], [])


def test_blank_lines_are_skipped_but_counted(plain: Read) -> None:
    result = plain(b"\n \t\r\n{}\n\n\n{}\n \n")
    assert [(line.number, line.offset) for line in result.lines] == [(3, 5), (6, 10)]
    assert result.defects == []


def test_only_line_feeds_end_a_line(plain: Read) -> None:
    text = '{"a":"x\u2028x\u2029x\u0085x\x0bx\x0cx\x1cx\r"}\n'.encode()
    assert plain(text * 2).data == [text[:-1]] * 2


def test_a_carriage_return_at_the_end_is_kept(plain: Read) -> None:
    assert plain(b"{}\r\n{}\r\n").data == [b"{}\r", b"{}\r"]


def test_a_byte_order_mark_is_left_out_and_noted(plain: Read) -> None:
    result = plain(b'\xef\xbb\xbf{"a":1}\n{}\n')
    assert result.lines == [Line(1, 3, None, b'{"a":1}'), Line(2, 11, None, b"{}")]
    assert result.kinds == [BOM]
    assert result.defects[0].lost_bytes == 0


def test_a_byte_order_mark_further_on_is_text(plain: Read) -> None:
    result = plain(b"{}\n\xef\xbb\xbf{}\n")
    assert result.data == [b"{}", b"\xef\xbb\xbf{}"]
    assert result.defects == []


def test_a_last_piece_without_line_feed_is_torn(plain: Read) -> None:
    result = plain(b'{"a":1}\n\n{"b":')
    assert result.data == [b'{"a":1}']
    (torn,) = result.defects
    assert (torn.kind, torn.line, torn.byte, torn.frame, torn.lost_bytes) == (TORN, 3, 9, None, 5)


@pytest.mark.parametrize(
    "last", [b'{"b":{"c":[1]}}', b"{}", b'{"b":2} \r', b'{"s":"\\ud800"}', b'{"n":1' + b"0" * 5000 + b"}"]
)
def test_a_whole_object_without_line_feed_is_used(plain: Read, last: bytes) -> None:
    result = plain(b'{"a":1}\n' + last)
    assert result.data == [b'{"a":1}', last]
    assert result.defects == []


@pytest.mark.parametrize(
    "last",
    [
        b'{"a":{}',
        b'{"a":}',
        b"[1]",
        b"3",
        b'"}',
        b'{"a":1}x',
        b"\0\0\0",
        b'{"a":' + b"[" * 9000 + b"}",
    ],
)
def test_anything_else_without_line_feed_is_torn(plain: Read, last: bytes) -> None:
    result = plain(b"{}\n" + last)
    assert result.data == [b"{}"]
    assert [(defect.kind, defect.lost_bytes) for defect in result.defects] == [(TORN, len(last))]


def test_white_space_at_the_end_is_not_torn(plain: Read) -> None:
    result = plain(b"{}\n  ")
    assert (result.data, result.defects) == ([b"{}"], [])


def test_bytes_that_are_not_utf_8_are_handed_on(plain: Read) -> None:
    assert plain(b'{"a":"\xff\x00"}\n').data == [b'{"a":"\xff\x00"}']


def test_lines_longer_than_a_slice_are_put_together(plain: Read) -> None:
    lines = [b'{"a":"' + b"x" * size + b'"}' for size in (3 * MEBI, 10, MEBI - 9, MEBI, 5 * MEBI)]
    result = plain(b"\n".join(lines) + b"\n")
    assert result.data == lines
    assert [line.offset for line in result.lines] == list(
        itertools.accumulate([0, *(len(line) + 1 for line in lines)])
    )[:-1]


# The limits on lines and text


@pytest.mark.parametrize("size", [101, 150, 3 * MEBI])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_line_over_the_limit_is_left_out_and_reading_goes_on(plain: Read, size: int, place: int) -> None:
    lines = [b"{}", b'{"a":1}']
    lines.insert(place, b"x" * size)
    result = plain(b"\n".join(lines) + b"\n", Limits(max_line=100))
    assert [(line.number, line.data) for line in result.lines] == [
        (number, line) for number, line in enumerate(lines, 1) if len(line) <= 100
    ]
    (long,) = result.defects
    assert (long.kind, long.line, long.lost_bytes) == (LINE_TOO_LONG, place + 1, size)
    assert long.byte == sum(len(line) + 1 for line in lines[:place])


def test_a_line_at_the_limit_is_used(plain: Read) -> None:
    line = b'{"a":"' + b"x" * 92 + b'"}'
    assert plain((line + b"\n") * 3, Limits(max_line=100)).data == [line] * 3


def test_a_line_over_the_limit_at_the_end_is_reported_once(plain: Read) -> None:
    result = plain(b"{}\n" + b"x" * 101, Limits(max_line=100))
    assert [(defect.kind, defect.line, defect.lost_bytes) for defect in result.defects] == [(LINE_TOO_LONG, 2, 101)]


def test_a_line_over_the_limit_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as stream:
        stream.write(b"{}\n")
        for _ in range(64):
            stream.write(b"x" * MEBI)
        stream.write(b"\n{}\n")
    file = SessionFile(path, None, "log", "", None, False, 0, None, None)
    tracemalloc.start()
    try:
        result = Result(file, Limits(max_line=MEBI))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [line.number for line in result.lines] == [1, 3]
    assert result.defects[0].lost_bytes == 64 * MEBI
    assert peak < 8 * MEBI


def test_text_beyond_the_limit_stops_the_reading(plain: Read, packed: Read) -> None:
    text = record(1) + record(2) + record(3)
    limits = Limits(max_expanded=len(record(1)) + len(record(2)) + 5)
    result = plain(text, limits)
    assert result.data == [record(1)[:-1], record(2)[:-1]]
    (stop,) = result.defects
    assert (stop.kind, stop.line, stop.byte, stop.lost_bytes) == (
        EXPANDED_TOO_FAR,
        3,
        len(record(1) + record(2)),
        len(record(3)),
    )
    frames = [pack(record(number)) for number in (1, 2, 3)]
    result = packed(b"".join(frames), limits)
    assert result.data == [record(1)[:-1], record(2)[:-1]]
    (stop,) = result.defects
    assert (stop.kind, stop.line, stop.frame, stop.byte) == (EXPANDED_TOO_FAR, 3, 2, len(frames[0] + frames[1]))
    assert stop.lost_bytes == len(frames[2])


def test_text_up_to_the_limit_is_fine(plain: Read, packed: Read) -> None:
    text = record(1) + record(2)
    limits = Limits(max_expanded=len(text))
    assert plain(text, limits).defects == []
    assert packed(pack(record(1)) + pack(record(2)), limits).defects == []


# Frames


def test_every_frame_of_a_concatenation_is_read(packed: Read) -> None:
    result = packed(pack(b"a\n") + pack(b"b\n"))
    assert result.lines == [Line(1, 0, 0, b"a"), Line(2, 2, 1, b"b")]
    assert result.defects == []
    assert (result.reader.is_zstd, result.reader.frames, result.reader.expanded_bytes) == (True, 2, 4)


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("sized", [True, False])
def test_all_kinds_of_frame_header_are_read(packed: Read, checksum: bool, sized: bool) -> None:
    texts = [record(number, length) for number, length in enumerate((1, 100, 200, 40_000, 300_000))]
    result = packed(b"".join(pack(text, checksum=checksum, sized=sized) for text in texts))
    assert result.data == [text[:-1] for text in texts]
    assert [line.frame for line in result.lines] == [0, 1, 2, 3, 4]
    assert result.defects == []


def test_three_thousand_small_frames_are_read(packed: Read) -> None:
    texts = [record(number, 270) for number in range(3000)]
    data = b"".join(pack(text) for text in texts)
    assert len(data) > MEBI
    result = packed(data)
    assert result.data == [text[:-1] for text in texts]
    assert [line.frame for line in result.lines] == list(range(3000))
    assert result.defects == []


def test_the_magic_number_inside_a_block_splits_nothing(packed: Read) -> None:
    inner = b'{"a":"' + MAGIC + MAGIC + b"\x24\x01" + MAGIC + b'"}\n'
    result = packed(pack(b"{}\n") + raw_frame(inner, inner) + pack(b"{}\n"))
    assert [(line.frame, line.data) for line in result.lines] == [
        (0, b"{}"),
        (1, inner[:-1]),
        (1, inner[:-1]),
        (2, b"{}"),
    ]
    assert result.defects == []


def test_a_whole_frame_inside_a_block_splits_nothing(packed: Read) -> None:
    inner = b"<" + pack(b"inner\n") + b">\n"
    result = packed(pack(b"{}\n") + raw_frame(inner))
    assert b"inner" not in result.data
    assert b"".join(data + b"\n" for data in result.data) == b"{}\n" + inner
    assert result.defects == []


def test_a_line_over_several_frames_belongs_to_the_one_it_began_in(packed: Read) -> None:
    result = packed(pack(b'{}\n{"a":') + pack(b"1") + pack(b'}\n{"b":2}\n'))
    assert result.lines == [Line(1, 0, 0, b"{}"), Line(2, 3, 0, b'{"a":1}'), Line(3, 11, 2, b'{"b":2}')]
    assert result.defects == []


def test_empty_frames_and_empty_blocks_are_fine(packed: Read) -> None:
    result = packed(pack(b"") + raw_frame(b"", b"{}\n", b"") + pack(b"") + pack(b"[]\n"))
    assert [(line.frame, line.data) for line in result.lines] == [(1, b"{}"), (3, b"[]")]
    assert result.defects == []


def test_skippable_frames_are_skipped(packed: Read) -> None:
    data = (
        skippable(b"junk")
        + pack(b"{}\n")
        + skippable(b"")
        + skippable(b"x" * 3 * MEBI)
        + pack(b"[]\n")
        + skippable(b"end")
    )
    result = packed(data)
    assert [(line.frame, line.data) for line in result.lines] == [(0, b"{}"), (1, b"[]")]
    assert result.defects == []


def test_complete_frames_that_end_without_line_feed_are_torn(packed: Read) -> None:
    result = packed(pack(b"{}\n") + pack(b'{"a":'))
    assert result.data == [b"{}"]
    (torn,) = result.defects
    assert (torn.kind, torn.line, torn.frame, torn.byte, torn.lost_bytes) == (TORN, 2, 1, None, 5)


def test_complete_frames_that_end_in_a_whole_object_are_fine(packed: Read) -> None:
    result = packed(pack(b"{}\n") + pack(b'{"a":1}'))
    assert (result.data, result.defects) == ([b"{}", b'{"a":1}'], [])


def test_a_log_compressed_anew_into_one_frame_is_noted(packed: Read) -> None:
    result = packed(pack(b"{}\n[]\n"))
    assert result.data == [b"{}", b"[]"]
    assert result.kinds == [SINGLE_FRAME]


def test_a_log_of_its_header_alone_is_not_noted(packed: Read) -> None:
    assert packed(pack(b"{}\n")).defects == []


def test_a_byte_order_mark_in_a_frame_is_left_out(packed: Read) -> None:
    result = packed(pack(b"\xef\xbb") + pack(b"\xbf{}\n"))
    assert result.lines == [Line(1, 3, 0, b"{}")]
    assert result.kinds == [BOM]


# Which encoding


def test_the_content_tells_the_encoding(plain: Read, packed: Read) -> None:
    zstd_named_plain = plain(pack(b"{}\n"))
    plain_named_zstd = packed(b' \xef\xbb\xbf{"a":1}\n'[1:])
    assert (zstd_named_plain.data, zstd_named_plain.kinds) == ([b"{}"], [ENCODING])
    assert (plain_named_zstd.data, plain_named_zstd.kinds) == ([b'{"a":1}'], [ENCODING, BOM])
    assert [result.reader.is_zstd for result in (zstd_named_plain, plain_named_zstd)] == [True, False]


@pytest.mark.parametrize("garbage", [b"\0", b"\0" * 5000, b"no log at all\n", b"{\xb5\x2f\xfd\n", b"\n\n"])
def test_a_compressed_log_of_garbage_gives_no_lines(packed: Read, garbage: bytes) -> None:
    result = packed(garbage)
    assert result.lines == []
    (bad,) = result.defects
    assert (bad.kind, bad.byte, bad.frame, bad.lost_bytes) == (FRAME, 0, 0, len(garbage))


# Bombs


def test_a_bomb_is_read_in_slices(packed: Read) -> None:
    bomb = pack(bytes(268_000_000))
    assert len(bomb) < 9000
    tracemalloc.start()
    try:
        result = packed(pack(b"{}\n") + bomb + pack(b"\n{}\n"), Limits(max_line=MEBI))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [(line.number, line.data) for line in result.lines] == [(1, b"{}"), (3, b"{}")]
    (long,) = result.defects
    assert (long.kind, long.line, long.frame, long.lost_bytes) == (LINE_TOO_LONG, 2, 1, 268_000_000)
    assert peak < 48 * MEBI


def test_a_bomb_stops_at_the_limit_on_text(packed: Read) -> None:
    result = packed(pack(b"{}\n") + pack(bytes(100 * MEBI)), Limits(max_expanded=40 * MEBI))
    assert result.data == [b"{}"]
    assert result.kinds == [EXPANDED_TOO_FAR]
    assert result.reader.expanded_bytes == 40 * MEBI


def test_a_frame_of_many_lines_takes_little_memory(packed: Read) -> None:
    block = b"".join(record(number, 1000) for number in range(1000))
    data = pack(b"{}\n") + pack(block * 60, level=1)
    file_reader: list[int] = []

    tracemalloc.start()
    try:
        path = packed(data).reader.file
        tracemalloc.reset_peak()
        reader = LineReader(path, limits=Limits(max_held=MEBI))
        file_reader.append(sum(1 for _ in reader))
        peak = tracemalloc.get_traced_memory()[1] - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert file_reader == [60_001]
    assert reader.defects == []
    assert peak < 16 * MEBI


def test_a_frame_that_wants_too_large_a_window_is_refused_and_skipped(packed: Read) -> None:
    greedy = raw_frame(b"[]\n", window=0xFF)
    result = packed(pack(b"{}\n") + greedy + pack(b"{}\n"))
    assert [(line.frame, line.data) for line in result.lines] == [(0, b"{}"), (2, b"{}")]
    (bad,) = result.defects
    assert (bad.kind, bad.frame, bad.byte, bad.lost_bytes) == (FRAME, 1, len(pack(b"{}\n")), len(greedy))
    assert "window" in bad.message


@pytest.mark.parametrize(
    ("frame", "window"),
    [
        (pack(b'{"a":"' + b"x" * 91 + b'"}\n'), 100),
        (pack(b'{"a":"' + b"x" * 991 + b'"}\n'), 1000),
        (pack(b'{"a":"' + b"x" * 99_991 + b'"}\n'), 100_000),
        (raw_frame(b"{}\n", window=0x40), 256 * 1024),
        (raw_frame(b"{}\n", window=0x01), 1024 + 128),
        (raw_frame(b"{}\n", window=0x0F), 2048 + 7 * 256),
    ],
)
def test_the_window_a_frame_asks_for_is_held_to_the_limit(packed: Read, frame: bytes, window: int) -> None:
    within, beyond = packed(frame, Limits(max_window=window)), packed(frame, Limits(max_window=window - 1))
    assert (len(within.lines), within.defects) == (1, [])
    assert (beyond.lines, beyond.kinds) == ([], [FRAME])
    assert f"asks for a window of {window} bytes, the limit is {window - 1}" in beyond.defects[0].message


def test_a_frame_that_states_a_false_size_is_bad(packed: Read) -> None:
    lying = MAGIC + b"\xc0\x40" + (1 << 60).to_bytes(8, "little") + raw_frame(b"[]\n")[6:]
    result = packed(pack(b"{}\n") + lying + pack(b"{}\n"))
    assert result.data == [b"{}", b"{}"]
    assert [(defect.kind, defect.lost_bytes) for defect in result.defects] == [(FRAME, len(lying))]


# Torn tails


def test_the_whole_lines_of_a_cut_frame_are_used(packed: Read) -> None:
    lines = [record(number, 20_000) for number in range(12)]
    body = b"".join(lines)
    whole = pack(body)
    data = pack(b"{}\n") + whole[:-10]
    result = packed(data)
    assert 1 < len(result.lines) < 13
    assert result.data == [b"{}", *(line[:-1] for line in lines)][: len(result.lines)]
    (torn,) = result.defects
    assert (torn.kind, torn.frame, torn.byte) == (TORN, 1, len(pack(b"{}\n")))
    assert torn.line == len(result.lines) + 1
    assert torn.lost_bytes > 0


def test_a_frame_cut_before_its_checksum_loses_nothing_but_is_torn(packed: Read) -> None:
    result = packed(pack(b"{}\n") + pack(record(1))[:-4])
    assert result.data == [b"{}", record(1)[:-1]]
    assert [(defect.kind, defect.frame, defect.lost_bytes) for defect in result.defects] == [(TORN, 1, 0)]


def test_a_cut_frame_that_gives_no_line_is_lost_whole(packed: Read) -> None:
    cut = pack(record(1))[:30]
    result = packed(pack(b"{}\n") + cut)
    assert result.data == [b"{}"]
    (torn,) = result.defects
    assert (torn.kind, torn.line, torn.lost_bytes) == (TORN, 2, len(cut))


def test_a_cut_skippable_frame_is_torn(packed: Read) -> None:
    result = packed(pack(b"{}\n") + skippable(b"abcdef")[:-2])
    assert result.data == [b"{}"]
    assert [(defect.kind, defect.lost_bytes) for defect in result.defects] == [(TORN, 12)]


@pytest.mark.parametrize("zeros", [1, 2, 3, 4, 5, 3 * MEBI, 3 * MEBI + 1])
def test_zeros_in_place_of_the_rest_of_a_frame_are_a_cut(packed: Read, zeros: int) -> None:
    cut = raw_frame(record(1), record(2))[: 6 + 3 + len(record(1))] + bytes(zeros)
    result = packed(pack(b"{}\n") + cut)
    assert result.data == [b"{}", record(1)[:-1]]
    assert [(defect.kind, defect.frame, defect.lost_bytes) for defect in result.defects] == [(TORN, 1, zeros % 3)]


def test_empty_blocks_in_a_row_are_fine(packed: Read) -> None:
    result = packed(raw_frame(b"{}\n", b"", b"", b"", b"[]\n", b"", b"") + raw_frame(b"", b"", b"[1]\n"))
    assert result.data == [b"{}", b"[]", b"[1]"]
    assert result.faults == []


def test_zeros_after_a_crash_hide_no_line(packed: Read) -> None:
    result = packed(pack(b"{}\n") + pack(record(1)) + bytes(4096))
    assert result.data == [b"{}", record(1)[:-1]]
    assert [(defect.kind, defect.frame, defect.lost_bytes) for defect in result.defects] == [(FRAME, 2, 4096)]


def small_logs() -> list[list[tuple[bytes, bytes]]]:
    """Give logs as lists of (frame, text)."""
    texts = [b'{"type":"session"}\n', record(1) + record(2), record(3, 5), b'{"r":"' + b"r" * 300 + b'"}\n' + record(4)]
    # A frame of several blocks, stored as they are, so that a cut one still gives lines.
    pieces = [record(5), record(6)[:20], record(6)[20:] + record(7)]
    return [
        [(pack(text), text) for text in texts],
        [(pack(text, sized=False, level=19), text) for text in texts],
        [(pack(texts[0]), texts[0]), (raw_frame(*pieces), b"".join(pieces)), (pack(texts[1]), texts[1])],
        [(pack(texts[0]), texts[0]), (pack(texts[1]), texts[1]), (raw_frame(*pieces), b"".join(pieces))],
    ]


@pytest.mark.parametrize("which", range(4))
def test_a_log_cut_anywhere_gives_a_prefix_of_its_lines_and_says_torn(packed: Read, which: int) -> None:
    parts = small_logs()[which]
    data = b"".join(frame for frame, _ in parts)
    true_lines = b"".join(text for _, text in parts).split(b"\n")[:-1]
    boundaries = dict.fromkeys(itertools.accumulate((len(frame) for frame, _ in parts), initial=0))
    whole_texts = list(itertools.accumulate((text.count(b"\n") for _, text in parts), initial=0))
    for end in range(len(data) + 1):
        result = packed(data[:end])
        assert result.data == true_lines[: len(result.data)]
        assert len(result.data) >= whole_texts[sum(boundary <= end for boundary in boundaries) - 1]
        assert [defect.kind for defect in result.faults] == ([] if end in boundaries else [TORN])


# Damage


def flips(size: int) -> Iterable[tuple[int, int]]:
    return itertools.product(range(size), (0x01, 0x08, 0x40, 0x80, 0xFF))


@pytest.mark.parametrize("which", range(2))
def test_a_byte_changed_anywhere_never_gives_a_false_line(packed: Read, which: int) -> None:
    parts = small_logs()[which]
    data = b"".join(frame for frame, _ in parts)
    starts = list(itertools.accumulate((len(frame) for frame, _ in parts), initial=0))
    lines_by_frame = [set(text.split(b"\n")[:-1]) for _, text in parts]
    true_lines = set[bytes]().union(*lines_by_frame)
    for place, mask in flips(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= mask
        result = packed(bytes(damaged))
        hit = sum(start <= place for start in starts) - 1
        torn_frames = {defect.frame for defect in result.defects if defect.kind == TORN}
        for line in result.lines:
            # Only a frame that seems cut is used without its checksum; it can be no other than the last one.
            assert line.data in true_lines or line.frame in torn_frames
        if hit < len(parts) - 1:
            assert torn_frames == set()
        # Every line of every other frame is there.
        assert set(result.data) >= set[bytes]().union(*(lines for at, lines in enumerate(lines_by_frame) if at != hit))
        if not set(result.data) >= lines_by_frame[hit]:
            assert result.faults != []
            assert sum(defect.lost_bytes for defect in result.faults) > 0


def test_a_frame_with_a_wrong_checksum_gives_no_lines_and_the_rest_is_read(packed: Read) -> None:
    first, middle, last = pack(b"{}\n"), bytearray(pack(record(1) + record(2))), pack(record(3))
    middle[-1] ^= 1
    result = packed(first + middle + last)
    assert [(line.number, line.frame, line.data) for line in result.lines] == [(1, 0, b"{}"), (2, 2, record(3)[:-1])]
    (bad,) = result.defects
    assert (bad.kind, bad.line, bad.frame, bad.byte, bad.lost_bytes) == (FRAME, 2, 1, len(first), len(middle))
    assert "checksum" in bad.message


def test_a_large_frame_with_a_wrong_checksum_gives_no_lines(packed: Read) -> None:
    middle = bytearray(pack(b"".join(record(number) for number in range(5000))))
    middle[-1] ^= 1
    result = packed(pack(b"{}\n") + middle + pack(b'{"z":1}\n'), Limits(max_held=10_000))
    assert result.data == [b"{}", b'{"z":1}']
    assert [(defect.kind, defect.lost_bytes) for defect in result.defects] == [(FRAME, len(middle))]


def test_damaged_frames_in_a_row_are_told_one_by_one(packed: Read) -> None:
    frames = [bytearray(pack(record(number))) for number in range(6)]
    for number in (2, 3, 5):
        frames[number][-1] ^= 1
    result = packed(b"".join(frames))
    assert [(line.frame, line.data) for line in result.lines] == [(n, record(n)[:-1]) for n in (0, 1, 4)]
    assert [(defect.kind, defect.frame, defect.lost_bytes) for defect in result.defects] == [
        (FRAME, number, len(frames[number])) for number in (2, 3, 5)
    ]


@pytest.mark.parametrize("size", [1, 3, 4, 17, 3 * MEBI])
def test_bytes_that_are_no_frame_are_passed_over(packed: Read, size: int) -> None:
    garbage = random.Random(size).randbytes(size)
    first, last = pack(b"{}\n"), pack(b'{"z":1}\n')
    result = packed(first + garbage + last)
    assert result.data == [b"{}", b'{"z":1}']
    assert [(defect.kind, defect.byte, defect.lost_bytes) for defect in result.defects] == [(FRAME, len(first), size)]


@pytest.mark.parametrize("short_of", range(6))
def test_a_frame_after_garbage_is_found_wherever_a_slice_ends(packed: Read, short_of: int) -> None:
    first, last = pack(b"{}\n"), pack(b'{"z":1}\n')
    garbage = bytes(MEBI - short_of - len(first))
    result = packed(first + garbage + last)
    assert result.data == [b"{}", b'{"z":1}']
    assert [defect.lost_bytes for defect in result.defects] == [len(garbage)]


def test_garbage_after_a_damaged_frame_is_told_with_it(packed: Read) -> None:
    bad = bytearray(pack(record(1)))
    bad[-1] ^= 1
    result = packed(pack(b"{}\n") + bad + b"garbage" + pack(b'{"z":1}\n'))
    assert result.data == [b"{}", b'{"z":1}']
    assert [(defect.kind, defect.lost_bytes) for defect in result.defects] == [(FRAME, len(bad) + 7)]


def test_a_magic_number_in_garbage_is_no_frame(packed: Read) -> None:
    garbage = b"\0" + MAGIC + b"\x24\x05\x29\0\0ab" + MAGIC + MAGIC
    result = packed(pack(b"{}\n") + garbage + pack(b'{"z":1}\n'))
    assert result.data == [b"{}", b'{"z":1}']
    assert [(defect.kind, defect.lost_bytes) for defect in result.defects] == [(FRAME, len(garbage))]


def test_a_skippable_frame_of_wrong_length_hides_no_frame(packed: Read) -> None:
    last = pack(record(1))
    wrong = b"\x50\x2a\x4d\x18" + (4 + len(last) // 2).to_bytes(4, "little") + b"abcd"
    result = packed(pack(b"{}\n") + wrong + last + pack(b'{"z":1}\n'))
    assert result.data == [b"{}", record(1)[:-1], b'{"z":1}']
    assert [(defect.kind, defect.lost_bytes) for defect in result.defects] == [(FRAME, len(wrong))]


def test_lines_cut_by_a_damaged_frame_are_not_glued_together(packed: Read) -> None:
    bad = bytearray(pack(b'2}\n{"c":3}\n{"d":'))
    bad[-1] ^= 1
    result = packed(pack(b'{}\n{"b":') + bad + pack(b'4}\n{"e":5}\n'))
    assert [(line.number, line.data) for line in result.lines] == [(1, b"{}"), (4, b'{"e":5}')]
    assert [(defect.kind, defect.line, defect.frame, defect.lost_bytes) for defect in result.defects] == [
        (CUT_LINE, 2, 0, 5),
        (FRAME, 3, 1, len(bad)),
        (CUT_LINE, 3, 2, 2),
    ]


def test_whole_lines_beside_a_damaged_frame_are_used(packed: Read) -> None:
    bad = bytearray(pack(b'\n{"c":3}\n'))
    bad[-1] ^= 1
    result = packed(pack(b'{}\n{"b":2}') + bad + pack(b'{"d":4}\n{"e":5}\n'))
    assert result.data == [b"{}", b'{"b":2}', b'{"d":4}', b'{"e":5}']
    assert result.kinds == [FRAME]


def test_very_many_damaged_frames_are_summed_up(packed: Read) -> None:
    bad = bytearray(pack(b"{}\n"))
    bad[-1] ^= 1
    result = packed(pack(b"{}\n") + bad * 3000 + pack(b'{"z":1}\n'))
    assert [(line.frame, line.data) for line in result.lines] == [(0, b"{}"), (3001, b'{"z":1}')]
    assert len(result.defects) == 1001
    assert result.defects[-1].message == "2000 more defects of this kind, of which this is the first"
    assert sum(defect.lost_bytes for defect in result.defects) == 3000 * len(bad)
    assert result.defects[-1].frame == 1001


def test_a_search_among_false_frames_ends(packed: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_SEARCH_BUDGET", 4 * MEBI)
    garbage = b"\0" + MAGIC * 200_000
    result = packed(pack(b"{}\n") + garbage + pack(b'{"z":1}\n'))
    assert result.data == [b"{}"]
    (bad,) = result.defects
    assert bad.message.endswith("the search for a sound frame was given up")
    assert (bad.kind, bad.lost_bytes) == (FRAME, len(garbage) + len(pack(b'{"z":1}\n')))


# The file itself


def test_a_reader_reads_once(tmp_path: Path) -> None:
    reader = LineReader(log(tmp_path / "log", b"{}\n", compressed=False))
    assert len(list(reader)) == 1
    with pytest.raises(RuntimeError, match="once"):
        iter(reader)


def test_a_missing_file_is_unreadable(tmp_path: Path) -> None:
    file = log(tmp_path / "log", b"")
    file.path.unlink()
    with pytest.raises(Unreadable, match="log: cannot be opened: No such file or directory") as caught:
        list(LineReader(file))
    assert caught.value.shown == "log"


def test_a_folder_or_pipe_in_place_of_the_file_is_unreadable(tmp_path: Path) -> None:
    file = log(tmp_path / "log", b"")
    file.path.unlink()
    os.mkfifo(file.path)
    with pytest.raises(Unreadable, match="not a regular file"):
        list(LineReader(file))
    file.path.unlink()
    file.path.mkdir()
    with pytest.raises(Unreadable, match="Is a directory"):
        list(LineReader(file))


def test_the_file_is_left_untouched(tmp_path: Path) -> None:
    file = log(tmp_path / "log", pack(b"{}\n") + b"torn")
    file.path.chmod(0o444)
    before = file.path.stat()
    list(LineReader(file))
    after = file.path.stat()
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)


@pytest.mark.parametrize("compressed", [True, False])
def test_a_file_that_grows_is_read_up_to_what_was_there(tmp_path: Path, compressed: bool) -> None:
    coded = pack if compressed else bytes
    file = log(tmp_path / "log", coded(b"{}\n") + coded(b"[]\n"), compressed=compressed)
    reader = LineReader(file)
    lines = iter(reader)
    first = next(lines)
    with file.path.open("ab") as stream:
        stream.write(coded(b"later\n"))
    assert [line.data for line in (first, *lines)] == [b"{}", b"[]"]
    (growing,) = reader.defects
    assert (growing.kind, growing.byte, growing.lost_bytes) == (GROWING, file.size, 0)


def test_a_file_that_shrinks_is_told(tmp_path: Path) -> None:
    line = record(1, MEBI)
    file = log(tmp_path / "log", line * 3, compressed=False)
    reader = LineReader(file)
    lines = iter(reader)
    first = next(lines)
    os.truncate(file.path, len(line) + MEBI)
    assert [line.data for line in (first, *lines)] == [line[:-1]]
    assert [defect.kind for defect in reader.defects] == [IO_FAULT, TORN]
    assert sum(defect.lost_bytes for defect in reader.defects) == 2 * len(line)


class Failing(io.FileIO):
    """Fail like a bad disk beyond 2 MiB."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() >= 2 * MEBI:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().read(size)


@pytest.mark.parametrize("compressed", [True, False])
def test_a_failure_of_the_system_keeps_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compressed: bool
) -> None:
    coded = pack if compressed else bytes
    texts = [record(number, 50_000) for number in range(100)]
    data = b"".join(coded(text) for text in texts)
    file = log(tmp_path / "log", data, compressed=compressed)
    monkeypatch.setattr(decode.io, "FileIO", Failing)
    result = Result(file)
    assert len(result.lines) > 15
    assert result.data == [text[:-1] for text in texts[: len(result.lines)]]
    fault, torn = result.defects
    assert fault.kind == IO_FAULT
    assert fault.byte is not None
    assert 2 * MEBI <= fault.byte < 3 * MEBI
    assert fault.lost_bytes == len(data) - fault.byte
    assert "Input/output error" in fault.message
    assert torn.kind == TORN


def test_the_bytes_read_are_told_once_each(tmp_path: Path) -> None:
    texts = b"".join(record(number, 5000) for number in range(500))
    data = pack(b"{}\n") + pack(texts) + b"garbage" + pack(texts)
    told: list[int] = []
    reader = LineReader(log(tmp_path / "log", data), limits=Limits(max_held=1000), on_bytes=told.append)
    assert sum(1 for _ in reader) == 1001
    assert sum(told) == reader.bytes_read == len(data)
    assert min(told) > 0


# Members of archives


def member(path: Path, data: bytes, *, method: int = zipfile.ZIP_DEFLATED, name: str = "session.jsonl") -> SessionFile:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(name, data)
    (file,) = find_sessions([path]).files
    return file


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_member_is_read_like_a_file(tmp_path: Path, method: int) -> None:
    texts = [record(number, 5000) for number in range(500)]
    result = Result(member(tmp_path / "a.zip", b"".join(texts), method=method))
    assert result.data == [text[:-1] for text in texts]
    assert result.lines[1] == Line(2, len(texts[0]), None, texts[1][:-1])
    assert result.defects == []
    assert result.reader.bytes_read == result.reader.file.size == sum(map(len, texts))


def test_a_compressed_member_is_read_like_a_file(tmp_path: Path) -> None:
    bad = bytearray(pack(record(1)))
    bad[-1] ^= 1
    many = b"".join(record(number, 5000) for number in range(500))
    data = pack(b"{}\n") + bad + pack(many) + pack(b"[]\n")[:-1]
    result = Result(member(tmp_path / "a.zip", data, name="s/session.v4.jsonl.zstd"), Limits(max_held=1000))
    assert result.data == [b"{}", *many.split(b"\n")[:-1], b"[]"]
    assert result.kinds == [FRAME, TORN]


def test_a_member_that_is_a_bomb_is_read_in_slices(tmp_path: Path) -> None:
    file = member(tmp_path / "a.zip", b"{}\n" + bytes(100 * MEBI))
    tracemalloc.start()
    try:
        result = Result(file, Limits(max_line=MEBI, max_expanded=50 * MEBI))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.data == [b"{}"]
    assert result.kinds == [EXPANDED_TOO_FAR]
    assert peak < 16 * MEBI


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_of_another_compression_is_refused_by_name(tmp_path: Path, method: int) -> None:
    file = member(tmp_path / "a.zip", b"{}\n", method=method)
    with pytest.raises(Unreadable, match=rf"a\.zip!session\.jsonl: its compression method {method} is not read"):
        list(LineReader(file))


def test_a_member_gone_from_its_archive_is_unreadable(tmp_path: Path) -> None:
    file = member(tmp_path / "a.zip", b"{}\n")
    member(tmp_path / "a.zip", b"{}\n", name="session.v2.jsonl")
    with pytest.raises(Unreadable, match=r"a\.zip!session\.jsonl: cannot be opened"):
        list(LineReader(file))


def test_an_encrypted_member_is_unreadable(tmp_path: Path) -> None:
    file = member(tmp_path / "a.zip", b"{}\n")
    data = bytearray(file.path.read_bytes())
    for header, flags_at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(header) + flags_at] |= 1
    file.path.write_bytes(data)
    with pytest.raises(Unreadable, match="encrypted"):
        list(LineReader(file))


def test_an_archive_damaged_anywhere_gives_defects_or_one_typed_error(tmp_path: Path) -> None:
    texts = [record(number) for number in range(5)]
    file = member(tmp_path / "a.zip", b"".join(texts))
    sound = file.path.read_bytes()
    outcomes: set[str] = set()
    for place, mask in flips(len(sound)):
        damaged = bytearray(sound)
        damaged[place] ^= mask
        file.path.write_bytes(damaged)
        try:
            result = Result(file)
        except Unreadable:
            outcomes.add("unreadable")
            continue
        outcomes.update(result.kinds or ["sound"])
        if not result.faults:
            assert result.data == [text[:-1] for text in texts]
    assert {"unreadable", IO_FAULT, "sound"} <= outcomes


# Properties


PIECES = st.binary(max_size=40).map(lambda data: data.replace(b"\n", b" "))
LINES = st.lists(PIECES | st.just(b'{"a":"x"}') | PIECES.map(lambda data: data * 400), max_size=12)


def expected_lines(lines: Sequence[bytes]) -> list[tuple[int, bytes]]:
    numbered = enumerate(lines, 1)
    return [(number, line) for number, line in numbered if line.strip(b" \t\r")]


@settings(max_examples=200, deadline=None)
@given(
    lines=LINES,
    cuts=st.lists(st.integers(0, 3000), max_size=8),
    level=st.sampled_from([-5, 1, 3, 19]),
    held=st.sampled_from([0, 64, MEBI]),
)
def test_lines_survive_any_cut_into_frames(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], cuts: list[int], level: int, held: int
) -> None:
    # The first line is a header: a byte order mark before it would be left out.
    lines = [b"{}", *lines]
    text = b"".join(line + b"\n" for line in lines)
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    data = b"".join(pack(text[start:end], level=level) for start, end in itertools.pairwise(edges))
    folder = tmp_path_factory.getbasetemp()
    result = Result(log(folder / "hypothesis.zstd", data), Limits(max_held=held))
    assert [(line.number, line.data) for line in result.lines] == expected_lines(lines)
    assert result.faults == []
    for line in result.lines:
        assert text[line.offset :].startswith(line.data + b"\n")
        assert line.frame is not None
        assert edges[line.frame] <= line.offset < edges[line.frame + 1]
    straight = Result(log(folder / "hypothesis.jsonl", text, compressed=False))
    assert [(line.number, line.offset, line.data) for line in straight.lines] == [
        (line.number, line.offset, line.data) for line in result.lines
    ]


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=300) | st.lists(PIECES | st.just(b"\n") | st.just(b"{}")).map(b"".join))
def test_every_byte_of_a_plain_log_is_used_or_reported(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    # A leading mark is left out and noted; a test of its own holds that.
    data = b"{}\n" + data
    result = Result(log(tmp_path_factory.getbasetemp() / "any", data, compressed=False))
    blank = sum(len(line) for line in data.split(b"\n") if not line.strip(b" \t\r"))
    used = sum(len(line.data) for line in result.lines)
    lost = sum(defect.lost_bytes for defect in result.faults)
    assert used + lost + blank + data.count(b"\n") == len(data)


RECORDS = st.integers(0, 50).map(record)
PARTS = st.lists(
    RECORDS.map(pack)
    | RECORDS.map(lambda text: pack(text, checksum=False, sized=False))
    | st.binary(max_size=30)
    | st.binary(max_size=30).map(skippable)
    | st.binary(max_size=30).map(lambda tail: MAGIC + tail)
    | st.lists(st.binary(max_size=20), min_size=1, max_size=4).map(lambda blocks: raw_frame(*blocks)),
    max_size=6,
)


@settings(max_examples=500, deadline=None)
@given(parts=PARTS, end=st.none() | st.integers(0, 600))
def test_whatever_is_read_without_a_fault_is_what_the_reference_decompressor_gives(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], end: int | None
) -> None:
    data = b"".join([pack(b"{}\n"), *parts])[:end]
    result = Result(log(tmp_path_factory.getbasetemp() / "any.zstd", data))
    assert set(result.kinds) <= KINDS
    assert sum(defect.lost_bytes for defect in result.faults if defect.kind == FRAME) <= len(data)
    if not result.faults:
        text = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
        assert [(line.number, line.data) for line in result.lines] == expected_lines(
            text.removesuffix(b"\n").split(b"\n")
        )


# Recorded logs


@pytest.mark.shared
def test_recorded_logs_are_read_whole() -> None:
    corpus = Path(__file__).parents[4] / "shared" / "corpus"
    found = find_sessions([corpus])
    assert found.problems == ()
    assert len(found.files) > 0
    for file in found.files:
        result = Result(file)
        assert result.faults == []
        assert result.data == [line for line in file.path.read_bytes().split(b"\n") if line]
