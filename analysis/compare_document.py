"""A comparison as JSON: one rendering of what `analysis.compare` computed."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.agreement import Agreement
from analysis.compare import CHANGES, Change, Comparison, GroupTotals, LabelTotals, SessionComparison, Side
from analysis.detect_document import detector_sections
from analysis.documents import JsonObject, head, rate, settings_object
from analysis.shares import CONFIDENCE

__all__ = ["compare_document"]

_DIGITS = 6


def compare_document(comparison: Comparison) -> JsonObject:
    """Return the whole comparison as one JSON-ready document."""
    return {
        **head("compare", comparison.corpus.plan, comparison.corpus),
        "a": _side(comparison.a),
        "b": _side(comparison.b),
        "totals": {group: _group(totals) for group, totals in comparison.totals.items()},
        "by_kind": {kind: _group(totals) for kind, totals in comparison.kind_totals.items()},
        "by_label": {label: _label(totals) for label, totals in comparison.labels.items()},
        "withheld": _pair([one.withheld for one in comparison.sessions]),
        "false_rejections": _pair([one.false_rejections for one in comparison.sessions]),
        "agreement": _agreement(comparison),
        "sessions": [_session(one) for one in comparison.sessions],
        "warnings": list(comparison.corpus.warnings),
        **detector_sections(comparison.corpus),
    }


def _side(side: Side) -> JsonObject:
    told: JsonObject = {"spec": side.label, "kind": side.kind, "stages": list(side.stages)}
    if side.detector is not None:
        return {**told, "detector": side.detector.name, "settings": dict(side.detector.settings)}
    plan = side.plan
    return {
        **told,
        "ruleset": plan.ruleset.name,
        "policy": plan.policy,
        "settings": settings_object(plan.settings),
        "settings_hash": plan.settings.digest,
    }


def _group(totals: GroupTotals) -> JsonObject:
    return {
        **{kind: totals.changes[kind] for kind in CHANGES},
        "events": {"a": totals.events[0], "b": totals.events[1]},
        "sessions": {"a": totals.sessions[0], "b": totals.sessions[1]},
    }


def _label(totals: LabelTotals) -> JsonObject:
    return {
        "sessions": totals.sessions,
        "both": totals.both,
        "neither": totals.neither,
        "only_a": list(totals.only_a),
        "only_b": list(totals.only_b),
    }


def _pair(values: list[tuple[int, int]]) -> JsonObject:
    return {"a": sum(first for first, _ in values), "b": sum(second for _, second in values)}


def _agreement(comparison: Comparison) -> JsonObject:
    return {
        "confidence": CONFIDENCE,
        "sessions": len(comparison.sessions),
        "detectors": [
            {"detector": name, "fires": comparison.firing[name], "fires_alone": comparison.alone[name]}
            for name in comparison.detectors
        ],
        "pairs": [_agreed(first, second, one) for (first, second), one in comparison.agreements.items()],
    }


def _agreed(first: str, second: str, agreement: Agreement) -> JsonObject:
    kappa, interval = agreement.kappa, agreement.interval
    return {
        "first": first,
        "second": second,
        "both": agreement.both,
        "only_first": agreement.only_first,
        "only_second": agreement.only_second,
        "neither": agreement.neither,
        "agreement": rate(agreement.agreed, agreement.sessions),
        "kappa": None if kappa is None else round(kappa, _DIGITS),
        "interval": None if interval is None else [round(bound, _DIGITS) for bound in interval],
    }


def _session(one: SessionComparison) -> JsonObject:
    return {
        "id": one.session_id,
        "path": one.path,
        "label": one.label,
        "agent": one.agent,
        "differs": one.differs,
        "stages": _changes(one.stages),
        "kinds": _changes(one.kinds),
        "withheld": {"a": one.withheld[0], "b": one.withheld[1]},
        "false_rejections": {"a": one.false_rejections[0], "b": one.false_rejections[1]},
        "fires": dict(one.fires),
    }


def _changes(changes: Mapping[str, Change]) -> JsonObject:
    return {
        name: {
            "change": change.kind,
            "first": {"a": change.first_a, "b": change.first_b},
            "events": {"a": change.count_a, "b": change.count_b},
        }
        for name, change in changes.items()
    }
