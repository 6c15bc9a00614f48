"""Bombs, and what is no log: refused or handled within stated limits, named in the report, never a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from analysis.sessions import decode
from tests.analysis.logs import LogWriter
from tests.cli.commands import COMMAND, Json, Ran, breaker

MEBI = 1 << 20
WINDOW_OF_2_GIB = b"\x28\xb5\x2f\xfd\x04\xa8"


def new_log(session_id: str = "session-a") -> LogWriter:
    log = LogWriter(session_id)
    log.user()
    log.bash()
    return log


def put(root: Path, data: bytes, name: str = "session.v4.jsonl", folder: str = "a") -> Path:
    path = root / "--p--" / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def pack(*texts: bytes) -> bytes:
    return b"".join(map(zstandard.ZstdCompressor(level=1, write_checksum=True).compress, texts))


def lines(log: LogWriter) -> list[bytes]:
    return log.text.splitlines(keepends=True)


def checked(done: Ran) -> Json:
    assert done.stderr == ""
    return json.loads(done.stdout)


def doctor(*arguments: str | Path) -> Json:
    return checked(breaker("doctor", *arguments, "--format", "json"))


def findings(document: Json) -> list[tuple[str, int | None]]:
    return [(one["kind"], one["line"]) for file in document["files"] for one in file["findings"]]


def peak_of(*arguments: str | Path) -> tuple[int, int]:
    """Run the command in a process of its own; return its exit code and the most memory it held, in kilobytes."""
    code = (
        "import sys; from cli.main import run; sys.argv[0] = 'breaker'\n"
        "try: run()\n"
        "except SystemExit as end:\n"
        "    line = next(one for one in open('/proc/self/status') if one.startswith('VmHWM'))\n"
        "    print(end.code, line.split()[1], file=sys.stderr)\n"
    )
    given = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(given, capture_output=True, text=True, check=True, timeout=120)
    exit_code, kilobytes = done.stderr.split("\n")[-2].split()
    return int(exit_code), int(kilobytes)


# Limits


@pytest.mark.parametrize(
    "verb",
    [
        ("replay",),
        ("doctor",),
        ("compare", "--a", "warnAt=3", "--b", "warnAt=4"),
        ("sweep", "--grid", "warnAt=3,4"),
        ("histogram",),
        ("explain",),
        ("label", "suggest"),
    ],
    ids=lambda verb: verb[0],
)
def test_every_corpus_command_takes_the_limits(tmp_path: Path, verb: tuple[str, ...]) -> None:
    log = new_log()
    log.bash("y" * 9000)
    path = log.write(tmp_path)
    words, options = (verb[:2], verb[2:]) if verb[0] == "label" else (verb[:1], verb[1:])
    for option in ("--max-line", "--max-expanded"):
        done = breaker(*words, path, *options, option, "0")
        told = "not a size (a whole number, with KB, MB, GB, KiB, MiB or GiB for more than bytes)"
        assert (done.returncode, done.stderr) == (2, f"breaker: error: {option} 0: {told}\n")
    assert breaker(*words, path, *options, "--max-line", "1MiB", "--max-expanded", "1GiB").returncode in {0, 2}
    if words[0] == "replay":
        document = json.loads(breaker(*words, path, "--max-line", "8KiB", "--format", "json").stdout)
        assert document["corpus"]["read"]["partial"] == 1


@pytest.mark.parametrize("size", ["", "0", "-1", "1.5GiB", "10 MiB", "1TiB", "1gib", "9" * 20, "٣"])
def test_what_is_no_size_is_refused(tmp_path: Path, size: str) -> None:
    new_log().write(tmp_path)
    done = breaker("replay", tmp_path, f"--max-line={size}")
    assert done.returncode == 2
    assert done.stderr.startswith(f"breaker: error: --max-line {size}: not a size")


@pytest.mark.parametrize(("size", "read"), [("500", "partial"), ("500B", "partial"), ("2KiB", "ok"), ("1GiB", "ok")])
def test_a_size_has_its_unit(tmp_path: Path, size: str, read: str) -> None:
    log = new_log()
    log.bash("y" * 600)
    log.write(tmp_path)
    document = json.loads(breaker("replay", tmp_path, "--max-line", size, "--format", "json").stdout)
    assert document["corpus"]["read"][read] == 1


def test_the_limits_are_named_where_they_cut(tmp_path: Path) -> None:
    log = new_log()
    log.bash("y" * 5000)
    log.write(tmp_path)
    document = doctor(tmp_path, "--max-line", "4KiB", "--max-expanded", "6KiB")
    assert document["limits"] == {"max_line": 4096, "max_expanded": 6144}
    messages = [one["message"] for one in document["files"][0]["findings"]]
    assert any("the limit is 4096" in message for message in messages)
    assert any("beyond the limit of 6144 bytes" in message for message in messages)
    assert document["files"][0]["state"] == "partial"


# Bombs


def test_a_frame_that_expands_without_end_stops_at_the_limit(tmp_path: Path) -> None:
    bomb = zstandard.ZstdCompressor(level=1).compress(bytes(300 * MEBI))
    put(tmp_path, pack(*lines(new_log())) + bomb, "session.v4.jsonl.zstd")
    assert doctor(tmp_path, "--max-expanded", "5MiB")["files"][0]["state"] == "partial"
    code, kilobytes = peak_of("replay", tmp_path, "--max-expanded", "5MiB")
    assert code == 0
    assert kilobytes < 150 * 1024


@pytest.mark.slow
def test_a_line_without_end_costs_no_more_than_the_limit_on_lines(tmp_path: Path) -> None:
    compressor = zstandard.ZstdCompressor(level=1)
    put(tmp_path, pack(*lines(new_log())) + compressor.compress(b"x" * 600 * MEBI), "session.v4.jsonl.zstd")
    code, kilobytes = peak_of("replay", tmp_path, "--max-line", "8MiB")
    assert code == 0
    assert kilobytes < 150 * 1024
    assert ("line-too-long", 5) in findings(doctor(tmp_path, "--max-line", "8MiB"))


def test_a_window_of_2_gib_is_refused_by_name_and_the_rest_read(tmp_path: Path) -> None:
    head, *rest = lines(new_log())
    put(tmp_path, pack(head) + WINDOW_OF_2_GIB + b"\x01\x00\x00" + bytes(4) + pack(*rest), "session.v4.jsonl.zstd")
    document = doctor(tmp_path)
    (file,) = document["files"]
    (finding,) = [one for one in file["findings"] if one["kind"] == "frame"]
    assert "window of 2147483648 bytes, the limit is 134217728" in finding["message"]
    assert (finding["frame"], finding["byte_of"]) == (1, "file")
    assert (file["state"], file["rows"]) == ("partial", 3)


DEEP = "[" * 100_000 + "]" * 100_000


def test_json_nested_a_hundred_thousand_deep_is_a_bad_row_or_a_text(tmp_path: Path) -> None:
    log = new_log()
    log.result(log.call(arguments=DEEP))
    log.raw(b'{"type":"tool/call","seq":99,"data":' + DEEP.encode() + b"}")
    log.raw(DEEP.encode())
    log.raw(b'{"type":"odd/event","seq":99,"data":' + DEEP.encode() + b"}")
    log.write(tmp_path)
    document = json.loads(breaker("replay", tmp_path, "--format", "json").stdout)
    assert document["totals"]["ok"] == 2
    assert document["read_report"][0]["lost_rows"] >= 1
    put(tmp_path, DEEP.encode() + b"\n", folder="header")
    assert [file["state"] for file in doctor(tmp_path)["files"]] == ["corrupt", "partial"]


def test_settings_and_labels_nested_too_deeply_are_one_line(tmp_path: Path) -> None:
    new_log().write(tmp_path / "in")
    for name in ("a.json", "a.yaml", "a.toml"):
        config = tmp_path / name
        config.write_text(("a = " if name.endswith("toml") else "") + DEEP, encoding="utf-8")
        done = breaker("replay", tmp_path / "in", "--config", config)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_many_tiny_files_take_memory_in_their_number_only(tmp_path: Path) -> None:
    peaks: list[int] = []
    for count in (2_000, 20_000):
        root = tmp_path / str(count)
        for number in range(count):
            log = LogWriter(f"session-{number}")
            log.write(root)
        code, kilobytes = peak_of("replay", root)
        assert code == 0
        peaks.append(kilobytes)
    assert (peaks[1] - peaks[0]) / 18_000 < 10


# What is no log


def test_pipes_devices_and_loops_are_told_and_never_opened(tmp_path: Path) -> None:
    new_log().write(tmp_path)
    for folder in ("pipe", "device", "gone", "loop"):
        path = tmp_path / "--p--" / folder / "session.v4.jsonl"
        path.parent.mkdir()
        if folder == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to({"device": Path("/dev/zero"), "gone": Path("/nowhere"), "loop": path}[folder])
    (tmp_path / "--p--" / "up").symlink_to("..")
    document = doctor(tmp_path)
    assert [file["state"] for file in document["files"]] == ["ok"]
    told = {Path(one["path"]).parent.name: one["message"] for one in document["not_searched"]}
    assert set(told) == {"pipe", "device", "gone", "loop"}
    assert told["pipe"] == told["device"] == "is not a regular file"
    assert document["defective"]


@pytest.fixture
def forbidden(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Return what makes a file one that nobody may open (root may open every real one)."""

    def forbid(path: Path) -> None:
        def refuse(name: str, flags: int) -> int:
            if Path(name) == path:
                raise PermissionError(13, "Permission denied", name)
            return os.open(name, flags)

        monkeypatch.setattr(decode, "_opener", refuse)

    return forbid


def test_a_file_without_permission_is_unreadable_and_the_rest_counts(
    tmp_path: Path, forbidden: Callable[[Path], None]
) -> None:
    new_log().write(tmp_path)
    secret = put(tmp_path, new_log("session-b").text, folder="secret")
    forbidden(secret)
    document = doctor(tmp_path)
    states = {Path(file["path"]): (file["state"], file["lost_bytes"]) for file in document["files"]}
    assert states.pop(secret) == ("corrupt", secret.stat().st_size)
    assert list(states.values()) == [("ok", 0)]
    assert any("Permission denied" in one["message"] for file in document["files"] for one in file["findings"])


def test_names_that_are_not_utf_8_are_read_and_shown(tmp_path: Path) -> None:
    folder = tmp_path / "--p--" / os.fsdecode(b"caf\xe9\xff")
    folder.mkdir(parents=True)
    (folder / "session.v4.jsonl").write_bytes(new_log().text)
    document = doctor(tmp_path)
    (file,) = document["files"]
    assert file["path"].endswith(r"caf\xe9\xff/session.v4.jsonl")
    assert (file["state"], document["corpus"]["sessions"]) == ("ok", 1)
    done = subprocess.run([COMMAND, "replay", folder, "--events"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_log_that_grows_while_it_is_read_is_no_fault(tmp_path: Path) -> None:
    path = new_log().write(tmp_path)
    row = json.dumps({"type": "odd/event", "data": {"a": "x" * 500}}).encode() + b"\n"
    stop = threading.Event()

    def append() -> None:
        with path.open("ab") as file:
            while not stop.is_set() and file.tell() < 40 * MEBI:
                file.write(row)

    writer = threading.Thread(target=append)
    writer.start()
    try:
        states = [doctor(tmp_path)["files"][0]["state"] for _ in range(3)]
    finally:
        stop.set()
        writer.join()
    assert set(states) <= {"ok", "torn"}
