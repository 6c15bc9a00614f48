"""A check as annotations of a GitHub Actions job: workflow commands, one a line."""

from __future__ import annotations

from analysis.regress import Finding, Verdict
from analysis.regress.reports.words import finding_title, place_line, with_origin
from analysis.text import counted, plain

__all__ = ["render_github"]


def render_github(verdict: Verdict) -> str:
    """Return one `::error` for every failure and shortage, one `::notice` for what is waived or of note."""
    lines = [_command("error", "breaker check", one.message) for one in verdict.shortages]
    lines += [_annotation(finding) for finding in verdict.findings]
    lines += [_command("notice", "breaker check", note) for note in verdict.notes]
    return "".join(f"{line}\n" for line in lines)


def _annotation(finding: Finding) -> str:
    text = [with_origin(finding)]
    for place in finding.places:
        text += [place_line(place), plain(place.explain)]
    if finding.places_untold:
        text.append(f"… and {counted(finding.places_untold, 'more session')}")
    level = "error" if finding.fails else "notice"
    origin = finding.origin
    file = origin.file if origin is not None and origin.line is not None else None
    line = origin.line if origin is not None else None
    return _command(level, finding_title(finding), "\n".join(text), file=file, line=line, escaped=True)


def _command(
    level: str, title: str, message: str, *, file: str | None = None, line: int | None = None, escaped: bool = False
) -> str:
    properties = [f"file={_property(file)}", f"line={line}"] if file is not None else []
    properties.append(f"title={_property(title)}")
    return f"::{level} {','.join(properties)}::{_data(message if escaped else plain(message))}"


def _data(text: str) -> str:
    """Write a message so that nothing in it is taken for a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(plain(text)).replace(":", "%3A").replace(",", "%2C")
