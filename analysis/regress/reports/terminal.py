"""A check for a person at a terminal, as plain text."""

from __future__ import annotations

from analysis.regress import Finding, Verdict
from analysis.regress.reports.words import OUTCOMES, counts_line, finding_title, limit_line, place_line, with_origin
from analysis.text import counted, plain

__all__ = ["render_terminal"]


def render_terminal(verdict: Verdict) -> str:
    """Return the whole check as text: failures with their cause, then what holds, then what it was run with."""
    lines = [f"FAIL  {shortage.kind}: {plain(shortage.message)}" for shortage in verdict.shortages]
    for finding in verdict.findings:
        lines += _finding_lines(finding)
    if lines:
        lines.append("")
    lines += [f"ok    limit {limit_line(result)}" for result in verdict.limits if result.holds]
    lines += [f"note  {plain(note)}" for note in verdict.notes]
    plan = verdict.plan.replay
    lines += [
        counts_line(verdict),
        f"ruleset {plan.ruleset.name} · policy {plan.policy} · settings {plan.settings.digest}",
        f"check {OUTCOMES[verdict.outcome]}" + (f": {_failed(verdict)}" if verdict.failures else ""),
    ]
    return "\n".join(lines) + "\n"


def _failed(verdict: Verdict) -> str:
    number = len(verdict.failures)
    return f"{number} {'failure' if number == 1 else 'failures'}"


def _finding_lines(finding: Finding) -> list[str]:
    mark = "FAIL  " if finding.fails else "waived"
    lines = [f"{mark}{' ' if not finding.fails else ''}{finding_title(finding)}", f"      {with_origin(finding)}"]
    if finding.waiver is not None:
        lines.append(plain(f"      waived until {finding.waiver.expires}: {finding.waiver.reason}"))
    for place in finding.places:
        lines.append(f"      {place_line(place)}")
        lines.append(f"        {plain(place.explain)}")
    if finding.places_untold:
        lines.append(f"      … and {counted(finding.places_untold, 'more session')}")
    return lines
