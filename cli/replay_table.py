"""The table of a replay: the worst sessions, the corpus, and what could not be read."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.corpus import CorpusReplay, SessionRow, severity
from analysis.detect import BREAKER_NAME, happened, sum_detectors
from analysis.replay import STAGES, StageName
from breaker.measures import KINDS
from cli.console import output_console
from cli.detectors import rebuilt_told
from cli.text import plain, shortened

__all__ = ["print_replay"]

_MEASURE_WIDTH = 30
_SESSION_WIDTH = 28
_MOST_REASONS = 8
_LEAST_PEAK_WIDTH = 12
_TABLE_EDGES = 2
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
_LEGEND = (
    "held: calls withheld; false: of those, the ones that had succeeded; 1st gate: index of the first gated call; "
    "streak: longest run of failures of one measure; peak: highest count of one measure"
)
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
    _print_read_report(console, corpus)
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
    rows: list[list[str]] = []
    for row, name in zip(shown, _short_names(shown), strict=True):
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
    texts = 2 if labelled else 1
    columns = zip(headings[:-1], *(cells[:-1] for cells in rows), strict=True)
    taken = sum(1 + max(map(len, column)) for column in columns)
    room = max(console.width - taken - _TABLE_EDGES, _LEAST_PEAK_WIDTH)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    for position, heading in enumerate(headings):
        numeric = texts <= position < len(headings) - 1
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=True)
    for cells in rows:
        table.add_row(*map(Text, (*cells[:-1], shortened(cells[-1], room))))
    console.print(table)
    left = len(ordered) - len(shown)
    if left:
        console.print(f"… and {left} more sessions (--top 0 shows all)")
    console.print(_LEGEND)
    console.print()


def _short_names(rows: Sequence[SessionRow]) -> list[str]:
    """Name sessions by their id, and by their folder where ids repeat."""
    ids = [row.session_id for row in rows]
    names: list[str] = []
    for row in rows:
        name = row.session_id
        if ids.count(name) > 1:
            parts = row.path.replace("\\", "/").split("/")
            name = parts[-2] if len(parts) > 1 else row.path
        names.append(shortened(name, _SESSION_WIDTH))
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
        f"{len(corpus.sessions)} sessions, {totals.turns} turns, {totals.calls} calls, {totals.tracked} tracked",
    )
    line(
        "failures",
        f"{failed} of {totals.settled} settled calls: {_percent(failed, totals.settled)}; "
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
        f"{totals.asks} asks, {totals.denials} calls withheld; {totals.false_rejections} of them had succeeded "
        f"(false rejections), in {totals.sessions_with_false_rejection} sessions",
    )
    console.print(grid)
    console.print()
    _print_kinds(console, corpus)
    _print_reasons(console, corpus)
    console.print(_OPEN_LOOP, soft_wrap=False)
    console.print()


def _print_kinds(console: Console, corpus: CorpusReplay) -> None:
    totals = corpus.totals
    if not totals.stages_by_kind:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("events by measure kind")
    for stage in STAGES:
        table.add_column(stage, justify="right")
    table.add_column("sessions", justify="right")
    for kind in KINDS:
        if kind in totals.stages_by_kind:
            stages = totals.stages_by_kind[kind]
            table.add_row(kind, *(str(stages[stage] or "·") for stage in STAGES), str(totals.sessions_by_kind[kind]))
    console.print(table)


def _print_reasons(console: Console, corpus: CorpusReplay) -> None:
    reasons = corpus.totals.failures_by_count
    if not reasons:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("failures by tool", "reason", "detail", "evidence"):
        table.add_column(heading, overflow="fold", max_width=_MEASURE_WIDTH)
    table.add_column("calls", justify="right")
    for key, count in reasons[:_MOST_REASONS]:
        table.add_row(*(Text(plain(cell)) for cell in (key.tool, key.reason, key.detail, key.evidence)), str(count))
    console.print(table)
    if len(reasons) > _MOST_REASONS:
        console.print(f"… and {len(reasons) - _MOST_REASONS} more kinds of failure\n")


def _print_detectors(console: Console, corpus: CorpusReplay) -> None:
    """Print what other detectors saw beside the guard."""
    specs = corpus.plan.detectors
    if not specs:
        return
    totals = sum_detectors(specs, (row.replay for row in corpus.sessions))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("detectors beside the guard", overflow="fold")
    table.add_column("events", overflow="fold")
    for heading in ("sessions", "held", "false"):
        table.add_column(heading, justify="right")
    for label, total in totals.items():
        said = " · ".join(f"{stage} {count}" for stage, count in total.stages.items()) or _NONE
        counts = (total.sessions, total.denials, total.false_rejections)
        table.add_row(Text(plain(label)), Text(plain(said)), *(str(count or _NONE) for count in counts))
    console.print(table)
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


def _print_read_report(console: Console, corpus: CorpusReplay) -> None:
    told = [report for report in corpus.reports if report.state not in {"ok", "superseded"}]
    notes: dict[str, list[str]] = {}
    for report in corpus.reports:
        if report.state == "ok":
            for note in report.notes:
                notes.setdefault(note, []).append(report.shown)
    if not told and not notes and not corpus.problems:
        return
    counts = " · ".join(f"{state} {count}" for state, count in corpus.read_counts.items() if count)
    console.print(Text(f"read report: {len(corpus.reports)} files; {counts}"))
    for report in told:
        console.print(Text(f"  {report.state:<11} {plain(report.shown)}"), soft_wrap=True)
        for defect in report.defects:
            lost = f"; {defect.lost_bytes} bytes lost" if defect.lost_bytes else ""
            console.print(Text(f"    {defect.place()}: {plain(defect.message)}{lost}"), soft_wrap=True)
        if report.defects_untold:
            console.print(Text(f"    … and {report.defects_untold} more defects"))
        for note in report.notes:
            console.print(Text(f"    {plain(note)}"), soft_wrap=True)
    for note, files in notes.items():
        others = f" and {len(files) - 1} more" if len(files) > 1 else ""
        console.print(Text(f"  note        {plain(note)}: {plain(files[0])}{others}"), soft_wrap=True)
    for problem in corpus.problems:
        console.print(Text(f"  not searched {plain(problem.shown)}: {plain(problem.message)}"), soft_wrap=True)
    console.print()
