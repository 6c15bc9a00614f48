"""What the detectors beside the guard say, as JSON: one rendering of what `analysis.detect` computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from analysis.corpus import CorpusReplay, SessionRow
from analysis.detect import DetectorFault, DetectorSpec, sum_detectors

__all__ = ["detector_faults", "detector_sections", "session_detectors", "stage_counts", "total_detectors"]

JsonObject = dict[str, object]


def stage_counts(spec: DetectorSpec, stages: Counter[str]) -> JsonObject:
    """Return a detector's counts by stage: every stage it has, and any other it used."""
    return {stage: stages[stage] for stage in dict.fromkeys((*spec.stages, *sorted(stages)))}


def session_detectors(specs: Sequence[DetectorSpec], row: SessionRow) -> JsonObject:
    """Return what each detector did in a session, by label."""
    return {spec.label: stage_counts(spec, seen.stages) for spec, seen in zip(specs, row.replay.detectors, strict=True)}


def total_detectors(corpus: CorpusReplay) -> JsonObject:
    """Return what each detector did in all sessions, by label."""
    totals = sum_detectors(corpus.plan.detectors, (row.replay for row in corpus.sessions))
    return {spec.label: stage_counts(spec, totals[spec.label].stages) for spec in corpus.plan.detectors}


def detector_sections(corpus: CorpusReplay) -> JsonObject:
    """Return the document's sections about detectors: each with its settings and sums, and every one that raised.

    `events_on_rebuilt_code` counts what would not have been found without an exit code rebuilt from the output, and
    `failures_on_rebuilt_code` of `failures_counted` the failed results that rest on one; both are 0 for detectors that
    read no exit codes.
    """
    totals = sum_detectors(corpus.plan.detectors, (row.replay for row in corpus.sessions))
    runs: list[JsonObject] = []
    for spec in corpus.plan.detectors:
        total = totals[spec.label]
        runs.append(
            {
                "label": spec.label,
                "detector": spec.name,
                "settings": dict(spec.settings),
                "sessions": total.sessions,
                "denials": total.denials,
                "false_rejections": total.false_rejections,
                "failures_counted": total.failures,
                "failures_on_rebuilt_code": total.rebuilt_failures,
                "events_on_rebuilt_code": total.on_rebuilt,
                "sessions_given_up": total.faults,
            }
        )
    faults = [
        {
            "detector": fault.label,
            "session": row.session_id,
            "path": row.path,
            "call": fault.call if fault.call >= 0 else None,
            "seq": fault.seq if fault.call >= 0 else None,
            "message": fault.message,
        }
        for row, fault in detector_faults(corpus)
    ]
    return {"detector_runs": runs, "detector_faults": faults}


def detector_faults(corpus: CorpusReplay) -> list[tuple[SessionRow, DetectorFault]]:
    """Return every detector that raised, with the session it raised in."""
    return [(row, seen.fault) for row in corpus.sessions for seen in row.replay.detectors if seen.fault is not None]
