"""What may be written of a log's text: nothing secret under any privacy but `full`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.tables import PRIVACIES, Privacy, PrivacyMode, printable_unicode
from analysis.tables.export import FORMATS
from analysis.tables.schemas import TextKind
from tests.analysis.logs import LogWriter
from tests.analysis.tables.exports import Gathered

SECRET = "hunter2hunter2"
SALT = b"s" * 32
TEXT_KINDS: tuple[TextKind, ...] = ("measure", "name", "identity", "path", "text", "fixed")


@pytest.mark.parametrize(
    ("measure", "shape"),
    [
        ("host:api.example.com", "host:api.example.com"),
        ("host:[::1]x y", "host:#8"),
        ("site:example.com", "site:example.com"),
        ("net:api.example.com/v1/key?token=abc", "net:api.example.com#32"),
        ("net:api.example.com?token=abc", "net:api.example.com#25"),
        ("cmd:npm:npm test --token abc", "cmd:npm#24"),
        ("cmd:/home/jane/bin/x:/home/jane/bin/x", "cmd:#33"),
        ('exact:bash:{"command":"ls"}', "exact:bash#21"),
        ("exact::{}", "exact:#3"),
        ("sink:/home/jane/out.txt", "sink:#18"),
        ("family:http-fetch", "family:http-fetch"),
        ("verb:curl", "verb:curl"),
        ("verb:/home/jane/tool", "verb:#15"),
        ("verb:a b", "verb:#3"),
    ],
)
def test_the_shape_of_a_measure_is_its_kind_its_host_or_verb_and_its_length(measure: str, shape: str) -> None:
    assert Privacy("shape").shown(measure, "measure") == shape


def test_names_stay_where_they_are_plain_words() -> None:
    shape = Privacy("shape")
    assert shape.shown("web_fetch", "name") == "web_fetch"
    assert shape.shown("", "name") == ""
    assert shape.shown("see /home/jane", "name") == "#14"
    assert shape.shown("0b7ff6ab-2486-4b2f", "identity") == "0b7ff6ab-2486-4b2f"
    assert shape.shown("x" * 65, "identity") == "#65"


def test_of_paths_and_texts_the_lengths_are_kept() -> None:
    shape = Privacy("shape")
    assert shape.shown("/home/jane/a.jsonl", "path") == "/#4/#4/#7"
    assert shape.shown("C:\\jane", "path") == "#2/#4"
    assert shape.shown("some words", "text") == "#10"


def test_hashes_are_the_same_within_a_run_and_others_in_the_next() -> None:
    one, other = Privacy("hash"), Privacy("hash")
    hashed = one.shown("host:example.com", "measure")
    assert hashed is not None
    assert hashed.startswith("host:")
    assert len(hashed) == len("host:") + 16
    assert one.shown("host:example.com", "measure") == hashed != other.shown("host:example.com", "measure")
    assert one.shown("host:example.org", "measure") != hashed
    assert Privacy("hash", SALT).shown("x", "text") == Privacy("hash", SALT).shown("x", "text")
    assert one.shown("bash", "name") == "bash"
    assert one.shown("bash", "identity") != "bash"


def test_counts_keep_no_text_at_all() -> None:
    counts = Privacy("counts")
    assert [counts.shown("bash", kind) for kind in ("measure", "name", "identity", "path", "text")] == [None] * 5
    assert counts.shown("ok", "fixed") == "ok"
    assert counts.shown_all(["a", "b"], "name") == []


def test_a_salt_is_told_by_its_hash_and_only_where_something_is_hashed() -> None:
    assert Privacy("shape", SALT).salt_digest is None
    assert Privacy("hash", SALT).salt_digest == Privacy("hash", SALT).salt_digest != Privacy("hash").salt_digest
    assert "ssss" not in repr(Privacy("hash", SALT))


@given(st.text(st.characters(), max_size=20), st.sampled_from(TEXT_KINDS))
def test_whatever_is_shown_can_be_encoded(text: str, kind: TextKind) -> None:
    for mode in PRIVACIES:
        shown = Privacy(mode, SALT).shown(text, kind)
        if shown is not None:
            shown.encode()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_that_is_valid_stays_as_it_is(text: str) -> None:
    assert printable_unicode(text) == text


def planted(root: Path) -> Path:
    """Write a session with a secret in every text a log holds."""
    log = LogWriter(f"{SECRET} id", cwd=f"/home/{SECRET}")
    log.user(SECRET)
    log.says(f"{SECRET} {SECRET}")
    for command in (
        f"curl https://example.com/{SECRET}?token={SECRET} -o /tmp/{SECRET}",
        f"TOKEN={SECRET} make {SECRET}",
        f"/home/{SECRET}/run",
    ):
        for _ in range(4):
            log.bash(command, f"{SECRET}\n[exit code: 1]")
    log.call(name=f"tool {SECRET}", arguments=json.dumps({"key": SECRET}))
    log.result(log.next - 1, SECRET, is_error=True, error={"code": f"E {SECRET}"})
    log.raw(f'{{"type":"{SECRET}"'.encode())
    log.write(root, folder=f"--{SECRET}--")
    (root / f"{SECRET}.zip").write_bytes(b"PK\x03\x04")
    return root


@pytest.mark.parametrize("mode", ["shape", "hash", "counts"])
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_secret_planted_everywhere_is_in_no_file(tmp_path: Path, mode: PrivacyMode, file_format: str) -> None:
    corpus = planted(tmp_path / "corpus")
    found = Gathered(corpus, privacy=mode, warnAt=2, failWarnAt=2, failLimit=3)
    found.export(tmp_path / "out", file_format=file_format)
    assert found.corpus.totals.calls == 13
    for table in ("sessions", "turns", "calls", "events", "measures", "streaks", "read_report"):
        rows = json.dumps(found.rows(table), default=str)
        assert rows != "[]"
        assert SECRET not in rows
    for path in (tmp_path / "out").iterdir():
        assert SECRET.encode() not in path.read_bytes(), path.name


def test_the_same_secret_is_there_in_full(tmp_path: Path) -> None:
    corpus = planted(tmp_path / "corpus")
    found = Gathered(corpus, privacy="full", warnAt=2, failWarnAt=2, failLimit=3)
    for table in ("sessions", "calls", "events", "measures", "streaks", "read_report"):
        assert SECRET in json.dumps(found.rows(table), default=str), table
