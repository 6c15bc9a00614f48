"""Every file of a corpus obeys the session format, held by a reader that knows nothing of the writer."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import zstandard

from analysis.synth import Truth

Row = dict[str, object]
Log = tuple[Row, list[Row], list[bytes]]
Corpora = Callable[[str, int, bool], tuple[Path, Truth]]

HEADER_KEYS = {
    "type",
    "version",
    "id",
    "createdAt",
    "cwd",
    "parentSession",
    "origin",
    "delegationDepth",
    "agentPreset",
}
SURFACE = {"system/message", "user/message", "assistant/message", "tool/result"}
PACKED = {"text-chunks", "reasoning-chunks", "tool-call-chunks"}
VARIANTS = [(version, plain) for version in (4, 3, 0) for plain in (True, False)]


def _data(row: Row) -> Row:
    return cast("Row", row["data"])


def _width(row: Row) -> int:
    """Return how many sequence numbers a row takes."""
    if row["type"] not in PACKED:
        return 1
    return len(cast("list[str]", _data(row).get("texts") or _data(row)["args"]))


def _sources(row: Row) -> list[int]:
    found: list[int] = []
    for entry in cast("list[int | list[int]]", row.get("sourceEventSeqs", [])):
        found.extend(range(entry[0], entry[1] + 1) if isinstance(entry, list) else [entry])
    return found


@pytest.fixture(params=VARIANTS, ids=[f"v{version}-{'plain' if plain else 'zstd'}" for version, plain in VARIANTS])
def variant(request: pytest.FixtureRequest) -> tuple[int, bool]:
    return cast("tuple[int, bool]", request.param)


@pytest.fixture(scope="session")
def read_corpus(corpus: Corpora, read_log: Callable[[Path], Log]) -> Callable[[str, int, bool], dict[str, Log]]:
    """Return a reader of corpora that reads each one once."""
    known: dict[tuple[str, int, bool], dict[str, Log]] = {}

    def read(recipe: str, version: int, plain: bool) -> dict[str, Log]:
        key = (recipe, version, plain)
        if key not in known:
            out, truth = corpus(*key)
            files = [file.path for session in truth.sessions for file in session.files]
            known[key] = {path: read_log(out / path) for path in files}
        return known[key]

    return read


@pytest.fixture(params=["demo", "labelled", "scale"])
def logs(
    request: pytest.FixtureRequest,
    read_corpus: Callable[[str, int, bool], dict[str, Log]],
    variant: tuple[int, bool],
) -> dict[str, Log]:
    """Return every file of a corpus by its path."""
    return read_corpus(cast("str", request.param), *variant)


def test_names_say_project_session_and_generation(logs: dict[str, Log], variant: tuple[int, bool]) -> None:
    version, plain = variant
    suffix = "jsonl" if plain else "jsonl.zstd"
    for path, (header, _, _) in logs.items():
        project, folder, name = path.split("/")
        assert re.fullmatch(r"--[A-Za-z0-9._~-]+--", project)
        assert folder == header["id"]
        tag = f".v{header['version']}" if header["version"] else ""
        assert name == f"session{tag}.{suffix}"
        assert cast("int", header["version"]) <= version


def test_headers_hold_the_fields_of_their_version(logs: dict[str, Log]) -> None:
    for header, _, _ in logs.values():
        seed = {"isSeeded"} if header["version"] else {"seedLength"}
        assert set(header) <= HEADER_KEYS | seed
        assert {"type", "version", "id", "createdAt", "delegationDepth"} <= set(header)
        assert header["version"] == 0 or "isSeeded" in header
        assert header["type"] == "session"


def test_the_first_frame_is_the_header_line_and_every_frame_whole_lines(
    logs: dict[str, Log], variant: tuple[int, bool]
) -> None:
    if variant[1]:
        return
    for _, rows, batches in logs.values():
        assert batches[0].count(b"\n") == 1
        assert all(batch.endswith(b"\n") for batch in batches)
        assert sum(batch.count(b"\n") for batch in batches) == len(rows) + 1


def test_frames_carry_a_checksum_and_their_content_size(corpus: Corpora) -> None:
    out, truth = corpus("demo", 4, False)
    content = (out / truth.sessions[0].files[0].path).read_bytes()
    assert content[:4] == bytes.fromhex("28b52ffd")
    single_segment, checksum = 0x20, 0x04
    assert content[4] & (single_segment | checksum) == single_segment | checksum


def test_a_copied_history_is_a_frame_without_a_content_size(corpus: Corpora) -> None:
    out, truth = corpus("demo", 4, False)
    path = next(session.files[0].path for session in truth.sessions if session.name == "fork-child")
    first = zstandard.ZstdDecompressor().decompressobj()
    first.decompress((out / path).read_bytes())
    assert first.unused_data[:5] == bytes.fromhex("28b52ffd04")


def test_sequence_numbers_are_dense(logs: dict[str, Log]) -> None:
    for path, (_, rows, _) in logs.items():
        expected = 0
        for row in rows:
            assert row.get("seq", row.get("seq0")) == expected, path
            expected += _width(row)


def test_sources_are_earlier_and_a_result_names_its_call(logs: dict[str, Log]) -> None:
    for path, (_, rows, _) in logs.items():
        by_seq = {cast("int", row["seq"]): row for row in rows if "seq" in row}
        for row in rows:
            assert all(source < cast("int", row["seq"]) for source in _sources(row)), path
            if row["type"] == "tool/result" and row["surfaceOp"] == "append":
                sources = _sources(row)
                if not sources:
                    assert cast("Row", _data(row)["error"])["code"] == "TOOL_NOT_STARTED"
                    continue
                call = by_seq[sources[0]]
                assert call["type"] == "tool/call"
                message = cast("Row", _data(row)["message"])
                assert cast("Row", message["source"])["callId"] == _data(call)["callId"]


def test_only_surface_rows_say_how_they_reach_the_surface(logs: dict[str, Log]) -> None:
    for _, rows, _ in logs.values():
        for row in rows:
            assert ("surfaceOp" in row) == (row["type"] in SURFACE)


def test_turns_rise_by_one_and_steps_begin_again_in_each(logs: dict[str, Log]) -> None:
    for path, (_, rows, _) in logs.items():
        turn = step = 0
        for row in rows:
            if row["type"] == "turn/start":
                assert _data(row)["turn"] == turn + 1, path
                turn, step = turn + 1, 0
            elif row["type"] == "step/start":
                assert _data(row) == {"turn": turn, "step": step + 1}, path
                step += 1
            elif row["type"] in {"tool/call", "tool/result", "step/end"} and "surfaceOp" not in row:
                assert (_data(row)["turn"], _data(row)["step"]) == (turn, step), path


def test_every_call_row_was_asked_for_in_the_answer_before_it(logs: dict[str, Log]) -> None:
    for path, (_, rows, _) in logs.items():
        asked: dict[str, tuple[str, str]] = {}
        for row in rows:
            if row["type"] == "assistant/message":
                blocks = cast("list[Row]", cast("Row", _data(row)["message"])["content"])
                calls = [block for block in blocks if block["type"] == "tool-call"]
                asked = {cast("str", block["id"]): (str(block["name"]), str(block["arguments"])) for block in calls}
            elif row["type"] == "tool/call":
                data = _data(row)
                assert asked[cast("str", data["callId"])] == (data["name"], data["arguments"]), path


def test_message_ids_are_unique_in_a_session(logs: dict[str, Log]) -> None:
    for path, (_, rows, _) in logs.items():
        ids: Counter[str] = Counter()
        for row in rows:
            if row["type"] in SURFACE and row["surfaceOp"] == "append":
                message = _data(row) if row["type"] == "user/message" else cast("Row", _data(row)["message"])
                ids[cast("str", message["id"])] += 1
        assert set(ids.values()) == {1}, path


def test_a_streamed_answer_joins_to_its_content(logs: dict[str, Log]) -> None:
    for _, rows, _ in logs.values():
        for row in rows:
            if row["type"] != "assistant/message" or "stream" not in _data(row):
                continue
            blocks = cast("list[Row]", cast("Row", _data(row)["message"])["content"])
            records = cast("list[Row]", _data(row)["stream"])
            packed = [record for record in records if record["type"] in PACKED]
            joined = ["".join(cast("list[str]", record.get("texts") or record["args"])) for record in packed]
            assert joined == [block.get("text", block.get("arguments")) for block in blocks]
            widths = [len(cast("list[str]", record.get("texts") or record["args"])) for record in packed]
            assert [len(cast("list[int]", record["dt"])) + 1 for record in packed] == widths


def test_results_are_nested_before_format_4_and_flat_in_it(logs: dict[str, Log]) -> None:
    for header, rows, _ in logs.values():
        for row in rows:
            if row["type"] == "tool/result":
                message = cast("Row", _data(row)["message"])
                blocks = cast("list[Row]", message["content"])
                nested = header["version"] != 4
                assert message["role"] == ("user" if nested else "tool")
                assert [block["type"] for block in blocks] == ["tool-result" if nested else "text"]
                assert ("toolCallId" in message) is not nested


def test_producers_are_named_by_plugin_before_format_4(logs: dict[str, Log]) -> None:
    for header, rows, _ in logs.values():
        for row in rows:
            if row["type"] in SURFACE:
                message = _data(row) if row["type"] == "user/message" else cast("Row", _data(row)["message"])
                kind = cast("Row", message["source"])["kind"]
                assert (kind == "plugin") <= (header["version"] != 4)
                if header["version"] != 4:
                    assert kind in {"user", "model", "tool", "plugin"}


def test_format_0_keeps_the_old_shapes(corpus: Corpora, read_log: Callable[[Path], Log]) -> None:
    out, truth = corpus("demo", 0, True)
    types: Counter[object] = Counter()
    for session in truth.sessions:
        header, rows, _ = read_log(out / session.files[0].path)
        types.update(row["type"] for row in rows)
        assert "isSeeded" not in header
        for row in rows:
            if row["type"] == "request/header":
                assert "system" in cast("Row", _data(row)["header"])
            if row["type"] == "session/end-seed":
                assert _data(row) == {}
    assert not {"system/message", "subagent/catalog", "tool/ptc-dispatch", "tool/ptc-dispatch-start"} & set(types)
    assert types["tool/code-dispatch-start"] == types["tool/code-dispatch"] == 6
    assert types["assistant/chunk"] > 0
    assert types["tool-call-chunks"] > 0


def test_a_fork_begins_with_its_parents_rows_word_for_word(
    corpus: Corpora, read_log: Callable[[Path], Log], variant: tuple[int, bool]
) -> None:
    out, truth = corpus("demo", *variant)
    paths = {session.name: out / session.files[0].path for session in truth.sessions}
    _, parent, _ = read_log(paths["fork-parent"])
    for name in ("fork-child", "fork-open-call"):
        header, rows, _ = read_log(paths[name])
        if variant[0] == 0:
            seeded = cast("int", header["seedLength"])
            length = next(at for at, row in enumerate(rows) if row.get("seq", row.get("seq0")) == seeded)
        else:
            length = [row["type"] for row in rows].index("session/end-seed")
            assert _data(rows[length]) == {"inherited": True}
        assert length > 5
        assert rows[:length] == parent[:length]
    _, rows, _ = read_log(paths["fork-open-call"])
    closers = [row for row in rows if "forked-tool-result-" in json.dumps(row)]
    assert len(closers) == 1
    message = cast("Row", _data(closers[0])["message"])
    assert cast("str", message["id"]).endswith(f"-{closers[0]['seq']}")


def test_call_rows_are_as_many_as_planted_and_where_truth_says(
    corpus: Corpora, read_log: Callable[[Path], Log], variant: tuple[int, bool]
) -> None:
    out, truth = corpus("demo", *variant)
    starts = {"tool/call", "tool/ptc-dispatch-start", "tool/code-dispatch-start"}
    for session in truth.sessions:
        _, rows, _ = read_log(out / session.files[0].path)
        seqs = [row["seq"] for row in rows if row["type"] in starts]
        assert seqs[len(seqs) - session.calls :] == list(session.call_seqs), session.name


def test_a_torn_file_loses_only_its_last_batch(corpus: Corpora, variant: tuple[int, bool]) -> None:
    out, truth = corpus("demo", *variant)
    torn = [file.path for session in truth.sessions for file in session.files if file.state == "torn"]
    assert len(torn) == 1
    content = (out / torn[0]).read_bytes()
    assert not content.endswith(b"\n")


def test_a_newer_generation_stands_beside_the_one_it_superseded(
    corpus: Corpora, read_log: Callable[[Path], Log], variant: tuple[int, bool]
) -> None:
    out, truth = corpus("demo", *variant)
    session = next(session for session in truth.sessions if session.name == "generations")
    states = [file.state for file in session.files]
    assert states == (["ok", "superseded"] if variant[0] else ["ok"])
    if variant[0]:
        newer, older = (read_log(out / file.path) for file in session.files)
        assert newer[0]["id"] == older[0]["id"]
        assert cast("int", older[0]["version"]) < variant[0]
        assert len({(out / file.path).parent for file in session.files}) == 1
