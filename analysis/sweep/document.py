"""The sweep as documents: one JSON document, and flat rows for CSV and parquet."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.documents import JsonObject, head, settings_object
from analysis.lint import dead_stages
from analysis.sweep.corpus import Sweep
from analysis.sweep.grid import SweepConfig
from analysis.sweep.metrics import METRICS, ConfigMetrics
from breaker.ecmascript import canonical_json

__all__ = ["flat_rows", "sweep_document"]


def sweep_document(sweep: Sweep) -> JsonObject:
    """Return the whole sweep as one JSON-ready document."""
    front = sweep.front
    plan = sweep.plan
    recommended = None
    if front.recommended is not None:
        recommended = {**_identity(plan.configs[front.recommended]), "why": front.why}
    return {
        **head("sweep", sweep.corpus.plan, sweep.corpus),
        "grid": {key: list(values) for key, values in plan.grid.items()},
        "points": plan.points,
        "merged": plan.merged,
        "seed": plan.seed,
        "labels": dict(sweep.labels),
        "metrics": [
            {"name": metric.name, "told": metric.told, "better": metric.better, "needs_label": metric.needs}
            for metric in METRICS
        ],
        "configs": [
            _config(config, row, front.members[number] if front.members is not None else None)
            for number, (config, row) in enumerate(zip(plan.configs, sweep.rows, strict=True))
        ],
        "objectives": list(front.objectives),
        "recommended": recommended,
        "recommended_reason": front.why,
        "work": {
            "sessions": sweep.work.sessions,
            "engine_runs": sweep.work.engine_runs,
            "unshared_runs": sweep.work.unshared_runs,
        },
        "warnings": list(sweep.corpus.warnings),
    }


def _identity(config: SweepConfig) -> JsonObject:
    return {
        "name": config.name,
        "settings_hash": config.settings.digest,
        "ruleset": config.ruleset.name,
        "policy": config.policy,
    }


def _config(config: SweepConfig, row: ConfigMetrics, pareto: bool | None) -> JsonObject:
    dead = dead_stages(config.settings, config.policy)
    return {
        **_identity(config),
        "point": dict(config.point),
        "settings": settings_object(config.settings),
        "metrics": dict(row.values),
        "reasons": dict(row.reasons),
        "events": dict(row.stages),
        "by_kind": {kind: dict(numbers) for kind, numbers in row.by_kind.items()},
        "dead": dead.wholly,
        "dead_by_kind": {stage: list(kinds) for stage, kinds in dead.by_kind.items()},
        "pareto": pareto,
    }


def flat_rows(sweep: Sweep) -> list[dict[str, object]]:
    """Return one flat row per configuration; every row has the same columns in the same order.

    Columns: name, ruleset, policy, settings_hash; each scalar setting; each cap as `limits.<entry>`; `settings`, the
    whole effective settings as JSON; the metrics; `events.<stage>`; `dead` (stages, separated by spaces); pareto;
    recommended.
    """
    front = sweep.front
    configs = sweep.plan.configs
    scalars = list(dict.fromkeys(key for config in configs for key in _scalars(config)))
    limits = list(dict.fromkeys(entry for config in configs for entry in config.settings.limits))
    rows: list[dict[str, object]] = []
    for number, (config, row) in enumerate(zip(configs, sweep.rows, strict=True)):
        given = _scalars(config)
        rows.append(
            {
                "name": config.name,
                "ruleset": config.ruleset.name,
                "policy": config.policy,
                "settings_hash": config.settings.digest,
                **{key: given.get(key) for key in scalars},
                **{f"limits.{entry}": config.settings.limits.get(entry) for entry in limits},
                "settings": canonical_json(config.settings.as_config),
                **row.values,
                **{f"events.{stage}": times for stage, times in row.stages.items()},
                "dead": " ".join(dead_stages(config.settings, config.policy).wholly),
                "pareto": None if front.members is None else front.members[number],
                "recommended": number == front.recommended,
            }
        )
    return rows


def _scalars(config: SweepConfig) -> Mapping[str, object]:
    settings = config.settings.as_config
    return {key: value for key, value in settings.items() if not isinstance(value, list | tuple | Mapping)}
