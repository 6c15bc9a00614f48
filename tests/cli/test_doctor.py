"""`breaker doctor`: every defect with its place and its meaning, what is normal told apart, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard

from analysis.doctor import DEFECTS, MEANINGS
from analysis.sessions import decode
from analysis.sessions.facts import REMARK_KINDS
from tests.analysis.logs import LogWriter
from tests.cli.commands import Json, breaker, replay_document, violations


def new_log(session_id: str = "session-a", *, version: int = 4) -> LogWriter:
    log = LogWriter(session_id, version=version)
    log.user()
    log.bash()
    return log


def doctor(*arguments: str | Path, code: int = 1) -> Json:
    """Return the document; it must be as described."""
    done = breaker("doctor", *arguments, "--format", "json")
    assert done.returncode == code
    document = json.loads(done.stdout)
    assert violations("doctor", document) == []
    return document


def findings(document: Json, *members: str) -> list[tuple[object, ...]]:
    return [tuple(one[member] for member in members) for file in document["files"] for one in file["findings"]]


def test_sound_sessions_are_told_so(tmp_path: Path) -> None:
    new_log().write(tmp_path)
    document = doctor(tmp_path, code=0)
    assert (document["defective"], findings(document, "kind"), document["findings_by_kind"]) == (False, [], {})
    done = breaker("doctor", tmp_path)
    assert (done.returncode, done.stdout.split("\n")[-2]) == (0, "nothing is wrong")


def test_every_kind_has_a_meaning() -> None:
    assert decode.KINDS | set(REMARK_KINDS) <= set(MEANINGS)
    assert set(MEANINGS) >= DEFECTS
    assert not DEFECTS & decode.NOTES
    assert all(meaning.endswith(".") for meaning in MEANINGS.values())


def test_a_bad_row_has_line_byte_and_number(tmp_path: Path) -> None:
    log = new_log()
    log.raw(b'{"type":')
    path = log.write(tmp_path)
    document = doctor(tmp_path)
    (found,) = document["files"][0]["findings"]
    assert found == {
        "path": str(path),
        "kind": "row",
        "severity": "defect",
        "message": found["message"],
        "meaning": MEANINGS["row"],
        "line": 5,
        "byte": path.stat().st_size - 9,
        "byte_of": "file",
        "frame": None,
        "seq": 3,
        "lost_bytes": 8,
    }
    text = breaker("doctor", tmp_path).stdout
    assert f"defect at line 5, seq 3, byte {found['byte']}: not JSON" in text
    assert "1 defect, 8 bytes lost" in text


def test_a_row_of_the_wrong_shape_has_its_own_number(tmp_path: Path) -> None:
    log = new_log()
    log.add("tool/call", "no object")
    log.write(tmp_path)
    assert findings(doctor(tmp_path), "kind", "line", "seq", "message") == [
        ("row", 5, 3, "tool/call has no data object")
    ]


def test_in_a_compressed_log_a_row_has_its_frame_and_its_place_in_the_text(tmp_path: Path) -> None:
    log = new_log()
    log.raw(b"no row")
    path = log.write(tmp_path, compressed=True)
    assert findings(doctor(tmp_path), "kind", "line", "frame", "byte", "byte_of") == [
        ("row", 5, 4, len(log.text) - 7, "text")
    ]
    data = path.read_bytes()
    path.write_bytes(data[:-3])
    assert findings(doctor(tmp_path), "kind", "frame", "byte_of")[-1] == ("torn", 4, "file")


def test_a_damaged_frame_is_told_with_what_is_missing_after_it(tmp_path: Path) -> None:
    log = new_log()
    log.bash()
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    frames = [compressor.compress(line) for line in log.text.splitlines(keepends=True)]
    frames[3] = frames[3][:-1] + bytes([frames[3][-1] ^ 1])
    path = log.write(tmp_path, compressed=True)
    path.write_bytes(b"".join(frames))
    document = doctor(tmp_path)
    start = len(b"".join(frames[:3]))
    assert findings(document, "kind", "frame", "seq", "byte", "lost_bytes")[:1] == [
        ("frame", 3, None, start, len(frames[3]))
    ]
    assert ("gap", 3) in findings(document, "kind", "seq")
    assert document["files"][0]["state"] == "partial"


def test_numbers_that_jump_go_back_and_repeat_are_told_one_by_one(tmp_path: Path) -> None:
    log = new_log()
    for seq in (9, 5, 9):
        log.add("step/start", {"turn": 1, "step": 1}, seq=seq)
    log.write(tmp_path)
    assert findings(doctor(tmp_path), "kind", "severity", "line", "seq", "message") == [
        ("gap", "defect", 5, 9, "number 3 to 8 are missing before this row"),
        ("late", "defect", 6, 5, "number 5 comes late; the row counts where it stands"),
        ("repeated", "defect", 7, 9, "a row numbered 9 came before; this one is left out"),
    ]


def test_results_that_belong_to_no_call(tmp_path: Path) -> None:
    log = new_log()
    log.result(1)
    log.result(77, call_id="nobody", sources=[])
    log.write(tmp_path)
    assert findings(doctor(tmp_path), "kind", "seq") == [("second-result", 3), ("orphan-result", 4)]


def test_damage_in_a_row_that_no_count_needs_is_found_by_every_reading(tmp_path: Path) -> None:
    log = new_log()
    log.raw(b'{"type":"step/end","seq":3,"time":1,"data":{"turn":1,,}}')
    log.write(tmp_path)
    assert [defect["line"] for defect in replay_document(tmp_path)["read_report"][0]["defects"]] == [5]
    assert findings(doctor(tmp_path), "kind", "line") == [("row", 5)]


def test_what_is_normal_is_a_note_and_exit_0(tmp_path: Path) -> None:
    old = new_log(version=3)
    old.write(tmp_path)
    log = new_log()
    log.marker(inherited=False)
    log.add("roleplay/scene", {})
    newest = log.write(tmp_path)
    log.write(tmp_path, folder="copy")
    fork = LogWriter("session-fork", parentSession="session-gone", isSeeded=True)
    fork.user()
    fork.marker()
    fork.bash()
    forked = fork.write(tmp_path)
    named = new_log("session-named", version=3)
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "session.v4.jsonl").write_bytes(b"\xef\xbb\xbf" + named.text)
    document = doctor(tmp_path, code=0)
    kinds = {kind for kind, severity in findings(document, "kind", "severity") if severity == "note"}
    assert kinds == {
        "bom",
        "duplicate",
        "missing-parent",
        "resume",
        "superseded",
        "unknown-event",
        "version-differs",
    }
    counting = document["duplicates"][0]["path"]
    assert counting in {str(newest), str(newest).replace("session-a", "copy")}
    assert document["generations"] == [
        {"path": str(newest), "older": [str(newest).replace("session.v4", "session.v3")]}
    ]
    assert document["forks"] == [
        {"path": str(forked), "id": "session-fork", "parent": "session-gone", "parent_here": False}
    ]
    assert {(resume["id"], resume["times"]) for resume in document["resumes"]} == {("session-a", 1)}
    text = breaker("doctor", tmp_path).stdout
    assert "older generations 1 · copies 1 · forks 1, 1 of them without their parent · resumed 2 times" in text


def test_a_fork_beside_its_parent(tmp_path: Path) -> None:
    new_log("session-parent").write(tmp_path)
    fork = LogWriter("session-fork", parentSession="session-parent", isSeeded=True)
    fork.user()
    fork.marker()
    fork.write(tmp_path)
    document = doctor(tmp_path, code=0)
    assert [one["parent_here"] for one in document["forks"]] == [True]
    assert findings(document, "kind") == []


def test_different_sessions_of_one_id(tmp_path: Path) -> None:
    new_log().write(tmp_path, folder="one")
    other = LogWriter("session-a")
    other.user("another")
    other.bash("other")
    other.write(tmp_path, folder="two")
    assert (
        findings(doctor(tmp_path), "kind", "message")
        == [("shared-id", "2 different sessions share the id session-a")] * 2
    )


def test_of_very_many_remarks_the_first_hundred_of_a_kind_are_listed(tmp_path: Path) -> None:
    log = new_log()
    for number in range(150):
        log.add("odd/event", {}, seq=5 + 2 * number)
    log.write(tmp_path)
    document = doctor(tmp_path)
    (file,) = document["files"]
    assert document["findings_by_kind"] == {"gap": 100, "unknown-event": 100}
    assert file["findings_untold"] == 100
    assert "… and 100 more" in breaker("doctor", tmp_path).stdout


@pytest.mark.parametrize("output", ["text", "json"])
def test_exit_codes(tmp_path: Path, output: str) -> None:
    sound, torn, broken = tmp_path / "sound", tmp_path / "torn", tmp_path / "broken"
    new_log().write(sound)
    cut = new_log("session-b").write(torn)
    cut.write_bytes(cut.read_bytes()[:-5])
    (broken / "x").mkdir(parents=True)
    (broken / "x" / "session.v4.jsonl").write_bytes(b"no log\n")
    (broken / "y").mkdir()
    (broken / "y" / "session.v4.jsonl").write_bytes(b"")
    (tmp_path / "none").mkdir()

    def code(*given: str | Path) -> int:
        return breaker("doctor", *given, "--format", output).returncode

    assert code(sound) == 0
    assert code(torn) == 1
    assert code(sound, torn) == 1
    assert code(sound, torn, "--strict") == 3
    assert code(sound, broken) == 1
    assert code(broken) == 3
    assert code(tmp_path / "none") == 4
    assert code(tmp_path / "missing") == 2


def test_a_broken_file_says_why_nothing_of_it_counts(tmp_path: Path) -> None:
    for name, data in (
        ("header", b"no log\n"),
        ("version", b'{"type":"session","version":9,"id":"x"}\n'),
        ("empty", b""),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "session.v4.jsonl").write_bytes(data)
    document = doctor(tmp_path, code=3)
    assert {(file["state"], file["findings"][0]["kind"]) for file in document["files"]} == {
        ("corrupt", "header"),
        ("unsupported", "version"),
        ("empty", "empty"),
    }
