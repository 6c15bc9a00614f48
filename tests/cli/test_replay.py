"""`breaker replay`: one set of numbers in three renderings, and what the options choose."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from analysis.synth import Truth
from tests.analysis.logs import LogWriter
from tests.cli.commands import Json, breaker, breaker_process, json_lines, replay_document

POLICIES = ("unattended", "approve", "deny", "observe")
STAGES = ("warn", "summarize", "gate", "fail-warn", "fail-gate", "shell-http")
OUTCOMES = ("ok", "failed", "undecidable", "denied", "not_run", "open")
OF_THE_RECORD = (
    *OUTCOMES,
    *(
        "turns",
        "calls",
        "tracked",
        "not_started",
        "settled",
        "failure_rate",
        "failed_by",
        "streaks",
        "streaks_by_label",
    ),
)
"""What describes the corpus itself, whatever the policy."""


@pytest.fixture(scope="module")
def documents(demo: Path) -> dict[str, Json]:
    """Return the document of the demo under every policy."""
    return {policy: replay_document(demo, "--policy", policy, "--events") for policy in POLICIES}


# One set of numbers


def test_totals_are_what_is_planted(documents: dict[str, Json], demo_corpus: tuple[Path, Truth]) -> None:
    truth = demo_corpus[1]
    totals = documents["unattended"]["totals"]
    for name in ("turns", "calls", "tracked", *OUTCOMES, "not_started"):
        assert totals[name] == sum(getattr(session, name) for session in truth.sessions), name
    assert totals["settled"] == truth.settled
    assert totals["streaks"] == {str(step): count for step, count in truth.streaks.items()}
    assert documents["unattended"]["corpus"]["sessions"] == len(truth.sessions)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_counts_add_up(documents: dict[str, Json], policy: str) -> None:
    document = documents[policy]
    totals, sessions = document["totals"], document["sessions"]
    assert totals["settled"] == totals["ok"] + totals["failed"]
    assert totals["tracked"] == sum(totals[outcome] for outcome in OUTCOMES)
    assert totals["failure_rate"] == round(totals["failed"] / totals["settled"], 6)
    without_text = totals["failed"] - totals["failed_text_only"]
    assert totals["failure_rate_without_text"] == round(without_text / totals["settled"], 6)
    assert sum(row["count"] for row in totals["failed_by"]) == totals["failed"]
    assert sum(row["count"] for row in totals["failed_by"] if row["evidence"] == "text") == totals["failed_text_only"]
    assert totals["false_rejections"] <= totals["denials"]
    assert totals["sessions_with_false_rejection"] == sum(row["false_rejections"] > 0 for row in sessions)
    for name in (*OUTCOMES, "turns", "calls", "tracked", "not_started", "asks", "denials", "false_rejections"):
        assert totals[name] == sum(row[name] for row in sessions), name
    for stage in STAGES:
        assert totals["events"][stage] == sum(row["events"][stage] for row in sessions)
        assert totals["sessions_by_stage"][stage] == sum(row["events"][stage] > 0 for row in sessions)
        assert [
            row["id"] for row in sessions if (row["first_trip"][stage] is None) != (row["events"][stage] == 0)
        ] == []
    for step, count in totals["streaks"].items():
        longest = [row["longest_streak"]["count"] if row["longest_streak"] else 0 for row in sessions]
        assert count == sum(length >= int(step) for length in longest)
    corpus = document["corpus"]
    assert corpus["files"] == sum(corpus["read"].values()) == len(document["read_report"])
    assert corpus["bytes"] == sum(row["bytes"] for row in document["read_report"])
    assert corpus["sessions"] == len(sessions)


@pytest.mark.parametrize("policy", POLICIES)
def test_events_are_those_the_totals_count(documents: dict[str, Json], policy: str) -> None:
    document = documents[policy]
    events = document["events"]
    counts = Counter(event["stage"] for event in events)
    assert {stage: counts[stage] for stage in STAGES} == document["totals"]["events"]
    by_kind = Counter((event["measure"].partition(":")[0], event["stage"]) for event in events)
    assert {
        (kind, stage): count for kind, stages in document["by_kind"].items() for stage, count in stages.items() if count
    } == {
        **by_kind,
        **{(kind, "sessions"): stages["sessions"] for kind, stages in document["by_kind"].items()},
    }
    order = [row["path"] for row in document["sessions"]]
    places = [order.index(event["path"]) for event in events]
    assert places == sorted(places)
    for row in document["sessions"]:
        own = [event for event in events if event["path"] == row["path"]]
        for stage in STAGES:
            first = next((event for event in own if event["stage"] == stage), None)
            trip = row["first_trip"][stage]
            assert (first and (first["seq"], first["call"], first["turn"])) == (
                trip and (trip["seq"], trip["call"], trip["turn"])
            )
    # At most one message of each track for a call, and none of the occurrence track for one that is withheld.
    said = Counter((event["path"], event["call"], event["track"]) for event in events if "gate" not in event["stage"])
    assert set(said.values()) == {1}
    withheld = {"deny", "ask-declined", "deny-shell-http"}
    assert [event for event in events if event["decision"] in withheld and "gate" not in event["stage"]] == []


def test_the_record_is_the_same_under_every_policy(documents: dict[str, Json]) -> None:
    plain = documents["observe"]["totals"]
    for policy in POLICIES:
        totals = documents[policy]["totals"]
        assert {name: totals[name] for name in OF_THE_RECORD} == {name: plain[name] for name in OF_THE_RECORD}


def test_policies_decide_what_becomes_of_an_ask(documents: dict[str, Json]) -> None:
    decisions = {policy: {event["decision"] for event in documents[policy]["events"]} for policy in POLICIES}
    assert decisions == {
        "unattended": {"allow", "ask-declined", "deny"},
        "approve": {"allow", "ask-approved"},
        "deny": {"allow", "deny"},
        "observe": {"allow", "observed"},
    }
    held = {
        policy: (documents[policy]["totals"]["asks"] > 0, documents[policy]["totals"]["denials"] > 0)
        for policy in POLICIES
    }
    assert held == {
        "unattended": (True, True),
        "approve": (True, False),
        "deny": (False, True),
        "observe": (False, False),
    }


@pytest.mark.parametrize("policy", POLICIES)
def test_lines_of_events_are_the_events_of_the_document(documents: dict[str, Json], demo: Path, policy: str) -> None:
    done = breaker("replay", demo, "--policy", policy, "--format", "jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert json_lines(done.stdout) == documents[policy]["events"]


def test_events_are_only_in_the_document_that_was_asked_for_them(documents: dict[str, Json], demo: Path) -> None:
    document = replay_document(demo)
    assert document == {name: value for name, value in documents["unattended"].items() if name != "events"}


def test_the_head_says_what_was_replayed_and_how(documents: dict[str, Json], demo: Path) -> None:
    for policy, document in documents.items():
        head = {name: document[name] for name in ("schema", "ruleset", "policy", "result_source")}
        assert head == {
            "schema": "breaker/replay/1",
            "ruleset": "0.8",
            "policy": policy,
            "result_source": "rebuilt",
        }
        assert document["tool"]["name"] == "breaker"
        assert f"breaker {document['tool']['version']}\n" == breaker("--version").stdout
        assert "no released code has all of it" in document["ruleset_note"]
        assert document["corpus"]["roots"] == [str(demo)]
        assert document["settings"]["warnAt"] == 7
        assert re.fullmatch("sha256:[0-9a-f]{64}", document["settings_hash"])
    released = replay_document(demo, "--ruleset", "0.5.2")
    assert (released["ruleset"], released["ruleset_note"]) == ("0.5.2", "as released")
    assert released["shell_http"]["policy"] is False


@pytest.mark.shared
@pytest.mark.parametrize("policy", POLICIES)
def test_the_counts_of_recorded_sessions_add_up(shared: Path, policy: str) -> None:
    document = replay_document(shared / "corpus" / "recorded", "--policy", policy, "--events", "--set", "warnAt=2")
    totals = document["totals"]
    assert document["corpus"]["read"] == {**dict.fromkeys(document["corpus"]["read"], 0), "ok": 73}
    assert totals["settled"] == totals["ok"] + totals["failed"]
    assert totals["tracked"] == sum(totals[outcome] for outcome in OUTCOMES)
    counts = Counter(event["stage"] for event in document["events"])
    assert {stage: counts[stage] for stage in STAGES} == totals["events"]
    assert counts["warn"] > 0


# The table


def test_the_table_shows_the_numbers_of_the_document(documents: dict[str, Json], demo: Path) -> None:
    for policy, document in documents.items():
        table = breaker("replay", demo, "--policy", policy, "--events", "--top", "0").stdout
        totals, corpus, words = document["totals"], document["corpus"], " ".join(table.split())
        failed, settled = totals["failed"], totals["settled"]
        without_text = failed - totals["failed_text_only"]
        for told in (
            f"{corpus['sessions']} sessions, {totals['turns']} turns, {totals['calls']} calls, ",
            f"{totals['calls']} calls, {totals['tracked']} tracked",
            f"{failed} of {settled} settled calls: {100 * failed / settled:.2f} %",
            f"{100 * without_text / settled:.2f} % without a shell's words ({without_text})",
            " · ".join(f"{name.replace('_', '-')} {totals[name]}" for name in OUTCOMES)
            + f"; not started {totals['not_started']}",
            " · ".join(f"{step}: {count}" for step, count in totals["streaks"].items()),
            "events " + " · ".join(f"{stage} {totals['events'][stage]}" for stage in STAGES),
            "in sessions " + " · ".join(f"{stage} {totals['sessions_by_stage'][stage]}" for stage in STAGES),
            f"{totals['asks']} asks, {totals['denials']} calls withheld; ",
            f"withheld; {totals['false_rejections']} of them had succeeded",
            f"ruleset 0.8 ({document['ruleset_note']})",
            f"policy {policy}",
            f"settings {document['settings_hash']}",
            f"read report: {corpus['files']} files; ok {corpus['read']['ok']} · torn 1 · superseded 1",
            "replay is open-loop",
        ):
            assert told in words, told


def shown_sessions(table: str) -> list[list[str]]:
    """Return the rows of the table of sessions, cell by cell."""
    lines = table.splitlines()
    start = next(number for number, line in enumerate(lines) if "worst sessions" in line) + 2
    rows: list[list[str]] = []
    for line in lines[start:]:
        if not line.strip():
            return rows
        rows.append(line.split())
    return rows


def test_the_worst_sessions_stand_on_top(documents: dict[str, Json], demo: Path) -> None:
    rows = shown_sessions(breaker("replay", demo, "--top", "0").stdout)
    sessions = {row["id"][-9:]: row for row in documents["unattended"]["sessions"]}
    assert len(rows) == len(sessions)
    gated = [sum(sessions[row[0][-9:]]["events"][stage] for stage in ("gate", "fail-gate")) for row in rows]
    assert gated[0] > 0
    assert gated == sorted(gated, reverse=True)
    for row in rows:
        session = sessions[row[0][-9:]]
        numbers = [session["calls"], session["failed"], *(session["events"][stage] for stage in STAGES[:5])]
        numbers += [session["denials"], session["false_rejections"]]
        assert row[1:10] == [str(number or "·") for number in numbers]
        trips = [trip["call"] for stage in ("gate", "fail-gate") if (trip := session["first_trip"][stage])]
        assert row[10] == (f"#{min(trips)}" if trips else "·")
        assert row[11] == str(session["longest_streak"]["count"] if session["longest_streak"] else "·")
        assert row[12] == (str(session["peak"]["count"]) if session["peak"] else "·")


def test_top_says_how_many_sessions_are_shown(demo: Path, demo_corpus: tuple[Path, Truth]) -> None:
    count = len(demo_corpus[1].sessions)
    whole = breaker("replay", demo, "--top", "0").stdout
    assert "more sessions" not in whole
    for arguments, shown in ((["--top", "3"], 3), ([], 10)):
        table = breaker("replay", demo, *arguments).stdout
        assert f"… and {count - shown} more sessions (--top 0 shows all)" in table
        assert shown_sessions(table) == shown_sessions(whole)[:shown]


def test_the_read_report_is_shown_where_something_is_not_ok(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.bash()
    path = log.write(tmp_path)
    assert "read report" not in breaker("replay", tmp_path).stdout
    path.write_bytes(path.read_bytes() + b'{"type":"user/mess')
    table = breaker("replay", tmp_path).stdout
    assert "read report: 1 file; torn 1" in table
    assert f"  torn        {path}\n    :5 (byte {len(log.text)}): " in table
    assert "; 18 bytes lost" in table


# What the options choose


def test_labels_are_given_by_id_by_path_and_by_file(demo: Path, tmp_path: Path, documents: dict[str, Json]) -> None:
    ids = [row["id"] for row in documents["unattended"]["sessions"]]
    atlas = {row["id"] for row in documents["unattended"]["sessions"] if "--home-dev-atlas--" in row["path"]}
    stuck = next(identity for identity in ids if identity not in atlas)
    table = tmp_path / "labels.csv"
    table.write_text(f"session,label,reason\n{stuck},stuck,it hangs\n", encoding="utf-8")
    tables = tmp_path / "labels.toml"
    tables.write_text(f'[[label]]\nsession = "{stuck}"\nlabel = "stuck"\nreason = "it hangs"\n', encoding="utf-8")
    for labels in (["--labels", table], ["--labels", tables], ["--label", f"stuck={stuck[:-1]}?"]):
        document = replay_document(demo, "--label", "good=--home-dev-atlas--", *labels)
        given = {row["id"]: row["label"] for row in document["sessions"]}
        assert given == {
            identity: "good" if identity in atlas else "stuck" if identity == stuck else "unknown" for identity in ids
        }
        by_label = document["totals"]["streaks_by_label"]
        assert list(by_label) == ["good", "stuck", "unknown"]
        for step, count in document["totals"]["streaks"].items():
            assert sum(counts[step] for counts in by_label.values()) == count
    assert "label" in breaker("replay", demo, "--label", f"stuck={stuck}").stdout.splitlines()[1]


def dated(folder: Path, session_id: str, created_at: object) -> None:
    log = LogWriter(session_id, createdAt=created_at)
    log.user()
    log.bash()
    log.write(folder)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([], "abcd"),
        (["--since", "2026-01-02"], "bc"),
        (["--since", "2026-01-02T00:00:00.001"], "c"),
        (["--until", "2026-01-02"], "a"),
        (["--since", "2026-01-01", "--until", "2026-01-02T00:00:01Z"], "ab"),
        (["--since", "2026-01-02T01:00+01:00", "--until", "2026-01-03"], "b"),
    ],
)
def test_a_time_chooses_sessions_by_their_creation(tmp_path: Path, given: list[str], kept: str) -> None:
    day = 86_400_000
    first = 1_767_225_600_000
    for number, name in enumerate("abc"):
        dated(tmp_path, name, first + number * day)
    dated(tmp_path, "d", None)
    document = replay_document(tmp_path, *given)
    assert "".join(row["id"] for row in document["sessions"]) == kept
    assert document["corpus"]["left_out_by_time"] == 4 - len(kept)


def test_several_paths_are_one_corpus_and_nothing_counts_twice(demo: Path, tmp_path: Path) -> None:
    dated(tmp_path, "other", 1)
    project = next(path for path in sorted(demo.iterdir()) if path.is_dir())
    together = replay_document(project, tmp_path, project)
    alone = replay_document(project)
    assert together["corpus"]["roots"] == [str(project), str(tmp_path), str(project)]
    assert together["corpus"]["sessions"] == alone["corpus"]["sessions"] + 1
    assert together["sessions"][:-1] == alone["sessions"]
    assert together["sessions"][-1]["id"] == "other"


def test_a_folder_a_file_and_an_archive_tell_the_same(tmp_path: Path) -> None:
    log = LogWriter("session-a")
    log.user()
    for _ in range(8):
        log.bash()
    path = log.write(tmp_path / "root", compressed=True)
    shutil.make_archive(str(tmp_path / "archive"), "zip", tmp_path / "root")
    totals = [
        replay_document(given)["totals"] for given in (path, path.parent, tmp_path / "root", tmp_path / "archive.zip")
    ]
    assert totals[0]["calls"] == 8
    assert totals == totals[:1] * 4


def test_without_a_path_the_harness_own_folder_is_read(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "sessions").symlink_to(demo)
    done = breaker_process("replay", "--format", "json", env={"DSH_HOME": str(tmp_path)})
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["corpus"]["roots"] == [str(tmp_path / "sessions")]
    assert document["totals"] == replay_document(demo)["totals"]
    nowhere = breaker_process("replay", env={"DSH_HOME": str(tmp_path / "none")})
    assert (nowhere.returncode, nowhere.stdout) == (2, "")
    assert nowhere.stderr == f"breaker: error: {tmp_path}/none/sessions: no such file or folder\n"


def test_messages_stand_beside_the_events(demo: Path, documents: dict[str, Json]) -> None:
    document = replay_document(demo, "--messages")
    assert [event.pop("message") for event in document["events"]].count("") == 0
    assert document == documents["unattended"]


def test_results_can_be_taken_as_the_published_measurements_did(demo: Path) -> None:
    document = replay_document(demo, "--result-source", "log")
    assert document["result_source"] == "log"
    totals = document["totals"]
    assert totals["tracked"] == totals["calls"] == sum(totals[outcome] for outcome in OUTCOMES)


@pytest.mark.parametrize("output", ["table", "json"])
def test_two_runs_are_the_same_bytes(demo: Path, output: str) -> None:
    first = breaker_process("replay", demo, "--events", "--format", output, env={"PYTHONHASHSEED": "1"})
    second = breaker_process("replay", demo, "--events", "--format", output, env={"PYTHONHASHSEED": "2"})
    assert first.stdout == second.stdout
    assert first.stdout.endswith("\n")
    assert os.linesep == "\n" or "\r\n" not in first.stdout
