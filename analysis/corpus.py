"""Many sessions: find them, read and replay each, tell copies apart, add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from analysis.labels import LABELS, Label, LabelRules
from analysis.plan import ReplayPlan
from analysis.processes.ahead import WORTH_PROCESSES, available_processors
from analysis.processes.pool import Lost, is_sendable, run_files
from analysis.processes.serving import TOO_LARGE
from analysis.progress import NO_PROGRESS, Progress
from analysis.reading import Item, Reading, ReadSession, SessionReplayer, SessionWork
from analysis.replayed import STAGES, FailureKey, RunObserver, SessionReplay, StageName
from analysis.sessions.decode import Limits
from analysis.sessions.find import Problem, SessionFile, find_sessions
from analysis.sessions.header import Header, read_header
from analysis.sessions.outcome_kinds import OUTCOME_KINDS, OutcomeKind
from analysis.sessions.report import READ_STATES, ReadDefect, ReadReport

if TYPE_CHECKING:
    from analysis.cache import Cache
    from analysis.cache.keys import Content, FileStamp
    from analysis.cached_reading import CachedReading

__all__ = [
    "DUPLICATE",
    "MISSING_PARENT",
    "SHARED_ID",
    "STREAK_STEPS",
    "SUPERSEDED",
    "CorpusReplay",
    "Observation",
    "Period",
    "SessionReplayer",
    "SessionRow",
    "SessionWork",
    "TakeBack",
    "Totals",
    "replay_corpus",
    "severity",
]

STREAK_STEPS = (2, 3, 4, 5, 8)
"""The streak lengths the corpus table counts sessions at."""

SUPERSEDED = "superseded"
"""An older generation of a session."""
DUPLICATE = "duplicate"
"""A copy of a session."""
SHARED_ID = "shared-id"
"""Different sessions bear one id."""
MISSING_PARENT = "missing-parent"
"""The parent of a fork is not in the corpus."""

_NO_LABELS = LabelRules()
_DEFAULT_LIMITS = Limits()


class Period(msgspec.Struct, frozen=True):
    """A stretch of time by `createdAt`, in epoch milliseconds: from `since` on, up to and without `until`."""

    since: float | None = None
    until: float | None = None

    @property
    def bounded(self) -> bool:
        """Tell whether it leaves anything out."""
        return self.since is not None or self.until is not None

    def holds(self, created_at: float | None) -> bool:
        """Tell whether a session of that time is in it; one without a time is in no bounded period."""
        if created_at is None:
            return not self.bounded
        return (self.since is None or created_at >= self.since) and (self.until is None or created_at < self.until)


class SessionRow(msgspec.Struct, frozen=True):
    """One session that counts, and its replay."""

    session_id: str
    path: str
    label: Label
    agent: str
    """`main` or `subagent`."""
    version: int
    project: str | None
    """The working folder the header names."""
    models: tuple[str, ...]
    created_at: float | None
    recorded_under_breaker: bool
    read: str
    notes: tuple[str, ...]
    replay: SessionReplay
    digests: tuple[bytes, ...] = ()
    """One for every own message, call and result, where asked for."""


def severity(row: SessionRow) -> tuple[float, ...]:
    """Return what sessions are ranked by: gated calls, withheld ones, messages, the streak, the peak, failures."""
    replay = row.replay
    stages = replay.stages
    return (
        stages["gate"] + stages["fail-gate"] + stages["shell-http"],
        replay.denials,
        stages["warn"] + stages["summarize"] + stages["fail-warn"],
        replay.streak_length,
        replay.peak.count if replay.peak is not None else 0,
        replay.outcomes["failed"],
    )


class Totals(msgspec.Struct):
    """Sums over the sessions that count."""

    turns: int = 0
    calls: int = 0
    tracked: int = 0
    outcomes: Counter[OutcomeKind] = msgspec.field(default_factory=Counter[OutcomeKind])
    not_started: int = 0
    clipped: int = 0
    truncated: int = 0
    failed_text_only: int = 0
    failed_by: Counter[FailureKey] = msgspec.field(default_factory=Counter[FailureKey])
    stages: Counter[StageName] = msgspec.field(default_factory=Counter[StageName])
    stages_by_kind: dict[str, Counter[StageName]] = msgspec.field(default_factory=dict[str, Counter[StageName]])
    sessions_by_kind: Counter[str] = msgspec.field(default_factory=Counter[str])
    sessions_by_stage: Counter[StageName] = msgspec.field(default_factory=Counter[StageName])
    asks: int = 0
    denials: int = 0
    false_rejections: int = 0
    sessions_with_false_rejection: int = 0
    streaks: dict[int, int] = msgspec.field(default_factory=dict[int, int])
    streaks_by_label: dict[Label, dict[int, int]] = msgspec.field(default_factory=dict[Label, dict[int, int]])

    @property
    def settled(self) -> int:
        """Calls that succeeded or failed in the record."""
        return self.outcomes["ok"] + self.outcomes["failed"]

    @property
    def untold(self) -> int:
        """Tracked calls that no outcome accounts for; 0 by construction."""
        return self.tracked - sum(self.outcomes[kind] for kind in OUTCOME_KINDS)

    @property
    def failures_by_count(self) -> list[tuple[FailureKey, int]]:
        """The kinds of failure, the most frequent first."""
        return sorted(
            self.failed_by.items(),
            key=lambda item: (-item[1], item[0].tool, item[0].reason, item[0].detail, item[0].evidence),
        )

    def add(self, row: SessionRow) -> None:
        """Add one session."""
        replay = row.replay
        self.turns += replay.turns
        self.calls += replay.calls
        self.tracked += replay.tracked
        self.outcomes.update(replay.outcomes)
        self.not_started += replay.not_started
        self.clipped += replay.clipped
        self.truncated += replay.truncated
        self.failed_text_only += replay.failed_text_only
        self.failed_by.update(replay.failed_by)
        self.stages.update(replay.stages)
        for kind, stages in replay.stages_by_kind.items():
            self.stages_by_kind.setdefault(kind, Counter()).update(stages)
            self.sessions_by_kind[kind] += 1
        self.sessions_by_stage.update(stage for stage in STAGES if replay.stages[stage])
        self.asks += replay.asks
        self.denials += replay.denials
        self.false_rejections += replay.false_rejections
        self.sessions_with_false_rejection += replay.false_rejections > 0
        by_label = self.streaks_by_label.setdefault(row.label, dict.fromkeys(STREAK_STEPS, 0))
        for step in STREAK_STEPS:
            reached = replay.streak_length >= step
            self.streaks[step] = self.streaks.get(step, 0) + reached
            by_label[step] += reached


@dataclass(frozen=True)
class CorpusReplay:
    """What a replay of a corpus saw, and what it could not read. Renderings of it cannot disagree."""

    plan: ReplayPlan
    roots: tuple[str, ...]
    sessions: tuple[SessionRow, ...]
    """In the order the files were found."""
    reports: tuple[ReadReport, ...]
    """One row for every file, in the same order."""
    problems: tuple[Problem, ...]
    """What could not be looked into while searching."""
    filtered: int
    """Sessions left out by their time."""
    warnings: tuple[str, ...]

    @cached_property
    def totals(self) -> Totals:
        """The sums over all sessions."""
        totals = Totals(streaks=dict.fromkeys(STREAK_STEPS, 0))
        for row in self.sessions:
            totals.add(row)
        totals.streaks_by_label = {
            label: totals.streaks_by_label[label] for label in LABELS if label in totals.streaks_by_label
        }
        return totals

    @cached_property
    def read_counts(self) -> dict[str, int]:
        """How many files ended in each read state."""
        counts = Counter(report.state for report in self.reports)
        return {state: counts[state] for state in READ_STATES}

    @property
    def shell_http_told(self) -> str:
        """The effective mode of the shell-HTTP policy, in words."""
        plan = self.plan
        if not plan.has_shell_http:
            return "none in this ruleset" if plan.ruleset.shell_http is None else "off (blockShellHttp is false)"
        engaged = sum(row.replay.shell_http for row in self.sessions)
        return f"{plan.shell_http}: engaged in {engaged} of {len(self.sessions)} sessions"

    @property
    def size(self) -> int:
        """Bytes on disk of all files."""
        return sum(report.size for report in self.reports)

    @property
    def spotless(self) -> bool:
        """Tell whether every file is `ok` or an older generation, and nothing was left unsearched."""
        return not self.problems and all(report.state in {"ok", "superseded"} for report in self.reports)


class Observation(Protocol):
    """Watches the replay of a corpus: one observer for every session, taken back in the order of the files."""

    @property
    def short_line(self) -> int | None:
        """Characters up to which a line of the model's own text is a short phrase; None: lines are not counted."""
        ...

    @property
    def make_observer(self) -> Callable[[], RunObserver]:
        """What makes a watcher for each session; picklable, and so are the watchers, for other processes make them."""
        ...

    @property
    def needs_texts(self) -> bool:
        """Tell whether the watchers look at the texts of results, which the cache does not keep."""
        ...

    def take(self, path: str, observer: RunObserver) -> None:
        """Take back what watched the session of a file. Copies of a session are only set aside later."""
        ...


TakeBack: TypeAlias = Callable[[SessionRow, bool], None]
"""Is told of a session, and whether another file bears its id: only later it is known which of the two counts."""


class _Candidate(msgspec.Struct):
    file: SessionFile
    header: Header | None
    report: ReadReport
    stamp: FileStamp | None = None
    content: Content | None = None
    row: SessionRow | None = None
    digests: list[bytes] = msgspec.field(default_factory=list[bytes])


def replay_corpus(
    paths: Sequence[Path],
    plan: ReplayPlan,
    *,
    labels: LabelRules = _NO_LABELS,
    period: Period | None = None,
    limits: Limits = _DEFAULT_LIMITS,
    progress: Progress = NO_PROGRESS,
    observation: Observation | None = None,
    replayer: SessionReplayer | None = None,
    work: SessionWork | None = None,
    take: TakeBack | None = None,
    digests: bool = False,
    closely: bool = False,
    jobs: int | None = 1,
    cache: Cache | None = None,
) -> CorpusReplay:
    """Replay every session found under the given paths.

    Args:
        paths: sessions roots, projects, session folders, files, exported archives, in any mix.
        plan: settings, ruleset, policy.
        labels: what a person knows of the sessions.
        period: only sessions created in it.
        limits: bounds on what one file may take.
        progress: told how many bytes were read.
        observation: watches every session's replay.
        replayer: replays a session in place of the plain way, in this process.
        work: makes something else of a session's facts, as a sweep does, in any process.
        take: told of every session replayed, in the order of the files.
        digests: give every session the digests of its rows.
        closely: remark in the reports where every oddity stands.
        jobs: processes that read; the result is the same. None takes every processor where the corpus is large enough
            to be worth it. A `replayer`, or a detector that cannot be sent to another process, keeps it to this one.
        cache: what earlier runs came to, and where this one's results go; they are the same with and without. A
            `replayer` and a close reading do without.

    Raises:
        PathMissing: a given path does not exist.
        LabelConflict: two labels for one session.
    """
    if closely or replayer is not None or (cache is not None and not cache.usable):
        cache = None
    found = find_sessions(paths)
    candidates: list[_Candidate] = []
    outside: set[str] = set()
    for file in found.files:
        report = ReadReport(shown=file.shown, size=file.size, close=closely)
        header = stamp = content = None
        if file.superseded_by is None:
            known = None if cache is None else cache.recall(file, limits)
            if known is None:
                stamp = None if cache is None else _stamp_of(file)
                header = read_header(file, limits)
            else:
                header, content = known.header, known.content
            if period is not None and header is not None and not period.holds(header.created_at):
                outside.add(file.shown)
                continue
        candidates.append(_Candidate(file, header, report, stamp, content))
    candidates = [candidate for candidate in candidates if candidate.file.superseded_by not in outside]
    ids = Counter(candidate.header.session_id for candidate in candidates if candidate.header is not None)
    progress.start(sum(candidate.file.size for candidate in candidates if candidate.file.superseded_by is None))
    reading = _reading(plan, limits, observation, replayer, work, closely=closely)
    if cache is not None:
        reading = _cached(reading, observation, cache)
    chosen = [candidate for candidate in candidates if not _set_aside_superseded(candidate)]
    items = [
        Item(
            candidate.file,
            candidate.header,
            digests or _id_count(candidate, ids) > 1,
            candidate.stamp,
            candidate.content,
        )
        for candidate in chosen
    ]
    results = _read_all(items, reading, progress, jobs if replayer is None else 1)
    for candidate, read in zip(chosen, results, strict=True):
        if isinstance(read, Lost):
            candidate.report.state = "corrupt"
            candidate.report.add(ReadDefect("worker", read.why, lost_bytes=candidate.file.size))
        else:
            if cache is not None:
                cache.note(read.source, read.stored, read.fault)
            _take(candidate, read, labels, observation, digests=digests)
            if take is not None and candidate.row is not None:
                take(candidate.row, bool(candidate.digests))
    _set_aside_copies(candidates)
    _note_missing_parents(candidates)
    unused = [f"no session matches {rule.origin} ({rule.glob})" for rule in labels.unused()]
    return CorpusReplay(
        plan=plan,
        roots=tuple(str(path) for path in paths),
        sessions=tuple(candidate.row for candidate in candidates if candidate.row is not None),
        reports=tuple(candidate.report for candidate in candidates),
        problems=found.problems,
        filtered=len(outside),
        warnings=tuple(unused),
    )


def _stamp_of(file: SessionFile) -> FileStamp | None:
    from analysis.cache.keys import stamp_of  # here, since without a cache there is no need for it

    return stamp_of(file)


def _set_aside_superseded(candidate: _Candidate) -> bool:
    """Mark an older generation as one, and tell whether it is."""
    newer = candidate.file.superseded_by
    if newer is None:
        return False
    candidate.report.state = "superseded"
    candidate.report.counts_instead = newer
    candidate.report.note(SUPERSEDED, f"an older generation; {newer} counts")
    return True


def _id_count(candidate: _Candidate, ids: Counter[str | None]) -> int:
    session_id = candidate.header.session_id if candidate.header is not None else None
    return ids[session_id] if session_id is not None else 0


def _reading(
    plan: ReplayPlan,
    limits: Limits,
    observation: Observation | None,
    replayer: SessionReplayer | None,
    work: SessionWork | None,
    *,
    closely: bool,
) -> Reading:
    """Return how every file is read."""
    watched = observation is not None and observation.needs_texts
    return Reading(
        plan,
        limits,
        short_line=observation.short_line if observation is not None else None,
        closely=closely,
        make_observer=observation.make_observer if observation is not None else None,
        replayer=replayer,
        work=work,
        needs_texts=work is None and (plan.keep_messages or bool(plan.detectors) or watched),
    )


def _cached(reading: Reading, observation: Observation | None, cache: Cache) -> CachedReading:
    """Return how every file is read with a cache; what other detectors come to hangs on code that may change."""
    from analysis.cache import ReplayAnswers
    from analysis.cached_reading import CachedReading, facts_keys

    plan, work = reading.plan, reading.work
    answers = None
    if work is not None:
        answers = work.answers
    elif observation is None and not plan.detectors:
        answers = ReplayAnswers(plan)
    return CachedReading(reading, cache, facts_keys(plan, reading.limits, reading.short_line, work), answers)


def _processes(items: Sequence[Item], reading: Reading | CachedReading, jobs: int | None) -> int:
    """Return how many processes read; one where others would cost more than they save, or cannot be told what to do."""
    if jobs is None:
        large = sum(item.file.size for item in items) >= WORTH_PROCESSES
        jobs = available_processors() if large else 1
    if jobs <= 1 or len(items) <= 1 or not is_sendable(reading):
        return 1
    return jobs


def _read_all(
    items: Sequence[Item], reading: Reading | CachedReading, progress: Progress, jobs: int | None
) -> Iterator[ReadSession | Lost]:
    """Read every file, here or in several processes; the results come in the order of the files.

    What an earlier run came to is loaded here, whatever the number of processes, and when its turn comes.
    """
    here = [jobs != 1 and not isinstance(reading, Reading) and reading.is_answered(item) for item in items]
    others = [item for item, answered in zip(items, here, strict=True) if not answered]
    processes = _processes(others, reading, jobs)
    if processes == 1:
        for item in items:
            yield _read_here(item, reading, progress)
        return
    sizes = [item.file.size for item in others]
    with closing(run_files(others, reading, sizes=sizes, jobs=processes, on_bytes=progress.advance)) as results:
        for item, answered in zip(items, here, strict=True):
            yield _read_here(item, reading, progress) if answered else next(results)


def _read_here(item: Item, reading: Reading | CachedReading, progress: Progress) -> ReadSession | Lost:
    try:
        return reading(item, progress.advance)
    except MemoryError:
        return Lost(TOO_LARGE)


def _take(
    candidate: _Candidate,
    read: ReadSession,
    labels: LabelRules,
    observation: Observation | None,
    *,
    digests: bool,
) -> None:
    """Take what was read of a file into the corpus."""
    file = candidate.file
    candidate.report = read.report
    session, replay = read.session, read.replay
    if session is None or replay is None:
        return
    if observation is not None and replay.observer is not None:
        observation.take(file.shown, replay.observer)
        replay.observer = None
    candidate.digests = session.digests
    header = session.header
    candidate.row = SessionRow(
        session_id=header.session_id or Path(file.folder).name,
        path=file.shown,
        label=labels.label_of(header.session_id, file.shown),
        agent="subagent" if header.subagent else "main",
        version=header.version,
        project=header.cwd,
        models=tuple(session.models),
        created_at=header.created_at,
        recorded_under_breaker=session.recorded_under_breaker,
        read=read.report.state,
        notes=(),
        replay=replay,
        digests=tuple(session.digests) if digests else (),
    )


def _set_aside_copies(candidates: Sequence[_Candidate]) -> None:
    """Let one copy of a session count: of the same id, the one whose rows go on where the others end."""
    by_id: dict[str, list[_Candidate]] = {}
    for candidate in candidates:
        if candidate.row is not None and candidate.header is not None and candidate.header.session_id:
            by_id.setdefault(candidate.header.session_id, []).append(candidate)
    for session_id, group in by_id.items():
        if len(group) < 2:
            continue
        ordered = sorted(group, key=lambda one: (-len(one.digests), -_version(one), one.file.shown))
        kept: list[_Candidate] = []
        for candidate in ordered:
            original = next((other for other in kept if _is_prefix(candidate.digests, other.digests)), None)
            if original is None:
                kept.append(candidate)
                continue
            candidate.row = None
            candidate.report.state = "duplicate"
            candidate.report.counts_instead = original.file.shown
            candidate.report.note(DUPLICATE, f"the same session as {original.file.shown}, which counts")
        if len(kept) > 1:
            for candidate in kept:
                candidate.report.note(SHARED_ID, f"{len(kept)} different sessions share the id {session_id}")


def _version(candidate: _Candidate) -> int:
    return candidate.header.version if candidate.header is not None else 0


def _is_prefix(shorter: Sequence[bytes], longer: Sequence[bytes]) -> bool:
    return list(longer[: len(shorter)]) == list(shorter)


def _note_missing_parents(candidates: Sequence[_Candidate]) -> None:
    ids = {candidate.header.session_id for candidate in candidates if candidate.header is not None}
    for candidate in candidates:
        header = candidate.header
        if header is None or candidate.row is None:
            continue
        if header.is_fork and header.parent not in ids:
            note = f"its parent {header.parent} is not here: the inherited part counts nowhere"
            candidate.report.note(MISSING_PARENT, note)
        candidate.row = msgspec.structs.replace(candidate.row, notes=tuple(candidate.report.notes))
