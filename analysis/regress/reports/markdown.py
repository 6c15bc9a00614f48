"""A check as Markdown, for a job summary or a comment."""

from __future__ import annotations

import re

from analysis.regress import Finding, Verdict, exact_text
from analysis.regress.reports.words import OUTCOMES, counts_line, place_line, with_origin
from analysis.text import counted, plain

__all__ = ["render_markdown"]

_ACTIVE = re.compile(r"([\\`*_{}\[\]<>()#+!|~&@:])")
_TICKS = re.compile(r"`+")


def render_markdown(verdict: Verdict) -> str:
    """Return a summary: the outcome, the failures with their causes, the limits, what is waived."""
    lines = [f"## breaker check {OUTCOMES[verdict.outcome]}", "", _text(counts_line(verdict)), ""]
    lines += [f"- **{_text(one.kind)}**: {_text(one.message)}" for one in verdict.shortages]
    if verdict.failures:
        lines += ["", "### Failures", ""]
        for finding in verdict.failures:
            lines += _finding(finding)
    if verdict.limits:
        lines += ["", "### Limits", "", "| | limit | measured | bound |", "|---|---|---:|---|"]
        marks = {True: "ok", False: "**over**", None: "not checked"}
        for result in verdict.limits:
            limit = result.limit
            relation = "at most" if limit.bound == "most" else "at least"
            cells = [marks[result.holds], _text(limit.name), exact_text(result.measured)]
            lines.append(f"| {' | '.join(cells)} | {relation} {_text(limit.written)} |")
    waived = [finding for finding in verdict.findings if not finding.fails]
    if verdict.waivers:
        lines += ["", "### Waivers", ""]
        for result in verdict.waivers:
            waiver = result.waiver
            state = "expired" if result.expired else f"covers {result.covered}"
            lines.append(f"- {_text(waiver.subject)} until {waiver.expires}, {state}: {_text(waiver.reason)}")
        lines += [f"  - {_text(with_origin(finding))}" for finding in waived]
    if verdict.notes:
        lines += ["", "### Notes", "", *(f"- {_text(note)}" for note in verdict.notes)]
    plan = verdict.plan.replay
    lines += ["", f"ruleset {plan.ruleset.name}, policy {plan.policy}, settings `{plan.settings.digest}`"]
    return "\n".join(lines) + "\n"


def _finding(finding: Finding) -> list[str]:
    lines = [f"- **{finding.rule}** {_text(finding.subject)}: {_text(with_origin(finding))}"]
    for place in finding.places:
        lines += [f"  - {_text(place_line(place))}", f"    {_code(place.explain)}"]
    if finding.places_untold:
        lines.append(f"  - … and {counted(finding.places_untold, 'more session')}")
    return lines


def _text(text: str) -> str:
    """Return text in which no character means anything to Markdown."""
    return _ACTIVE.sub(r"\\\1", plain(text))


def _code(text: str) -> str:
    visible = plain(text)
    longest = max((len(ticks) for ticks in _TICKS.findall(visible)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {visible} {fence}" if longest else f"`{visible}`"
