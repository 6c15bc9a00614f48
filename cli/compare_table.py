"""A comparison for a person: as tables on a terminal, or as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis.compare import CHANGES, Change, Comparison, GroupTotals, SessionComparison, Side
from analysis.labels import Label
from analysis.shares import CONFIDENCE
from cli.console import output_console
from cli.detectors import rebuilt_told
from cli.tables import left_out_line, markdown_lines, markdown_text, print_rows
from cli.text import counted, plain, shortened

__all__ = ["print_comparison"]

_NONE = "·"
_SESSION_WIDTH = 28
_MOST_IDS = 5
_TOLD: Mapping[Label, str] = {"good": "wrongly touched", "stuck": "caught", "unknown": "fired"}
_LEGEND = (
    "newly firing: only B fires; stopped: only A; earlier, later: both fire, B's first call against A's; "
    "silent: neither."
)
_OPEN_LOOP = (
    "Both replays are open-loop: the recorded run goes on whatever a side says, so first calls tell more than totals."
)


class _Printer:
    """Prints headings, lines and tables in one of the two forms."""

    def __init__(self, *, markdown: bool) -> None:
        self._markdown = markdown

    def heading(self, text: str) -> None:
        print(f"## {text}\n" if self._markdown else f"\n{text}")

    def line(self, text: str) -> None:
        print(f"{markdown_text(text)}\n" if self._markdown else plain(text))

    def table(
        self,
        headings: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        numbers_from: int,
        cut: Sequence[int] = (),
        first_out: Sequence[tuple[str, ...]] = (),
    ) -> None:
        if self._markdown:
            print("\n".join(markdown_lines(headings, rows)), end="\n\n")
            return
        left_out = print_rows(headings, rows, numbers_from=numbers_from, cut=cut, first_out=first_out)
        if left_out:
            output_console().print(left_out_line(left_out, "--format markdown or json has all"))


def print_comparison(comparison: Comparison, *, top: int, markdown: bool) -> None:
    """Print a comparison: the sides, totals by stage and kind, labels, agreement, and the sessions that differ."""
    printer = _Printer(markdown=markdown)
    if markdown:
        print("# breaker compare\n")
    printer.line(f"A: {_side(comparison.a)}")
    printer.line(f"B: {_side(comparison.b)}")
    read = " · ".join(f"{state} {count}" for state, count in comparison.corpus.read_counts.items() if count)
    printer.line(f"{counted(len(comparison.sessions), 'session')}; files: {read}")
    _groups(printer, "By stage: sessions", comparison.totals)
    printer.line(_LEGEND)
    if comparison.kind_totals:
        _groups(printer, "By kind of measure: sessions", comparison.kind_totals)
    _labels(printer, comparison)
    _agreement(printer, comparison)
    for text in rebuilt_told(comparison.corpus):
        printer.line(text)
    _sessions(printer, comparison, top)
    printer.line(_OPEN_LOOP)


def _side(side: Side) -> str:
    if side.detector is not None:
        told = ", ".join(f"{key} {value}" for key, value in side.detector.settings.items() if key != "stopText")
        return f"{side.label} (detector {side.detector.name}: {told})"
    plan = side.plan
    return f"{side.label} (breaker, ruleset {plan.ruleset.name}, policy {plan.policy}, settings {plan.settings.digest})"


def _number(count: int) -> str:
    return str(count) if count else _NONE


def _groups(printer: _Printer, title: str, totals: Mapping[str, GroupTotals]) -> None:
    printer.heading(title)
    rows = [
        [
            name,
            *(_number(group.changes[kind]) for kind in CHANGES),
            *map(_number, group.sessions),
            *map(_number, group.events),
        ]
        for name, group in totals.items()
        if any(group.events)
    ]
    headings = ("", *CHANGES, "sessions A", "sessions B", "events A", "events B")
    if rows:
        first_out = [("silent",), ("same",), ("events A", "events B"), ("later",), ("earlier",)]
        printer.table(headings, rows, numbers_from=1, first_out=first_out)
    else:
        printer.line("Neither side fires anywhere.")


def _labels(printer: _Printer, comparison: Comparison) -> None:
    printer.heading("By label: who fires")
    rows = [
        [
            f"{label} ({_TOLD[label]})",
            str(totals.sessions),
            _number(totals.both),
            _number(len(totals.only_a)),
            _number(len(totals.only_b)),
            _number(totals.neither),
        ]
        for label, totals in comparison.labels.items()
    ]
    printer.table(("label", "sessions", "both", "only A", "only B", "neither"), rows, numbers_from=1)
    for label, totals in comparison.labels.items():
        for side, ids in (("A", totals.only_a), ("B", totals.only_b)):
            if ids and label != "unknown":
                more = f" and {len(ids) - _MOST_IDS} more" if len(ids) > _MOST_IDS else ""
                printer.line(f"{_TOLD[label]} by {side} only ({label}): {', '.join(ids[:_MOST_IDS])}{more}")
    withheld = [sum(one.withheld[at] for one in comparison.sessions) for at in (0, 1)]
    false = [sum(one.false_rejections[at] for one in comparison.sessions) for at in (0, 1)]
    printer.line(
        f"calls withheld: A {withheld[0]}, B {withheld[1]}; of them had succeeded (false rejections): "
        f"A {false[0]}, B {false[1]}"
    )


def _agreement(printer: _Printer, comparison: Comparison) -> None:
    printer.heading("Agreement: who fires in which sessions")
    rows = [[name, _number(comparison.firing[name]), _number(comparison.alone[name])] for name in comparison.detectors]
    printer.table(("detector", "fires", "fires alone"), rows, numbers_from=1)
    pairs: list[list[str]] = []
    for (first, second), agreement in comparison.agreements.items():
        kappa, interval = agreement.kappa, agreement.interval
        pairs.append(
            [
                first,
                second,
                *map(_number, (agreement.both, agreement.only_first, agreement.only_second, agreement.neither)),
                "undefined" if kappa is None else f"{kappa:.2f}",
                "none" if interval is None else f"{interval[0]:.2f} … {interval[1]:.2f}",
            ]
        )
    if pairs:
        first_out = [("neither",), ("only first", "only second"), ("both",)]
        headings = ("first", "second", "both", "only first", "only second", "neither", "kappa")
        printer.table((*headings, f"{CONFIDENCE:.0%} interval"), pairs, numbers_from=2, cut=(0, 1), first_out=first_out)


def _sessions(printer: _Printer, comparison: Comparison, top: int) -> None:
    differing = [one for one in comparison.sessions if one.differs]
    printer.heading(f"Sessions that differ: {len(differing)} of {len(comparison.sessions)}")
    shown = differing if top == 0 else differing[:top]
    if shown:
        headings = ("session", "label", "stage", "change", "first call A", "first call B", "events A", "events B")
        rows = [row for one in shown for row in _session_rows(one)]
        first_out = [("label",), ("events A", "events B")]
        printer.table(headings, rows, numbers_from=4, cut=(0,), first_out=first_out)
    if len(shown) < len(differing):
        printer.line(f"… and {len(differing) - len(shown)} more (--top 0 shows all)")


def _session_rows(one: SessionComparison) -> list[list[str]]:
    changes = {name: change for name, change in one.stages.items() if change.differs}
    single = {name: change for name, change in changes.items() if name not in {"any", "message", "stop"}}
    if single:
        changes = single
    elif len(changes) > 1:
        changes.pop("any", None)
    rows: list[list[str]] = []
    for position, (name, change) in enumerate(changes.items()):
        session = shortened(one.session_id, _SESSION_WIDTH) if position == 0 else ""
        rows.append([session, one.label if position == 0 else "", name, change.kind, *_numbers(change)])
    return rows


def _numbers(change: Change) -> list[str]:
    firsts = [_NONE if first is None else f"#{first}" for first in (change.first_a, change.first_b)]
    return [*firsts, _number(change.count_a), _number(change.count_b)]
