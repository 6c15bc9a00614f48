"""Text out of logs on its way to a terminal: everything is shown, nothing acts."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.text import counted, plain, shortened
from tests.analysis.logs import LogWriter
from tests.cli.commands import breaker, replay_document


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("make test", "make test"),
        ("naïve 試験 🎉", "naïve 試験 🎉"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("a\nb\rc\td\x7f", r"a\nb\rc\td\x7f"),
        ("\u202eevil\u2066", r"\u202eevil\u2066"),
        ("a\u200bb\ufeff\u2028", r"a\u200bb\ufeff\u2028"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(st.text())
def test_nothing_invisible_is_left(text: str) -> None:
    shown = plain(text)
    assert {unicodedata.category(character) for character in shown} & {
        "Cc",
        "Cf",
        "Cs",
        "Co",
        "Cn",
        "Zl",
        "Zp",
    } == set()
    assert plain(shown) == shown


@given(st.text(), st.integers(min_value=4, max_value=40))
def test_a_shortened_text_fits_and_keeps_both_ends(text: str, width: int) -> None:
    whole, short = plain(text), shortened(text, width)
    assert len(short) <= width
    if len(whole) <= width:
        assert short == whole
    else:
        head, tail = short.split("…") if short.count("…") == 1 else (short[:1], short[-1:])
        assert whole.startswith(head)
        assert whole.endswith(tail)


HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]x[/bold red] \u202e:boom: \r\n\x9b1m"
SHOWN = r"\x1b[2J\x1b]0;owned\x07[bold red]x[/bold red] \u202e:boom: \r\n\x9b1m"


@pytest.fixture
def hostile_sessions(tmp_path: Path) -> Path:
    """Return sessions whose every text tries to act on the terminal."""
    log = LogWriter("session-\x1b[31m[red]\u202e")
    log.user(HOSTILE)
    for number in range(8):
        error = {"code": f"\x1b[1m[b]{number}\n"}
        log.result(log.call(f"run {HOSTILE}", name=f"t\x1b[5m[i]\n{number % 2}"), HOSTILE, is_error=True, error=error)
        log.result(log.call(f"echo {HOSTILE}"), HOSTILE)
    log.raw(b'{"type":"\\u001b[31m[red]","seq":99,"data":{}}')
    log.write(tmp_path, folder="a")
    broken = tmp_path / "b\x1b[31m[red]" / "session.v4.jsonl"
    broken.parent.mkdir()
    broken.write_bytes(b"\x1b[31m[red]\n")
    return tmp_path


def test_the_table_shows_hostile_text_and_obeys_none(hostile_sessions: Path) -> None:
    done = breaker("replay", hostile_sessions, "--events", "--messages", "--set", "warnAt=2", "--top", "0")
    assert (done.returncode, done.stderr) == (0, "")
    acting = {character for character in done.stdout if unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp"}}
    assert acting == {"\n"}
    words = done.stdout.split()
    assert r"session-\x1b[31m[red]\u202e" in words
    assert "…ld" not in words
    assert r"b\x1b[31m[red]" in done.stdout
    assert "[bold" in done.stdout
    assert r"\x1b[1m[b]" in done.stdout.replace("\n", "")


def test_the_document_keeps_the_text_as_it_is_and_is_ascii(hostile_sessions: Path) -> None:
    document = replay_document(hostile_sessions, "--events", "--set", "warnAt=2")
    (session,) = document["sessions"]
    assert session["id"] == "session-\x1b[31m[red]\u202e"
    assert "t\x1b[5m[i]\n0" in {event["tool"] for event in document["events"]}
    assert breaker("replay", hostile_sessions, "--format", "json", "--events").stdout.isascii()


def test_an_error_shows_hostile_text_and_obeys_none() -> None:
    done = breaker("replay", ".", "--label", f"{HOSTILE}=x")
    assert done.stderr.startswith(f"breaker: error: --label {SHOWN}=x: unknown label ")
    assert done.stderr.count("\n") == 1


def test_a_noun_goes_with_its_number() -> None:
    assert [counted(count, "file") for count in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
    assert [counted(count, "lies", "lie") for count in (1, 2)] == ["1 lies", "2 lie"]


def test_one_of_a_kind_is_told_in_the_singular(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.bash()
    log.write(tmp_path)
    assert "1 session, 1 turn, 1 call, 1 tracked" in breaker("replay", tmp_path).stdout
    doctor = breaker("doctor", tmp_path).stdout
    assert "1 file, 1 session: ok 1" in doctor
    assert "resumed 0 times in 0 sessions" in doctor
    sweep = breaker("sweep", tmp_path, "--grid", "warnAt=3").stdout
    assert "1 configuration over 1 session (" in sweep


def test_one_file_that_cannot_be_read_is_told_in_the_singular(tmp_path: Path) -> None:
    (tmp_path / "session.v4.jsonl").write_bytes(b"nothing\n")
    for command in (["replay"], ["sweep", "--grid", "warnAt=3"]):
        done = breaker(command[0], tmp_path, *command[1:])
        assert (done.returncode, done.stderr) == (3, "breaker: error: the only session file could not be read\n")
        assert "read report: 1 file; " in done.stdout
        assert f"{tmp_path}/session.v4.jsonl" in done.stdout


def test_a_read_report_of_no_file_has_no_dangling_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert breaker("replay", tmp_path / "pipe").stdout.splitlines()[0] == "read report: 0 files"
