"""The sweep as documents: one JSON document, and flat rows for CSV and parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from analysis.documents import JsonObject, head, settings_object
from analysis.lint import dead_stages
from analysis.sweep.conformal import TrackFloor, fewest_good, sweep_floors
from analysis.sweep.corpus import Sweep
from analysis.sweep.grid import SweepConfig
from analysis.sweep.held_out import HeldOut
from analysis.sweep.metrics import METRICS, ConfigMetrics
from breaker.ecmascript import canonical_json

if TYPE_CHECKING:
    from analysis.sweep.intervals import ConfigIntervals, Uncertainty

__all__ = ["flat_rows", "sweep_document"]

_DIGITS = 6


def sweep_document(
    sweep: Sweep, *, uncertainty: Uncertainty | None = None, held_out: HeldOut | None = None
) -> JsonObject:
    """Return the whole sweep as one JSON-ready document.

    Args:
        sweep: the sweep.
        uncertainty: its intervals, where they were asked for.
        held_out: its cross-validation, where it was asked for.
    """
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
            {
                **_config(config, row, front.members[number] if front.members is not None else None),
                **({} if uncertainty is None else _uncertain(uncertainty.configs[number])),
            }
            for number, (config, row) in enumerate(zip(plan.configs, sweep.rows, strict=True))
        ],
        "intervals_seed": None if uncertainty is None else uncertainty.seed,
        "floor": {
            "alpha": sweep.choosing.alpha,
            "good": sweep.labels["good"],
            "missing": max(fewest_good(sweep.choosing.alpha) - sweep.labels["good"], 0),
            "tracks": [_floor(one) for one in sweep_floors(sweep.sessions, sweep.choosing.alpha)],
        },
        "held_out": None if held_out is None else _held_out(held_out, plan.configs),
        "requirements": [one.told for one in sweep.choosing.requirements],
        "objective": dict(sweep.choosing.weights),
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


def _uncertain(one: ConfigIntervals) -> JsonObject:
    return {
        "intervals": {
            name: None if interval is None else [_rounded(interval.low), _rounded(interval.high)]
            for name, interval in one.intervals.items()
        },
        "interval_reasons": dict(one.reasons),
        "distributions": {
            name: {
                "sessions": spread.sessions,
                "median": spread.median,
                "p95": _rounded(spread.p95),
                "max": spread.highest,
                "top_share": None if spread.top_share is None else _rounded(spread.top_share),
                "effective_sessions": _rounded(spread.effective),
                "measured_coverage": None
                if spread.coverage is None
                else {
                    "coverage": spread.coverage.coverage,
                    "sessions": spread.coverage.sessions,
                    "shape": spread.coverage.shape,
                    "trials": spread.coverage.trials,
                },
            }
            for name, spread in one.spreads.items()
        },
    }


def _rounded(value: float) -> float:
    return round(value, _DIGITS)


def _floor(one: TrackFloor) -> JsonObject:
    return {
        "track": one.track,
        "kind": one.kind,
        "keys": list(one.keys),
        "threshold": one.floor.threshold,
        "good_at_or_above": one.floor.touched,
        "missing": one.floor.missing,
    }


def _held_out(held_out: HeldOut, configs: Sequence[SweepConfig]) -> JsonObject:
    return {
        "by": held_out.by,
        "seed": held_out.seed,
        "sessions": held_out.sessions,
        "folds": [
            {
                "group": fold.group,
                "labels": dict(fold.labels),
                "chosen": None if fold.chosen is None else _identity(configs[fold.chosen]),
                "why": fold.why,
                "scores": dict(fold.scores),
            }
            for fold in held_out.folds
        ],
        "scores": [
            {
                "metric": score.metric,
                "seen": score.seen,
                "held_out": score.held_out,
                "of": score.whole,
                "gap": score.gap,
            }
            for score in held_out.scores
        ],
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


def flat_rows(sweep: Sweep, uncertainty: Uncertainty | None = None) -> list[dict[str, object]]:
    """Return one flat row per configuration; every row has the same columns in the same order.

    Columns: name, ruleset, policy, settings_hash; each scalar setting; each cap as `limits.<entry>`; `settings`, the
    whole effective settings as JSON; the metrics; with intervals `<metric>.low` and `<metric>.high`; `events.<stage>`;
    `dead` (stages, separated by spaces); pareto; recommended.
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
                **({} if uncertainty is None else _ends(uncertainty.configs[number])),
                **{f"events.{stage}": times for stage, times in row.stages.items()},
                "dead": " ".join(dead_stages(config.settings, config.policy).wholly),
                "pareto": None if front.members is None else front.members[number],
                "recommended": number == front.recommended,
            }
        )
    return rows


def _ends(one: ConfigIntervals) -> dict[str, float | None]:
    ends: dict[str, float | None] = {}
    for name, interval in one.intervals.items():
        ends[f"{name}.low"] = None if interval is None else _rounded(interval.low)
        ends[f"{name}.high"] = None if interval is None else _rounded(interval.high)
    return ends


def _scalars(config: SweepConfig) -> Mapping[str, object]:
    settings = config.settings.as_config
    return {key: value for key, value in settings.items() if not isinstance(value, list | tuple | Mapping)}
