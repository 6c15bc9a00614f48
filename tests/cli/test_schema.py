"""`breaker schema`: the JSON Schemas of what the commands read and write, held to what they really write."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator

from analysis.schemas import schema_names, schema_text
from tests.cli.commands import Json, breaker, json_lines, replay_document, validator_of, violations

OF_THESE_COMMANDS = ("classify", "doctor", "event", "guard-input", "guard-output", "measure", "replay")
POLICIES = ("unattended", "approve", "deny", "observe")


def shipped() -> list[str]:
    names = schema_names()
    assert set(OF_THESE_COMMANDS) <= set(names)
    return names


def schema(name: str) -> Json:
    return json.loads(schema_text(name))


def members(node: Any, path: str = "") -> Iterator[tuple[str, Json]]:
    """Give every named member a schema describes, with the path to it."""
    if isinstance(node, list):
        for index, item in enumerate(cast("list[Any]", node)):
            yield from members(item, f"{path}/{index}")
    elif isinstance(node, dict):
        for key, value in cast("Json", node).items():
            if key == "properties" and not path.endswith(("/if", "/then", "/else")):
                yield from ((f"{path}/{name}", member) for name, member in value.items())
            yield from members(value, f"{path}/{key}")


# The schemas themselves


def test_without_a_name_the_names_are_listed() -> None:
    done = breaker("schema")
    assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", shipped())


@pytest.mark.parametrize("name", shipped())
def test_a_schema_is_printed_as_shipped_and_is_one(name: str) -> None:
    done = breaker("schema", name)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", schema_text(name))
    document = json.loads(done.stdout)
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert document["title"].startswith("breaker ")
    Draft202012Validator.check_schema(document)


def test_an_unknown_name_lists_the_known_ones() -> None:
    done = breaker("schema", "replay.schema.json")
    told = f"unknown document 'replay.schema.json'; known: {', '.join(shipped())}"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"breaker: error: {told}\n")


@pytest.mark.parametrize("name", OF_THESE_COMMANDS)
def test_every_member_is_described_in_one_line(name: str) -> None:
    found = dict(members(schema(name)))
    assert len(found) > 4
    undescribed = [path for path, member in found.items() if not str(member.get("description", "")).endswith(".")]
    assert undescribed == []
    assert [path for path, member in found.items() if "\n" in member["description"]] == []


def test_a_line_of_events_and_an_event_of_the_document_are_described_alike() -> None:
    alone, inside = schema("event"), schema("replay")["$defs"]
    assert {key: value for key, value in alone.items() if key in inside["event"] and key != "description"} == {
        key: value for key, value in inside["event"].items() if key != "description"
    }
    assert alone["$defs"]["failure"] == inside["failure"]


# Real output


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("events", [[], ["--events"], ["--messages"]], ids=["totals", "events", "messages"])
def test_the_document_of_the_demo_is_as_described(demo: Path, policy: str, events: list[str]) -> None:
    document = replay_document(demo, "--policy", policy, *events)
    assert violations("replay", document) == []
    assert ("events" in document) is bool(events)
    assert document["sessions"] != []


@pytest.mark.parametrize("ruleset", ["0.5.0", "0.5.2", "0.6.1", "0.7.0", "0.8.7"])
def test_the_document_is_as_described_under_every_kind_of_ruleset(demo: Path, ruleset: str) -> None:
    loud = ("--set", "warnAt=1", "--set", "failWarnAt=1", "--set", "limits.verb=2.5", "--set", "failLimit=2.5")
    document = replay_document(demo, "--ruleset", ruleset, "--events", "--shell-http", "on", *loud)
    assert violations("replay", document) == []
    assert violations("replay", replay_document(demo, "--result-source", "log", "--ruleset", ruleset)) == []


def test_the_lines_of_events_are_as_described(demo: Path) -> None:
    for more in ([], ["--messages"], ["--shell-http", "on", "--policy", "observe"]):
        rows = json_lines(breaker("replay", demo, "--format", "jsonl", *more).stdout)
        assert rows != []
        assert [violation for row in rows for violation in violations("event", row)] == []
        assert [("message" in row) for row in rows] == [more == ["--messages"]] * len(rows)


@pytest.mark.shared
@pytest.mark.parametrize("policy", POLICIES)
def test_the_documents_of_recorded_sessions_are_as_described(shared: Path, policy: str) -> None:
    recorded = shared / "corpus" / "recorded"
    document = replay_document(recorded, "--policy", policy, "--events", "--set", "warnAt=1")
    assert violations("replay", document) == []
    assert document["corpus"]["sessions"] == 73
    assert document["corpus"]["read"]["ok"] == document["corpus"]["files"] == 73
    assert violations("replay", replay_document(recorded, "--policy", policy)) == []


@pytest.mark.shared
def test_the_documents_of_the_fixtures_are_as_described(shared: Path) -> None:
    roots = sorted(path for path in (shared / "corpus" / "fixtures").iterdir() if path.is_dir())
    assert len(roots) == 28
    for root in roots:
        done = breaker("replay", root, "--format", "json", "--events")
        assert (done.returncode, done.stderr) == (0, ""), root
        assert violations("replay", json.loads(done.stdout)) == [], root


def test_the_document_of_unreadable_files_is_as_described(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / str(number)).mkdir()
    (tmp_path / "0" / "session.v4.jsonl").write_bytes(b"no log\n")
    (tmp_path / "1" / "session.v9.jsonl").write_bytes(b'{"type":"session","version":9,"id":"x"}\n')
    (tmp_path / "2" / "session.jsonl").write_bytes(b"")
    done = breaker("replay", tmp_path, "--format", "json", "--events")
    assert done.returncode == 3
    document = json.loads(done.stdout)
    assert violations("replay", document) == []
    assert sorted(row["state"] for row in document["read_report"]) == ["corrupt", "empty", "unsupported"]
    assert document["totals"]["failure_rate"] is None


# The schemas can fail


@pytest.fixture(scope="module")
def document(demo: Path) -> Json:
    return replay_document(demo, "--events", "--messages")


def small_document(document: Json) -> Json:
    """Return a document with one of each kind of row."""
    gated = next(row for row in document["sessions"] if row["first_trip"]["gate"] and row["peak"])
    streak = next(row for row in document["sessions"] if row["longest_streak"])
    return {
        **copy.deepcopy(document),
        "sessions": [copy.deepcopy(gated), copy.deepcopy(streak)],
        "read_report": [copy.deepcopy(next(row for row in document["read_report"] if row["defects"]))],
        "events": [copy.deepcopy(next(row for row in document["events"] if row["failure"]))],
    }


def parts(document: Json) -> dict[str, Json]:
    """Return every kind of object in a small document, by its path; changing one changes the document."""
    session, streak = document["sessions"]
    (report,) = document["read_report"]
    (event,) = document["events"]
    return {
        "document": document,
        "tool": document["tool"],
        "shell_http": document["shell_http"],
        "settings": document["settings"],
        "corpus": document["corpus"],
        "read": document["corpus"]["read"],
        "totals": document["totals"],
        "failed_by": document["totals"]["failed_by"][0],
        "events of totals": document["totals"]["events"],
        "streaks": document["totals"]["streaks"],
        "sessions_by_stage": document["totals"]["sessions_by_stage"],
        "by_kind": document["by_kind"]["host"],
        "session": session,
        "events of a session": session["events"],
        "first_trip": session["first_trip"],
        "trip": session["first_trip"]["gate"],
        "near_miss": session["near_miss"],
        "peak": session["peak"],
        "longest_streak": streak["longest_streak"],
        "report": report,
        "defect": report["defects"][0],
        "event": event,
        "failure": event["failure"],
    }


OPTIONAL = {"events", "message", "blockShellHttp", "blockLocalHttp", "shellHttpBlock"}
FREE = {"blockShellHttp", "blockLocalHttp", "shellHttpBlock"}
"""Settings a ruleset that does not read them carries along as they are given."""

Change = Callable[[Json, str], None]


def left_out(part: Json, name: str) -> None:
    del part[name]


def of_another_type(part: Json, name: str) -> None:
    part[name] = [{"other": object}] if not isinstance(part[name], list) else "text"


def added(part: Json, name: str) -> None:
    part[f"{name}_2"] = part[name]


@pytest.mark.parametrize(
    ("change", "spared"), [(left_out, OPTIONAL), (of_another_type, FREE), (added, set[str]())], ids=lambda value: ""
)
def test_every_change_of_a_document_breaks_its_schema(document: Json, change: Change, spared: set[str]) -> None:
    validator = validator_of("replay")
    unnoticed: list[str] = []
    small = small_document(document)
    assert validator.is_valid(small)
    for path, part in parts(small).items():
        for name in list(part):
            kept = dict(part)
            change(part, name)
            if validator.is_valid(small) and name not in spared:
                unnoticed.append(f"{path}.{name}")
            part.clear()
            part.update(kept)
    assert unnoticed == []


def test_other_detectors_are_described_where_they_run(document: Json) -> None:
    told = copy.deepcopy(document)
    counts = {"notice": 3, "deny": 1}
    told["totals"]["detectors"] = {"reminder": counts}
    told["sessions"][0]["detectors"] = {"reminder": counts}
    event = {**told["events"][0], "detector": "reminder", "stage": "notice", "track": None, "measure": "bash|make"}
    told["events"].append(event)
    assert violations("replay", told) == []
    assert violations("event", event) == []
    assert violations("event", {**event, "detector": "breaker"}) != []
    told["totals"]["detectors"] = {"breaker": counts}
    assert violations("replay", told) != []
