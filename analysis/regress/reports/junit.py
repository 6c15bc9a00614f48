"""A check as JUnit XML: one case for every session, limit, waiver and entry of the baseline that has gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from analysis.regress import Finding, Verdict
from analysis.regress.reports.words import finding_title, limit_line, place_line, with_origin
from analysis.text import counted, plain

__all__ = ["render_junit"]

_SUITE = "breaker check"


@dataclass(slots=True)
class _Case:
    group: str
    name: str
    kind: Literal["failure", "error", "skipped", ""] = ""
    title: str = ""
    lines: list[str] = field(default_factory=list[str])


def render_junit(verdict: Verdict) -> str:
    """Return the report as XML."""
    cases = [_Case("breaker.check", one.kind, "error", one.message, [one.message]) for one in verdict.shortages]
    about_limits = {finding.subject: finding for finding in verdict.findings if finding.rule == "limit"}
    told: set[int] = set()
    for result in verdict.limits:
        case = _Case("breaker.limits", result.limit.name)
        finding = about_limits.get(result.limit.name)
        if finding is not None:
            _fail(case, [finding])
            told.add(id(finding))
        elif result.holds is None:
            case.kind, case.title = "skipped", limit_line(result)
        cases.append(case)
    for session in verdict.sessions:
        case = _Case("breaker.sessions", session.row.session_id)
        _fail(case, session.findings)
        told.update(map(id, session.findings))
        cases.append(case)
    for finding in verdict.findings:
        if id(finding) not in told:
            case = _Case(f"breaker.{finding.rule.partition('/')[0]}", finding.subject)
            _fail(case, [finding])
            cases.append(case)
    if not cases:
        cases.append(_Case("breaker.check", "no session changed", "skipped", "nothing had to be replayed"))
    return _xml(cases)


def _fail(case: _Case, findings: Sequence[Finding]) -> None:
    failing = [finding for finding in findings if finding.fails]
    if failing:
        case.kind = "failure"
        case.title = "; ".join(with_origin(finding) for finding in failing)
    for finding in findings:
        waived = "" if finding.fails else " (waived)"
        case.lines.append(f"{finding_title(finding)}{waived}: {with_origin(finding)}")
        for place in finding.places:
            case.lines += [f"  {place_line(place)}", f"    {place.explain}"]
        if finding.places_untold:
            case.lines.append(f"  … and {counted(finding.places_untold, 'more session')}")


def _xml(cases: Sequence[_Case]) -> str:
    counts = {kind: sum(case.kind == kind for case in cases) for kind in ("failure", "error", "skipped")}
    numbers = f'tests="{len(cases)}" failures="{counts["failure"]}" errors="{counts["error"]}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {numbers}>",
        f'  <testsuite name="{_SUITE}" {numbers} skipped="{counts["skipped"]}">',
    ]
    for case in cases:
        opening = f"    <testcase classname={_attribute(case.group)} name={_attribute(case.name)}"
        text = "\n".join(map(plain, case.lines))
        if not case.kind and not text:
            lines.append(f"{opening}/>")
            continue
        lines.append(f"{opening}>")
        if case.kind:
            title = _attribute(case.title)
            kind = f" type={_attribute(case.group)}" if case.kind != "skipped" else ""
            lines.append(f"      <{case.kind} message={title}{kind}>{escape(text)}</{case.kind}>")
        else:
            lines.append(f"      <system-out>{escape(text)}</system-out>")
        lines.append("    </testcase>")
    return "\n".join([*lines, "  </testsuite>", "</testsuites>", ""])


def _attribute(text: str) -> str:
    return quoteattr(plain(text))
