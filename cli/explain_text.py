"""An explained decision for a person."""

from __future__ import annotations

from analysis.explain import MARKS, Explanation
from cli.console import terminal_width
from cli.tables import print_rows
from cli.text import counted, plain, shortened

__all__ = ["print_explanation"]

_MEASURE_WIDTH = 60
_TURN_WIDTH = 10
_NONE = "·"
_LINE_MARGIN = 2


def print_explanation(explanation: Explanation) -> None:
    """Print a decision, its state, its evidence, its remedies, and the session around it."""
    call, session = explanation.call, explanation.session
    print(f"session {plain(session.header.session_id or explanation.path)}  ({plain(explanation.path)})")
    decision = explanation.decision.action if explanation.decision is not None else "never met the guard"
    stages = ", ".join(event.stage for event in explanation.events) or "no stage"
    print(
        f"call {call.index} (seq {call.seq}, turn {call.turn}) {plain(call.call.name)}: {stages}; decision {decision}, "
        f"recorded outcome {call.outcome.kind}"
    )
    print("\nwhy")
    for line in explanation.why:
        print(f"  {plain(line)}")
    _print_measures(explanation)
    _print_window(explanation)
    _print_evidence(explanation)
    _print_remedies(explanation)
    _print_timeline(explanation)
    plan = explanation.plan
    print(f"\nruleset {plan.ruleset.name} ({plan.ruleset.note}), policy {plan.policy}, settings {plan.settings.digest}")


def _print_measures(explanation: Explanation) -> None:
    print("\nits measures, as the guard met them")
    rows = [
        (
            shortened(state.measure, _MEASURE_WIDTH),
            str(state.count),
            _NONE if state.cap is None else f"{state.cap:g}",
            str(state.streak or _NONE),
            str(state.rank + 1),
            " ".join(word for word, holds in (("exempt", state.exempt), ("refused", state.refused)) if holds),
        )
        for state in explanation.measures
    ]
    print_rows(("measure", "count", "cap", "streak", "rank", ""), rows, numbers_from=1, cut=(0,), first_out=[("rank",)])


def _print_window(explanation: Explanation) -> None:
    ours = {state.measure for state in explanation.measures}
    records = counted(explanation.plan.settings.window, "record")
    print(f"the window: {len(explanation.window)} of {records}, oldest first")
    for record in explanation.window:
        shared = [measure for measure in dict.fromkeys(record.measures) if measure in ours]
        told = ", ".join(shortened(measure, _MEASURE_WIDTH) for measure in shared) or _NONE
        print(f"  call {record.call} {plain(record.tool)}: {told}")


def _print_evidence(explanation: Explanation) -> None:
    if not explanation.evidence:
        return
    print("\nthe failures of the streak, and what they rest on")
    for one in explanation.evidence:
        words = f": {shortened(one.words, _MEASURE_WIDTH)!r}" if one.words else ""
        print(f"  call {one.call} (seq {one.seq}): {plain(one.told)} · {one.evidence} · {one.rule}{words}")


def _print_remedies(explanation: Explanation) -> None:
    stage = explanation.stage
    if stage is None:
        return
    print(f"\nwhat alone would have avoided {stage} at this call")
    if not explanation.remedies:
        print("  no single setting that was tried")
    for remedy in explanation.remedies:
        before = f"{remedy.before} → " if remedy.before else ""
        instead = ", ".join(remedy.stages) or "nothing said"
        first = "never reached" if remedy.first is None else f"first reached at call {remedy.first}"
        print(f"  {plain(remedy.key)}: {before}{plain(remedy.after)}  (then: {instead}; {stage} {first})")


def _print_timeline(explanation: Explanation) -> None:
    print("\nthe session, one mark per call")
    width = max(terminal_width() - _TURN_WIDTH - _LINE_MARGIN, 1)
    for line in explanation.timeline:
        for start in range(0, len(line.marks), width):
            name = f"turn {line.turn}" if start == 0 else ""
            print(f"{name:<{_TURN_WIDTH}}{line.marks[start : start + width]}")
            if line.cursor is not None and start <= line.cursor < start + width:
                print(" " * (_TURN_WIDTH + line.cursor - start) + "^")
    print("  " + "  ".join(f"{mark} {name}" for name, mark in MARKS.items()))
