"""The cases from the field, by number: faults people reported of log readers, loop guards and analysers."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.dataset as datasets
import pyarrow.parquet as parquet
import pytest
import zstandard

from analysis.synth import write_corpus
from tests.analysis.logs import LogWriter
from tests.cli.commands import Json, breaker, breaker_process, json_lines, lines_of, replay_document

parquet_files: Any = parquet
parquet_datasets: Any = datasets

EXIT_1 = "out\n[exit code: 1]"
MEBI = 1 << 20


def pack(*texts: bytes) -> bytes:
    return b"".join(map(zstandard.ZstdCompressor(write_checksum=True).compress, texts))


def new_log(session_id: str = "session-a", *, version: int = 4) -> LogWriter:
    log = LogWriter(session_id, version=version)
    log.user()
    return log


def put(root: Path, data: bytes, name: str = "session.v4.jsonl", folder: str = "a") -> Path:
    path = root / "--p--" / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def report(document: Json, place: int = 0) -> Json:
    return document["read_report"][place]


def answers(*records: Json, options: tuple[str, ...] = ()) -> list[Json]:
    """Return what the guard answers to a stream."""
    done = breaker("guard", *options, stdin=lines_of(records))
    assert (done.returncode, done.stderr) == (0, "")
    return json_lines(done.stdout)


def call(number: int, name: str = "bash", **arguments: object) -> Json:
    return {"kind": "call", "id": number, "name": name, "arguments": arguments}


def measures(*calls: Json) -> list[set[str]]:
    given = [{"name": one["name"], "arguments": one["arguments"]} for one in calls]
    return [set(line["measures"]) for line in json_lines(breaker("measure", "--jsonl", stdin=lines_of(given)).stdout)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    write_corpus(folder, "demo")
    return folder


# Reading


def test_case_1_every_frame_of_a_concatenation_is_read(tmp_path: Path) -> None:
    log = new_log()
    log.bash()
    log.write(tmp_path, compressed=True)
    document = replay_document(tmp_path)
    assert (document["totals"]["calls"], report(document)["rows"], report(document)["state"]) == (1, 3, "ok")


def test_case_2_a_cut_last_frame_is_torn_and_the_lines_before_the_cut_count(tmp_path: Path) -> None:
    log = new_log()
    for _ in range(3):
        log.bash()
    head, *lines = log.text.splitlines(keepends=True)
    # The last frame holds two rows of noise that does not compress, so that the first survives the cut.
    lines[-2:] = [lines[-2] + lines[-1]]
    data = pack(head, *lines)
    put(tmp_path, data[:-7], "session.v4.jsonl.zstd")
    document = replay_document(tmp_path)
    read = report(document)
    assert read["state"] == "torn"
    assert read["lost_bytes"] > 0
    assert [(defect["kind"], defect["frame"]) for defect in read["defects"]] == [("torn", len(lines))]
    assert document["totals"]["calls"] in {2, 3}
    assert document["totals"]["ok"] == 2


def test_case_3_many_tiny_frames_and_magic_bytes_inside_a_block(tmp_path: Path) -> None:
    log = new_log()
    for number in range(1500):
        log.bash(f"make {number}", "\u28b5 (\xb5/\xfd " + "x" * (number % 7))
    # In UTF-8 the magic number cannot stand in text, but it can in a block stored as it is.
    raw = b"\x28\xb5\x2f\xfd"
    line = json.dumps({"type": "x/y", "seq": log.next, "data": {}}).encode()[:-1] + b',"z":"' + raw + b'"}\n'
    block = (len(line) << 3 | 1).to_bytes(3, "little") + line
    stored = raw + b"\x00\x58" + block
    frames = pack(*log.text.splitlines(keepends=True)) + stored
    put(tmp_path, frames, "session.v4.jsonl.zstd")
    read = report(replay_document(tmp_path))
    assert (read["state"], read["lines"], read["rows"]) == ("ok", 3003, 3002)


def test_case_4_bad_json_costs_its_line_and_is_told_with_its_place(tmp_path: Path) -> None:
    log = LogWriter()
    for _ in range(4):
        log.bash()
    log.lines.insert(1, b'{"type":"tool/call","seq":')
    path = log.write(tmp_path)
    read = report(replay_document(tmp_path))
    assert (read["state"], read["rows"], read["lost_rows"]) == ("partial", 8, 1)
    (defect,) = read["defects"]
    offset = path.read_bytes().index(b'"seq":\n') - len('{"type":"tool/call",')
    assert (read["path"], defect["line"], defect["byte"]) == (str(path), 3, offset)


@pytest.mark.slow
def test_case_5_a_line_of_64_megabytes_and_a_session_of_400(tmp_path: Path) -> None:
    compressor = zstandard.ZstdCompressor(level=1, write_checksum=True)
    log = new_log()
    log.bash(text="y" * 64_000_000)
    log.bash(text=EXIT_1)
    with put(tmp_path, b"", "session.v4.jsonl.zstd").open("wb") as file:
        for line in log.text.splitlines(keepends=True):
            file.write(compressor.compress(line))
        seq = log.next
        for _ in range(340):
            log = LogWriter()
            log.next = seq
            log.bash(text="z" * MEBI)
            seq = log.next
            file.write(compressor.compress(b"".join(line + b"\n" for line in log.lines)))
    code = (
        "import resource, sys; from pathlib import Path; from analysis.corpus import replay_corpus; "
        "from analysis.replay import ReplayPlan; c = replay_corpus([Path(sys.argv[1])], ReplayPlan()); "
        "print(c.totals.calls, c.totals.outcomes['ok'], c.totals.outcomes['failed'], c.reports[0].expanded, "
        "next(l for l in open('/proc/self/status') if l.startswith('VmHWM')).split()[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    calls, ok, failed, expanded, kilobytes = map(int, done.stdout.split())
    assert (calls, ok, failed) == (342, 341, 1)
    assert expanded > 400_000_000
    assert kilobytes < 300 * 1024


def test_case_5_a_line_over_the_limit_is_refused_by_name(tmp_path: Path) -> None:
    log = new_log()
    log.bash(text="y" * 5000)
    log.bash()
    log.write(tmp_path)
    document = replay_document(tmp_path, "--max-line", "4KiB")
    (defect,) = report(document)["defects"]
    assert "the limit is 4096" in defect["message"]
    assert (document["totals"]["calls"], document["totals"]["ok"], document["totals"]["open"]) == (2, 1, 1)


def test_case_6_odd_separators_inside_text_split_no_line(tmp_path: Path) -> None:
    log = new_log()
    log.raw(json.dumps({"type": "tool/call", "seq": 1, "data": {}}, ensure_ascii=False).encode())
    text = json.dumps({"command": "echo \u2028 \x85 \x0c"}, ensure_ascii=False)
    data = {"turn": 1, "step": 1, "callId": "c", "name": "bash", "arguments": text}
    row = {"type": "tool/call", "seq": 2, "data": data}
    log.lines[-1] = json.dumps(row, ensure_ascii=False).encode()
    log.write(tmp_path)
    document = replay_document(tmp_path)
    assert (document["totals"]["calls"], report(document)["rows"], report(document)["lost_rows"]) == (1, 2, 0)


def test_case_7_a_lone_surrogate_never_raises(tmp_path: Path) -> None:
    log = new_log()
    for _ in range(4):
        log.result(log.call(arguments='{"command":"echo \\ud800"}'), "\ud800" + EXIT_1)
    log.write(tmp_path / "in")
    document = replay_document(tmp_path / "in", "--events")
    assert (document["totals"]["failed"], report(document)["state"]) == (4, "ok")
    assert any("\ud800" in event["measure"] for event in document["events"])
    for number, output in enumerate(("parquet", "csv", "ndjson", "arrow")):
        out = tmp_path / str(number)
        done = breaker("export", tmp_path / "in", "--out", out, "--format", output, "--privacy", "full")
        assert (done.returncode, done.stderr) == (0, "")


def test_case_8_numbers_that_jump_go_back_and_repeat(tmp_path: Path) -> None:
    log = new_log()
    log.add("step/start", {"turn": 1, "step": 1}, seq=41)
    for seq in (43, 45, 44, 43):
        data = {"turn": 1, "step": 1, "callId": f"c{seq}", "name": "bash", "arguments": "{}"}
        log.add("tool/call", data, seq=seq)
    log.write(tmp_path)
    document = replay_document(tmp_path)
    assert document["totals"]["calls"] == 3
    assert report(document)["state"] == "ok"
    assert report(document)["notes"] == [
        "3 gaps in the sequence numbers",
        "1 row out of order",
        "1 row with a sequence number seen before, left out",
    ]


def test_case_9_unknown_events_are_passed_over_and_told(tmp_path: Path) -> None:
    log = new_log()
    log.add("roleplay/scene", {"a": 1}, ignorable=True)
    log.add("lyteboat/state", {"a": 1})
    log.bash()
    log.write(tmp_path)
    document = replay_document(tmp_path)
    assert document["totals"]["calls"] == 1
    assert report(document)["state"] == "ok"
    assert report(document)["notes"] == ["2 unknown events, passed over (lyteboat/state, roleplay/scene)"]


def test_case_10_a_broken_newest_generation_is_reported_and_the_old_one_not_used(tmp_path: Path) -> None:
    old = new_log(version=3)
    old.bash()
    old.write(tmp_path)
    put(tmp_path, b"no log\n", folder="session-a")
    done = breaker("replay", tmp_path, "--format", "json")
    document = json.loads(done.stdout)
    assert done.returncode == 3
    assert document["totals"]["calls"] == 0
    assert [read["state"] for read in document["read_report"]] == ["superseded", "corrupt"]


def test_case_11_versions_and_names(tmp_path: Path) -> None:
    old = new_log("session-old", version=3)
    old.bash()
    put(tmp_path, old.text, "session.v4.jsonl", "a")
    put(tmp_path, LogWriter("session-new", version=9).text, "session.v9.jsonl", "b")
    stray = put(tmp_path, old.text, "session.v04.jsonl", "c")
    put(tmp_path, old.text, "session.v0.jsonl", "d")
    document = replay_document(tmp_path)
    assert document["totals"]["calls"] == 1
    assert [read["state"] for read in document["read_report"]] == ["ok", "unsupported"]
    assert report(document)["notes"] == ["the header says version 3, the file name 4; the header holds"]
    assert replay_document(stray)["totals"]["calls"] == 1


# Counting


def test_case_12_the_inherited_part_counts_in_the_parents_file_only(tmp_path: Path) -> None:
    parent = new_log("session-parent")
    parent.bash()
    parent.bash()
    parent.write(tmp_path)
    child = LogWriter("session-child", parentSession="session-parent", isSeeded=True)
    child.lines, child.next = list(parent.lines), parent.next
    child.marker()
    child.user()
    child.bash()
    child.write(tmp_path)
    document = replay_document(tmp_path)
    assert {row["id"]: row["calls"] for row in document["sessions"]} == {"session-parent": 2, "session-child": 1}
    alone = replay_document(tmp_path / "--p--" / "session-child")
    assert alone["totals"]["calls"] == 1
    assert report(alone)["notes"] == ["its parent session-parent is not here: the inherited part counts nowhere"]


def test_case_13_a_parent_and_two_subagents_are_three_windows(tmp_path: Path) -> None:
    for name in ("parent", "one", "two"):
        depth: dict[str, object] = {} if name == "parent" else {"origin": "subagent", "delegationDepth": 1}
        log = LogWriter(f"session-{name}")
        log.header |= depth
        log.user()
        for _ in range(8):
            log.bash()
        log.write(tmp_path)
    document = replay_document(tmp_path)
    assert [row["peak"]["count"] for row in document["sessions"]] == [8, 8, 8]
    assert document["totals"]["events"]["gate"] == 0


def test_case_14_a_parallel_batch_of_failures_meets_no_failure_gate(tmp_path: Path) -> None:
    log = new_log()
    calls = [log.call("make", call_id=f"c{number}") for number in range(6)]
    for one in calls:
        log.result(one, EXIT_1)
    log.bash(text=EXIT_1)
    log.write(tmp_path)
    document = replay_document(tmp_path, "--events")
    assert document["totals"]["calls"] == 7
    assert document["totals"]["events"]["fail-gate"] == 1
    assert [event["call"] for event in document["events"] if event["stage"] == "fail-gate"] == [6]


def test_case_15_results_join_by_source_then_by_turn_step_and_id(tmp_path: Path) -> None:
    log = new_log()
    first, second = log.call("a", call_id="call_0"), log.call("b", call_id="call_0")
    log.result(second, EXIT_1)
    log.result(first, "fine")
    third = log.call("c", call_id="call_0", step=2)
    log.result(third, EXIT_1, sources=[])
    empty = log.call("d", call_id="", step=3)
    log.result(empty, "fine", sources=[])
    log.write(tmp_path)
    document = replay_document(tmp_path)
    totals = document["totals"]
    assert (totals["ok"], totals["failed"], totals["open"]) == (2, 2, 0)
    assert report(document)["notes"] == []


def test_case_16_pairs_that_are_none(tmp_path: Path) -> None:
    log = new_log()
    log.result(99, "whose?", call_id="nobody", sources=[])
    log.call("no answer")
    twice = log.call("twice")
    log.result(twice, "first text\n[exit code: 3]")
    log.result(twice, "second text")
    log.write(tmp_path)
    document = replay_document(tmp_path)
    totals = document["totals"]
    assert (totals["calls"], totals["open"], totals["failed"], totals["ok"]) == (2, 1, 1, 0)
    assert [(row["reason"], row["detail"]) for row in totals["failed_by"]] == [("exit", "3")]
    assert report(document)["notes"] == ["1 result without a call", "1 second result of a call, ignored"]


def test_case_17_calls_aborted_before_dispatch_leave_nothing(tmp_path: Path) -> None:
    log = new_log()
    error = {"name": "AbortError", "code": "ABORTED_BEFORE_DISPATCH"}
    for _ in range(6):
        log.result(log.call(), "Error: tool call aborted before dispatch", is_error=True, error=error)
    log.bash()
    log.write(tmp_path)
    document = replay_document(tmp_path)
    totals = document["totals"]
    assert (totals["not_run"], totals["failed"], totals["ok"]) == (6, 0, 1)
    (session,) = document["sessions"]
    assert (session["peak"]["count"], session["longest_streak"]) == (1, None)


def test_case_18_a_human_message_ends_a_streak_and_a_notice_does_not(tmp_path: Path) -> None:
    for name, kind, streak in (("human", "user", 4), ("notice", "time-context", 6)):
        log = new_log(f"session-{name}")
        for number in range(6):
            if number == 4:
                log.user("and?", kind=kind)
            log.bash(text=EXIT_1)
        log.write(tmp_path / name)
        (session,) = replay_document(tmp_path / name, "--policy", "observe")["sessions"]
        assert session["longest_streak"]["count"] == streak
    events = replay_document(tmp_path / "human", "--policy", "observe", "--events")["events"]
    assert [(event["stage"], event["call"], event["count"]) for event in events] == [("fail-warn", 2, 3)]


def test_case_19_nested_calls_are_calls_of_the_same_agent(tmp_path: Path) -> None:
    log = new_log()
    outer = log.call(name="run_code", arguments='{"code":"loop"}', call_id="c9")
    for number in range(8):
        inner = log.nested({"command": "make"}, sub_id=f"c9:ptc:{number}", parent="c9")
        log.result(inner, "done")
    log.result(outer, "done")
    log.bash("make")
    log.write(tmp_path)
    document = replay_document(tmp_path)
    assert (document["totals"]["calls"], document["totals"]["ok"]) == (10, 10)
    assert document["sessions"][0]["peak"]["count"] == 9


# The guard


@pytest.mark.parametrize(("cap", "gated"), [("12", 12), ("16", 16), ("17", 17), ("18", None), ("2", 2), ("null", None)])
def test_case_20_the_cap_th_call_is_gated_and_no_other(cap: str, gated: int | None) -> None:
    setting = ("--set", f"limits.exact={cap}", "--set", "limits.cmd=null")
    decisions = [answer["decision"] for answer in answers(*(call(n, command="ls") for n in range(20)), options=setting)]
    first = next((number for number, decision in enumerate(decisions, 1) if decision != "allow"), None)
    assert first == gated


@pytest.mark.parametrize("cap", ["0", "1"])
def test_case_20_a_cap_that_leaves_no_call_is_refused_by_name(cap: str) -> None:
    done = breaker("guard", "--set", f"limits.exact={cap}")
    assert done.returncode == 2
    assert "limits" in done.stderr
    assert done.stderr.count("\n") == 1


def test_case_21_a_threshold_no_call_can_reach_is_named_by_lint() -> None:
    done = breaker(
        "lint", "--set", "summarizeAt=18", "--set", "limits.host=18", "--format", "json", "--fail-on", "error"
    )
    codes = {finding["code"] for finding in json.loads(done.stdout)["findings"]}
    assert done.returncode == 1
    assert {"stage-above-window", "cap-beyond-window"} <= codes
    late = breaker("lint", "--set", "summarizeAt=12", "--set", "limits.host=12", "--format", "json")
    assert "stage-at-cap" in {finding["code"] for finding in json.loads(late.stdout)["findings"]}


def test_case_22_what_each_detector_says_of_repeats_that_are_no_run(tmp_path: Path) -> None:
    alternating, sweep, spread = new_log("session-ab"), new_log("session-sweep"), new_log("session-spread")
    for number in range(9):
        alternating.bash("make a")
        alternating.bash("make b")
        spread.bash("make a")
        spread.bash(f"other {number}")
    for page in range(164):
        sweep.result(sweep.call(name="web_fetch", arguments=json.dumps({"url": f"https://a.example/list?page={page}"})))
    for log in (alternating, sweep, spread):
        log.write(tmp_path)
    names = ("repeat-stop", "consecutive", "openhands", "doom-loop", "reminder")
    detectors = [text for name in names for text in ("--detector", name)]
    document = replay_document(tmp_path, "--policy", "observe", *detectors)
    said = {
        row["id"]: {name for name, stages in row["detectors"].items() if any(stages.values())}
        for row in document["sessions"]
    }
    # Who looks for a run of one call sees none; who looks for alternation sees one; the window sees them all.
    assert said == {"session-ab": {"openhands"}, "session-sweep": set(), "session-spread": set()}
    warned = {row["id"] for row in document["sessions"] if row["events"]["warn"]}
    assert warned == {"session-ab", "session-sweep", "session-spread"}
    peaks = {row["id"]: row["peak"] for row in document["sessions"]}
    assert peaks["session-sweep"]["measure"].startswith(("host:", "net:"))
    assert peaks["session-sweep"]["count"] == 17


def test_case_23_the_same_test_fails_nine_times_between_edits(tmp_path: Path) -> None:
    log = new_log()
    for number in range(9):
        log.result(log.call(name="edit", arguments=json.dumps({"path": "a.py", "newText": str(number)})), "ok")
        log.bash("npm test", EXIT_1)
    log.write(tmp_path)
    observed = replay_document(tmp_path, "--policy", "observe")
    (session,) = observed["sessions"]
    assert session["longest_streak"] == {"measure": "cmd:npm:npm test", "count": 9}
    assert observed["totals"]["events"]["fail-warn"] == 1
    assert observed["totals"]["events"]["fail-gate"] == 4
    assert session["near_miss"]["fail-gate"] == 0
    high = replay_document(tmp_path, "--policy", "observe", "--set", "failLimit=11")
    assert high["sessions"][0]["near_miss"]["fail-gate"] == 2


def test_case_24_what_does_not_change_a_call_is_the_same_measure() -> None:
    plain, timed, described, ordered = measures(
        call(0, command="ls", n=1),
        call(0, command="ls", n=1.0, timeoutMs=5),
        call(0, command="ls", n=1, description="List"),
        {"name": "bash", "arguments": {"n": 1, "command": "ls"}},
    )
    assert plain == timed == described == ordered


# Failures and shells


def test_case_25_a_pipe_hides_the_exit_code_and_the_traceback_tells() -> None:
    text = "Traceback (most recent call last):\n  File 'a.py', line 1\nValueError: no"
    (line,) = json_lines(
        breaker(
            "classify",
            "--jsonl",
            stdin=lines_of([{"result": {"content": [{"type": "text", "text": text}]}, "shell": True}]),
        ).stdout
    )
    assert line["failure"]["reason"] == "exception"
    assert line["evidence"] == "text"


def test_case_26_quoted_markers(tmp_path: Path) -> None:
    log = new_log()
    log.bash("make", "it said [exit code: 0]\n[exit code: 1]")
    quoted = log.bash("cat log", "the log:\n[exit code: 2]\nand more")
    log.write(tmp_path)
    totals = replay_document(tmp_path)["totals"]
    assert totals["failed"] == 2
    by = {(row["detail"], row["evidence"]) for row in totals["failed_by"]}
    assert by == {("1", "rebuilt"), ("2", "text")}
    told = breaker("explain", "session-a", tmp_path, "--seq", str(quoted))
    assert told.returncode == 0
    assert "[exit code: 2]" in told.stdout


@pytest.mark.parametrize(("status", "words", "failed"), [(404, "no such page", 1), (200, "HTTP Error 500", 0)])
def test_case_27_the_status_of_a_fetch_decides_and_not_the_words(
    tmp_path: Path, status: int, words: str, failed: int
) -> None:
    log = new_log()
    arguments = '{"url":"https://a.example/"}'
    log.result(
        log.call(name="web_fetch", arguments=arguments), f"Fetched https://a.example/ (HTTP {status})\n\n{words}"
    )
    log.result(log.call(name="web_fetch", arguments=arguments), words, meta={"statusCode": status})
    log.write(tmp_path)
    totals = replay_document(tmp_path)["totals"]
    assert totals["failed"] == 2 * failed
    assert {(row["reason"], row["detail"]) for row in totals["failed_by"]} == ({("http", "404")} if failed else set())


@pytest.mark.parametrize(
    ("ruleset", "failed"), [("0.5.3", True), ("0.6.1", False), ("0.7.0", False), ("0.8.7", False), ("0.8", True)]
)
def test_case_28_a_printed_status_is_a_failure_in_some_releases(tmp_path: Path, ruleset: str, failed: bool) -> None:
    log = new_log()
    log.bash("curl -s -o /dev/null -w '%{http_code}' https://a.example/", "404")
    log.write(tmp_path)
    document = replay_document(tmp_path, "--ruleset", ruleset)
    assert (document["totals"]["failed"], document["ruleset"]) == (int(failed), ruleset)
    assert f"ruleset {ruleset} (" in breaker("replay", tmp_path, "--ruleset", ruleset).stdout


@pytest.mark.parametrize(
    ("spelling", "measure"),
    [
        ("CI=1 npm test", "npm:npm test"),
        ("'npm' \"test\"", "npm:npm test"),
        ("npm  test", "npm:npm test"),
        ("cd x && npm test", "cd:cd x && npm test"),
        ("env CI=1 npm test", "npm:env CI=1 npm test"),
        ('bash -c "npm test"', "bash:bash -c npm test"),
        ("npm test # again", "npm:npm test # again"),
        ("cat <<'EOF' > a\nnpm test\nEOF", "cat:cat <<EOF > a npm test EOF"),
    ],
)
def test_case_29_shell_spellings_measure_as_they_do_live(spelling: str, measure: str) -> None:
    (found,) = measures(call(0, command=spelling))
    assert {one for one in found if one.startswith("cmd:")} == {f"cmd:{measure}"}


def test_case_30_urls_that_are_equal_or_not() -> None:
    def nets(*urls: str) -> list[set[str]]:
        found = measures(*(call(0, "web_fetch", url=url) for url in urls))
        return [{one for one in measured if one.startswith("net:")} for measured in found]

    base, slash, port, fragment = nets(
        "https://a.example/x?b=1&a=2",
        "https://a.example/x/?b=1&a=2",
        "https://a.example:443/x?b=1&a=2",
        "https://a.example/x?b=1&a=2#part",
    )
    assert base == port == fragment == slash
    ordered, named, user = nets("https://a.example/x?a=2&b=1", "https://bücher.example/", "https://me:pw@a.example/x")
    (idna,) = nets("https://xn--bcher-kva.example/")
    assert named == idna
    assert ordered == base
    assert not any("pw" in one for one in user)


# Tables, commands, gates


def test_case_31_a_column_filled_late_and_shards_that_are_all_null(tmp_path: Path) -> None:
    for name, failing_from in (("late", 150), ("never", 999)):
        log = new_log(f"session-{name}")
        for number in range(160):
            log.bash(f"make {number}", EXIT_1 if number >= failing_from else "fine")
        log.write(tmp_path / name)
        done = breaker("export", tmp_path / name, "--out", tmp_path / "out" / name, "--tables", "calls")
        assert done.returncode == 0
    schemas = [parquet_files.read_schema(tmp_path / "out" / name / "calls.parquet") for name in ("late", "never")]
    assert schemas[0].equals(schemas[1])
    shards = [str(tmp_path / "out" / name / "calls.parquet") for name in ("never", "late")]
    data = parquet_datasets.dataset(shards, format="parquet").to_table()
    assert data.num_rows == 320


def test_case_32_integers_beyond_64_bits_are_text(tmp_path: Path) -> None:
    log = new_log()
    log.result(log.call(arguments='{"command":"ls","n":36893488147419103232}'))
    log.write(tmp_path / "in")
    done = breaker(
        "export",
        tmp_path / "in",
        "--out",
        tmp_path / "out",
        "--tables",
        "calls",
        "--format",
        "csv",
        "--privacy",
        "full",
    )
    assert done.returncode == 0
    rows = list(csv.reader((tmp_path / "out" / "calls.csv").read_text(encoding="utf-8").splitlines()))
    assert any("36893488147419103232" in cell for cell in rows[1])


@pytest.mark.parametrize("verb", ["replay", "doctor", "export", "sweep", "histogram", "report", "compare"])
def test_case_33_nothing_to_look_at_is_never_green(tmp_path: Path, verb: str) -> None:
    options = {"sweep": ("--grid", "warnAt=3,4"), "compare": ("--a", "warnAt=3", "--b", "warnAt=4")}.get(verb, ())
    to_file = verb in {"export", "report"}
    (tmp_path / "empty").mkdir()
    put(tmp_path / "broken", b"no log\n")
    codes: list[int] = []
    for name in ("empty", "missing", "broken"):
        out = ("--out", str(tmp_path / f"out-{name}")) if to_file else ()
        codes.append(breaker(verb, tmp_path / name, *options, *out).returncode)
    assert codes == [4, 2, 3]


@pytest.mark.parametrize("output", ["parquet", "csv"])
def test_case_34_two_runs_give_the_same_bytes(demo: Path, tmp_path: Path, output: str) -> None:
    for name, jobs in (("first", "1"), ("second", "3")):
        given = ("--out", tmp_path / name, "--format", output, "--privacy", "full", "--jobs", jobs)
        assert breaker_process("export", demo, *given).returncode == 0
    files = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert len(files) > 5
    for name in files:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_case_35_every_output_says_how_it_was_made(demo: Path, tmp_path: Path) -> None:
    setting = ("--set", "warnAt=4")
    document = replay_document(demo, *setting)
    digest = document["settings_hash"]
    assert (document["settings"]["warnAt"], document["ruleset"]) == (4, "0.8")
    assert digest in breaker("replay", demo, *setting).stdout
    for verb in ("doctor", "histogram", "report"):
        given = json.loads(breaker(verb, demo, *(() if verb == "doctor" else setting), "--format", "json").stdout)
        assert given["settings_hash"] == (replay_document(demo)["settings_hash"] if verb == "doctor" else digest)
        assert given["ruleset"] == "0.8"
    sweep = json.loads(breaker("sweep", demo, "--grid", "warnAt=4,5", "--format", "json").stdout)
    rows = {row["settings"]["warnAt"]: row for row in sweep["configs"]}
    assert rows[4]["settings_hash"] == digest
    assert rows[4]["settings"].keys() == document["settings"].keys()
    breaker("export", demo, "--out", tmp_path / "out", *setting)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert digest in json.dumps(manifest)
