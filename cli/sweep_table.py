"""The table of a sweep: one row per configuration, and what stands behind the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.lint import dead_stages
from analysis.sweep import METRICS
from breaker.ecmascript import canonical_json
from cli.console import output_console, terminal_width
from cli.replay_table import stage_heading
from cli.sweep_evidence_table import print_floors, print_held_out, print_intervals
from cli.tables import least_width, left_out_line, print_rows
from cli.text import counted, plain

if TYPE_CHECKING:
    from analysis.replay import StageName
    from analysis.sweep import HeldOut, Metric, Sweep, SweepConfig, Uncertainty

__all__ = ["print_sweep"]

_HEADINGS = {
    "messages": "msgs",
    "sessions_warned": "warned",
    "sessions_gated": "gated",
    "gate_calls": "gate calls",
    "asks": "asks",
    "denials": "held",
    "false_rejections": "false",
    "sessions_with_false_rejection": "in sess.",
    "good_touched": "good touched",
    "good_gated": "good gated",
    "stuck_caught": "stuck caught",
    "stuck_gated": "stuck gated",
    "lead_calls_median": "lead calls",
    "lead_minutes_median": "lead min",
    "lead_tokens_median": "lead tokens",
}
_NONE = "·"
_FIRST_OUT = (
    "lead tokens",
    "lead min",
    "dead",
    "in sess.",
    "asks",
    "gate calls",
    "gated",
    "warned",
    "held",
    "lead calls",
    "stuck gated",
    "good gated",
)
"""The columns that are left out on a narrow terminal, the first of them first; the point and the main costs stay."""
_LEGEND = {
    "msgs": "advisories",
    "warned": "sessions with an advisory",
    "gated": "sessions with a gate",
    "held": "calls withheld",
    "false": "withheld calls that had succeeded",
    "in sess.": "the sessions with one",
    "good touched": "good sessions with an advisory or a gate",
    "stuck caught": "stuck sessions with an advisory or a gate",
    "lead calls": "median of the calls a caught stuck session still made after its first trip",
    "lead min": "of its minutes",
    "lead tokens": "of its tokens",
    "dead": "stages that can speak for no kind (a kind is named where only some are dead)",
}


def print_sweep(
    sweep: Sweep,
    *,
    order: Metric | None,
    top: int,
    uncertainty: Uncertainty | None = None,
    held_out: HeldOut | None = None,
) -> None:
    """Print a sweep for a person: the rows as given, or the best of a metric first."""
    configs, rows, front = sweep.plan.configs, sweep.rows, sweep.front
    numbers = list(range(len(configs)))
    if order is not None:
        numbers.sort(key=lambda number: _merit(rows[number].values[order.name], order))
    shown = numbers if top == 0 else numbers[:top]
    metrics = [metric for metric in METRICS if any(row.values[metric.name] is not None for row in rows)]
    keys = list(dict.fromkeys(key for config in configs for key in config.point)) if _gridded(configs) else []
    named = any(config.name is not None for config in configs)
    stages = [_dead(config) for config in configs]
    metric_headings = [_HEADINGS[metric.name] for metric in metrics]
    texts = ["dead"] if any(stages[number] for number in shown) else []
    headings = [*(["name"] if named else []), *keys, "", *metric_headings, *texts]
    cells: list[list[str]] = []
    for number in shown:
        config, row = configs[number], rows[number]
        cells.append(
            [
                *([config.name or _NONE] if named else []),
                *(_value(config.point[key]) if key in config.point else _NONE for key in keys),
                "*" if front.members is not None and front.members[number] else "",
                *(_number(row.values[metric.name]) for metric in metrics),
                *([stages[number]] if texts else []),
            ]
        )
    staying = [position for position, heading in enumerate(headings) if heading not in _FIRST_OUT]
    width = least_width(
        [headings[at] for at in staying], [[row[at] for at in staying] for row in cells], texts=range(int(named))
    )
    left_out: list[str] = []
    if width > terminal_width():
        _print_lines(headings, cells, points=len(keys) + named)
    else:
        left_out = print_rows(
            headings,
            cells,
            numbers_from=int(named),
            numbers_to=len(headings) - len(texts),
            cut=range(int(named)),
            first_out=[(heading,) for heading in _FIRST_OUT],
        )
    if len(shown) < len(configs):
        print(f"… and {counted(len(configs) - len(shown), 'more configuration')} (--top 0 shows all)")
    if left_out:
        output_console().print(left_out_line(left_out, "--format csv or json, and --out, have all"))
    legend = [f"{heading}: {_LEGEND[heading]}" for heading in headings if heading in _LEGEND.keys() - left_out]
    output_console().print("; ".join([*legend, *(["*: on the Pareto front"] if front.members is not None else [])]))
    print()
    _print_attribution(sweep, numbers[0])
    if uncertainty is not None:
        print_intervals(sweep, uncertainty, numbers[0] if sweep.front.leading is None else sweep.front.leading)
    if held_out is not None:
        print_held_out(sweep, held_out)
    _print_end(sweep)


def _print_lines(headings: Sequence[str], rows: Sequence[Sequence[str]], *, points: int) -> None:
    """Print rows without columns: a line for the point, and indented under it whatever it costs."""
    for cells in rows:
        told = [f"{heading} {cell}" for heading, cell in zip(headings, map(plain, cells), strict=True) if cell]
        mark = cells[points] or " "
        _print_items(told[:points], f"{mark} ", "    ")
        _print_items([one for one in told[points:] if one != f" {mark}"], "    ", "    ")


def _print_items(items: Sequence[str], first: str, next_lines: str) -> None:
    """Print items one after another, none of them broken."""
    line, empty = first, True
    for item in items:
        longer = f"{line}{item}" if empty else f"{line} · {item}"
        if not empty and len(longer) > terminal_width():
            print(line)
            longer = f"{next_lines}{item}"
        line, empty = longer, False
    print(line)


def _gridded(configs: Sequence[SweepConfig]) -> bool:
    return any(config.name is None for config in configs)


def _merit(value: float | None, metric: Metric) -> float:
    if value is None:
        return float("inf")
    return value if metric.better == "less" else -value


def _value(value: object) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _number(value: float | None) -> str:
    return _NONE if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _dead(config: SweepConfig) -> str:
    dead = dead_stages(config.settings, config.policy)
    parts = list(dead.wholly)
    parts += [f"{stage}: {' '.join(kinds)}" for stage, kinds in dead.by_kind.items() if stage not in dead.wholly]
    return "; ".join(parts)


def _print_attribution(sweep: Sweep, number: int) -> None:
    row = sweep.rows[number]
    if not row.by_kind:
        return
    print(f"by measure kind, of {plain(sweep.plan.configs[number].told)}:")
    stages: tuple[StageName, ...] = ("warn", "summarize", "fail-warn", "gate", "fail-gate")
    headings = ["kind", *(stage_heading(stage, terminal_width()) for stage in stages), "sessions", "gated"]
    names = (*stages, "sessions", "sessions_gated")
    cells = [[kind, *(str(numbers[name] or _NONE) for name in names)] for kind, numbers in row.by_kind.items()]
    print_rows(headings, cells, numbers_from=1)


def _print_end(sweep: Sweep) -> None:
    front, corpus = sweep.front, sweep.corpus
    labels = " · ".join(f"{label} {count}" for label, count in sweep.labels.items())
    told = sweep.rows[0].reasons
    for name, reason in told.items():
        if all(row.values[name] is None for row in sweep.rows):
            print(f"{name}: none, {reason}")
    if front.recommended is not None:
        print(f"recommended: {plain(sweep.plan.configs[front.recommended].told)}")
        print(f"  {front.why}")
    else:
        print(f"nothing is recommended: {front.why}")
    print_floors(sweep)
    configurations = counted(len(sweep.plan.configs), "configuration")
    print(f"{configurations} over {counted(len(corpus.sessions), 'session')} ({labels})")
    if sweep.plan.seed is not None:
        print(f"drawn from a grid of {sweep.plan.points} with seed {sweep.plan.seed}")
    read = " · ".join(f"{state} {count}" for state, count in corpus.read_counts.items() if count)
    print(f"read: {read}")
    print(
        f"engine runs: {sweep.work.engine_runs} of {sweep.work.unshared_runs}; the others are proven to go the same way"
    )
    print(
        f"base: ruleset {corpus.plan.ruleset.name}, policy {corpus.plan.policy}, settings {corpus.plan.settings.digest}"
    )
