"""Reports of a check: each a pure rendering of one verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from analysis.regress import Verdict
from analysis.regress.reports.document import check_document, render_json
from analysis.regress.reports.github import render_github
from analysis.regress.reports.junit import render_junit
from analysis.regress.reports.markdown import render_markdown
from analysis.regress.reports.sarif import render_sarif
from analysis.regress.reports.terminal import render_terminal

__all__ = [
    "DOCUMENTS",
    "REPORTS",
    "check_document",
    "render_github",
    "render_json",
    "render_junit",
    "render_markdown",
    "render_sarif",
    "render_terminal",
]

REPORTS: Mapping[str, Callable[[Verdict], str]] = {
    "terminal": render_terminal,
    "json": render_json,
    "junit": render_junit,
    "sarif": render_sarif,
    "github": render_github,
    "markdown": render_markdown,
}
"""What renders each format."""

DOCUMENTS = frozenset({"json", "junit", "sarif"})
"""Formats that are one document: nothing else can stand in the same stream."""
