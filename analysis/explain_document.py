"""An explained decision as one JSON document."""

from __future__ import annotations

from analysis.documents import JsonObject, run_head
from analysis.explain import Explanation
from analysis.replay import ReplayEvent

__all__ = ["explain_document"]


def explain_document(explanation: Explanation) -> JsonObject:
    """Return an explanation as a JSON-ready document."""
    plan, session, call = explanation.plan, explanation.session, explanation.call
    decision = explanation.decision
    return {
        **run_head("explain", plan),
        "shell_http_engaged": explanation.shell_http,
        "session": {
            "id": session.header.session_id,
            "path": explanation.path,
            "read": explanation.report.state,
            "turns": session.turns,
            "calls": session.calls,
        },
        "call": {
            "call": call.index,
            "seq": call.seq,
            "turn": call.turn,
            "tool": call.call.name,
            "tracked": explanation.measured.tracked,
            "outcome": call.outcome.kind,
            "decision": None if decision is None else decision.action,
            "stage": explanation.stage,
        },
        "events": [_event(event) for event in explanation.events],
        "why": list(explanation.why),
        "measures": [
            {
                "measure": state.measure,
                "kind": state.kind,
                "rank": state.rank,
                "count": state.count,
                "cap": state.cap,
                "streak": state.streak,
                "streak_after": state.streak_after,
                "exempt": state.exempt,
                "refused": state.refused,
            }
            for state in explanation.measures
        ],
        "window": [
            {"call": record.call, "seq": record.seq, "tool": record.tool, "measures": list(record.measures)}
            for record in explanation.window
        ],
        "evidence": [
            {
                "measures": list(one.measures),
                "call": one.call,
                "seq": one.seq,
                "failure": one.told,
                "evidence": one.evidence,
                "rule": one.rule,
                "words": one.words,
            }
            for one in explanation.evidence
        ],
        "remedies": [
            {
                "key": remedy.key,
                "before": remedy.before,
                "after": remedy.after,
                "reaches_instead": list(remedy.stages),
                "first_reached_at_call": remedy.first,
            }
            for remedy in explanation.remedies
        ],
        "timeline": [
            {"turn": line.turn, "first_call": line.first_call, "marks": line.marks, "cursor": line.cursor}
            for line in explanation.timeline
        ],
        "session_events": [_event(event) for event in explanation.replay.events],
    }


def _event(event: ReplayEvent) -> JsonObject:
    return {
        "call": event.call,
        "seq": event.seq,
        "stage": event.stage,
        "measure": event.measure or None,
        "count": event.count if event.measure else None,
        "threshold": event.threshold if event.measure else None,
        "decision": event.decision,
    }
