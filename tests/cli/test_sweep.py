"""`breaker sweep`, `lint`, `explain` and `label suggest` as commands."""

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest

from analysis.synth import Truth, write_corpus
from tests.cli.commands import Json, breaker, replay_document, violations

GRID = ("--grid", "warnAt=6..9", "--grid", "limits.host=9,null", "--grid", "summarizeAt=11")


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    folder = tmp_path_factory.mktemp("labelled")
    return folder / "corpus", write_corpus(folder / "corpus", "labelled")


@pytest.fixture(scope="module")
def labels(labelled: tuple[Path, Truth]) -> Path:
    path = labelled[0].parent / "labels.csv"
    path.write_text("".join(f"{one.id},{one.label},planted\n" for one in labelled[1].sessions))
    return path


def document(*arguments: str | Path) -> Json:
    done = breaker(*arguments, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_the_document_keeps_its_schema_and_every_row_its_settings(labelled: tuple[Path, Truth], labels: Path) -> None:
    shown = document("sweep", labelled[0], *GRID, "--labels", labels)
    assert violations("sweep", shown) == []
    assert len(shown["configs"]) == 8
    assert [config["settings"]["warnAt"] for config in shown["configs"]] == [6, 6, 7, 7, 8, 8, 9, 9]
    assert shown["labels"]["unknown"] == 0
    row = shown["configs"][2]
    plain = replay_document(labelled[0], "--set", "warnAt=7", "--set", "limits.host=9")
    assert row["settings_hash"] == plain["settings_hash"]
    assert row["settings"] == plain["settings"]
    assert row["events"] == plain["totals"]["events"]
    for name in ("asks", "denials", "false_rejections"):
        assert row["metrics"][name] == plain["totals"][name]


def test_without_labels_the_document_says_what_is_missing(labelled: tuple[Path, Truth]) -> None:
    shown = document("sweep", labelled[0], "--grid", "warnAt=7")
    assert violations("sweep", shown) == []
    (row,) = shown["configs"]
    assert (row["metrics"]["good_touched"], row["pareto"], shown["recommended"]) == (None, None, None)
    assert row["reasons"]["good_touched"] == "no session is labelled good"


def test_csv_parquet_and_table_hold_the_same_rows(labelled: tuple[Path, Truth], labels: Path, tmp_path: Path) -> None:
    out = tmp_path / "sweep.parquet"
    done = breaker("sweep", labelled[0], *GRID, "--labels", labels, "--format", "csv", "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    stored = pl.read_parquet(out).to_dicts()
    assert len(rows) == len(stored) == 8
    for row, other in zip(rows, stored, strict=True):
        assert row["warnAt"] == str(other["warnAt"])
        assert row["messages"] == str(other["messages"])
        assert row["limits.host"] == ("" if other["limits.host"] is None else f"{other['limits.host']:g}")
        assert json.loads(row["settings"])["warnAt"] == other["warnAt"]
    again = breaker("sweep", labelled[0], *GRID, "--out", out)
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    table = breaker("sweep", labelled[0], *GRID, "--labels", labels, "--sort", "messages", "--top", "3")
    assert table.returncode == 0
    assert "… and 5 more configurations" in table.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "nothing to sweep"),
        (("--grid", "warnat=3"), 2, "did you mean `warnAt`?"),
        (("--grid", "warnAt=9..3"), 2, "the range 9..3 is empty"),
        (("--grid", "warnAt=3", "--grid", "warnAt=4"), 2, "gives warnAt twice"),
        (("--grid", "warnAt=2.5"), 2, "config warnAt=2.5: "),
        (("--grid", "nowhere.toml"), 2, "nowhere.toml: cannot read"),
        (("--grid", "warnAt=3", "--sort", "mesages"), 2, "did you mean messages?"),
        (("--grid", "warnAt=3", "--sort", "stuck_caught"), 4, "no session is labelled stuck"),
        (("--grid", "warnAt=3", "--label", "good=nobody"), 4, "the labels match no session"),
        (("--grid", "warnAt=3", "--out", "sweep.xlsx"), 2, "must end in .parquet, .csv, .json"),
    ],
)
def test_bad_input_is_one_line_and_its_code(
    labelled: tuple[Path, Truth], arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = breaker("sweep", labelled[0], *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_empty_folder_and_a_missing_one(tmp_path: Path) -> None:
    assert breaker("sweep", tmp_path, "--grid", "warnAt=3").returncode == 4
    assert breaker("sweep", tmp_path / "x", "--grid", "warnAt=3").returncode == 2


def test_lint_fails_on_what_it_is_asked_to(labelled: tuple[Path, Truth]) -> None:
    settings = ("--set", "warnAt=8", "--set", "summarizeAt=12")
    assert breaker("lint", *settings).returncode == 0
    assert breaker("lint", *settings, "--fail-on", "warning").returncode == 1
    assert breaker("lint", *settings, "--fail-on", "error").returncode == 0
    shown = document("lint", labelled[0], *settings)
    assert violations("lint", shown) == []
    assert shown["dead_by_kind"] == {"summarize": ["exact", "cmd", "net", "sink"]}
    assert any(finding["reached"] == 0 for finding in shown["findings"])


def test_explain_by_id_among_paths(labelled: tuple[Path, Truth]) -> None:
    stuck = next(one for one in labelled[1].sessions if one.label == "stuck")
    shown = document("explain", stuck.id, labelled[0])
    assert violations("explain", shown) == []
    assert shown["why"]
    assert shown["remedies"]
    text = breaker("explain", stuck.id, labelled[0])
    assert (text.returncode, text.stderr) == (0, "")
    assert "what alone would have avoided" in text.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--call", "9999"), "no call 9999: the session has"), (("--call", "1", "--seq", "2"), "give one of")],
)
def test_a_call_that_is_not_there(labelled: tuple[Path, Truth], arguments: tuple[str, ...], message: str) -> None:
    done = breaker("explain", labelled[1].sessions[0].id, labelled[0], *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_label_suggest_prints_proposals_only(labelled: tuple[Path, Truth]) -> None:
    done = breaker("label", "suggest", labelled[0], "--format", "csv")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "session,label,reason"
    assert all(line.startswith("# session-") for line in lines[1:])
    assert violations("label-suggest", document("label", "suggest", labelled[0])) == []
