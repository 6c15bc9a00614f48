from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.synth.chance import Chance
from analysis.synth.log import (
    Event,
    Header,
    SessionLog,
    encode,
    file_name,
    log_path,
    packed_seqs,
    project_key,
    session_folder,
    write_atomically,
)

Row = dict[str, object]
Log = tuple[Row, list[Row], list[bytes]]


@pytest.mark.parametrize(
    ("cwd", "key"),
    [
        ("/home/u/proj", "--home-u-proj--"),
        ("C:\\Users\\u\\p", "--C-Users-u-p--"),
        ("/srv/a b", "--srv-a~0020b--"),
        ("/~x", "--~007Ex--"),
        ("/", "--root--"),
        ("/\U0001f600", "--~D83D~DE00--"),
        (None, "_no-cwd"),
    ],
)
def test_a_project_folder_is_named_after_its_working_directory(cwd: str | None, key: str) -> None:
    assert project_key(cwd) == key


def test_a_long_project_key_is_cut_to_251_characters() -> None:
    assert project_key("/" + "a" * 300) == f"--{'a' * 251}--"


def test_a_session_folder_escapes_what_is_no_plain_letter() -> None:
    assert session_folder("session-1.a/b") == "session-1~002Ea~002Fb"


@pytest.mark.parametrize(
    ("version", "plain", "name"),
    [(4, True, "session.v4.jsonl"), (3, False, "session.v3.jsonl.zstd"), (0, False, "session.jsonl.zstd")],
)
def test_a_file_is_named_after_its_generation(version: int, plain: bool, name: str) -> None:
    assert file_name(version, plain=plain) == name


def test_a_log_lies_below_its_project_and_session() -> None:
    path = log_path(Path("root"), Header("s.1", 0, "/p"), 4, plain=True)
    assert path == Path("root/--p--/s~002E1/session.v4.jsonl")


@pytest.mark.parametrize(
    ("seqs", "packed"),
    [
        ([], []),
        ([3, 4], [3, 4]),
        ([3, 4, 29, 30, 31, 32, 33], [3, 4, [29, 33]]),
        ([1, 2, 3, 7], [[1, 3], 7]),
        ([5, 3, 4], [5, 3, 4]),
    ],
)
def test_runs_of_three_and_more_source_numbers_are_packed(seqs: list[int], packed: list[object]) -> None:
    assert packed_seqs(seqs) == packed


@given(st.lists(st.integers(0, 50), unique=True).map(sorted))
def test_packed_source_numbers_unpack_to_themselves(seqs: list[int]) -> None:
    unpacked: list[int] = []
    for entry in packed_seqs(seqs):
        first, last = cast("list[int]", entry) if isinstance(entry, list) else (entry, entry)
        unpacked.extend(range(cast("int", first), cast("int", last) + 1))
    assert unpacked == seqs


def _answer() -> Event:
    content = [
        {"type": "reasoning", "text": "one two three"},
        {"type": "tool-call", "id": "c1", "name": "bash", "arguments": '{"command": "make test"}'},
    ]
    message: Row = {"role": "assistant", "content": content, "source": {"kind": "model"}, "id": "m"}
    return Event("assistant/message", 5, {"turn": 1, "step": 1, "message": message, "usage": {"outputTokens": 3}})


def test_format_0_counts_each_streamed_piece_as_an_event() -> None:
    log = SessionLog(Header("s", 0, None), events=[_answer(), Event("turn/end", 6, {"turn": 1})])
    rendered = log.render(0)
    # Two starts, two ends, usage and finish; three words and 24 characters of arguments in pieces of twelve.
    assert list(rendered.seqs.values()) == [6 + 3 + 2, 12]
    assert b'"type":"reasoning-chunks","seq0":1,' in rendered.batches[0]
    assert b'"sourceEventSeqs":[[0,10]]' in rendered.batches[0]


@pytest.mark.parametrize("version", [3, 4])
def test_later_formats_embed_the_stream(version: int) -> None:
    log = SessionLog(Header("s", 0, None), events=[_answer()])
    rendered = log.render(3 if version < 4 else 4)
    assert list(rendered.seqs.values()) == [0]
    assert b'"texts":["one"," two"," three"]' in rendered.batches[0]
    assert b'"args":["{\\"command\\":","' in rendered.batches[0].replace(b" ", b"")


def test_a_rewrite_names_its_range_in_the_words_of_its_version() -> None:
    first = Event("user/message", 1, {"content": [], "source": {"kind": "user"}, "role": "user", "id": "m"})
    source: Row = {"kind": "compact-checkpoint"}
    rewrite = Event(
        "user/message", 2, {"content": [], "source": source, "role": "user", "id": "n"}, replaces=(first, first)
    )
    log = SessionLog(Header("s", 0, None), events=[first, rewrite])
    assert b'"surfaceOp":{"op":"replace","startSeq":0,"endSeq":0}' in log.render(4).batches[0]
    old = log.render(0).batches[0]
    assert b'"surfaceOp":{"op":"replace","start":0,"end":0}' in old
    assert b'"source":{"kind":"plugin","plugin":"compact"}' in old


def test_a_fork_inherits_its_parent_up_to_an_event_and_is_marked() -> None:
    events = [Event("turn/start", at, {"turn": at}) for at in range(1, 4)]
    parent = SessionLog(Header("p", 0, None), events=events)
    header = Header("c", 9, None, parent_session="p", is_seeded=True)
    child = SessionLog(header, parent.prefix(events[1]), [Event("turn/start", 10, {"turn": 4})])
    new, old = child.render(4), child.render(0)
    assert new.batches[0].split(b"\n")[2] == b'{"type":"session/end-seed","seq":2,"time":9,"data":{"inherited":true}}'
    assert list(new.seqs.values()) == [0, 1, 2, 3]
    assert list(old.seqs.values()) == [0, 1, 2]
    assert b'"seedLength":2' in old.header
    assert b'"isSeeded":true' in new.header


def test_each_flush_ends_a_batch(tmp_path: Path, read_log: Callable[[Path], Log]) -> None:
    log = SessionLog(Header("s", 0, None))
    for at in range(3):
        log.append("turn/start", at, {"turn": at})
        log.flush()
        log.flush()
    path = tmp_path / "session.v4.jsonl.zstd"
    write_atomically(path, encode(log.render(4), plain=False))
    header, rows, batches = read_log(path)
    assert header["id"] == "s"
    assert [row["seq"] for row in rows] == [0, 1, 2]
    assert [batch.count(b"\n") for batch in batches] == [1, 1, 1, 1]


def test_a_failed_write_leaves_neither_the_file_nor_its_staging(tmp_path: Path) -> None:
    def pieces():
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_atomically(tmp_path / "session.v4.jsonl", pieces())
    assert list(tmp_path.iterdir()) == []


def test_drawn_numbers_never_change() -> None:
    chance = Chance("0/demo/0")
    assert [chance.integer(0, 99) for _ in range(5)] == CHANCE_NUMBERS
    assert chance.uuid() == CHANCE_UUID


CHANCE_NUMBERS = [87, 7, 32, 19, 44]
CHANCE_UUID = "063f4cbe-f5f3-4c9a-a3d3-ddd8c5c73d8c"
