"""How sure a sweep is, as tables: intervals and spread of one configuration, the floors, what is scored held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.shares import session_share
from analysis.sweep import METRICS, fewest_good, sweep_floors
from cli.console import output_console
from cli.tables import left_out_line, print_rows
from cli.text import counted, plain

if TYPE_CHECKING:
    from analysis.sweep import HeldOut, Sweep, Uncertainty

__all__ = ["print_floors", "print_held_out", "print_intervals"]

_NONE = "·"


def print_intervals(sweep: Sweep, uncertainty: Uncertainty, number: int) -> None:
    """Print the intervals of one configuration, and how its counts are spread over sessions."""
    one, row = uncertainty.configs[number], sweep.rows[number]
    print(f"95 % intervals of {plain(sweep.plan.configs[number].told)}, for as many sessions:")
    cells: list[list[str]] = []
    notes: list[str] = []
    for metric in METRICS:
        name = metric.name
        value, interval, spread = row.values[name], one.intervals[name], one.spreads.get(name)
        if value is None:
            continue
        if interval is None:
            notes.append(f"{name}: no interval, {one.reasons[name]}")
        cells.append(
            [
                name,
                f"{value:.6g}",
                _NONE if interval is None else f"{_rounded(interval.low)} to {_rounded(interval.high)}",
                *([_NONE] * 5 if spread is None else _spread_cells(spread.median, spread.p95, spread.highest)),
                *([] if spread is None else [_share(spread.top_share), str(spread.sessions)]),
            ]
        )
        if spread is not None and spread.coverage is not None and interval is not None:
            cell = spread.coverage
            notes.append(
                f"{name}: such an interval covers too little: {100 * cell.coverage:.0f} % of the time, measured over "
                f"{counted(cell.sessions, 'session')} of like spread ({cell.shape})"
            )
    interval_heading = "95\N{NO-BREAK SPACE}% interval"
    headings = ["metric", "value", interval_heading, "median", "p95", "max", "top share", "sessions"]
    _print_table(headings, cells, first_out=("sessions", "top share", "max", "p95", "median"))
    for note in notes:
        print(note)
    print(
        "sessions: Wilson; counts and leads: bootstrap over sessions, "
        f"seed {uncertainty.seed}; median, p95 and max over all sessions, top share: of the session with the most"
    )
    print()


def _print_table(headings: Sequence[str], cells: Sequence[Sequence[str]], *, first_out: Sequence[str]) -> None:
    left_out = print_rows(headings, cells, numbers_from=1, first_out=[(heading,) for heading in first_out])
    if left_out:
        output_console().print(left_out_line(left_out, "--format json has all"))


def _spread_cells(*values: float) -> list[str]:
    return [_rounded(value) for value in values]


def _rounded(value: float) -> str:
    """Return a number to four digits that count, without an exponent where it would only be longer."""
    return f"{float(f'{value:.4g}'):.10g}"


def _share(share: float | None) -> str:
    return _NONE if share is None else f"{100 * share:.0f} %"


def print_floors(sweep: Sweep) -> None:
    """Print how high thresholds must be for new good runs to stay untouched."""
    alpha, good = sweep.choosing.alpha, sweep.labels["good"]
    if not good:
        return
    missing = max(fewest_good(alpha) - good, 0)
    if missing:
        needed = counted(missing, "more is needed", "more are needed")
        print(f"no floor: {counted(good, 'good session')}, {needed} for a chance of {alpha:g}")
        return
    floors = sweep_floors(sweep.sessions, alpha)
    told = [f"{', '.join(one.keys)} {one.floor.threshold}" for one in floors]
    print(f"floor (a new good run gets there with a chance of at most {alpha:g} each): {'; '.join(told)}")


def print_held_out(sweep: Sweep, held_out: HeldOut) -> None:
    """Print what the choice scores on sessions it was not chosen on."""
    seed = "" if held_out.seed is None else f", seed {held_out.seed}"
    print(f"held out by {held_out.by}{seed}, {held_out.sessions} of {counted(len(sweep.sessions), 'session')} scored:")
    cells = [
        [score.metric, _of(score.seen, score.whole), _of(score.held_out, score.whole), f"{score.gap:+g}"]
        for score in held_out.scores
    ]
    _print_table(["metric", "seen", "held out", "optimism"], cells, first_out=("seen", "optimism"))
    for fold in held_out.folds:
        labels = " · ".join(f"{label} {count}" for label, count in fold.labels.items() if count)
        chosen = f"nothing: {fold.why}" if fold.chosen is None else sweep.plan.configs[fold.chosen].told
        print(f"  without {plain(fold.group)} ({labels}): {plain(chosen)}")
    print()


def _of(value: float, whole: int | None) -> str:
    if whole is None:
        return f"{value:g}"
    share = session_share(int(value), whole)
    if share.low is None or share.high is None:
        return f"{value:g} of {whole}"
    return f"{value:g} of {whole} ({100 * share.low:.0f} to {100 * share.high:.0f} %)"
