"""Tables on narrow terminals: numbers and keys stay whole, what does not fit is left out and named."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
from rich.cells import cell_len

from analysis.progress import Progress
from analysis.synth import write_corpus
from cli.console import terminal_width
from cli.progress import byte_progress
from cli.tables import print_rows
from tests.cli.commands import breaker

WIDTHS = (60, 80, 120, 200)
GRIDS = (
    ["warnAt=6..7"],
    ["warnAt=6..7", "limits.host=9,null"],
    ["warnAt=6", "limits.host=9,null", "limits.exact=9", "failWarnAt=3", "summarizeAt=11"],
)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> list[str | Path]:
    """Return a corpus and the options that label it."""
    folder = tmp_path_factory.mktemp("labelled")
    truth = write_corpus(folder / "corpus", "labelled", sessions=10)
    labels = folder / "labels.csv"
    labels.write_text("".join(f"{one.id},{one.label},planted\n" for one in truth.sessions))
    return [folder / "corpus", "--labels", labels]


def tables(text: str) -> list[list[str]]:
    """Return the tables in an output, each as its lines from the heads on."""
    found: list[list[str]] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.strip() and not line.strip(" ─"):
            first = next(at for at in range(number, -1, -1) if at == 0 or not lines[at - 1].strip())
            last = next(at for at in range(number, len(lines)) if not lines[at].strip())
            found.append(lines[first:last])
    return found


def rows_of(table: Sequence[str]) -> list[list[str]]:
    rule = next(number for number, line in enumerate(table) if not line.strip(" ─"))
    return [line.split() for line in table[rule + 1 :]]


def test_columns_tells_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, width in (("64", 64), ("", 120), ("wide", 120), ("0", 120), ("-5", 120)):
        monkeypatch.setenv("COLUMNS", given)
        assert terminal_width() == width
    monkeypatch.delenv("COLUMNS")
    assert terminal_width() == 120  # standard output is no terminal here


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("grid", GRIDS, ids=len)
def test_a_sweep_breaks_no_number_and_no_key(
    labelled: list[str | Path], grid: list[str], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes = [argument for axis in grid for argument in ("--grid", axis)]
    keys = [axis.partition("=")[0] for axis in grid]
    monkeypatch.setenv("COLUMNS", str(width))
    text = breaker("sweep", *labelled, *axes).stdout
    shown = text.partition("by measure kind")[0]
    whole = list(csv.DictReader(StringIO(breaker("sweep", *labelled, *axes, "--format", "csv").stdout)))
    assert max(map(cell_len, shown.splitlines())) <= width
    for key in keys:
        assert re.search(rf"(?m)(^| ){re.escape(key)}( |$)", shown)
    if len(grid) == 5 and width < 120:
        assert "left out" not in shown
        points = re.findall(r"(?m)^\*  ?warnAt 6|^[* ] warnAt 6", shown)
        assert len(points) == len(whole)
        stacked = re.split(r" · |\n", shown)
        for row in whole:
            assert f"    msgs {row['messages']}" in stacked
            assert f"lead tokens {float(row['lead_tokens_median']):.6g}" in [one.strip() for one in stacked]
        return
    (table, *_) = tables(shown)
    rows = rows_of(table)
    assert len(rows) == len(whole)
    for row, numbers in zip(rows, whole, strict=True):
        values = [cell for cell in row if cell != "*"]
        assert values[len(keys)] == numbers["messages"]
        for name in ("false_rejections", "good_touched", "stuck_caught"):
            assert numbers[name] in values[len(keys) :]
    assert ("left out, as the terminal is narrow: " in shown) == (width < 120 or (len(grid) > 1 and width < 200))


def test_a_sweep_leaves_out_in_order_and_says_so(labelled: list[str | Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = " ".join(breaker("sweep", *labelled, "--grid", "warnAt=6..7").stdout.split())
    assert "left out, as the terminal is narrow: asks, in sess., lead min, lead tokens; --format csv or json" in text
    assert "lead calls: median" in text
    assert "lead tokens:" not in text


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120])
def test_a_replay_shows_whole_columns(labelled: list[str | Path], width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    whole = tables(breaker("replay", *labelled, "--top", "0").stdout)
    monkeypatch.setenv("COLUMNS", str(width))
    text = breaker("replay", *labelled, "--top", "0").stdout
    sessions, kinds, *_ = tables(text)
    assert max(map(cell_len, (*sessions, *kinds))) <= width
    words = " ".join(sessions[:2])
    assert "…" not in words
    assert {"calls", "failed", "gate", "held"} <= set(words.split())
    for row, full in zip(rows_of(sessions), rows_of(whole[0]), strict=True):
        counts = row[1:] if row[1].isdecimal() else row[2:]
        assert counts[:2] == full[2:4]
        assert row[0][-4:] == full[0][-4:]
    assert rows_of(kinds) == rows_of(whole[1])
    assert len([line for line in kinds if line.strip(" ─")]) == 1 + len(rows_of(kinds))
    assert ("summarize" in kinds[0]) == (width >= 90)
    told = " ".join(text.split())
    for heading, meaning in (("peak", "highest count"), ("streak", "longest run")):
        assert (f"{heading}: {meaning}" in told) == (heading in words.split())
    if width < 90:
        assert re.search("left out, as the terminal is narrow: .*peak; --format json has all", told)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(
    "command",
    [
        ["compare", "--a", "breaker", "--b", "fail-guard", "--detector", "reminder"],
        ["sweep", "--grid", "warnAt=6..7", "--intervals", "--cv", "2"],
        ["histogram"],
    ],
    ids=lambda command: command[0],
)
def test_other_tables_fit_and_keep_their_numbers(
    labelled: list[str | Path], command: list[str], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = tables(breaker(command[0], *labelled, *command[1:]).stdout)
    monkeypatch.setenv("COLUMNS", "240")
    whole = tables(breaker(command[0], *labelled, *command[1:]).stdout)
    assert len(shown) == len(whole) > 1
    for table, full in zip(shown, whole, strict=True):
        assert max(map(cell_len, table)) <= width
        numbers = {cell for row in rows_of(full) for cell in row if re.fullmatch(r"[-+#]?[\d.]+(e[+]\d+)?", cell)}
        given = {cell for row in rows_of(table) for cell in row if re.fullmatch(r"[-+#]?[\d.]+(e[+]\d+)?", cell)}
        assert given <= numbers
    if command[0] == "sweep":
        names = {row[0] for row in rows_of(shown[2])}
        assert {"sessions_with_false_rejection", "lead_tokens_median"} <= names


@pytest.mark.parametrize("width", [60, 80])
def test_an_explanation_cuts_measures_and_keeps_counts(demo: Path, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    name = next(path.name for path in sorted(demo.glob("*/session-*")))
    (table,) = tables(breaker("explain", name, demo).stdout)
    assert max(map(cell_len, table)) <= width
    assert all(re.search(r" \d+ +(\d+|·) +(\d+|·) +\d+", line) for line in table[2:])


def test_what_must_stay_is_whole_on_any_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    left_out = print_rows(
        ("key", "a", "b"), [("limits.host", "123456789", "987654321")], numbers_from=1, first_out=[("b",)]
    )
    assert left_out == ["b"]
    assert capsys.readouterr().out.splitlines()[3].split() == ["limits.host", "123456789"]


def test_headings_are_stacked_before_a_column_goes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "22")
    row = ("5", "6", "7")
    assert print_rows(("good touched", "in all", "x"), [row], numbers_from=0, first_out=[("x",)]) == []
    shown = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert shown[0] == ["good", "in"]
    assert shown[1] == ["touched", "all", "x"]
    assert shown[3] == ["5", "6", "7"]


class _Terminal:
    """A standard error that is a terminal and keeps what is written."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_progress_bar_is_one_line(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for name, value in (("COLUMNS", str(width)), ("TERM", "xterm"), ("LINES", "20")):
        monkeypatch.setenv(name, value)
    with byte_progress("reading sessions") as progress:
        draw(progress)
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.text)
    lines = [line.strip() for line in re.split(r"[\r\n]+", drawn) if line.strip()]
    assert lines
    assert max(map(cell_len, lines)) <= width
    assert all(line.startswith("reading sessions") and "MB" in line for line in lines)
    assert any("?" in line or "/s" in line for line in lines) == (width >= 90)


def draw(progress: Progress) -> None:
    progress.start(987_654_321)
    progress.advance(123_456_789)
