"""JSON documents: one rendering of what a command computed, in the fixed names other programs rely on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from analysis.corpus import CorpusReplay, SessionRow, Totals
from analysis.plan import ReplayPlan
from analysis.replayed import STAGES, FirstTrip, MeasureCount, ReplayEvent, StageName
from analysis.sessions.report import ReadReport
from breaker.ecmascript import canonical_json
from breaker.kinds import KINDS
from breaker.settings import Settings
from breaker.version import __version__

if TYPE_CHECKING:
    from analysis.detect import DetectorEvent
    from breaker.failure import Failure

__all__ = [
    "JsonObject",
    "corpus_head",
    "event_rows",
    "head",
    "rate",
    "replay_document",
    "run_head",
    "settings_object",
    "tool_head",
]

JsonObject = dict[str, object]

_RATE_DIGITS = 6
_TRACKS = frozenset({"occurrence", "failure", "shell-http"})


def rate(part: int, whole: int) -> float | None:
    """Return a rate, rounded for reading; its two integers stand beside it. None where there is nothing to divide."""
    return round(part / whole, _RATE_DIGITS) if whole else None


def tool_head(name: str) -> JsonObject:
    """Return what a document begins with that rests on no settings: its schema and the tool."""
    return {"schema": f"breaker/{name}/1", "tool": {"name": "breaker", "version": __version__}}


def run_head(name: str, plan: ReplayPlan) -> JsonObject:
    """Return what a document begins with that rests on a plan: tool, ruleset, policy, settings with their hash."""
    return {
        **tool_head(name),
        "ruleset": plan.ruleset.name,
        "ruleset_note": plan.ruleset.note,
        "policy": plan.policy,
        "shell_http": {"mode": plan.shell_http, "policy": plan.has_shell_http, "machine": sorted(plan.machine)},
        "result_source": plan.result_source,
        "settings": settings_object(plan.settings),
        "settings_hash": plan.settings.digest,
    }


def corpus_head(corpus: CorpusReplay) -> JsonObject:
    """Return what a document says of what was read."""
    return {
        "corpus": {
            "roots": list(corpus.roots),
            "files": len(corpus.reports),
            "sessions": len(corpus.sessions),
            "left_out_by_time": corpus.filtered,
            "bytes": corpus.size,
            "read": corpus.read_counts,
        },
    }


def head(name: str, plan: ReplayPlan, corpus: CorpusReplay) -> JsonObject:
    """Return what every document over a corpus begins with: `run_head`, `corpus_head`, and where the policy engaged."""
    document = run_head(name, plan)
    engaged = sum(row.replay.shell_http for row in corpus.sessions)
    document["shell_http"] = {**cast("JsonObject", document["shell_http"]), "engaged_sessions": engaged}
    return {**document, **corpus_head(corpus)}


def settings_object(settings: Settings) -> JsonObject:
    """Return the settings as plain JSON: maps the guard takes as they are can hold what has no JSON spelling."""
    return {
        key: value if key == "limits" else cast("object", json.loads(canonical_json(value)))
        for key, value in settings.as_config.items()
    }


def replay_document(corpus: CorpusReplay, *, events: bool) -> JsonObject:
    """Return the whole replay as one JSON-ready document."""
    document: JsonObject = {
        **head("replay", corpus.plan, corpus),
        "totals": _totals(corpus.totals),
        "by_kind": _by_kind(corpus.totals),
        "sessions": [_session(row, corpus.plan) for row in corpus.sessions],
        "read_report": [_report(report) for report in corpus.reports],
        "problems": [{"path": problem.shown, "message": problem.message} for problem in corpus.problems],
        "warnings": list(corpus.warnings),
    }
    if corpus.plan.detectors:
        _add_detectors(document, corpus)
    if events:
        document["events"] = event_rows(corpus)
    return document


def _add_detectors(document: JsonObject, corpus: CorpusReplay) -> None:
    """Tell of the plan's other detectors: in the totals, with every session, and in sections of their own."""
    from analysis.detect_document import detector_sections, session_detectors, total_detectors

    cast("JsonObject", document["totals"])["detectors"] = total_detectors(corpus)
    for told, row in zip(cast("list[JsonObject]", document["sessions"]), corpus.sessions, strict=True):
        told["detectors"] = session_detectors(corpus.plan.detectors, row)
    document.update(detector_sections(corpus))


def event_rows(corpus: CorpusReplay) -> list[JsonObject]:
    """Return every event as a row, session by session, in the order they happened."""
    from analysis.detect import happened

    return [_event(row, name, event) for row in corpus.sessions for name, event in happened(row.replay)]


def _event(session: SessionRow, detector: str, event: ReplayEvent | DetectorEvent) -> JsonObject:
    row: JsonObject = {
        "detector": detector,
        "session": session.session_id,
        "path": session.path,
        "seq": event.seq,
        "turn": event.turn,
        "call": event.call,
        "tool": event.tool,
        "stage": event.stage,
        "track": event.track if event.track in _TRACKS else None,
        "measure": event.measure or None,
        "count": event.count if event.measure else None,
        "threshold": event.threshold if event.measure else None,
        "decision": event.decision,
        "failure": _failure(event.failure),
    }
    if event.message is not None:
        row["message"] = event.message
    return row


def _failure(failure: Failure | None) -> JsonObject | None:
    if failure is None:
        return None
    return {"reason": failure.reason, "detail": failure.detail, "evidence": failure.evidence}


def _stages(stages: Counter[StageName]) -> JsonObject:
    return {stage: stages[stage] for stage in STAGES}


def _totals(totals: Totals) -> JsonObject:
    outcomes = totals.outcomes
    return {
        "turns": totals.turns,
        "calls": totals.calls,
        "tracked": totals.tracked,
        "ok": outcomes["ok"],
        "failed": outcomes["failed"],
        "failed_text_only": totals.failed_text_only,
        "undecidable": outcomes["undecidable"],
        "denied": outcomes["denied"],
        "not_run": outcomes["not-run"],
        "not_started": totals.not_started,
        "open": outcomes["open"],
        "clipped": totals.clipped,
        "truncated": totals.truncated,
        "settled": totals.settled,
        "failure_rate": rate(outcomes["failed"], totals.settled),
        "failure_rate_without_text": rate(outcomes["failed"] - totals.failed_text_only, totals.settled),
        "failed_by": [
            {
                "tool": key.tool,
                "reason": key.reason,
                "detail": key.detail,
                "evidence": key.evidence,
                "count": count,
            }
            for key, count in totals.failures_by_count
        ],
        "events": _stages(totals.stages),
        "sessions_by_stage": _stages(totals.sessions_by_stage),
        "asks": totals.asks,
        "denials": totals.denials,
        "false_rejections": totals.false_rejections,
        "sessions_with_false_rejection": totals.sessions_with_false_rejection,
        "streaks": _steps(totals.streaks),
        "streaks_by_label": {label: _steps(steps) for label, steps in totals.streaks_by_label.items()},
    }


def _steps(steps: Mapping[int, int]) -> JsonObject:
    return {str(step): count for step, count in steps.items()}


def _by_kind(totals: Totals) -> JsonObject:
    return {
        kind: {**_stages(totals.stages_by_kind[kind]), "sessions": totals.sessions_by_kind[kind]}
        for kind in KINDS
        if kind in totals.stages_by_kind
    }


def _session(row: SessionRow, plan: ReplayPlan) -> JsonObject:
    replay = row.replay
    outcomes = replay.outcomes
    return {
        "id": row.session_id,
        "path": row.path,
        "label": row.label,
        "agent": row.agent,
        "version": row.version,
        "project": row.project,
        "models": list(row.models),
        "created_at": row.created_at,
        "turns": replay.turns,
        "calls": replay.calls,
        "tracked": replay.tracked,
        "ok": outcomes["ok"],
        "failed": outcomes["failed"],
        "failed_text_only": replay.failed_text_only,
        "undecidable": outcomes["undecidable"],
        "denied": outcomes["denied"],
        "not_run": outcomes["not-run"],
        "not_started": replay.not_started,
        "open": outcomes["open"],
        "clipped": replay.clipped,
        "truncated": replay.truncated,
        "failure_rate": rate(outcomes["failed"], replay.settled),
        "peak": _measure_count(replay.peak),
        "longest_streak": _measure_count(replay.longest_streak),
        "events": _stages(replay.stages),
        "shell_http": replay.shell_http,
        "asks": replay.asks,
        "denials": replay.denials,
        "false_rejections": replay.false_rejections,
        "first_trip": {stage: _trip(replay.first_trips.get(stage)) for stage in STAGES},
        "near_miss": replay.near_miss(plan.settings),
        "recorded_under_breaker": row.recorded_under_breaker,
        "read": row.read,
        "notes": list(row.notes),
    }


def _measure_count(value: MeasureCount | None) -> JsonObject | None:
    return None if value is None else {"measure": value.measure, "count": value.count}


def _trip(trip: FirstTrip | None) -> JsonObject | None:
    if trip is None:
        return None
    return {
        "seq": trip.seq,
        "turn": trip.turn,
        "call": trip.call,
        "seconds": trip.seconds,
        "tokens": trip.tokens,
        "calls_after": trip.calls_after,
        "seconds_after": trip.seconds_after,
        "tokens_after": trip.tokens_after,
    }


def _report(report: ReadReport) -> JsonObject:
    defects: Sequence[JsonObject] = [
        {
            "kind": defect.kind,
            "message": defect.message,
            "line": defect.line,
            "byte": defect.byte,
            "frame": defect.frame,
            "lost_bytes": defect.lost_bytes,
        }
        for defect in report.defects
    ]
    return {
        "path": report.shown,
        "state": report.state,
        "id": report.session_id,
        "version": report.version,
        "bytes": report.size,
        "expanded_bytes": report.expanded,
        "lines": report.lines,
        "rows": report.rows,
        "lost_rows": report.lost_rows,
        "lost_bytes": report.lost_bytes,
        "defects": list(defects),
        "defects_untold": report.defects_untold,
        "notes": list(report.notes),
    }
