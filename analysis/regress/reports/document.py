"""A check as one JSON document."""

from __future__ import annotations

import json

from analysis.documents import JsonObject, head
from analysis.regress import Finding, LimitResult, Origin, Place, SessionResult, Verdict, Waiver, exact_text

__all__ = ["check_document", "render_json"]


def render_json(verdict: Verdict) -> str:
    """Return the document as text, in ASCII."""
    return json.dumps(check_document(verdict), indent=2) + "\n"


def check_document(verdict: Verdict) -> JsonObject:
    """Return a verdict as plain data."""
    scope = verdict.scope
    return {
        **head("check", verdict.plan.replay, verdict.corpus),
        "outcome": verdict.outcome,
        "config": verdict.config_name,
        "today": verdict.today.isoformat(),
        "baseline": verdict.baseline,
        "scope": None
        if scope is None
        else {
            "changed_since": scope.revision,
            "replayed": scope.replayed,
            "known": scope.known,
            "everything": scope.everything or None,
        },
        "failures": len(verdict.failures),
        "shortages": [{"kind": one.kind, "message": one.message} for one in verdict.shortages],
        "findings": [_finding(finding) for finding in verdict.findings],
        "limits": [_limit(result) for result in verdict.limits],
        "waivers": [
            {**_waiver(result.waiver), "covered": result.covered, "expired": result.expired}
            for result in verdict.waivers
        ],
        "sessions": [_session(result) for result in verdict.sessions],
        "notes": list(verdict.notes),
    }


def _limit(result: LimitResult) -> JsonObject:
    limit = result.limit
    return {
        "name": limit.name,
        "bound": limit.bound,
        "limit": exact_text(limit.value),
        "written": limit.written,
        "measured": None if result.measured is None else exact_text(result.measured),
        "holds": result.holds,
        "why": result.why or None,
        "origin": _origin(limit.origin),
    }


def _finding(finding: Finding) -> JsonObject:
    return {
        "rule": finding.rule,
        "subject": finding.subject,
        "message": finding.message,
        "session": finding.session,
        "path": finding.path,
        "origin": None if finding.origin is None else _origin(finding.origin),
        "fails": finding.fails,
        "waiver": None if finding.waiver is None else _waiver(finding.waiver),
        "places": [_place(place) for place in finding.places],
        "places_untold": finding.places_untold,
    }


def _place(place: Place) -> JsonObject:
    return {
        "session": place.session,
        "path": place.path,
        "call": place.call,
        "seq": place.seq,
        "turn": place.turn,
        "tool": place.tool,
        "stage": place.stage,
        "measure": place.measure,
        "count": place.count,
        "threshold": place.threshold,
        "decision": place.decision,
        "explain": place.explain,
    }


def _waiver(waiver: Waiver) -> JsonObject:
    return {
        "session": waiver.session,
        "measure": waiver.measure,
        "stage": waiver.stage,
        "reason": waiver.reason,
        "expires": waiver.expires.isoformat(),
        "origin": _origin(waiver.origin),
    }


def _session(result: SessionResult) -> JsonObject:
    row = result.row
    return {
        "id": row.session_id,
        "path": row.path,
        "label": row.label,
        "read": row.read,
        "calls": row.replay.calls,
        "events": len(row.replay.events),
        "held_to": list(result.held_to),
        "fails": result.fails,
    }


def _origin(origin: Origin) -> JsonObject:
    return {"file": origin.file, "line": origin.line}
