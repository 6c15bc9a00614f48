"""The table of a replay: the worst sessions, the corpus, and what could not be read."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.corpus import CorpusReplay, SessionRow, severity
from analysis.detect import BREAKER_NAME, happened, sum_detectors
from analysis.replayed import STAGES, StageName
from breaker.kinds import KINDS
from cli.console import output_console
from cli.detectors import rebuilt_told
from cli.tables import left_out_line, print_rows
from cli.text import counted, plain, shortened

__all__ = ["print_read_report", "print_replay", "stage_heading"]

_MEASURE_WIDTH = 30
_WIDE = 90
"""Columns from which stages stand over their columns in full."""
_WIDE_FOR_SESSIONS = 110
_SESSION_WIDTH = 28
_NARROW_SESSION_WIDTH = 14
_MOST_REASONS = 8
_STAGE_HEADINGS: dict[StageName, str] = {
    "warn": "warn",
    "summarize": "summ",
    "gate": "gate",
    "fail-warn": "f-warn",
    "fail-gate": "f-gate",
    "shell-http": "shell",
}
_GATES: tuple[StageName, ...] = ("gate", "fail-gate")
_NONE = "·"
_FIRST_OUT = ("peak", "label", "streak", "1st gate", "shell", "summ", "f-warn", "warn", "false", "f-gate", "failed")
"""The columns of the sessions that are left out on a narrow terminal, the first of them first."""
_LEGEND = {
    "held": "calls withheld",
    "false": "withheld calls that had succeeded",
    "1st gate": "index of the first gated call",
    "streak": "longest run of failures of one measure",
    "peak": "highest count of one measure",
}
_OPEN_LOOP = (
    "A replay is open-loop: after the first withheld call the record goes on as if nothing had happened, so look at "
    "first trips and false rejections before totals."
)


def print_replay(corpus: CorpusReplay, *, events: bool, top: int) -> None:
    """Print a replay for a person."""
    console = output_console()
    if corpus.sessions:
        _print_sessions(console, corpus, top)
        _print_summary(console, corpus)
        _print_detectors(console, corpus)
    if events:
        _print_events(console, corpus)
    print_read_report(corpus)
    plan = corpus.plan
    console.print(f"ruleset {plan.ruleset.name} ({plan.ruleset.note})", soft_wrap=True)
    console.print(f"policy {plan.policy} · shell-HTTP policy {corpus.shell_http_told}", soft_wrap=True)
    console.print(f"settings {plan.settings.digest}", soft_wrap=True)


def _print_sessions(console: Console, corpus: CorpusReplay, top: int) -> None:
    ordered = sorted(corpus.sessions, key=severity, reverse=True)
    shown = ordered if top == 0 else ordered[:top]
    labelled = any(row.label != "unknown" for row in corpus.sessions)
    shell_http = any(row.replay.stages["shell-http"] for row in corpus.sessions)
    stages: list[StageName] = [stage for stage in STAGES if stage != "shell-http" or shell_http]
    headings = ["worst sessions", *(["label"] if labelled else []), "calls", "failed"]
    headings += [_STAGE_HEADINGS[stage] for stage in stages]
    headings += ["held", "false", "1st gate", "streak", "peak"]
    session_width = _SESSION_WIDTH if console.width >= _WIDE_FOR_SESSIONS else _NARROW_SESSION_WIDTH
    rows: list[list[str]] = []
    for row, name in zip(shown, _short_names(shown, session_width), strict=True):
        replay = row.replay
        trips = [replay.first_trips[stage].call for stage in _GATES if stage in replay.first_trips]
        counts = [
            replay.calls,
            replay.outcomes["failed"],
            *(replay.stages[stage] for stage in stages),
            replay.denials,
            replay.false_rejections,
        ]
        cells = [name, *([row.label] if labelled else []), *(str(count or _NONE) for count in counts)]
        cells.append(f"#{min(trips)}" if trips else _NONE)
        cells.append(str(replay.streak_length or _NONE))
        cells.append(f"{replay.peak.count} × {plain(replay.peak.measure)}" if replay.peak else _NONE)
        rows.append(cells)
    left_out = print_rows(
        headings,
        rows,
        numbers_from=2 if labelled else 1,
        numbers_to=len(headings) - 1,
        cut=(len(headings) - 1,),
        first_out=[(heading,) for heading in _FIRST_OUT],
    )
    left = len(ordered) - len(shown)
    if left:
        console.print(f"… and {counted(left, 'more session')} (--top 0 shows all)", soft_wrap=True)
    told = [f"{heading}: {text}" for heading, text in _LEGEND.items() if heading not in left_out]
    console.print("; ".join(told))
    if left_out:
        console.print(left_out_line(left_out, "--format json has all"))
    console.print()


def _short_names(rows: Sequence[SessionRow], width: int) -> list[str]:
    """Name sessions by their id, and by their folder where ids repeat."""
    ids = [row.session_id for row in rows]
    names: list[str] = []
    for row in rows:
        name = row.session_id
        if ids.count(name) > 1:
            parts = row.path.replace("\\", "/").split("/")
            name = parts[-2] if len(parts) > 1 else row.path
        names.append(shortened(name, width))
    return names


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "no rate"


def _print_summary(console: Console, corpus: CorpusReplay) -> None:
    totals = corpus.totals
    outcomes = totals.outcomes
    failed, without_text = outcomes["failed"], outcomes["failed"] - totals.failed_text_only
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(overflow="fold")

    def line(name: str, text: str) -> None:
        grid.add_row(Text(name), Text(text))

    line(
        "corpus",
        f"{counted(len(corpus.sessions), 'session')}, {counted(totals.turns, 'turn')}, "
        f"{counted(totals.calls, 'call')}, {totals.tracked} tracked",
    )
    line(
        "failures",
        f"{failed} of {counted(totals.settled, 'settled call')}: {_percent(failed, totals.settled)}; "
        f"{_percent(without_text, totals.settled)} without a shell's words ({without_text})",
    )
    line(
        "outcomes",
        " · ".join(f"{kind} {outcomes[kind]}" for kind in ("ok", "failed", "undecidable", "denied", "not-run", "open"))
        + f"; not started {totals.not_started}, clipped {totals.clipped}, truncated {totals.truncated}",
    )
    line("streaks", "sessions that reach " + " · ".join(f"{step}: {count}" for step, count in totals.streaks.items()))
    for label, steps in totals.streaks_by_label.items():
        if len(totals.streaks_by_label) > 1 or label != "unknown":
            line("", f"{label} sessions " + " · ".join(f"{step}: {count}" for step, count in steps.items()))
    line("events", " · ".join(f"{stage} {totals.stages[stage]}" for stage in STAGES))
    line("in sessions", " · ".join(f"{stage} {totals.sessions_by_stage[stage]}" for stage in STAGES))
    line(
        "gates",
        f"{counted(totals.asks, 'ask')}, {counted(totals.denials, 'call')} withheld; {totals.false_rejections} of them "
        f"had succeeded (false rejections), in {counted(totals.sessions_with_false_rejection, 'session')}",
    )
    console.print(grid)
    console.print()
    _print_kinds(console, corpus)
    _print_reasons(console, corpus)
    console.print(_OPEN_LOOP, soft_wrap=False)
    console.print()


def stage_heading(stage: StageName, width: int) -> str:
    """Return what stands over a column of a stage on a terminal of that width."""
    return stage if width >= _WIDE else _STAGE_HEADINGS[stage]


def _print_kinds(console: Console, corpus: CorpusReplay) -> None:
    totals = corpus.totals
    if not totals.stages_by_kind:
        return
    is_wide = console.width >= _WIDE
    headings = ["events by measure kind" if is_wide else "by kind"]
    headings += [stage_heading(stage, console.width) for stage in STAGES]
    rows = [
        [
            kind,
            *(str(totals.stages_by_kind[kind][stage] or _NONE) for stage in STAGES),
            str(totals.sessions_by_kind[kind]),
        ]
        for kind in KINDS
        if kind in totals.stages_by_kind
    ]
    print_rows([*headings, "sessions"], rows, numbers_from=1)


def _print_reasons(console: Console, corpus: CorpusReplay) -> None:
    reasons = corpus.totals.failures_by_count
    if not reasons:
        return
    headings = ("failures by tool", "reason", "detail", "evidence", "calls")
    rows = [(key.tool, key.reason, key.detail, key.evidence, str(count)) for key, count in reasons[:_MOST_REASONS]]
    print_rows(headings, rows, numbers_from=len(headings) - 1, widest=_MEASURE_WIDTH)
    if len(reasons) > _MOST_REASONS:
        console.print(f"… and {counted(len(reasons) - _MOST_REASONS, 'more kind')} of failure\n")


def _print_detectors(console: Console, corpus: CorpusReplay) -> None:
    """Print what other detectors saw beside the guard."""
    specs = corpus.plan.detectors
    if not specs:
        return
    totals = sum_detectors(specs, (row.replay for row in corpus.sessions))
    headings = ("detectors beside the guard", "events", "sessions", "held", "false")
    rows: list[tuple[str, ...]] = []
    for label, total in totals.items():
        said = " · ".join(f"{stage} {count}" for stage, count in total.stages.items()) or _NONE
        counts = (total.sessions, total.denials, total.false_rejections)
        rows.append((label, said, *(str(count or _NONE) for count in counts)))
    print_rows(headings, rows, numbers_from=2)
    for line in rebuilt_told(corpus):
        console.print(Text(plain(line)), soft_wrap=True)
    console.print()


def _print_events(console: Console, corpus: CorpusReplay) -> None:
    names = (BREAKER_NAME, *(plain(spec.label) for spec in corpus.plan.detectors))
    name_width = max(map(len, names)) + 2 if corpus.plan.detectors else 0
    for row in corpus.sessions:
        happenings = happened(row.replay)
        if not happenings:
            continue
        console.print(Text(f"{plain(row.session_id)}  {plain(row.path)}"), soft_wrap=True)
        for name, event in happenings:
            who = f"{plain(name):<{name_width}}" if name_width else ""
            place = f"  {who}#{event.call:<5} turn {event.turn:<3} seq {event.seq:<6}"
            count = f"{event.count}/{event.threshold:g}" if event.measure else ""
            failure = event.failure
            told = "" if failure is None else f"  ({failure.reason} {failure.detail}".rstrip() + ")"
            line = f"{place} {event.stage:<10} {count:>6}  {event.decision:<15} {plain(event.tool)}  "
            line += shortened(event.measure, max(console.width - len(line) - len(told), _MEASURE_WIDTH)) + plain(told)
            console.print(Text(line), soft_wrap=True)
            if event.message is not None:
                for said in event.message.split("\n"):
                    console.print(Text(f"        | {plain(said)}"), soft_wrap=True)
        console.print()


def print_read_report(corpus: CorpusReplay) -> None:
    """Print what could not be read as it should, for a person; nothing where all is well."""
    console = output_console()
    told = [report for report in corpus.reports if report.state not in {"ok", "superseded"}]
    notes: dict[str, list[str]] = {}
    for report in corpus.reports:
        if report.state == "ok":
            for note in report.notes:
                notes.setdefault(note, []).append(report.shown)
    if not told and not notes and not corpus.problems:
        return
    counts = " · ".join(f"{state} {count}" for state, count in corpus.read_counts.items() if count)
    console.print(Text(f"read report: {counted(len(corpus.reports), 'file')}{'; ' if counts else ''}{counts}"))
    for report in told:
        console.print(Text(f"  {report.state:<11} {plain(report.shown)}"), soft_wrap=True)
        for defect in report.defects:
            lost = f"; {counted(defect.lost_bytes, 'byte')} lost" if defect.lost_bytes else ""
            place = f"{defect.place()}: " if defect.place() else ""
            console.print(Text(f"    {place}{plain(defect.message)}{lost}"), soft_wrap=True)
        if report.defects_untold:
            console.print(Text(f"    … and {counted(report.defects_untold, 'more defect')}"))
        for note in report.notes:
            console.print(Text(f"    {plain(note)}"), soft_wrap=True)
    for note, files in notes.items():
        others = f" and {len(files) - 1} more" if len(files) > 1 else ""
        console.print(Text(f"  note        {plain(note)}: {plain(files[0])}{others}"), soft_wrap=True)
    for problem in corpus.problems:
        console.print(Text(f"  not searched {plain(problem.shown)}: {plain(problem.message)}"), soft_wrap=True)
    console.print()
