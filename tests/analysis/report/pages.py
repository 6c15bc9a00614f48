"""Reports of small corpora, and what a page is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from analysis.report import ReportData, build_report
from analysis.tables import PrivacyMode
from tests.analysis.tables.exports import Gathered

VOID = frozenset({"meta", "link", "br"})


def report_of(*paths: Path, privacy: PrivacyMode = "full", top: int = 10, **options: Any) -> ReportData:
    found = Gathered(*paths, privacy=privacy, **options)
    return build_report(found.observation, found.corpus, top=top)


class Page(HTMLParser):
    """A page taken apart: its elements, its ids, its text; raises where elements are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: Counter[str] = Counter()
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
            if name == "id":
                self.ids[value or ""] += 1
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.text += data
