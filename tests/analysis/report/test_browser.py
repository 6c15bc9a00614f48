"""The page in a real browser: nothing to fetch, nothing to complain about, nothing to scroll sideways."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from analysis.report import render_page
from analysis.synth import write_corpus
from tests.analysis.logs import LogWriter
from tests.analysis.report.pages import report_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
WIDTHS = (1280, 390)
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")

_CONTRASTS = """() => {
  const rgb = (text) => text.match(/[0-9.]+/g).slice(0, 3).map(Number);
  const light = (colour) => {
    const [r, g, b] = colour.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = (node) => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if (!colour.endsWith(", 0)")) return rgb(colour);
    }
    return [255, 255, 255];
  };
  const found = [];
  const shown = "p, h1, h2, h3, td, th, span, b, dt, dd, a, summary, figcaption, text";
  for (const node of document.querySelectorAll(shown)) {
    if (!node.textContent.trim()) continue;
    const style = getComputedStyle(node);
    const ink = light(rgb(node.tagName === "text" ? style.fill : style.color));
    const ground = light(paper(node));
    const contrast = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    if (contrast < 4.5) found.push(`${node.tagName} ${node.textContent.trim().slice(0, 40)} ${contrast.toFixed(2)}`);
  }
  return found;
}"""


_CUT_WORDS = """() => [...document.querySelectorAll("figure svg")].flatMap((picture) => {
  const frame = picture.getBoundingClientRect();
  return [...picture.querySelectorAll("text")].filter((word) => {
    const box = word.getBoundingClientRect();
    return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
      || box.bottom > frame.bottom + 1;
  }).map((word) => word.textContent);
})"""


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    from playwright.sync_api import sync_playwright

    assert CHROMIUM.exists(), "the browser tests need Debian's package chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus, out = tmp_path_factory.mktemp("demo"), tmp_path_factory.mktemp("out")
    write_corpus(corpus, "demo")
    page = out / "report.html"
    page.write_text(render_page(report_of(corpus, labels=["good=session-3*"])), encoding="utf-8")
    return page


def check(browser: Browser, file: Path, width: int, scheme: Scheme) -> None:
    """Open a page and hold what every report promises."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    try:
        page: Page = context.new_page()
        told: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("dialog", lambda dialog: told.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        assert told == []
        assert [url for url in asked if not url.startswith("data:")] == [file.as_uri()]
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        nameless = "[...document.querySelectorAll('figure svg')].filter((one) => !one.querySelector('title, desc'))"
        assert page.evaluate(f"{nameless}.length") == 0
        figures = page.get_by_role("img")
        assert figures.count() == page.locator("figure").count() > 0
        cut = "[...document.querySelectorAll('figure')].filter((one) => one.scrollWidth > one.clientWidth + 1).length"
        assert page.evaluate(cut) == 0
        assert page.evaluate(_CUT_WORDS) == []
        assert page.evaluate(_CONTRASTS) == []
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 28)"}[scheme]
    finally:
        context.close()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_report_of_the_demo_reads_well(browser: Browser, demo: Path, width: int, scheme: Scheme) -> None:
    check(browser, demo, width, scheme)


@pytest.mark.shared
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_report_of_recorded_sessions_reads_well(
    browser: Browser, shared: Path, tmp_path: Path, width: int, scheme: Scheme
) -> None:
    file = tmp_path / "report.html"
    file.write_text(render_page(report_of(shared / "corpus" / "recorded")), encoding="utf-8")
    check(browser, file, width, scheme)


def test_markup_and_long_words_of_a_log_show_as_text(browser: Browser, tmp_path: Path) -> None:
    command = "echo <script>alert(1)</script> \x1b[31m[bold] " + "x" * 3000
    log = LogWriter("<img src=x onerror=alert(1)>" + "y" * 300, cwd="z" * 500)
    log.user()
    for _ in range(6):
        log.bash(command, "[exit code: 1]")
    log.write(tmp_path, folder="w" * 200)
    file = tmp_path / "report.html"
    file.write_text(render_page(report_of(tmp_path)), encoding="utf-8")
    for width in WIDTHS:
        check(browser, file, width, "light")
    page = browser.new_page()
    page.goto(file.as_uri())
    assert page.locator("script, img").count() == 0
    shown = page.locator("main").inner_text()
    assert r"<script>alert(1)</script> \x1b[31m[bold]" in shown
    page.close()


def test_a_session_of_many_turns_reads_well(browser: Browser, tmp_path: Path) -> None:
    log = LogWriter()
    for turn in range(30):
        log.user()
        log.says("hm" if turn > 15 else "a line that says in so many words what is to be done next")
        for _ in range(40):
            log.bash(f"make {turn}", "[exit code: 1]" if turn > 15 else "done")
    log.write(tmp_path)
    file = tmp_path / "report.html"
    file.write_text(render_page(report_of(tmp_path)), encoding="utf-8")
    for width in WIDTHS:
        check(browser, file, width, "light")


def test_a_report_of_nothing_reads_well(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    (tmp_path / "none").mkdir()
    file.write_text(render_page(report_of(tmp_path / "none")), encoding="utf-8")
    check(browser, file, 390, "dark")


def test_the_page_prints_in_ink_on_paper_with_its_tables_open(browser: Browser, demo: Path) -> None:
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(demo.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("nav").is_hidden()
    assert page.locator("details table").first.is_visible()
    context.close()
