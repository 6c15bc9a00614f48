"""The page: self-contained, every figure with a text alternative, and nothing from a log acts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from analysis.replay import ReplayPlan
from analysis.report import render_page
from analysis.synth import write_corpus
from analysis.tables import PRIVACIES, PrivacyMode
from breaker import Settings
from tests.analysis.logs import LogWriter
from tests.analysis.report.pages import Page, report_of

SCRIPT = "<script>alert(1)</script>"
ESCAPES = "\x1b[31mred\x1b[0m [bold]loud[/bold]"
FAILED = "[exit code: 1]"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> str:
    corpus = tmp_path_factory.mktemp("demo")
    write_corpus(corpus, "demo")
    return render_page(report_of(corpus, labels=["good=session-3*"]))


def hostile(root: Path) -> Path:
    """Write a session that puts markup and escapes into every text a page shows."""
    log = LogWriter(f"id {SCRIPT}", cwd=SCRIPT)
    log.user()
    for command in (f"echo '{SCRIPT}'", f"echo '{ESCAPES}'"):
        for _ in range(4):
            log.bash(command, FAILED)
    log.call(name=f"tool{SCRIPT}", arguments=json.dumps({"\ud800": SCRIPT}))
    log.result(log.next - 1, "", is_error=True, error={"code": SCRIPT})
    log.write(root, folder="</title><script>alert(2)")
    return root


def test_a_page_stands_alone_without_scripts(demo: str) -> None:
    page = Page(demo)
    assert page.elements["html"] == page.elements["main"] == page.elements["h1"] == 1
    assert page.elements["script"] == page.elements["img"] == page.elements["iframe"] == page.elements["object"] == 0
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    links = [value for _, name, value in page.attributes if name in {"href", "src", "xlink:href"}]
    assert [link for link in links if not link.startswith(("#", "data:"))] == []
    assert "@import" not in demo
    assert re.findall(r"url\((?!#)", demo) == []


def test_ids_are_unique_and_links_lead_somewhere(demo: str) -> None:
    page = Page(demo)
    assert [name for name, count in page.ids.items() if count > 1] == []
    links = {value[1:] for _, name, value in page.attributes if name in {"href", "xlink:href"} and value[0] == "#"}
    labelled = {one for _, name, value in page.attributes if name == "aria-labelledby" for one in value.split()}
    assert links | labelled <= set(page.ids)


def test_every_figure_has_a_text_alternative_and_a_caption(demo: str) -> None:
    page = Page(demo)
    figures = page.elements["figure"]
    assert figures > 10
    assert page.elements["svg"] == page.elements["figcaption"] == page.elements["desc"] == figures
    assert sum(name == "aria-labelledby" and tag == "svg" for tag, name, _ in page.attributes) == figures
    assert sum(name == "role" and value == "img" for _, name, value in page.attributes) == figures


def test_every_table_can_be_scrolled_by_itself(demo: str) -> None:
    page = Page(demo)
    assert page.elements["table"] == len(re.findall(r'<div class="scroll"', demo))


def test_numbers_come_with_their_integers_and_their_caveat(demo: str) -> None:
    text = " ".join(Page(demo).text.split())
    assert "A replay is open-loop" in text
    assert re.search(
        r"sessions gated ?[0-9.]+\s% ?[0-9]+ of [0-9]+ sessions; 95 % interval [0-9.]+\s% to [0-9.]+\s%", text
    )
    assert "ruleset 0.8" in text
    assert re.search(r"sha256:[0-9a-f]{64}", text)


def test_a_page_is_the_same_every_time(demo: str, tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.bash("make", FAILED)
    log.write(tmp_path)
    assert render_page(report_of(tmp_path)) == render_page(report_of(tmp_path))


@pytest.mark.parametrize("privacy", PRIVACIES)
def test_markup_in_a_log_is_text(tmp_path: Path, privacy: PrivacyMode) -> None:
    data = report_of(hostile(tmp_path), privacy=privacy, warnAt=2)
    text = render_page(data)
    page = Page(text)
    assert page.elements["script"] == 0
    assert "<script" not in text
    text.encode()
    assert (SCRIPT in page.text) is (privacy == "full")


def test_escapes_and_surrogates_are_written_out(tmp_path: Path) -> None:
    text = render_page(report_of(hostile(tmp_path), warnAt=2))
    page = Page(text)
    assert r"\x1b[31mred\x1b[0m [bold]loud[/bold]" in page.text
    assert "\x1b" not in text
    controls = re.findall(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\ud800-\udfff]", text)
    assert controls == []


def test_a_session_of_several_turns_shows_them_as_a_picture(tmp_path: Path) -> None:
    log = LogWriter()
    for result in ("done", FAILED, FAILED):
        log.user()
        log.says("hm")
        log.bash("make", result)
    log.write(tmp_path)
    page = Page(render_page(report_of(tmp_path)))
    assert "Failures and short lines over the session's turns" in page.text
    assert "turn 2: 1 of 1 calls failed, 100.0" in page.text


def test_a_corpus_without_calls_says_so(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    nothing = Page(render_page(report_of(tmp_path / "none")))
    assert "There are no calls here. No session was found" in " ".join(nothing.text.split())
    log = LogWriter()
    log.user()
    log.write(tmp_path)
    silent = Page(render_page(report_of(tmp_path)))
    assert "There are no calls here. The sessions hold none" in " ".join(silent.text.split())


def test_numbers_of_any_size_do_not_break_a_page(tmp_path: Path) -> None:
    log = LogWriter()
    log.user()
    log.says(tokens=2**70)
    log.call("make", turn=2**80, step=2**64)
    log.result(2, FAILED)
    log.write(tmp_path)
    assert Page(render_page(report_of(tmp_path))).elements["article"] == 1


@pytest.mark.parametrize(("privacy", "told"), [("full", True), ("shape", False), ("hash", False), ("counts", False)])
def test_a_limit_for_one_address_is_as_private_as_the_address(tmp_path: Path, privacy: PrivacyMode, told: bool) -> None:
    log = LogWriter()
    log.user()
    log.bash("ls", "ok")
    log.write(tmp_path)
    settings = Settings.from_config({"limits": {"net:a.example/secret-path": 3}})
    page = render_page(report_of(tmp_path, plan=ReplayPlan(settings=settings), privacy=privacy))
    assert ("secret-path" in page) is told


def test_words_stand_apart_and_numbers_go_with_their_nouns(tmp_path: Path, demo: str) -> None:
    assert re.search(r"failure streak and peak\.\s+\d+ more sessions have an event or a failure\.", demo)
    log = LogWriter("alone")
    log.user()
    log.bash("make", FAILED)
    log.write(tmp_path)
    page = render_page(report_of(tmp_path))
    assert "What the guard would have done: 1 session</title>" in page
    assert "1 recorded session with 1 turn and 1 tool call," in page
    assert "1 file: ok 1." in page


@pytest.mark.parametrize("privacy", PRIVACIES)
def test_the_file_of_a_session_is_named_where_it_can_be_told(tmp_path: Path, privacy: PrivacyMode) -> None:
    log = LogWriter("named")
    log.user()
    log.bash("make", FAILED)
    path = log.write(tmp_path)
    page = render_page(report_of(tmp_path, privacy=privacy))
    assert ("<dt>file</dt>" in page) == (f"<code>{path}</code>" in page) == (privacy == "full")
