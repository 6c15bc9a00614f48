"""What a report tells, computed once: every rendering shows the same numbers."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from analysis.corpus import STREAK_STEPS, CorpusReplay, SessionRow, severity
from analysis.documents import JsonObject, head, rate
from analysis.labels import LABELS, Label
from analysis.replay import STAGES, ReplayPlan, StageName
from analysis.sessions.report import ReadReport
from analysis.shares import CONFIDENCE, Share, clustered_share, session_share
from analysis.tables import WHATS, Histograms, What, caps_by_kind, thresholds
from analysis.tables.privacy import Privacy, printable_unicode, private_settings
from breaker.kinds import KINDS

if TYPE_CHECKING:
    from analysis.tables import TablesObservation

__all__ = [
    "GATES",
    "REPORT_TABLES",
    "CallMark",
    "EventMark",
    "FailureLine",
    "Headline",
    "Histogram",
    "KindLine",
    "NoteLine",
    "ReadLine",
    "ReportData",
    "StageLine",
    "ToolLine",
    "TurnLine",
    "WorstSession",
    "build_report",
    "histogram_document",
    "histograms_of",
    "report_document",
]

REPORT_TABLES = ("turns", "calls", "events")
"""What a report needs gathered, histograms aside."""

_MOST_FAILURES = 20
_MOST_TOOLS = 20
_MOST_EVENTS = 30
_MOST_FILES = 50
_DIGITS = 6
GATES: tuple[StageName, ...] = ("gate", "fail-gate")
"""The stages at which a call reaches a gate; a request refused in a shell is no gate."""


@dataclass(frozen=True, slots=True)
class Headline:
    """One number a person should see first."""

    name: str
    share: Share
    of: str
    """What is divided by."""
    meaning: str


@dataclass(frozen=True, slots=True)
class StageLine:
    """What one stage would have done."""

    stage: StageName
    threshold: str
    """The threshold in words; `off` where there is none."""
    events: int
    sessions: Share
    first_call: float | None
    """The median index of the first call that reached it, over the sessions that did."""
    calls_after: float | None
    """The median number of calls recorded after that."""


@dataclass(frozen=True, slots=True)
class KindLine:
    """The events of one measure kind."""

    kind: str
    cap: float | None
    stages: Mapping[StageName, int]
    sessions: int


@dataclass(frozen=True, slots=True)
class ToolLine:
    """The calls and events of one tool."""

    tool: str
    calls: int
    ok: int
    failed: int
    withheld: int
    false_rejections: int
    stages: Mapping[StageName, int]


@dataclass(frozen=True, slots=True)
class FailureLine:
    """How often calls failed one way."""

    tool: str
    reason: str
    detail: str
    evidence: str
    count: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """One histogram of one measure kind, by label."""

    kind: str
    what: What
    counts: Mapping[Label, Mapping[int, int]]
    thresholds: Mapping[str, float]
    """Stage and threshold."""

    @property
    def total(self) -> int:
        """How many values were counted."""
        return sum(sum(values.values()) for values in self.counts.values())

    @property
    def highest(self) -> int:
        """The highest value seen."""
        return max((value for values in self.counts.values() for value in values), default=0)

    def reached(self, threshold: float) -> int:
        """Return how many values are at or above a threshold."""
        return sum(count for values in self.counts.values() for value, count in values.items() if value >= threshold)


@dataclass(frozen=True, slots=True)
class CallMark:
    """One call on a timeline."""

    call: int
    turn: int
    outcome: str
    withheld: bool
    stages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnLine:
    """One turn on a timeline."""

    turn: int
    calls: int
    failed: int
    events: int
    withheld: int
    seconds: float | None
    tokens: int | None
    lines: int
    short_lines: int

    @property
    def short_line_share(self) -> float | None:
        """The share of short phrases in the model's own lines."""
        return self.short_lines / self.lines if self.lines else None


@dataclass(frozen=True, slots=True)
class EventMark:
    """One event of a session, told in a table."""

    call: int
    turn: int
    tool: str | None
    stage: str
    measure: str | None
    count: int | None
    threshold: float | None
    decision: str


@dataclass(frozen=True, slots=True)
class WorstSession:
    """One session that had the most to tell, with its timeline."""

    index: int
    """Its place among the sessions sorted by path."""
    session: str | None
    path: str | None
    label: Label
    turns: int
    calls: int
    failed: int
    stages: Mapping[StageName, int]
    denials: int
    false_rejections: int
    first_gate: int | None
    streak: int
    streak_measure: str | None
    peak: int
    peak_measure: str | None
    recorded_under_breaker: bool
    marks: tuple[CallMark, ...]
    turn_lines: tuple[TurnLine, ...]
    events: tuple[EventMark, ...]
    events_untold: int


@dataclass(frozen=True, slots=True)
class ReadLine:
    """One file that did not read ok."""

    path: str | None
    state: str
    lost_rows: int
    lost_bytes: int
    told: tuple[str, ...]
    """Each defect with its place."""


@dataclass(frozen=True, slots=True)
class NoteLine:
    """Something worth knowing of files that read ok."""

    told: str
    files: int
    example: str


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything a report tells."""

    head: JsonObject
    privacy: str
    short_line: int
    sessions: int
    turns: int
    calls: int
    tracked: int
    outcomes: Mapping[str, int]
    not_started: int
    clipped: int
    truncated: int
    asks: int
    denials: int
    false_rejections: int
    recorded_under_breaker: int
    labels: Mapping[Label, int]
    headlines: tuple[Headline, ...]
    stages: tuple[StageLine, ...]
    near_miss: Mapping[StageName, tuple[float, ...]]
    """For each stage that is on, how many calls every good session had left before it, 0 where it got there."""
    streaks: Mapping[int, Share]
    histograms: tuple[Histogram, ...]
    kinds: tuple[KindLine, ...]
    tools: tuple[ToolLine, ...]
    tools_untold: int
    failures: tuple[FailureLine, ...]
    failures_untold: int
    evidence: Mapping[str, int]
    worst: tuple[WorstSession, ...]
    worst_untold: int
    """Sessions with an event or a failure that are not shown."""
    read: Mapping[str, int]
    read_lines: tuple[ReadLine, ...]
    read_untold: int
    noted: int
    """Files that read ok and carry notes."""
    notes: tuple[NoteLine, ...]
    """Those notes; only where all texts may be shown."""
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def build_report(observation: TablesObservation, corpus: CorpusReplay, *, top: int) -> ReportData:
    """Compute what a report tells. Texts are shown as the observation's privacy allows.

    Args:
        observation: what watched the replay; it gathered `REPORT_TABLES`.
        corpus: the replay.
        top: how many of the worst sessions are shown with their timelines; 0 for none.
    """
    privacy, totals, plan = observation.privacy, corpus.totals, corpus.plan
    rows = sorted(corpus.sessions, key=lambda row: row.path)
    count = len(rows)
    histograms = observation.histograms(corpus)
    tools = _tools(observation, corpus)
    failures = _failures(corpus, privacy)
    telling = [row for row in rows if sum(row.replay.stages.values()) or row.replay.outcomes["failed"]]
    worst = sorted(telling, key=severity, reverse=True)[:top]
    indexes = {row.path: index for index, row in enumerate(rows)}
    told = [report for report in corpus.reports if report.state not in {"ok", "superseded"}]
    told.sort(key=lambda report: report.shown)
    evidence: Counter[str] = Counter()
    for key, number in totals.failed_by.items():
        evidence[key.evidence] += number
    return ReportData(
        head=_head(corpus, privacy),
        privacy=privacy.mode,
        short_line=observation.short_line or 0,
        sessions=count,
        turns=totals.turns,
        calls=totals.calls,
        tracked=totals.tracked,
        outcomes={kind: totals.outcomes[kind] for kind in ("ok", "failed", "undecidable", "denied", "not-run", "open")},
        not_started=totals.not_started,
        clipped=totals.clipped,
        truncated=totals.truncated,
        asks=totals.asks,
        denials=totals.denials,
        false_rejections=totals.false_rejections,
        recorded_under_breaker=sum(row.recorded_under_breaker for row in rows),
        labels={label: number for label in LABELS if (number := sum(row.label == label for row in rows))},
        headlines=_headlines(corpus, rows),
        stages=tuple(_stage_line(stage, corpus, rows) for stage in STAGES),
        near_miss=_near_miss(plan, rows),
        streaks={step: session_share(totals.streaks.get(step, 0), count) for step in STREAK_STEPS},
        histograms=histograms_of(histograms, corpus.plan),
        kinds=tuple(
            KindLine(
                kind=kind,
                cap=plan.settings.limits.get(kind),
                stages={stage: totals.stages_by_kind[kind][stage] for stage in STAGES},
                sessions=totals.sessions_by_kind[kind],
            )
            for kind in KINDS
            if kind in totals.stages_by_kind
        ),
        tools=tuple(tools[:_MOST_TOOLS]),
        tools_untold=max(len(tools) - _MOST_TOOLS, 0),
        failures=tuple(failures[:_MOST_FAILURES]),
        failures_untold=max(len(failures) - _MOST_FAILURES, 0),
        evidence=dict(sorted(evidence.items())),
        worst=tuple(_worst(observation, row, indexes[row.path]) for row in worst),
        worst_untold=len(telling) - len(worst),
        read=corpus.read_counts,
        read_lines=tuple(_read_line(report, privacy) for report in told[:_MOST_FILES]),
        read_untold=max(len(told) - _MOST_FILES, 0),
        noted=sum(report.state == "ok" and bool(report.notes) for report in corpus.reports),
        notes=_notes(corpus) if privacy.mode == "full" else (),
        problems=tuple(
            f"{privacy.shown(problem.shown, 'path') or ''}: {privacy.shown(problem.message, 'text') or ''}"
            for problem in corpus.problems
        ),
        warnings=tuple(privacy.shown_all(corpus.warnings, "text")),
    )


def _read_line(report: ReadReport, privacy: Privacy) -> ReadLine:
    defects: list[str] = []
    for defect in report.defects:
        place = f"{defect.kind}{defect.place()}"
        defects.append(f"{place}: {printable_unicode(defect.message)}" if privacy.mode == "full" else place)
    return ReadLine(
        path=privacy.shown(report.shown, "path"),
        state=report.state,
        lost_rows=report.lost_rows,
        lost_bytes=report.lost_bytes,
        told=(*defects, *(map(printable_unicode, report.notes) if privacy.mode == "full" else ())),
    )


def _notes(corpus: CorpusReplay) -> tuple[NoteLine, ...]:
    files: dict[str, list[str]] = {}
    for report in sorted(corpus.reports, key=lambda report: report.shown):
        for note in report.notes if report.state == "ok" else ():
            files.setdefault(printable_unicode(note), []).append(printable_unicode(report.shown))
    return tuple(NoteLine(note, len(paths), paths[0]) for note, paths in files.items())


def _head(corpus: CorpusReplay, privacy: Privacy) -> JsonObject:
    plan = corpus.plan
    document = head("report", plan, corpus)
    document["settings"] = private_settings(plan.settings, plan.ruleset, privacy)
    told = dict(cast("JsonObject", document["corpus"]))
    told["roots"] = privacy.shown_all(corpus.roots, "path")
    return {**document, "corpus": told}


def _headlines(corpus: CorpusReplay, rows: Sequence[SessionRow]) -> tuple[Headline, ...]:
    count = len(rows)
    totals = corpus.totals
    gated = sum(any(row.replay.stages[stage] for stage in GATES) for row in rows)
    spoken = sum(any(row.replay.stages[stage] for stage in ("warn", "summarize", "fail-warn")) for row in rows)
    withheld = [(row.replay.false_rejections, row.replay.denials) for row in rows]
    return (
        Headline("sessions gated", session_share(gated, count), "sessions", "at least one call reaches a gate"),
        Headline("sessions spoken to", session_share(spoken, count), "sessions", "at least one message to the model"),
        Headline(
            "sessions with a false rejection",
            session_share(totals.sessions_with_false_rejection, count),
            "sessions",
            "a withheld call had succeeded in the record",
        ),
        Headline(
            "false rejections",
            clustered_share(withheld),
            "withheld calls",
            "withheld calls that had succeeded in the record",
        ),
        Headline(
            "failed calls",
            clustered_share([(row.replay.outcomes["failed"], row.replay.settled) for row in rows]),
            "settled calls",
            "the record's own failure rate",
        ),
        Headline(
            "failed calls, a shell's words left out",
            clustered_share(
                [(row.replay.outcomes["failed"] - row.replay.failed_text_only, row.replay.settled) for row in rows]
            ),
            "settled calls",
            "without failures that only text in a shell's output tells of",
        ),
    )


def _stage_line(stage: StageName, corpus: CorpusReplay, rows: Sequence[SessionRow]) -> StageLine:
    trips = [row.replay.first_trips[stage] for row in rows if stage in row.replay.first_trips]
    return StageLine(
        stage=stage,
        threshold=_threshold_told(stage, corpus),
        events=corpus.totals.stages[stage],
        sessions=session_share(len(trips), len(rows)),
        first_call=statistics.median(trip.call for trip in trips) if trips else None,
        calls_after=statistics.median(trip.calls_after for trip in trips) if trips else None,
    )


def _threshold_told(stage: StageName, corpus: CorpusReplay) -> str:
    plan = corpus.plan
    settings = plan.settings
    if stage == "gate":
        caps = [f"{kind} {cap:g}" for kind, cap in caps_by_kind(plan).items()]
        return ", ".join(caps) or "off"
    if stage == "shell-http":
        return corpus.shell_http_told
    value = {
        "warn": settings.warn_at,
        "summarize": settings.summarize_at,
        "fail-warn": settings.fail_warn_at,
        "fail-gate": settings.fail_limit,
    }[stage]
    return "off" if value is None else f"{value:g}"


def histograms_of(histograms: Histograms, plan: ReplayPlan) -> tuple[Histogram, ...]:
    """Return the histograms that hold anything, with the plan's thresholds: by kind, then by what they count."""
    caps = caps_by_kind(plan)
    settings = plan.settings
    found: list[Histogram] = []
    for kind in histograms.kinds():
        for what in WHATS:
            counts: dict[Label, Mapping[int, int]] = {
                label: values for label in histograms.labels() if (values := histograms.values(kind, what, label))
            }
            if counts:
                lines = dict(thresholds(settings, what))
                if what != "streak" and kind in caps:
                    lines["gate"] = caps[kind]
                found.append(Histogram(kind, what, counts, lines))
    return tuple(found)


def _failures(corpus: CorpusReplay, privacy: Privacy) -> list[FailureLine]:
    found: Counter[tuple[str, str, str, str]] = Counter()
    for key, count in corpus.totals.failed_by.items():
        tool, detail = (privacy.shown(text, "name") or "" for text in (key.tool, key.detail))
        found[tool, key.reason, detail, key.evidence] += count
    return [FailureLine(*key, count) for key, count in sorted(found.items(), key=lambda item: (-item[1], item[0]))]


def _tools(observation: TablesObservation, corpus: CorpusReplay) -> list[ToolLine]:
    lines = [
        ToolLine(
            tool=tool or "",
            calls=counts["calls"],
            ok=counts["ok"],
            failed=counts["failed"],
            withheld=counts["withheld"],
            false_rejections=counts["false-rejection"],
            stages={stage: counts[stage] for stage in STAGES},
        )
        for tool, counts in observation.tools(corpus).items()
    ]
    return sorted(lines, key=lambda line: (-sum(line.stages.values()), -line.failed, -line.calls, line.tool))


def _worst(observation: TablesObservation, row: SessionRow, index: int) -> WorstSession:
    replay, privacy = row.replay, observation.privacy
    events = [_event(one) for one in observation.session_rows(row.path, "events")]
    stages: dict[int, list[str]] = {}
    for event in events:
        stages.setdefault(event.call, []).append(event.stage)
    gates = [replay.first_trips[stage].call for stage in GATES if stage in replay.first_trips]
    peak, streak = replay.peak, replay.longest_streak
    return WorstSession(
        index=index,
        session=privacy.shown(row.session_id, "identity"),
        path=privacy.shown(row.path, "path"),
        label=row.label,
        turns=replay.turns,
        calls=replay.calls,
        failed=replay.outcomes["failed"],
        stages={stage: replay.stages[stage] for stage in STAGES},
        denials=replay.denials,
        false_rejections=replay.false_rejections,
        first_gate=min(gates, default=None),
        streak=replay.streak_length,
        streak_measure=privacy.shown(streak.measure, "measure") if streak is not None else None,
        peak=peak.count if peak is not None else 0,
        peak_measure=privacy.shown(peak.measure, "measure") if peak is not None else None,
        recorded_under_breaker=row.recorded_under_breaker,
        marks=tuple(_mark(one, stages) for one in observation.session_rows(row.path, "calls")),
        turn_lines=tuple(_turn(one) for one in observation.session_rows(row.path, "turns")),
        events=tuple(events[:_MOST_EVENTS]),
        events_untold=max(len(events) - _MOST_EVENTS, 0),
    )


def _number(row: Mapping[str, object], name: str) -> int:
    return cast("int", row[name])


def _mark(row: Mapping[str, object], stages: Mapping[int, list[str]]) -> CallMark:
    call = _number(row, "call")
    return CallMark(
        call=call,
        turn=_number(row, "turn"),
        outcome=str(row["outcome"]) if row["tracked"] else "untracked",
        withheld=row["withheld"] is True,
        stages=tuple(stages.get(call, ())),
    )


def _turn(row: Mapping[str, object]) -> TurnLine:
    return TurnLine(
        turn=_number(row, "turn"),
        calls=_number(row, "calls"),
        failed=_number(row, "failed"),
        events=sum(value for name, value in row.items() if name.startswith("events_") and isinstance(value, int)),
        withheld=_number(row, "withheld"),
        seconds=cast("float | None", row["seconds"]),
        tokens=cast("int | None", row["tokens"]),
        lines=_number(row, "lines"),
        short_lines=_number(row, "short_lines"),
    )


def _event(row: Mapping[str, object]) -> EventMark:
    return EventMark(
        call=_number(row, "call"),
        turn=_number(row, "turn"),
        tool=cast("str | None", row["tool"]),
        stage=str(row["stage"]),
        measure=cast("str | None", row["measure"]),
        count=cast("int | None", row["count"]),
        threshold=cast("float | None", row["threshold"]),
        decision=str(row["decision"]),
    )


# -- JSON ----------------------------------------------------------------------------------------------------------


def _near_miss(plan: ReplayPlan, rows: Sequence[SessionRow]) -> dict[StageName, tuple[float, ...]]:
    margins: dict[StageName, list[float]] = {}
    for row in rows:
        if row.label == "good":
            near = row.replay.near_miss(plan.settings)
            for stage in STAGES:
                left = near.get(stage)
                if left is not None:
                    margins.setdefault(stage, []).append(left)
    return {stage: tuple(sorted(values)) for stage, values in margins.items()}


def report_document(data: ReportData) -> JsonObject:
    """Return a report as one JSON-ready document."""
    return {
        **data.head,
        "privacy": data.privacy,
        "short_line": data.short_line,
        "confidence": CONFIDENCE,
        "totals": {
            "sessions": data.sessions,
            "turns": data.turns,
            "calls": data.calls,
            "tracked": data.tracked,
            "outcomes": dict(data.outcomes),
            "not_started": data.not_started,
            "clipped": data.clipped,
            "truncated": data.truncated,
            "asks": data.asks,
            "denials": data.denials,
            "false_rejections": data.false_rejections,
            "recorded_under_breaker": data.recorded_under_breaker,
            "labels": dict(data.labels),
        },
        "headlines": [
            {"name": one.name, "of": one.of, "meaning": one.meaning, **_share(one.share)} for one in data.headlines
        ],
        "stages": [
            {
                "stage": line.stage,
                "threshold": line.threshold,
                "events": line.events,
                "sessions": _share(line.sessions),
                "first_call_median": line.first_call,
                "calls_after_median": line.calls_after,
            }
            for line in data.stages
        ],
        "near_miss": {stage: list(left) for stage, left in data.near_miss.items()},
        "streaks": {str(step): _share(share) for step, share in data.streaks.items()},
        "histograms": [histogram_document(one) for one in data.histograms],
        "by_kind": [
            {"kind": line.kind, "cap": line.cap, "events": dict(line.stages), "sessions": line.sessions}
            for line in data.kinds
        ],
        "by_tool": [
            {
                "tool": line.tool,
                "calls": line.calls,
                "ok": line.ok,
                "failed": line.failed,
                "withheld": line.withheld,
                "false_rejections": line.false_rejections,
                "events": dict(line.stages),
            }
            for line in data.tools
        ],
        "tools_untold": data.tools_untold,
        "failed_by": [
            {
                "tool": line.tool,
                "reason": line.reason,
                "detail": line.detail,
                "evidence": line.evidence,
                "count": line.count,
            }
            for line in data.failures
        ],
        "failures_untold": data.failures_untold,
        "evidence": dict(data.evidence),
        "worst_sessions": [_worst_document(one) for one in data.worst],
        "worst_untold": data.worst_untold,
        "read_report": {
            "counts": dict(data.read),
            "files": [
                {
                    "path": line.path,
                    "state": line.state,
                    "lost_rows": line.lost_rows,
                    "lost_bytes": line.lost_bytes,
                    "told": list(line.told),
                }
                for line in data.read_lines
            ],
            "untold": data.read_untold,
            "noted": data.noted,
            "notes": [{"told": note.told, "files": note.files, "example": note.example} for note in data.notes],
            "problems": list(data.problems),
        },
        "warnings": list(data.warnings),
    }


def _share(share: Share) -> JsonObject:
    bounds = [None if bound is None else round(bound, _DIGITS) for bound in (share.low, share.high)]
    return {
        "part": share.part,
        "whole": share.whole,
        "rate": rate(share.part, share.whole),
        "interval": None if None in bounds else bounds,
    }


def histogram_document(histogram: Histogram) -> JsonObject:
    """Return one histogram as JSON-ready values."""
    return {
        "kind": histogram.kind,
        "what": histogram.what,
        "thresholds": dict(histogram.thresholds),
        "counts": {
            label: {str(value): count for value, count in values.items()} for label, values in histogram.counts.items()
        },
    }


def _worst_document(one: WorstSession) -> JsonObject:
    return {
        "index": one.index,
        "session": one.session,
        "path": one.path,
        "label": one.label,
        "turns": one.turns,
        "calls": one.calls,
        "failed": one.failed,
        "events": dict(one.stages),
        "denials": one.denials,
        "false_rejections": one.false_rejections,
        "first_gate": one.first_gate,
        "longest_streak": {"measure": one.streak_measure, "count": one.streak},
        "peak": {"measure": one.peak_measure, "count": one.peak},
        "recorded_under_breaker": one.recorded_under_breaker,
        "timeline": [
            {
                "call": mark.call,
                "turn": mark.turn,
                "outcome": mark.outcome,
                "withheld": mark.withheld,
                "stages": list(mark.stages),
            }
            for mark in one.marks
        ],
        "turn_lines": [
            {
                "turn": line.turn,
                "calls": line.calls,
                "failed": line.failed,
                "events": line.events,
                "withheld": line.withheld,
                "seconds": line.seconds,
                "tokens": line.tokens,
                "lines": line.lines,
                "short_lines": line.short_lines,
                "short_line_share": rate(line.short_lines, line.lines),
            }
            for line in one.turn_lines
        ],
        "event_lines": [
            {
                "call": event.call,
                "turn": event.turn,
                "tool": event.tool,
                "stage": event.stage,
                "measure": event.measure,
                "count": event.count,
                "threshold": event.threshold,
                "decision": event.decision,
            }
            for event in one.events
        ],
        "event_lines_untold": one.events_untold,
    }
