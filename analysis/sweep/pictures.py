"""Pictures of a sweep: the front, two settings at once, what one setting does, and how close good runs come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, cast

from analysis.labels import Label
from analysis.replay import StageName
from analysis.report.near_miss import draw_near_miss
from analysis.report.plots import CALM, COLUMN_WIDTH, FAINT, INK, PAPER, Figure, new_figure, styled
from analysis.shares import session_share
from analysis.sweep.corpus import Sweep
from analysis.sweep.metrics import SweepError, metric_named
from analysis.sweep.peaks import SessionPeaks
from breaker.ecmascript import canonical_json, is_number
from breaker.settings import Settings

__all__ = ["PICTURES", "Picture", "good_margins", "sweep_figure"]

Picture = Literal["pareto", "heat", "response", "near-miss"]
PICTURES: tuple[Picture, ...] = ("pareto", "heat", "response", "near-miss")

_HEIGHT = 3.1
_TITLE_HEIGHT = 0.3
_LEAST_AREA = 16.0
_MOST_AREA = 150.0
_DARK_FROM = 0.55
"""Share of the highest value from which a cell's number is printed light."""
_MOST_CELLS = 14
"""Cells a side up to which each holds its number."""
_FEWEST_POINTS = 2
_PER_CENT = 100
_STRONG_RATE, _WEAK_RATE = "stuck_caught", "good_touched"

_Draw = Callable[[Any], None]


def sweep_figure(sweep: Sweep, pictures: Sequence[Picture] = (), *, metric: str | None = None) -> Figure:
    """Draw pictures of a sweep, one at the width of a column, more of them in two columns.

    Args:
        sweep: the sweep.
        pictures: which; all that can be drawn where none is named.
        metric: what the heat map shows; good sessions touched, or messages without good ones, where None.

    Raises:
        SweepError: a picture that was named cannot be drawn; it says what is missing.
    """
    draws: list[_Draw] = []
    for picture in pictures or PICTURES:
        try:
            draws.extend(_prepared(sweep, picture, metric))
        except SweepError as error:
            if pictures:
                message = f"--picture {picture}: {error}"
                raise SweepError(message) from None
    if not draws:
        message = (
            "nothing to draw: no session is labelled good, and the grid has neither a setting with several numbers nor "
            "two with several values"
        )
        raise SweepError(message)
    columns = min(len(draws), 2)
    rows = -(-len(draws) // columns)
    with styled():
        figure = new_figure(COLUMN_WIDTH * columns, _HEIGHT * rows + _TITLE_HEIGHT)
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)
        panels = list(figure.subplots(rows, columns, squeeze=False).flat)
        for panel, draw in zip(panels, draws, strict=False):
            draw(panel)
        for panel in panels[len(draws) :]:
            panel.set_axis_off()
        return figure


def _prepared(sweep: Sweep, picture: Picture, metric: str | None) -> list[_Draw]:
    """Return what draws a picture, one for each panel.

    Raises:
        SweepError: it cannot be drawn.
    """
    if picture == "pareto":
        _need(sweep, "good", "stuck")
        return [partial(_draw_front, sweep=sweep)]
    if picture == "near-miss":
        _need(sweep, "good")
        return [partial(_draw_good_runs, sweep=sweep)]
    keys = [key for key, values in sweep.plan.grid.items() if len(values) >= _FEWEST_POINTS]
    if picture == "heat":
        if len(keys) < _FEWEST_POINTS:
            message = f"it takes two settings with several values each, and the grid has {len(keys)}"
            raise SweepError(message)
        shown = metric_named(metric or ("good_touched" if sweep.labels["good"] else "messages")).name
        if all(row.values[shown] is None for row in sweep.rows):
            message = f"{shown}: {sweep.rows[0].reasons[shown]}"
            raise SweepError(message)
        return [partial(_draw_heat, sweep=sweep, across=keys[0], down=keys[1], metric=shown)]
    numeric = [key for key in keys if len(_numbers(sweep.plan.grid[key])) >= _FEWEST_POINTS]
    if not numeric:
        message = "it takes a setting with several numbers"
        raise SweepError(message)
    return [partial(_draw_response, sweep=sweep, key=key) for key in numeric[:2]]


def _need(sweep: Sweep, *labels: Literal["good", "stuck"]) -> None:
    lacking = [label for label in labels if not sweep.labels[label]]
    if lacking:
        message = f"no session is labelled {' and none '.join(lacking)}"
        raise SweepError(message)


def _numbers(values: Sequence[object]) -> list[float]:
    return sorted(cast("float", value) for value in values if is_number(value))


def _reference(sweep: Sweep) -> int:
    """Return the configuration that stands for the settings not drawn: the one recommended, or that leads."""
    return sweep.front.leading or 0


def _share(sweep: Sweep, number: int, metric: str) -> tuple[float, float, float]:
    """Return a rate of sessions, of those with the label the metric is about, with its interval, in percent."""
    labelled: Label | None = "stuck" if metric.startswith("stuck") else "good" if metric.startswith("good") else None
    whole = len(sweep.sessions) if labelled is None else sweep.labels[labelled]
    share = session_share(int(sweep.rows[number].values[metric] or 0), whole)
    return _PER_CENT * (share.value or 0), _PER_CENT * (share.low or 0), _PER_CENT * (share.high or 0)


# -- the front -----------------------------------------------------------------------------------------------------


def _draw_front(axes: Any, *, sweep: Sweep) -> None:
    members = sweep.front.members or (False,) * len(sweep.rows)
    for on_front in (False, True):
        spots = Counter(
            (_share(sweep, number, _WEAK_RATE)[0], _share(sweep, number, _STRONG_RATE)[0])
            for number, member in enumerate(members)
            if member is on_front
        )
        most = max(spots.values(), default=1)
        axes.scatter(
            [across for across, _ in spots],
            [up for _, up in spots],
            s=[_LEAST_AREA + (_MOST_AREA - _LEAST_AREA) * count / most for count in spots.values()],
            marker="o",
            facecolors=CALM if on_front else "none",
            edgecolors=INK if on_front else FAINT,
            linewidths=1.0,
            label="on the front" if on_front else "beaten",
            zorder=3 if on_front else 2,
        )
    chosen = sweep.front.leading
    if chosen is not None:
        across, across_low, across_high = _share(sweep, chosen, _WEAK_RATE)
        up, up_low, up_high = _share(sweep, chosen, _STRONG_RATE)
        axes.errorbar(
            [across],
            [up],
            xerr=[[max(across - across_low, 0)], [max(across_high - across, 0)]],
            yerr=[[max(up - up_low, 0)], [max(up_high - up, 0)]],
            color=INK,
            marker="D",
            markersize=5,
            linewidth=1.2,
            capsize=3,
            label="recommended, 95 %" if sweep.front.recommended is not None else "leads, 95 %",
            zorder=4,
        )
    axes.set_xlim(-4, 104)
    axes.set_ylim(-4, 104)
    axes.set_xlabel(f"good sessions touched [% of {sweep.labels['good']}]")
    axes.set_ylabel(f"stuck sessions caught [% of {sweep.labels['stuck']}]")
    axes.set_title("What settings cost and catch")
    legend = axes.legend(loc="lower right", fontsize=8.5, handletextpad=0.4, borderaxespad=0.2, labelspacing=0.35)
    legend.set_title("area: number of settings", prop={"size": 8.5})


# -- two settings --------------------------------------------------------------------------------------------------


def _draw_heat(axes: Any, *, sweep: Sweep, across: str, down: str, metric: str) -> None:
    columns, rows = sweep.plan.grid[across], sweep.plan.grid[down]
    at = _slice(sweep, (across, down))
    values = {place: sweep.rows[number].values[metric] for place, number in at.items()}
    highest = max((value for value in values.values() if value is not None), default=0) or 1
    reference = _reference(sweep)
    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            place = (_spelled(column), _spelled(row))
            value = values.get(place)
            shade = 0.0 if value is None else value / highest
            axes.add_patch(_cell(x, y, str(1 - 0.82 * shade), "" if value is not None else "xxx"))
            if value is not None and max(len(rows), len(columns)) <= _MOST_CELLS:
                axes.annotate(
                    f"{value:g}",
                    (x, y),
                    ha="center",
                    va="center",
                    fontsize=8.5,
                    color=PAPER if shade > _DARK_FROM else INK,
                )
            if at.get(place) == reference and sweep.front.leading is not None:
                axes.add_patch(_frame(x, y))
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks(range(len(columns)), [_told(value) for value in columns])
    axes.set_yticks(range(len(rows)), [_told(value) for value in rows])
    framed = "; frame: the choice" if sweep.front.leading is not None else ""
    axes.set_xlabel(f"{across}{_unit(across)}{framed}")
    axes.set_ylabel(f"{down}{_unit(down)}")
    shades = "" if max(len(rows), len(columns)) <= _MOST_CELLS else f", darkest: {highest:g}"
    axes.set_title(_METRIC_TOLD.get(metric, f"{metric} [number]") + shades)


_METRIC_TOLD = {
    "good_touched": "Good sessions touched [sessions]",
    "good_gated": "Good sessions gated [sessions]",
    "stuck_caught": "Stuck sessions caught [sessions]",
    "stuck_gated": "Stuck sessions gated [sessions]",
    "messages": "Messages [number]",
    "gate_calls": "Gated calls [number]",
    "false_rejections": "False rejections [calls]",
    "lead_calls_median": "Lead, median [calls]",
    "lead_minutes_median": "Lead, median [minutes]",
    "lead_tokens_median": "Lead, median [tokens]",
}


def _cell(x: float, y: float, colour: str, hatch: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor=FAINT, linewidth=0.5, hatch=hatch)


def _frame(x: float, y: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, fill=False, edgecolor=INK, linewidth=2.2, zorder=4)


def _slice(sweep: Sweep, keys: Sequence[str]) -> dict[tuple[str, ...], int]:
    """Return the configurations that differ from the reference in some settings of the grid alone, by their values."""
    configs = sweep.plan.configs
    fixed = {key: value for key, value in configs[_reference(sweep)].point.items() if key not in keys}
    found: dict[tuple[str, ...], int] = {}
    for number, config in enumerate(configs):
        point = config.point
        if config.name is None and all(_spelled(point.get(key)) == _spelled(value) for key, value in fixed.items()):
            found.setdefault(tuple(_spelled(point.get(key)) for key in keys), number)
    return found


def _spelled(value: object) -> str:
    return canonical_json(value)


def _told(value: object) -> str:
    return "off" if value is None else value if isinstance(value, str) else _spelled(value)


def _unit(key: str) -> str:
    counted = key in {"warnAt", "summarizeAt", "failWarnAt", "failLimit", "window"} or key.startswith("limits.")
    return " [calls]" if counted else ""


# -- one setting ---------------------------------------------------------------------------------------------------


class _Curve(NamedTuple):
    metric: str
    told: str
    line: str
    marker: str
    is_strong: bool
    """Its marks are filled and its band is hatched; those of the other curve are not."""


_CURVES: Mapping[Literal["stuck", "good"], _Curve] = {
    "stuck": _Curve(_STRONG_RATE, "stuck caught", "-", "o", is_strong=True),
    "good": _Curve(_WEAK_RATE, "good touched", "--", "s", is_strong=False),
}
_CURVES_WITHOUT_LABELS = (
    _Curve("sessions_gated", "gated", "-", "o", is_strong=True),
    _Curve("sessions_warned", "warned", "--", "s", is_strong=False),
)
"""What the guard does to all sessions, where none is labelled."""


def _draw_response(axes: Any, *, sweep: Sweep, key: str) -> None:
    at = _slice(sweep, (key,))
    values = [value for value in _numbers(sweep.plan.grid[key]) if (_spelled(value),) in at]
    numbers = [at[(_spelled(value),)] for value in values]
    curves = [(curve, sweep.labels[label]) for label, curve in _CURVES.items() if sweep.labels[label]]
    for curve, whole in curves or [(curve, len(sweep.sessions)) for curve in _CURVES_WITHOUT_LABELS]:
        shares = [_share(sweep, number, curve.metric) for number in numbers]
        axes.fill_between(
            values,
            [low for _, low, _ in shares],
            [high for _, _, high in shares],
            facecolor="none" if curve.is_strong else CALM,
            alpha=1 if curve.is_strong else 0.35,
            edgecolor=FAINT,
            hatch="////" if curve.is_strong else "",
            linewidth=0.6,
            zorder=1,
        )
        axes.plot(
            values,
            [value for value, _, _ in shares],
            color=INK,
            linestyle=curve.line,
            marker=curve.marker,
            markersize=4.5,
            markerfacecolor=INK if curve.is_strong else PAPER,
            linewidth=1.4,
            label=f"{curve.told} (of {whole})",
            zorder=3,
        )
    axes.set_ylim(-4, 104)
    dotted = "; dotted: the choice" if sweep.front.leading is not None else ""
    axes.set_xlabel(f"{key}{_unit(key)}{dotted}")
    axes.set_ylabel("sessions [%]; bands: 95 %")
    if all(float(value).is_integer() for value in values):
        axes.xaxis.get_major_locator().set_params(integer=True)
    chosen = sweep.plan.configs[_reference(sweep)].point.get(key)
    if sweep.front.leading is not None and is_number(chosen):
        axes.axvline(chosen, color=FAINT, linestyle=":", linewidth=1.4, zorder=2)
    axes.set_title(f"What {key} does")
    axes.legend(loc="best", fontsize=8.5, borderaxespad=0.3)


# -- good runs -----------------------------------------------------------------------------------------------------


def _draw_good_runs(axes: Any, *, sweep: Sweep) -> None:
    settings = sweep.plan.configs[_reference(sweep)].settings
    draw_near_miss(axes, good_margins(sweep, settings), f"{sweep.labels['good']} good runs")


def good_margins(sweep: Sweep, settings: Settings) -> Mapping[StageName, list[float]]:
    """Return for every stage that settings have on how many calls each good run had left before it, not below 0."""
    good = [one.peaks for one in sweep.sessions if one.label == "good" and one.peaks is not None]
    thresholds: dict[StageName, Callable[[SessionPeaks], float | None]] = {
        "warn": lambda peaks: _left(settings.warn_at, peaks.highest),
        "summarize": lambda peaks: _left(settings.summarize_at, peaks.highest),
        "gate": lambda peaks: _left_to_caps(settings, peaks),
        "fail-warn": lambda peaks: _left(settings.fail_warn_at, peaks.streak),
        "fail-gate": lambda peaks: _left(settings.fail_limit, peaks.streak),
    }
    margins: dict[StageName, list[float]] = {}
    for stage, left in thresholds.items():
        values = [value for value in map(left, good) if value is not None]
        if values:
            margins[stage] = values
    return margins


def _left(threshold: float | None, reached: int) -> float | None:
    return None if threshold is None else max(threshold - reached, 0)


def _left_to_caps(settings: Settings, peaks: SessionPeaks) -> float | None:
    """Return the least distance to a cap of a kind; of kinds the run never used, its cap counts from 0."""
    caps = {kind: cap for kind, cap in settings.limits.items() if cap is not None and ":" not in kind}
    return min((max(cap - peaks.by_kind.get(kind, 0), 0) for kind, cap in caps.items()), default=None)
