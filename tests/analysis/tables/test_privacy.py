"""What may be written of a log's text: nothing secret under any privacy but `full`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.tables import PRIVACIES, Privacy, PrivacyMode, printable_unicode
from analysis.tables.export import FORMATS
from analysis.tables.privacy import private_settings
from analysis.tables.schemas import TextKind
from breaker.rulesets import DEFAULT_RULESET
from breaker.settings import DEFAULT_LIMITS, Settings
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


SETTINGS: dict[str, Any] = {
    "warnAt": 2,
    "failWarnAt": 2,
    "failLimit": 3,
    "limits": {f"cmd:make:TOKEN={SECRET} make": 5, f"sink:/tmp/{SECRET}": 6, f"sink:/var/{SECRET}": 7, f"{SECRET}:": 8},
    "hostAliases": {f"{SECRET}.example.com": SECRET, "www.open.canada.ca": SECRET, "a.example": {SECRET: SECRET}},
    "ignoreArgs": {f"tool {SECRET}": [f"key {SECRET}"], "bash": [f"key {SECRET}"]},
    "exclude": ["todo_write", f"tool {SECRET} too"],
    "shellHttpBlock": [f"/bin/{SECRET}", "curl"],
}
"""Settings with a secret in every text a person can write there."""


@pytest.mark.parametrize("mode", ["shape", "hash", "counts"])
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_secret_planted_everywhere_is_in_no_file(tmp_path: Path, mode: PrivacyMode, file_format: str) -> None:
    corpus = planted(tmp_path / SECRET)
    labels = [f"good=*{SECRET}*"]
    found = Gathered(corpus, privacy=mode, labels=labels, **SETTINGS)
    found.export(tmp_path / "out", file_format=file_format)
    assert {row["label"] for row in found.rows("sessions")} == {"good"}
    assert found.corpus.totals.calls == 13
    for table in ("sessions", "turns", "calls", "events", "measures", "streaks", "read_report"):
        rows = json.dumps(found.rows(table), default=str)
        assert rows != "[]"
        assert SECRET not in rows
    for path in (tmp_path / "out").iterdir():
        assert SECRET.encode() not in path.read_bytes(), path.name


def test_of_settings_numbers_and_defaults_stay_and_entries_that_look_alike_are_numbered() -> None:
    settings = Settings.from_config(SETTINGS)
    told: Any = private_settings(settings, DEFAULT_RULESET, Privacy("shape"))
    assert (told["warnAt"], told["localHosts"], told["limits"]["host"]) == (2, "deny", 16)
    assert told["exclude"] == ["todo_write", "#23"]
    assert told["shellHttpBlock"] == ["#19", "curl"]
    assert {key: value for key, value in told["limits"].items() if key not in DEFAULT_LIMITS} == {
        "cmd:make#30": 5,
        "sink:#19": 6,
        "sink:#19~2": 7,
        "#15": 8,
    }
    assert told["hostAliases"]["open-data.canada.ca"] == "open.canada.ca"
    assert told["hostAliases"]["www.open.canada.ca"] == "#14"
    assert private_settings(settings, DEFAULT_RULESET, Privacy("full")) == settings.as_config
    defaults = Settings.from_config({})
    for mode in PRIVACIES:
        assert private_settings(defaults, DEFAULT_RULESET, Privacy(mode)) == defaults.as_config


def test_a_limit_is_hashed_like_the_measures_of_the_tables() -> None:
    privacy, measure = Privacy("hash", SALT), "host:example.com"
    told: Any = private_settings(Settings.from_config({"limits": {measure: 4}}), DEFAULT_RULESET, privacy)
    assert told["limits"][privacy.shown(measure, "measure")] == 4
    assert measure not in told["limits"]


def test_the_same_secret_is_there_in_full(tmp_path: Path) -> None:
    corpus = planted(tmp_path / "corpus")
    found = Gathered(corpus, privacy="full", warnAt=2, failWarnAt=2, failLimit=3)
    for table in ("sessions", "calls", "events", "measures", "streaks", "read_report"):
        assert SECRET in json.dumps(found.rows(table), default=str), table
