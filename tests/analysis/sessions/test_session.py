import json
from pathlib import Path

import pytest
import zstandard

from analysis.sessions.decode import Limits
from analysis.sessions.facts import CallFact, SettleFact
from analysis.sessions.find import find_sessions
from analysis.sessions.header import read_header
from analysis.sessions.report import READ_STATES, ReadDefect, ReadReport, ReadState
from analysis.sessions.session import SessionReader
from tests.analysis.logs import START, LogWriter, Reading, read_log


@pytest.fixture
def log() -> LogWriter:
    log = LogWriter()
    log.user()
    log.bash("a")
    log.bash("b")
    return log


def placed(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def rows_of(read: Reading) -> tuple[str, int, int, int]:
    report = read.report
    return report.state, report.rows, report.lost_rows, report.lines


@pytest.mark.parametrize("compressed", [False, True])
def test_a_sound_file_is_ok(tmp_path: Path, log: LogWriter, compressed: bool) -> None:
    path = log.write(tmp_path, compressed=compressed)
    read = read_log(path)
    assert rows_of(read) == ("ok", 5, 0, 6)
    report = read.report
    assert (report.session_id, report.version, report.size) == ("session-a", 4, path.stat().st_size)
    assert (report.expanded, report.lost_bytes, report.defects, report.notes) == (len(log.text), 0, [], [])
    assert report.used


@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_cut_in_its_last_row_is_torn(tmp_path: Path, log: LogWriter, compressed: bool) -> None:
    path = log.write(tmp_path, compressed=compressed)
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    read = read_log(path)
    assert read.report.state == "torn"
    assert read.kinds == ["ok", "open"]
    assert read.report.lost_bytes > 0
    assert read.report.used


def test_a_bad_line_among_ten_is_told_with_its_place(tmp_path: Path, log: LogWriter) -> None:
    for _ in range(4):
        log.says()
    offset = len(b"".join(line + b"\n" for line in (json.dumps(log.header).encode(), log.lines[0])))
    log.lines[1] = b'{"type":"tool/call","seq":1,"data":{"callId"'
    assert len(log.text.split(b"\n")) == 11
    read = read_log(log.write(tmp_path))
    assert rows_of(read) == ("partial", 8, 1, 10)
    (defect,) = read.report.defects
    assert (defect.kind, defect.line, defect.byte, defect.frame) == ("row", 3, offset, None)
    assert defect.lost_bytes == read.report.lost_bytes == len(log.lines[1])
    assert defect.message.startswith("not JSON: ")
    assert defect.place() == f":3 (byte {offset})"


def test_a_row_that_ran_into_a_half_written_one_is_told(tmp_path: Path, log: LogWriter) -> None:
    lost = log.lines[3].replace(b", ", b",").replace(b": ", b":")
    log.lines[3] = b'{"type":"turn/start","seq":3,"time":1,"data":{"tu' + lost
    read = read_log(log.write(tmp_path))
    assert rows_of(read) == ("partial", 4, 1, 6)
    assert read.report.defects[0].line == 5
    assert read.kinds == ["ok"]


def test_a_bad_row_of_a_compressed_log_has_its_frame(tmp_path: Path, log: LogWriter) -> None:
    log.lines[1] = b"[1]"
    read = read_log(log.write(tmp_path, compressed=True))
    offset = len(json.dumps(log.header)) + len(log.lines[0]) + 2
    (defect,) = read.report.defects
    assert (defect.line, defect.byte, defect.frame, defect.message) == (3, offset, 2, "not a JSON object")
    assert defect.place() == f":3 (frame 2, byte {offset})"
    assert read.report.state == "partial"


def test_a_damaged_frame_loses_its_rows_and_no_others(tmp_path: Path, log: LogWriter) -> None:
    frames = zstandard.ZstdCompressor(write_checksum=True)
    parts = [frames.compress(line + b"\n") for line in log.text.split(b"\n")[:-1]]
    broken = bytearray(parts[3])
    broken[-1] ^= 0xFF
    parts[3] = bytes(broken)
    path = placed(tmp_path / "s/session.v4.jsonl.zstd", b"".join(parts))
    read = read_log(path)
    assert read.report.state == "partial"
    assert read.kinds == ["open", "ok"]
    assert [defect.frame for defect in read.report.defects] == [3]


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (b"not json", "not JSON"),
        (b"[]", "the first line is no object"),
        (b'{"type":"tool/call","seq":0}', "the first line is no session header"),
        (b'{"type":"session","id":"x"}', "the header has no version"),
        (b'{"type":"session","version":"4"}', "the header has no version"),
        (b'{"type":"session","version":-1}', "the header has no version"),
        (
            b'{"type":"session","version":4,"cwd":"' + b"/" * 32_768 + b'"}',
            "the header's `cwd` has 32768 characters; more than 32767 are none",
        ),
        (b'{"type":"session","version":4.5}', "the header has no version"),
        (b'{"type":"session","version":' + b"9" * 400 + b"}", "the header has no version"),
    ],
)
def test_without_a_header_nothing_is_used(tmp_path: Path, log: LogWriter, first: bytes, why: str) -> None:
    path = placed(tmp_path / "s/session.v4.jsonl", first + b"\n" + b"\n".join(log.lines) + b"\n")
    read = read_log(path)
    assert (read.report.state, read.facts, read.reader.session) == ("corrupt", [], None)
    (defect,) = read.report.defects
    assert (defect.kind, defect.line, defect.byte) == ("header", 1, 0)
    assert why in defect.message
    assert not read.report.used


def test_a_damaged_first_frame_is_a_corrupt_file(tmp_path: Path, log: LogWriter) -> None:
    path = log.write(tmp_path, compressed=True)
    data = bytearray(path.read_bytes())
    data[12] ^= 0xFF
    path.write_bytes(bytes(data))
    read = read_log(path)
    assert (read.report.state, read.facts) == ("corrupt", [])


def test_a_file_that_is_not_what_its_name_says_is_corrupt_or_read(tmp_path: Path, log: LogWriter) -> None:
    read = read_log(placed(tmp_path / "a/session.v4.jsonl.zstd", b"\x00\x01" * 400))
    assert (read.report.state, read.facts) == ("corrupt", [])
    assert read.report.defects


def test_a_newer_format_is_not_read(tmp_path: Path, log: LogWriter) -> None:
    log.version = log.header["version"] = 9
    read = read_log(log.write(tmp_path))
    assert (read.report.state, read.report.version, read.facts) == ("unsupported", 9, [])
    assert read.report.defects[0].message == "format version 9 is newer than this tool reads"
    assert read.report.session_id == "session-a"


@pytest.mark.parametrize("compressed", [False, True])
def test_an_empty_file_is_empty(tmp_path: Path, compressed: bool) -> None:
    suffix = ".zstd" if compressed else ""
    read = read_log(placed(tmp_path / f"s/session.v4.jsonl{suffix}", b""))
    assert (read.report.state, read.facts, read.report.lines) == ("empty", [], 0)


def test_a_header_alone_is_a_session_without_calls(tmp_path: Path) -> None:
    read = read_log(LogWriter().write(tmp_path))
    assert (read.report.state, read.session.calls, read.report.rows) == ("ok", 0, 0)


def test_a_header_cut_short_is_no_session(tmp_path: Path) -> None:
    read = read_log(placed(tmp_path / "s/session.v4.jsonl", b'{"type":"session","version":4,'))
    assert read.report.state == "corrupt"
    assert read.facts == []


def test_the_version_of_the_header_holds(tmp_path: Path) -> None:
    log = LogWriter(version=3)
    log.bash()
    path = placed(tmp_path / "s/session.v4.jsonl", log.text)
    read = read_log(path)
    assert (read.report.state, read.report.version, read.kinds) == ("ok", 3, ["ok"])
    assert read.report.notes == ["the header says version 3, the file name 4; the header holds"]


def test_a_file_of_any_name_is_read_where_it_is_named(tmp_path: Path, log: LogWriter) -> None:
    read = read_log(placed(tmp_path / "session.v04.jsonl", log.text))
    assert (read.report.state, read.report.notes, read.kinds) == ("ok", [], ["ok", "ok"])


def test_a_header_without_an_id_is_told(tmp_path: Path, log: LogWriter) -> None:
    del log.header["id"]
    log.header["extra"] = {"sandboxMode": 1}
    read = read_log(placed(tmp_path / "s/session.v4.jsonl", log.text))
    assert (read.report.state, read.report.notes) == ("ok", ["the header has no session id"])


def test_every_field_of_a_header(tmp_path: Path) -> None:
    log = LogWriter(
        "id \ud800",
        cwd="C:\\p",
        parentSession="session-0",
        origin="subagent",
        delegationDepth=1,
        agentPreset="ptc",
    )
    (file,) = find_sessions([log.write(tmp_path, folder="s")]).files
    header = read_header(file)
    assert header is not None
    assert (header.version, header.session_id, header.created_at) == (4, "id \ud800", START)
    assert (header.cwd, header.parent, header.subagent, header.seeded) == ("C:\\p", "session-0", True, False)
    assert (header.is_fork, header.is_import, header.seed_length) == (False, False, None)


@pytest.mark.parametrize("data", [b"", b"no header\n", b'{"type":"session"}\n'])
def test_a_header_that_cannot_be_read_is_none(tmp_path: Path, data: bytes) -> None:
    (file,) = find_sessions([placed(tmp_path / "s/session.v4.jsonl", data)]).files
    assert read_header(file) is None


def test_a_file_that_vanished_is_a_row_of_the_report(tmp_path: Path, log: LogWriter) -> None:
    path = log.write(tmp_path)
    (file,) = find_sessions([path]).files
    path.unlink()
    reader = SessionReader(file)
    assert list(reader.facts()) == []
    assert (reader.report.state, [defect.kind for defect in reader.report.defects]) == ("corrupt", ["unreadable"])


def test_odd_separators_inside_text_split_no_line(tmp_path: Path, log: LogWriter) -> None:
    log.raw(
        json.dumps({"type": "x/y", "seq": 5, "data": {"t": "a\u2028b\u0085c\fd\u2029"}}, ensure_ascii=False).encode()
    )
    read = read_log(log.write(tmp_path))
    assert rows_of(read) == ("ok", 6, 0, 7)


def test_the_first_hundred_defects_are_told_and_the_rest_counted(tmp_path: Path, log: LogWriter) -> None:
    for _ in range(130):
        log.raw(b"{]")
    log.bash("c")
    read = read_log(log.write(tmp_path))
    report = read.report
    assert (report.state, report.lost_rows, len(report.defects), report.defects_untold) == ("partial", 130, 100, 30)
    assert report.lost_bytes == 260
    assert read.kinds == ["ok", "ok", "ok"]


def test_a_defect_names_as_much_of_its_place_as_there_is() -> None:
    assert ReadDefect("row", "x", 812, 40213, 7).place() == ":812 (frame 7, byte 40213)"
    assert ReadDefect("row", "x", 812).place() == ":812"
    assert ReadDefect("torn", "x", None, 5).place() == " (byte 5)"
    assert ReadDefect("x", "x").place() == ""


@pytest.mark.parametrize("state", READ_STATES)
def test_only_what_could_be_read_is_used(state: ReadState) -> None:
    assert ReadReport(shown="x", state=state).used is (state in {"ok", "torn", "partial"})


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("size", [4000, 2_000_000])
def test_a_line_over_the_limit_costs_itself_and_not_the_header_before_it(
    tmp_path: Path, log: LogWriter, compressed: bool, size: int
) -> None:
    log.bash(text="y" * size)
    log.bash()
    path = log.write(tmp_path, compressed=compressed)
    (file,) = find_sessions([path]).files
    reader = SessionReader(file, limits=Limits(max_line=2000))
    facts = list(reader.facts())
    assert sum(isinstance(fact, CallFact) for fact in facts) > 1
    assert [(defect.kind, defect.line) for defect in reader.report.defects] == [("line-too-long", len(log.lines) - 1)]
    assert reader.report.state == "partial"


def test_a_header_over_the_limit_is_a_corrupt_file(tmp_path: Path, log: LogWriter) -> None:
    log.header["cwd"] = "/" + "y" * 4000
    path = log.write(tmp_path)
    (file,) = find_sessions([path]).files
    reader = SessionReader(file, limits=Limits(max_line=2000))
    assert list(reader.facts()) == []
    assert reader.report.state == "corrupt"
    assert [defect.kind for defect in reader.report.defects] == ["header", "line-too-long"]


def test_texts_nobody_asked_for_are_not_kept_and_their_length_is(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.bash("make", "four")
    call = log.call("ls")
    log.result(call, content=[{"type": "text", "text": text} for text in ("ab", "", "c")])
    log.write(tmp_path)
    (file,) = find_sessions([tmp_path]).files
    kept = [fact for fact in SessionReader(file).facts() if isinstance(fact, SettleFact)]
    assert [(fact.text, fact.length) for fact in kept] == [("four", 4), ("ab\nc", 4)]
    bare = [fact for fact in SessionReader(file, keep_texts=False).facts() if isinstance(fact, SettleFact)]
    assert [fact.length for fact in bare] == [4, 4]
    with pytest.raises(LookupError, match="not kept here"):
        _ = bare[0].text
