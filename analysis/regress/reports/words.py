"""Words the reports share."""

from __future__ import annotations

from analysis.regress import Finding, LimitResult, Place, Verdict, exact_text
from analysis.regress._check import Outcome
from analysis.text import counted, plain

__all__ = ["OUTCOMES", "counts_line", "finding_title", "limit_line", "place_line", "with_origin"]

OUTCOMES: dict[Outcome, str] = {
    "passed": "passed",
    "failed": "FAILED",
    "unreadable": "UNREADABLE",
    "not-enough": "NOT ENOUGH TO TELL",
}


def finding_title(finding: Finding) -> str:
    """Return what a finding is about, in a few words."""
    return plain(f"{finding.rule}: {finding.subject}")


def with_origin(finding: Finding) -> str:
    """Return a finding's cause with the line that asks for it."""
    origin = f" ({finding.origin})" if finding.origin is not None else ""
    return plain(finding.message + origin)


def place_line(place: Place) -> str:
    """Return a place as one line: session, call, stage, measure, count, threshold."""
    words = [place.session]
    if place.call is not None:
        words.append(f"call {place.call}")
    if place.turn is not None:
        words.append(f"turn {place.turn}")
    if place.stage is not None:
        words.append(place.stage)
    if place.measure is not None:
        words.append(place.measure)
    if place.count is not None:
        words.append(f"{place.count}/{place.threshold:g}" if place.threshold is not None else str(place.count))
    if place.decision is not None:
        words.append(f"({place.decision})")
    return plain(" ".join(words))


def limit_line(result: LimitResult) -> str:
    """Return a limit and what was measured."""
    relation = "at most" if result.limit.bound == "most" else "at least"
    line = f"{result.limit.name} {exact_text(result.measured)}, {relation} {result.limit.written}"
    return plain(f"{line}: not checked, {result.why}" if result.why else line)


def counts_line(verdict: Verdict) -> str:
    """Return what was looked at, in one line."""
    held = sum(result.holds is True for result in verdict.limits)
    parts = [counted(len(verdict.corpus.sessions), "session")]
    if verdict.scope is not None:
        scope = verdict.scope
        parts.append(
            f"all of them, because {scope.everything}"
            if scope.everything
            else f"those of {scope.known} that changed since {scope.revision}"
        )
    if verdict.limits:
        parts.append(f"{held} of {counted(len(verdict.limits), 'limit holds', 'limits hold')}")
    if verdict.config.expectations:
        failed = {one.session for one in verdict.failures if one.rule.startswith("expectation/")}
        parts.append(f"{counted(len(failed), 'session')} not as expected")
    parts.append(f"baseline {verdict.baseline}" if verdict.baseline is not None else "no baseline")
    waived = sum(result.covered for result in verdict.waivers)
    if verdict.waivers:
        parts.append(f"{counted(len(verdict.waivers), 'waiver covers', 'waivers cover')} {waived}")
    return plain(" · ".join(parts))
