"""What lint found, as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.corpus import CorpusReplay
from analysis.documents import JsonObject, settings_object
from analysis.lint import Finding, dead_stages
from analysis.replay import ReplayPlan
from breaker.version import __version__

__all__ = ["lint_document"]


def lint_document(findings: Sequence[Finding], plan: ReplayPlan, corpus: CorpusReplay | None) -> JsonObject:
    """Return findings as a JSON-ready document; `sessions` is null where no corpus was looked at."""
    dead = dead_stages(plan.settings, plan.policy)
    return {
        "schema": "breaker/lint/1",
        "tool": {"name": "breaker", "version": __version__},
        "ruleset": plan.ruleset.name,
        "ruleset_note": plan.ruleset.note,
        "policy": plan.policy,
        "settings": settings_object(plan.settings),
        "settings_hash": plan.settings.digest,
        "sessions": None if corpus is None else len(corpus.sessions),
        "findings": [
            {
                "severity": finding.severity,
                "code": finding.code,
                "key": finding.key,
                "kinds": list(finding.kinds),
                "message": finding.message,
                "remedy": finding.remedy,
                "reached": finding.reached,
            }
            for finding in findings
        ],
        "dead": list(dead.wholly),
        "dead_by_kind": {stage: list(kinds) for stage, kinds in dead.by_kind.items()},
    }
