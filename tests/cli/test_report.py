"""`breaker report` and `breaker histogram`, as a person runs them."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest

from analysis.report import PLOT_FORMATS
from tests.analysis.logs import LogWriter
from tests.analysis.report.pages import Page
from tests.cli.commands import breaker, breaker_process, violations

SCRIPT = "<script>alert(1)</script>"


def hostile(root: Path) -> Path:
    log = LogWriter("id\x1b[31m[bold]")
    log.user()
    for command in (f"echo {SCRIPT}", "echo \x1b[31m[bold]x[/bold]"):
        for _ in range(4):
            log.bash(command, "[exit code: 1]")
    log.write(root, folder="a")
    return root


# The page


def test_a_report_is_one_page(demo: Path, tmp_path: Path) -> None:
    done = breaker("report", demo, "--out", tmp_path / "r.html")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path / 'r.html'}\n", "")
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert page.elements["article"] == 10
    assert breaker("report", demo, "--out", tmp_path / "few.html", "--top", "2").returncode == 0
    assert Page((tmp_path / "few.html").read_text(encoding="utf-8")).elements["article"] == 2


def test_the_page_and_the_document_show_the_same_numbers(demo: Path, tmp_path: Path) -> None:
    breaker("report", demo, "--out", tmp_path / "r.html")
    document = json.loads(breaker("report", demo, "--format", "json").stdout)
    text = " ".join(Page((tmp_path / "r.html").read_text(encoding="utf-8")).text.split())
    for one in document["headlines"]:
        assert f"{one['part']} of {one['whole']} {one['of']}" in text
    for worst in document["worst_sessions"]:
        assert worst["session"] in text
    assert document["settings_hash"] in text


@pytest.mark.parametrize("privacy", ["full", "shape", "hash", "counts"])
def test_the_document_is_as_described(demo: Path, privacy: str) -> None:
    done = breaker("report", demo, "--format", "json", "--privacy", privacy, "--label", "stuck=session-3*")
    assert (done.returncode, done.stderr) == (0, "")
    assert violations("report", json.loads(done.stdout)) == []


@pytest.mark.shared
def test_the_document_of_recorded_sessions_is_as_described(shared: Path) -> None:
    done = breaker("report", shared / "corpus" / "recorded", "--format", "json", "--set", "warnAt=1")
    assert violations("report", json.loads(done.stdout)) == []


def test_a_document_can_go_to_a_file(demo: Path, tmp_path: Path) -> None:
    breaker("report", demo, "--format", "json", "--out", tmp_path / "r.json")
    assert (tmp_path / "r.json").read_text() == breaker("report", demo, "--format", "json").stdout


def test_markup_of_a_log_stays_text_in_page_and_terminal(tmp_path: Path) -> None:
    root = hostile(tmp_path / "corpus")
    breaker("report", root, "--out", tmp_path / "r.html", "--privacy", "full")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.elements["script"] == 0
    assert SCRIPT in page.text
    assert "\\x1b[31m[bold]x[/bold]" in page.text
    assert "\x1b" not in text
    for verb in (["replay", "--events"], ["histogram"]):
        told = breaker(*verb, root).stdout
        assert "\x1b" not in told
    told = breaker("replay", root, "--events", "--format", "table").stdout
    assert SCRIPT in told
    assert r"\x1b[31m[bold]" in told


def test_by_default_no_command_of_a_log_is_in_the_page(tmp_path: Path) -> None:
    root = hostile(tmp_path / "corpus")
    breaker("report", root, "--out", tmp_path / "r.html")
    assert "alert" not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_page_that_stands_is_only_replaced_by_force(tmp_path: Path) -> None:
    root = hostile(tmp_path / "corpus")
    out = tmp_path / "r.html"
    out.write_text("mine")
    assert breaker("report", root, "--out", out).returncode == 2
    assert out.read_text() == "mine"
    assert breaker("report", root, "--out", out, "--force").returncode == 0
    assert out.read_text().startswith("<!doctype html>")


def test_a_report_needs_a_place_outside_the_corpus(tmp_path: Path) -> None:
    root = hostile(tmp_path / "corpus")
    assert breaker("report", root).returncode == 2
    done = breaker("report", root, "--out", root / "r.html")
    assert done.returncode == 2
    assert "lies inside the corpus" in done.stderr
    done = breaker("report", root, "--out", tmp_path)
    assert (done.returncode, done.stderr) == (2, f"breaker: error: {tmp_path}: is a folder\n")


def test_a_corpus_without_calls_gives_a_page_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    done = breaker("report", tmp_path / "none", "--out", tmp_path / "r.html")
    assert done.returncode == 4
    assert "There are no calls here." in (tmp_path / "r.html").read_text(encoding="utf-8")
    again = breaker("report", tmp_path / "none", "--out", tmp_path / "r.html", "--force", "--allow-empty")
    assert (again.returncode, again.stderr) == (0, "")


def test_a_page_can_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = hostile(tmp_path / "corpus")
    out = tmp_path / "r.html"
    opened: list[str] = []

    def browser(url: str) -> bool:
        opened.append(url)
        return len(opened) == 1

    monkeypatch.setattr(webbrowser, "open", browser)
    assert breaker("report", root, "--out", out, "--open").returncode == 0
    assert opened == [out.as_uri()]
    assert breaker("report", root, "--format", "json", "--open").returncode == 2
    done = breaker("report", root, "--out", out, "--open", "--force")
    assert (done.returncode, "no browser to open" in done.stderr) == (0, True)


# Histograms


def test_histograms_are_bars_with_the_thresholds_between(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    for _ in range(4):
        log.bash("make", "[exit code: 1]")
    log.write(tmp_path)
    done = breaker("histogram", tmp_path, "--kind", "cmd", "--set", "warnAt=3", "--set", "summarizeAt=9")
    assert (done.returncode, done.stderr) == (0, "")
    bar = "█" * 60
    assert [line.rstrip() for line in done.stdout.splitlines() if line.strip()][:8] == [
        "cmd: calls by their next count",
        " value   count",
        " ────────────────────────────────────────────────────────────────────────────",
        f"     1       1   {bar}",
        f"     2       1   {bar}",
        "                 ┄┄ warn at 3",
        f"     3       1   {bar}",
        f"     4       1   {bar}",
    ]
    assert "cmd: sessions by their peak" in done.stdout
    assert "cmd: failure streaks by their length" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("settings sha256:")


def test_histograms_are_told_by_label(demo: Path) -> None:
    done = breaker("histogram", demo, "--what", "peak", "--kind", "exact", "--label", "good=session-3*")
    headings = next(line for line in done.stdout.splitlines() if "value" in line).split()
    assert headings == ["value", "good", "unknown", "count"]


def test_bars_are_logarithmic_where_it_helps_or_as_asked(demo: Path) -> None:
    arguments = ("histogram", demo, "--what", "next", "--kind", "exact")
    assert "next count (log)" in breaker(*arguments).stdout
    assert "(log)" not in breaker(*arguments, "--linear").stdout
    peaks = ("histogram", demo, "--what", "peak", "--kind", "host")
    assert "(log)" not in breaker(*peaks).stdout
    assert "(log)" in breaker(*peaks, "--log").stdout


def test_histograms_as_a_document(demo: Path, tmp_path: Path) -> None:
    document = json.loads(breaker("histogram", demo, "--format", "json", "--label", "good=session-3*").stdout)
    assert violations("histogram", document) == []
    calls = next(one for one in document["histograms"] if (one["kind"], one["what"]) == ("exact", "next"))
    report = json.loads(breaker("report", demo, "--format", "json", "--label", "good=session-3*").stdout)
    assert calls in report["histograms"]
    assert report["histograms"] == document["histograms"]


@pytest.mark.parametrize("suffix", PLOT_FORMATS)
def test_histograms_can_be_drawn(tmp_path: Path, suffix: str) -> None:
    demo = hostile(tmp_path / "corpus")
    plot = tmp_path / f"plot.{suffix}"
    assert breaker("histogram", demo, "--plot", plot).returncode == 0
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert plot.read_bytes().startswith(starts[suffix])
    before = plot.read_bytes()
    assert breaker("histogram", demo, "--plot", plot).returncode == 2
    assert breaker("histogram", demo, "--plot", plot, "--force").returncode == 0
    assert plot.read_bytes() == before


def test_wrong_options_of_histogram_are_told(demo: Path, tmp_path: Path) -> None:
    done = breaker("histogram", demo, "--kind", "hots")
    assert (done.returncode, "no measure kind; known: exact, cmd" in done.stderr) == (2, True)
    done = breaker("histogram", demo, "--plot", tmp_path / "plot.gif")
    assert (done.returncode, "must end in .png, .svg or .pdf" in done.stderr) == (2, True)
    assert breaker("histogram", demo, "--plot", demo / "plot.png").returncode == 2


def test_histograms_of_nothing_say_so(tmp_path: Path) -> None:
    done = breaker("histogram", tmp_path)
    assert done.returncode == 4
    assert "no values" in done.stdout
    assert breaker("histogram", tmp_path, "--allow-empty").returncode == 0


def test_the_installed_command_reports(tmp_path: Path) -> None:
    done = breaker_process("report", hostile(tmp_path / "corpus"), "--out", tmp_path / "r.html")
    assert (done.returncode, done.stderr) == (0, "")
