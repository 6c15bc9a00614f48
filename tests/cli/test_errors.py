"""Bad input: one line on standard error, the documented exit code, never a traceback."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.synth import Truth
from cli.exits import run_guarded
from tests.analysis.logs import LogWriter
from tests.cli.commands import COMMAND, PATIENCE, Ran, breaker, breaker_process, lines_of

USAGE, UNREADABLE, NOT_ENOUGH, INTERRUPTED = 2, 3, 4, 130


def refused(done: Ran, code: int, message: str) -> None:
    """Hold that a command ended with that code, one line on standard error and nothing on standard output."""
    assert (done.returncode, done.stderr, done.stdout) == (code, f"breaker: error: {message}\n", "")


def file(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def session(folder: Path, session_id: str = "session-a") -> Path:
    log = LogWriter(session_id)
    log.user()
    log.bash()
    return log.write(folder)


def test_where_nobody_can_be_told_the_exit_code_tells(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        words = [str(COMMAND), "replay", str(tmp_path / "nowhere")]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=full, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (USAGE, b"")


def test_too_little_memory_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    def act() -> None:
        raise MemoryError

    assert run_guarded(act) == UNREADABLE
    assert capsys.readouterr().err == "breaker: error: there is not enough memory for that\n"


# Paths


@pytest.mark.parametrize("output", ["table", "json", "jsonl"])
def test_a_path_that_does_not_exist_is_2_whatever_stands_beside_it(tmp_path: Path, output: str) -> None:
    session(tmp_path / "real")
    missing = tmp_path / "missing"
    done = breaker("replay", tmp_path / "real", missing, "--format", output)
    refused(done, USAGE, f"{missing}: no such file or folder")


def test_a_path_that_does_not_exist_in_a_process_of_its_own(tmp_path: Path) -> None:
    missing = tmp_path / "new\nline"
    refused(breaker_process("replay", missing), USAGE, f"{tmp_path}/new\\nline: no such file or folder")


@pytest.mark.parametrize("output", ["table", "json", "jsonl"])
def test_a_folder_without_sessions_is_4(tmp_path: Path, output: str) -> None:
    file(tmp_path / "notes" / "session.txt", "no log")
    refused(breaker("replay", tmp_path, "--format", output), NOT_ENOUGH, f"no sessions found in {tmp_path}")
    both = breaker("replay", tmp_path, tmp_path / "notes", "--strict", "--format", output)
    refused(both, NOT_ENOUGH, f"no sessions found in {tmp_path}, {tmp_path}/notes")


@pytest.mark.parametrize("output", ["table", "json", "jsonl"])
def test_a_time_without_sessions_is_4(demo_corpus: tuple[Path, Truth], output: str) -> None:
    demo, truth = demo_corpus
    done = breaker("replay", demo, "--since", "2040-01-01", "--format", output)
    refused(done, NOT_ENOUGH, f"no session in that time; {len(truth.sessions)} lie outside it")


def test_a_time_without_sessions_is_4_beside_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    session(tmp_path)
    file(tmp_path / "b" / "session.v4.jsonl", "no log\n")
    done = breaker("replay", tmp_path, "--until", "2000-01-01")
    refused(done, NOT_ENOUGH, "no session in that time; 1 lies outside it")


def test_nothing_readable_is_3_and_the_report_says_what_is_wrong_with_each(tmp_path: Path) -> None:
    broken = file(tmp_path / "a" / "session.v4.jsonl.zstd", b"\x28\xb5\x2f\xfd\xff\xff\xff")
    headless = file(tmp_path / "b" / "session.v4.jsonl", "no log\n")
    newer = file(tmp_path / "c" / "session.v9.jsonl", b'{"type":"session","version":9,"id":"x"}\n')
    done = breaker("replay", tmp_path)
    assert (done.returncode, done.stderr) == (
        UNREADABLE,
        "breaker: error: none of 3 session files could be read\n",
    )
    told = [line.split() for line in done.stdout.splitlines() if line.startswith("  ") and "session.v" in line]
    assert told == [["corrupt", str(broken)], ["corrupt", str(headless)], ["unsupported", str(newer)]]
    assert breaker("replay", tmp_path, "--format", "json").returncode == UNREADABLE
    assert breaker("replay", tmp_path, "--format", "jsonl").stdout == ""


def test_a_path_that_is_no_file_is_3(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = breaker("replay", tmp_path / "pipe")
    assert (done.returncode, done.stderr) == (
        UNREADABLE,
        f"breaker: error: nothing could be read: {tmp_path}/pipe: is not a regular file\n",
    )


def test_a_torn_file_is_3_only_under_strict(tmp_path: Path) -> None:
    session(tmp_path)
    whole = session(tmp_path, "session-b")
    assert breaker("replay", tmp_path, "--strict").returncode == 0
    file(whole, whole.read_bytes()[:-5])
    assert breaker("replay", tmp_path).returncode == 0
    for output in ("table", "json", "jsonl"):
        done = breaker("replay", tmp_path, "--strict", "--format", output)
        assert (done.returncode, done.stderr) == (
            UNREADABLE,
            "breaker: error: --strict: 1 of 2 session files did not read ok\n",
        )


def test_an_older_generation_is_no_fault_under_strict(tmp_path: Path) -> None:
    log = LogWriter(version=3)
    log.user()
    log.write(tmp_path)
    session(tmp_path)
    assert breaker("replay", tmp_path, "--strict").returncode == 0


# One session


def test_explain_tells_nothing_there_from_nothing_readable_and_from_a_name_that_is_wrong(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for given in (["session-a", empty], [empty]):
        refused(breaker("explain", *given), NOT_ENOUGH, f"no sessions found in {empty}")
    broken = file(tmp_path / "broken" / "a" / "session.v4.jsonl", "no log\n")
    done = breaker("explain", "session-a", tmp_path / "broken")
    refused(done, UNREADABLE, "none of 1 session file could be read")
    done = breaker("explain", broken)
    assert (done.returncode, done.stdout) == (UNREADABLE, "")
    assert done.stderr.startswith(f"breaker: error: {broken}: nothing in it can be used (corrupt): ")
    os.mkfifo(tmp_path / "pipe")
    told = f"nothing could be read: {tmp_path}/pipe: is not a regular file"
    refused(breaker("explain", tmp_path / "pipe"), UNREADABLE, told)
    session(tmp_path / "fine")
    told = "no session 'session-z' among 1 files; the nearest: session-a"
    refused(breaker("explain", "session-z", tmp_path / "fine"), USAGE, told)


# Settings


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "window = 16\nwarnAt = = 3\n", ":2: Invalid value (column 10)"),
        ("a.toml", "warnAt = [1,\n2\n\n", ":2: Unclosed array (at the end)"),
        ("a.json", '{"window": 16,\n "warnAt": }\n', ":2: Expecting value (column 12)"),
        ("a.yaml", "window: 16\nwarnAt: ]\n", ":2: expected the node content, but found ']'"),
        ("a.yaml", "window: 16\nlimits:\n  host: 9\n  host: 8\n", ":4: `host` is given twice, first on line 3"),
        ("a.yml", "- a\nb: 1\n", ":2: expected <block end>, but found '?'"),
    ],
)
def test_settings_that_do_not_parse_name_file_and_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    config = file(tmp_path / name, text)
    for command in (["replay", tmp_path], ["guard"], ["measure", "ls"], ["shell-http", "ls"]):
        done = breaker(*command, "--config", config)
        refused(done, USAGE, f"{config}{message}" if message[0] == ":" else f"{config}: {message}")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.ini", "x", "not a settings file; its name must end in .toml, .json, .yml, .yaml"),
        ("a.json", '"x"', "the settings must be an object"),
        ("a.toml", b"\xff", "cannot read the settings: 'utf-8' codec can't decode byte 0xff in position 0: "),
        ("a.json", '{"warnAt": NaN}', "NaN is not JSON"),
        ("a.json", "[" * 100_000, "maximum recursion depth exceeded"),
        ("a.yml", "- id: other\n", "has no row with `id: repeat-tool-breaker` or `name: dsh-repeat-tool-breaker`"),
        (
            "a.yml",
            "- id: repeat-tool-breaker\n  config: 5\n",
            "the `config` of row repeat-tool-breaker must be an object",
        ),
    ],
)
def test_a_file_that_holds_no_settings_is_2(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    config = file(tmp_path / name, text)
    done = breaker("measure", "ls", "--config", config)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (USAGE, "", 1)
    assert done.stderr.startswith(f"breaker: error: {config}")
    assert message in done.stderr


def test_a_settings_file_that_is_not_there_or_a_folder_is_2(tmp_path: Path) -> None:
    missing = tmp_path / "no.toml"
    refused(
        breaker("guard", "--config", missing), USAGE, f"{missing}: cannot read the settings: No such file or directory"
    )
    refused(breaker("guard", "--config", tmp_path), USAGE, f"{tmp_path}: cannot read the settings: Is a directory")


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("window=2", "`window` must be an integer >= 4 (got 2)"),
        ("window=wide", "`window` must be an integer >= 4 (got wide)"),
        ("onLimit=block", "`onLimit` must be one of ask, deny (got block)"),
        ("limits.host=1", '"host" in `limits` must be a finite number >= 2, or null to disable it (got 1)'),
        ("limits=5", "`limits` must be an object (got 5)"),
        ("warnAt=3.5", "`warnAt` must be an integer (got 3.5)"),
        ("denyAfter=3", "`denyAfter` was removed in 0.2.0: use `limits.exact`"),
    ],
)
def test_a_bad_setting_names_key_rule_and_value(tmp_path: Path, assignment: str, message: str) -> None:
    told = f"repeat-tool-breaker: {message}"
    refused(breaker("replay", tmp_path, "--set", assignment), USAGE, told)
    refused(breaker("guard", "--set", assignment), USAGE, told)


def test_a_bad_setting_of_a_file_names_the_file(tmp_path: Path) -> None:
    config = file(tmp_path / "a.toml", "window = 2\n")
    told = f"{config}: repeat-tool-breaker: `window` must be an integer >= 4 (got 2)"
    refused(breaker("replay", tmp_path, "--config", config), USAGE, told)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("window", "must be key=value, or map.entry=value"),
        ("=5", "must be key=value, or map.entry=value"),
        ("limits.=5", "must be key=value, or map.entry=value"),
        ("window.x=5", "`window` has no entries; maps are hostAliases, ignoreArgs, limits"),
    ],
)
def test_a_setting_that_is_no_assignment_is_2(assignment: str, message: str) -> None:
    refused(breaker("measure", "ls", "--set", assignment), USAGE, f"--set {assignment}: {message}")


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("windw", "`windw` is no setting of ruleset 0.8 and is ignored; did you mean `window`?"),
        ("WARNAT", "`WARNAT` is no setting of ruleset 0.8 and is ignored; did you mean `warnAt`?"),
        ("zzzzzz", "`zzzzzz` is no setting of ruleset 0.8 and is ignored"),
    ],
)
def test_an_unknown_setting_is_a_warning_that_names_the_nearest(tmp_path: Path, key: str, told: str) -> None:
    config = file(tmp_path / "a.json", f'{{"{key}": 3}}')
    for given in (["--set", f"{key}=3"], ["--config", config]):
        done = breaker("measure", "ls", *given)
        assert (done.returncode, done.stderr) == (0, f"breaker: warning: {told}\n")
        assert done.stdout == breaker("measure", "ls").stdout


# Names and options


@pytest.mark.parametrize("command", [["replay", "."], ["guard"], ["measure", "ls"], ["classify", "x"]])
def test_an_unknown_ruleset_is_2_and_names_the_known_ones(command: list[str]) -> None:
    known = "0.5.0, 0.5.1, 0.5.2, 0.5.3, 0.6.1, 0.7.0, 0.8.2, 0.8.3, 0.8.7, 0.8"
    refused(breaker(*command, "--ruleset", "0.9"), USAGE, f"unknown ruleset '0.9'; known: {known}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["replay", ".", "--policy", "never"], ["--policy", "never", "'unattended', 'approve', 'deny', 'observe'"]),
        (["replay", ".", "--format", "xml"], ["--format", "xml", "'table', 'json', 'jsonl'"]),
        (["replay", ".", "--shell-http", "maybe"], ["--shell-http", "maybe", "'auto', 'on', 'off'"]),
        (["replay", ".", "--result-source", "x"], ["--result-source", "'rebuilt', 'log'"]),
        (["replay", ".", "--top", "-1"], ["--top"]),
        (["replay", ".", "--top", "many"], ["--top"]),
        (["replay", ".", "--bogus"], ["--bogus"]),
        (["guard", "--answer", "maybe"], ["--answer", "maybe", "'approve', 'decline'"]),
        (["guard", "file.jsonl"], ["file.jsonl"]),
        (["bogus"], ["bogus"]),
        (["--bogus"], ["--bogus"]),
    ],
)
def test_wrong_usage_is_one_line_that_names_it(arguments: list[str], words: list[str]) -> None:
    done = breaker(*arguments)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr.startswith("breaker: error: ")
    assert done.stderr.endswith("\n")
    assert done.stderr.count("\n") == 1
    assert [word for word in words if word not in done.stderr] == []
    assert "Value error" not in done.stderr


def test_without_a_command_the_help_is_shown_as_wrong_usage() -> None:
    done = breaker()
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr == breaker("--help").stdout
    done = breaker("label")
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr == breaker("label", "--help").stdout


@pytest.mark.parametrize("option", ["--since", "--until"])
@pytest.mark.parametrize("date", ["yesterday", "2026-13-01", "", "1767272400"])
def test_a_date_that_is_none_is_2(demo: Path, option: str, date: str) -> None:
    told = f"{option} {date}: not a date (ISO 8601, such as 2026-01-31 or 2026-01-31T12:00)"
    refused(breaker("replay", demo, option, date), USAGE, told)


# Labels


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("good", "must be NAME=GLOB"),
        ("fine=*", "unknown label 'fine'; known: good, stuck, unknown"),
        ("=x", "unknown label ''; known: good, stuck, unknown"),
        ("good=", "an empty session or glob"),
        ("good=[x", "bad glob '[x': `[` is never closed (write `[[]` for the character)"),
    ],
)
def test_a_bad_label_is_2(demo: Path, label: str, message: str) -> None:
    refused(breaker("replay", demo, "--label", label), USAGE, f"--label {label}: {message}")


@pytest.mark.parametrize(
    ("name", "text", "place", "message"),
    [
        ("a.csv", "session,label\nx,good\ny,fine\n", ":3", "unknown label 'fine'; known: good, stuck, unknown"),
        ("a.csv", "x\n", ":1", "needs a session and a label"),
        ("a.csv", "\n[x,good\n", ":2", "bad glob '[x': `[` is never closed (write `[[]` for the character)"),
        ("a.toml", "label = = 1", ":1", "Invalid value (column 9)"),
        ("a.toml", "x = 1", "", "has no [[label]] tables"),
        (
            "a.toml",
            '[[label]]\nsession = "x"\nlabel = 5\n',
            ": [[label]] number 1",
            "session, label and reason must be text",
        ),
        ("a.toml", '[[label]]\nsession = "x"\n', ": [[label]] number 1", "has no label"),
        ("a.toml", '[[label]]\nlabel = "good"\n', ": [[label]] number 1", "has no session"),
    ],
)
def test_a_bad_labels_file_names_its_line(
    demo: Path, tmp_path: Path, name: str, text: str, place: str, message: str
) -> None:
    labels = file(tmp_path / name, text)
    refused(breaker("replay", demo, "--labels", labels), USAGE, f"{labels}{place}: {message}")


def test_a_labels_file_that_is_not_there_is_named_once(demo: Path, tmp_path: Path) -> None:
    missing = tmp_path / "no.csv"
    told = f"{missing}: cannot read the labels: No such file or directory"
    refused(breaker("replay", demo, "--labels", missing), USAGE, told)


def test_two_labels_for_one_session_are_2(tmp_path: Path) -> None:
    session(tmp_path)
    done = breaker("replay", tmp_path, "--label", "good=session-a", "--label", "stuck=*")
    told = "two labels for session session-a: good (--label good=session-a) and stuck (--label stuck=*)"
    refused(done, USAGE, told)
    assert breaker("replay", tmp_path, "--label", "good=session-a", "--label", "good=*").returncode == 0


def test_a_label_that_matches_nothing_is_a_warning(tmp_path: Path) -> None:
    session(tmp_path)
    done = breaker("replay", tmp_path, "--label", "good=session-z")
    assert (done.returncode, done.stderr) == (
        0,
        "breaker: warning: no session matches --label good=session-z (session-z)\n",
    )


# The process


@pytest.fixture
def closed_pipe() -> Callable[..., tuple[int, bytes]]:
    """Return a runner of the command whose standard output nobody reads."""

    def act(*arguments: str | Path) -> tuple[int, bytes]:
        reading, writing = os.pipe()
        os.close(reading)
        try:
            given = [str(COMMAND), *map(str, arguments)]
            done = subprocess.run(
                given,
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=subprocess.PIPE,
                timeout=PATIENCE,
                check=False,
            )
        finally:
            os.close(writing)
        return done.returncode, done.stderr

    return act


@pytest.mark.parametrize(
    "arguments", [["table"], ["json"], ["jsonl", "--set", "warnAt=1"], ["table", "--events"]], ids=" ".join
)
def test_a_reader_that_goes_away_is_no_error(
    demo: Path, closed_pipe: Callable[..., tuple[int, bytes]], arguments: list[str]
) -> None:
    assert closed_pipe("replay", demo, "--format", *arguments) == (0, b"")


def test_a_reader_of_help_or_a_schema_that_goes_away_is_no_error(closed_pipe: Callable[..., tuple[int, bytes]]) -> None:
    assert closed_pipe("--help") == (0, b"")
    assert closed_pipe("schema", "replay") == (0, b"")


def test_head_takes_one_line(demo: Path) -> None:
    shell = f"'{COMMAND}' replay '{demo}' --format jsonl --set warnAt=1; echo $? >&2"
    with subprocess.Popen(["sh", "-c", shell], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"detector":"breaker"')
        process.stdout.close()
        assert process.stderr.read() == b"0\n"


def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([COMMAND, "--help"], stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    told = b"breaker: error: standard output: cannot write: No space left on device\n"
    assert (done.returncode, done.stderr) == (USAGE, told)


def test_an_interrupt_while_reading_is_130_and_gives_the_cursor_back(tmp_path: Path) -> None:
    row = b'{"type":"x/y","seq":0,"ignorable":true,"data":{}}\n'
    file(tmp_path / "s" / "session.v4.jsonl", b'{"type":"session","version":4,"id":"long"}\n' + row * 600_000)
    terminal, theirs = pty.openpty()
    with subprocess.Popen([COMMAND, "replay", tmp_path], stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while b"reading sessions" not in shown:
            shown += os.read(terminal, 4096)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == INTERRUPTED
        assert process.stdout is not None
        assert process.stdout.read() == b""
    while more := read_terminal(terminal):
        shown += more
    os.close(terminal)
    assert shown.endswith(b"breaker: error: interrupted\r\n")
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")
    assert b"Traceback" not in shown


def read_terminal(descriptor: int) -> bytes:
    """Read what is left on a terminal; nothing where its other side is closed."""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""


def test_progress_is_silent_where_standard_error_is_no_terminal(demo: Path) -> None:
    done = breaker_process("replay", demo)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_without_the_characters_gets_their_escapes(demo: Path) -> None:
    done = breaker_process("replay", demo, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert r"17 \xd7 host:" in done.stdout


def test_a_fault_of_the_tool_itself_is_not_hidden() -> None:
    """Everything above would pass if every exception were turned into a line; only expected ones are."""
    code = "from cli.exits import run_guarded\nrun_guarded(lambda: [][0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert b"IndexError" in done.stderr


def test_bad_lines_do_not_change_the_exit_code() -> None:
    done = breaker("guard", stdin=b"no\n" + lines_of([{"kind": "user"}]))
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)


def test_an_empty_path_is_not_the_folder_one_stands_in() -> None:
    done = breaker("replay", "")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "breaker: error: Invalid value for 'PATH…': an empty path\n"
