"""Nothing out of a log acts in any output: it is shown, or carried as data, and nothing obeys it."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as parquet
import pytest

from analysis.globs import literal_glob, session_matches
from analysis.spreadsheet import csv_line, literal_cell
from analysis.text import plain
from tests.cli.commands import Ran, breaker, json_lines
from tests.cli.hostile import FORMULAS, NAME, TEXT, acting, write_hostile

_PARQUET: Any = parquet
LOUD = ("--set", "warnAt=2")
SIDES = ("--a", "warnAt=2", "--b", "warnAt=9", "--detector", "fail-guard")
STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")

TERMINAL = {
    "replay": ("replay", *LOUD, "--events", "--messages", "--top", "0", "--detector", "fail-guard"),
    "doctor": ("doctor",),
    "compare": ("compare", *SIDES),
    "sweep": ("sweep", "--grid", "warnAt=2,3"),
    "histogram": ("histogram",),
    "label": ("label", "suggest"),
}
DOCUMENTS = {
    "replay": ("replay", *LOUD, "--events", "--messages", "--format", "json"),
    "lines": ("replay", *LOUD, "--format", "jsonl"),
    "doctor": ("doctor", "--format", "json"),
    "compare": ("compare", *SIDES, "--format", "json"),
    "sweep": ("sweep", "--grid", "warnAt=2,3", "--format", "json"),
    "histogram": ("histogram", "--format", "json"),
    "report": ("report", "--format", "json", "--privacy", "full"),
    "label": ("label", "suggest", "--format", "json"),
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of sessions that try to act."""
    return write_hostile(tmp_path_factory.mktemp("hostile"))


def run(hostile: Path, arguments: tuple[str, ...]) -> Ran:
    """Run a verb over the sessions; its paths come after the verb, and after the second word of a verb of two."""
    words = 2 if arguments[0] == "label" else 1
    return breaker(*arguments[:words], hostile, *arguments[words:])


@pytest.mark.parametrize("arguments", TERMINAL.values(), ids=TERMINAL)
def test_a_terminal_shows_it_and_obeys_nothing(hostile: Path, arguments: tuple[str, ...]) -> None:
    done = run(hostile, arguments)
    assert done.returncode in {0, 1}
    assert done.stderr == ""
    assert acting(done.stdout) == {"\n"}
    if arguments[0] in {"replay", "compare", "doctor"}:
        assert r"\x1b[2J" in done.stdout or r"\x1b[31m[red]" in done.stdout


def test_an_explanation_shows_it_and_obeys_nothing(hostile: Path) -> None:
    log = hostile / "--p--" / NAME / "session.v4.jsonl"
    done = breaker("explain", log, *LOUD)
    assert (done.returncode, done.stderr) == (0, "")
    assert acting(done.stdout) == {"\n"}
    document = json.loads(breaker("explain", log, *LOUD, "--format", "json").stdout)
    assert any(TEXT in text for text in strings(document))


@pytest.mark.parametrize("arguments", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_document_is_json_in_ascii_and_keeps_the_text(hostile: Path, arguments: tuple[str, ...]) -> None:
    done = run(hostile, arguments)
    assert done.returncode in {0, 1}
    assert done.stdout.isascii()
    assert acting(done.stdout) == {"\n"}
    values = json_lines(done.stdout) if "jsonl" in arguments else [json.loads(done.stdout)]
    assert values
    if arguments[0] == "replay":
        assert any(TEXT in text for text in strings(values))


def strings(value: Any) -> list[str]:
    """Return every text in a document."""
    if isinstance(value, str):
        return [value]
    inner: list[Any] = []
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        inner = [*members.keys(), *members.values()]
    elif isinstance(value, list):
        inner = cast("list[Any]", value)
    return [text for one in inner for text in strings(one)]


def test_an_error_is_one_line_that_obeys_nothing(hostile: Path) -> None:
    for arguments in (
        ("explain", TEXT.replace("\x00", ""), hostile),
        ("replay", hostile / NAME),
        ("replay", hostile, "--set", f"{TEXT}=x"),
        ("replay", hostile, "--ruleset", TEXT),
        ("replay", hostile, "--detector", TEXT),
        ("compare", hostile, "--a", TEXT, "--b", "warnAt=3"),
        ("sweep", hostile, "--grid", f"{TEXT}=3"),
        ("replay", hostile, "--max-line", TEXT),
    ):
        done = breaker(*arguments)
        assert done.stderr.startswith("breaker: ")
        assert acting(done.stderr) == {"\n"}
        assert "Traceback" not in done.stderr


def test_a_markdown_table_has_the_cells_it_says_and_no_link(hostile: Path) -> None:
    text = breaker("compare", hostile, *SIDES, "--format", "markdown").stdout
    assert acting(text) == {"\n"}
    bare = re.sub(r"\\[\\`*_{}\[\]<>|~&]", "", text)
    assert "](" not in bare
    assert "<script" not in bare
    assert "`" not in bare
    cells = 0
    for line in bare.split("\n"):
        if line.startswith("|"):
            cells = cells or line.count("|")
            assert line.count("|") == cells
        else:
            cells = 0


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.shown = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.shown += data


def test_a_page_runs_and_loads_nothing(hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = breaker("report", hostile, "--out", out, "--privacy", "full", *LOUD)
    assert (done.returncode, done.stderr) == (0, "")
    text = out.read_text(encoding="utf-8")
    page = _Tags()
    page.feed(text)
    assert page.tags.isdisjoint({"script", "iframe", "object", "embed", "form", "base"})
    assert [name for name, _ in page.attributes if name.startswith("on")] == []
    sources = [value or "" for name, value in page.attributes if name in {"src", "href", "action", "srcset"}]
    assert [source for source in sources if not source.startswith(("data:", "#"))] == []
    assert acting(text) <= {"\n", "\xad"}
    assert r"\x1b[2J" in page.shown
    assert "[bold red]x" in page.shown


@pytest.mark.parametrize("privacy", ["full", "shape"])
def test_no_cell_of_a_csv_is_a_formula(hostile: Path, tmp_path: Path, privacy: str) -> None:
    done = breaker("export", hostile, "--out", tmp_path / "o", "--format", "csv", "--privacy", privacy)
    assert done.returncode == 0
    shown: set[str] = set()
    for path in sorted((tmp_path / "o").glob("*.csv")):
        text = path.read_bytes().decode()
        assert acting(text) == {"\n"}
        head, *rows = csv.reader(io.StringIO(text, newline=""))
        assert {len(row) for row in rows} <= {len(head)}
        texts = [cell for row in rows for cell in row if not re.fullmatch(r"-?[0-9.]+(e[+-]?[0-9]+)?", cell)]
        assert [cell for cell in texts if cell.startswith(STARTS_A_FORMULA)] == []
        shown.update(texts)
    if privacy == "full":
        assert {"'=1+1", "'+1", "'-1", "'@SUM(1)", r"\t=1", r"\r=1"} <= shown


def test_other_exports_carry_the_text_as_data(hostile: Path, tmp_path: Path) -> None:
    for file_format in ("parquet", "ndjson"):
        out = tmp_path / file_format
        done = breaker("export", hostile, "--out", out, "--format", file_format, "--privacy", "full")
        assert (done.returncode, done.stderr) == (0, "")
    tools = set(_PARQUET.read_table(tmp_path / "parquet" / "calls.parquet").column("tool").to_pylist())
    lines = (tmp_path / "ndjson" / "calls.ndjson").read_bytes()
    assert acting(lines.decode()) == {"\n"}
    assert {row["tool"] for row in json_lines(lines.decode())} == tools
    assert set(FORMULAS) <= tools
    assert f"=t {TEXT}".replace("\ud800", r"\ud800") in tools


def test_a_sweep_as_csv_runs_nothing(hostile: Path) -> None:
    done = breaker("sweep", hostile, "--grid", "warnAt=2,3", "--format", "csv")
    assert acting(done.stdout) == {"\n"}
    _, *rows = csv.reader(io.StringIO(done.stdout))
    assert [cell for row in rows for cell in row if cell.startswith(("=", "+", "@"))] == []


def test_proposed_labels_match_their_sessions_and_run_nothing(hostile: Path) -> None:
    done = breaker("label", "suggest", hostile, "--format", "csv")
    assert acting(done.stdout) == {"\n"}
    _, *rows = csv.reader(io.StringIO(done.stdout.replace("# ", "", done.stdout.count("# "))))
    assert len(rows) == len(FORMULAS)
    assert [row[0] for row in rows if row[0].startswith(STARTS_A_FORMULA)] == []
    assert all(any(session_matches(row[0], formula, "") for formula in FORMULAS) for row in rows)


@pytest.mark.parametrize("text", [*FORMULAS, TEXT, "[a]*?", "]", "", "＝1"])
def test_a_glob_of_a_text_matches_it_and_can_be_shown(text: str) -> None:
    glob = literal_glob(text)
    assert session_matches(glob, text, "") or not text
    assert plain(glob) == glob
    assert literal_cell(glob) == glob


def test_a_csv_line_can_be_read_back() -> None:
    line = csv_line(["=1", "-1", -1, 0.5, None, True, 'a"b,c', "a\r\nb", "＝1", "x"])
    assert list(csv.reader([line])) == [["'=1", "'-1", "-1", "0.5", "", "True", 'a"b,c', r"a\r\nb", "'＝1", "x"]]
    assert line.endswith(",x\n")


@pytest.mark.parametrize("output", ["terminal", "markdown", "junit", "sarif", "github", "json"])
def test_a_check_shows_it_and_obeys_nothing(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    config = tmp_path / "breaker.toml"
    given = json.dumps(str(hostile))
    config.write_text(
        f"[check]\nsessions = [{given}]\n[check.limits]\nwarn = 0\n[settings]\nwarnAt = 2\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    done = breaker("check", "--report", output)
    assert done.returncode in {1, 3}
    assert "Traceback" not in done.stderr
    assert acting(done.stdout) <= {"\n"}
    if output == "junit":
        ElementTree.fromstring(done.stdout)
    elif output in {"sarif", "json"}:
        json.loads(done.stdout)
    elif output == "github":
        commands = [line for line in done.stdout.split("\n") if line.startswith("::")]
        assert commands
        assert {line.split(" ")[0] for line in commands} <= {"::error", "::warning", "::notice"}
