"""What lint found, as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.corpus import CorpusReplay
from analysis.documents import JsonObject, head, run_head
from analysis.lint import Finding, dead_stages
from analysis.replay import ReplayPlan

__all__ = ["lint_document"]


def lint_document(findings: Sequence[Finding], plan: ReplayPlan, corpus: CorpusReplay | None) -> JsonObject:
    """Return findings as a JSON-ready document; without a corpus `sessions` is null and there is no `corpus`."""
    dead = dead_stages(plan.settings, plan.policy)
    return {
        **(run_head("lint", plan) if corpus is None else head("lint", plan, corpus)),
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
