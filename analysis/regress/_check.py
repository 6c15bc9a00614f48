"""Run a check: replay the sessions, hold them to limits, expectations and baseline, take waivers into account."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Literal

from analysis.cache import Cache
from analysis.corpus import CorpusReplay, SessionRow, replay_corpus
from analysis.labels import LabelRules
from analysis.progress import NO_PROGRESS, Progress
from analysis.regress._baseline import (
    NO_MEASURE,
    Baseline,
    BaselineEntry,
    differences,
    entry_of,
    read_baseline,
    session_keys,
)
from analysis.regress._changes import changes_since
from analysis.regress._config import CheckConfig, Plan
from analysis.regress._faults import CheckError, Origin, shown
from analysis.regress._findings import Finding, Place, Rule, place_of_event, place_of_session
from analysis.regress._numbers import Number, SessionView, View
from analysis.regress._rules import Expectation, Limit, Waiver, exact_text
from analysis.regress._selection import KnownSession, Selection, Unit, join, select
from analysis.replay import ReplayEvent
from analysis.sessions.report import ReadReport
from breaker.kinds import kind_of

__all__ = ["Checker", "LimitResult", "Outcome", "Scope", "SessionResult", "Shortage", "Verdict", "WaiverResult"]

Outcome = Literal["passed", "failed", "unreadable", "not-enough"]

MOST_PLACES = 10
"""Places told for one limit; the rest are counted."""

_FINE_UNUSED = frozenset({"duplicate", "superseded"})

_WAIVABLE: frozenset[Rule] = frozenset(
    {
        "baseline/newly-firing",
        "baseline/earlier",
        "baseline/later",
        "baseline/more",
        "baseline/fewer",
        "baseline/stopped",
    }
)


@dataclass(frozen=True, slots=True)
class LimitResult:
    """A limit and what was measured. `holds` is None where it could not be told, and `why` says so."""

    limit: Limit
    measured: Fraction | None
    holds: bool | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class SessionResult:
    """One session of the check."""

    row: SessionRow
    findings: tuple[Finding, ...]
    held_to: tuple[str, ...]
    """What it was held to: the line of its expectation, the baseline."""

    @property
    def fails(self) -> bool:
        """Tell whether something of its own fails."""
        return any(finding.fails for finding in self.findings)


@dataclass(frozen=True, slots=True)
class WaiverResult:
    """A waiver and how many events and differences it covered."""

    waiver: Waiver
    covered: int
    expired: bool


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why a check cannot say anything: nothing readable, or nothing there."""

    kind: Literal["unreadable", "not-enough"]
    message: str


@dataclass(frozen=True, slots=True)
class Scope:
    """Which part of the sessions `--changed-since` left to look at."""

    revision: str
    replayed: int
    known: int
    everything: str
    """Why all of them were looked at after all; empty where only the changed ones were."""


@dataclass(frozen=True)
class Verdict:
    """What a check found. Reports are renderings of it and cannot disagree."""

    config: CheckConfig
    config_name: str
    """Its file, as people write it."""
    plan: Plan
    today: date
    corpus: CorpusReplay
    """Only the sessions that count."""
    sessions: tuple[SessionResult, ...]
    limits: tuple[LimitResult, ...]
    waivers: tuple[WaiverResult, ...]
    findings: tuple[Finding, ...]
    """All of them, those of sessions too."""
    shortages: tuple[Shortage, ...]
    baseline: str | None
    """The baseline compared with; None without one."""
    notes: tuple[str, ...]
    scope: Scope | None

    @cached_property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that fail the check."""
        return tuple(finding for finding in self.findings if finding.fails)

    @property
    def outcome(self) -> Outcome:
        """What it comes to: nothing readable comes first, then failures, then too little to tell."""
        kinds = {shortage.kind for shortage in self.shortages}
        if "unreadable" in kinds:
            return "unreadable"
        if self.failures:
            return "failed"
        return "not-enough" if kinds else "passed"


@dataclass(slots=True)
class _Waived:
    """Counts what every waiver covered."""

    covered: Counter[int] = field(default_factory=Counter[int])


class Checker:
    """A check that is ready to run: its sessions are found, its plan and baseline read."""

    def __init__(self, config: CheckConfig, plan: Plan, today: date, paths: Sequence[str] | None = None) -> None:
        """Find the sessions and read the baseline.

        Raises:
            CheckError: a path or the baseline is missing or wrong, labels contradict each other.
        """
        self.config = config
        self.plan = plan
        self.today = today
        self.selection: Selection = select(config, paths)
        self.baseline: Baseline | None = None
        if config.baseline is not None and (config.baseline_required or config.baseline.exists()):
            self.baseline = read_baseline(config.baseline)
        self.active = tuple(waiver for waiver in config.waivers if not waiver.expired(today))
        self._differences = differences(self.baseline, plan.replay) if self.baseline is not None else []

    def require_rules(self) -> None:
        """Refuse a check that could not fail.

        Raises:
            CheckError: neither limits nor expectations nor a baseline are there.
        """
        if self.baseline is None and not self.config.limits and not self.config.expectations:
            message = (
                f"{shown(self.config.path)}: nothing to check: give limits (such as `gate = 0` in [check.limits]), "
                "expectations, or a baseline (`breaker approve` writes one)"
            )
            raise CheckError(message)

    def refuse_overwriting(self, path: Path) -> None:
        """Refuse to write over what the check reads.

        Raises:
            CheckError: the file is one of its logs, or its configuration.
        """
        target = os.path.realpath(path)
        logs = (file.path for unit in self.selection.units for file in unit.files)
        if any(os.path.realpath(read) == target for read in (*logs, *self.config.files)):
            message = f"{shown(path)}: is read by the check and is not written over"
            raise CheckError(message)

    # -- replays -------------------------------------------------------------------------------------------------

    def counts(self, session: KnownSession) -> bool:
        """Tell whether a session's label makes it count."""
        return not self.config.only or session.label in self.config.only

    def replay(
        self,
        units: Sequence[Unit] | None = None,
        progress: Progress = NO_PROGRESS,
        cache: Cache | None = None,
    ) -> CorpusReplay:
        """Replay some of the units, or everything, and keep the sessions that count."""
        chosen = None if units is None else [path for unit in units for path in unit.paths]
        paths = self.selection.roots if chosen is None else chosen
        labels = LabelRules(self.config.labels)
        corpus = replay_corpus(paths, self.plan.replay, labels=labels, progress=progress, digests=True, cache=cache)
        return self.counting(corpus)

    def counting(self, corpus: CorpusReplay) -> CorpusReplay:
        """Keep the sessions whose label makes them count."""
        only = self.config.only
        if not only:
            return corpus
        return replace(corpus, sessions=tuple(row for row in corpus.sessions if row.label in only))

    def join(self, parts: Iterable[CorpusReplay]) -> CorpusReplay:
        """Put replays of units together."""
        return join(parts, self.selection, self.plan.replay)

    def run(
        self, changed_since: str | None = None, progress: Progress = NO_PROGRESS, cache: Cache | None = None
    ) -> Verdict:
        """Replay and judge; what a cache holds of unchanged sessions is not read again.

        Raises:
            CheckError: there is nothing to hold the sessions to, or git cannot say what changed.
        """
        self.require_rules()
        if changed_since is None:
            return self.judge(self.replay(progress=progress, cache=cache))
        units, scope = self._changed(changed_since)
        if scope.everything:
            return self.judge(self.replay(progress=progress, cache=cache), scope)
        part = self.replay(units, progress, cache)
        return self.judge(replace(part, roots=tuple(map(str, self.selection.roots))), scope)

    def _changed(self, revision: str) -> tuple[list[Unit], Scope]:
        changes = changes_since(revision, self.config.folder)
        files = list(self.config.files)
        if self.baseline is not None and self.config.baseline is not None:
            files.append(self.config.baseline)
        everything = next(
            (f"{shown(file)} changed, or git does not know it" for file in files if changes.touches(file)), ""
        )
        units = [unit for unit in self.selection.units if everything or unit.changed(changes)]
        known = len(self.selection.sessions)
        return units, Scope(revision, sum(len(unit.sessions) for unit in units), known, everything)

    # -- judgement -----------------------------------------------------------------------------------------------

    def judge(self, corpus: CorpusReplay, scope: Scope | None = None) -> Verdict:
        """Judge a replay of all the sessions, or with a scope of some of them."""
        partial = scope is not None and not scope.everything
        shortages = self.shortages(corpus, partial=partial)
        waived = _Waived()
        sessions: tuple[SessionResult, ...] = ()
        limits: list[LimitResult] = []
        findings: list[Finding] = []
        if corpus.sessions or (partial and not shortages):
            keys = session_keys(corpus.sessions)
            sessions = tuple(
                self.judge_session(row, key, waived) for row, key in zip(corpus.sessions, keys, strict=True)
            )
            limits, limit_findings, limit_shortages = self._judge_limits(corpus, partial=partial)
            shortages += limit_shortages
            findings += limit_findings
            findings += [finding for result in sessions for finding in result.findings]
            findings += self.judge_files(corpus)
            findings += self.judge_baseline(corpus, partial=partial)
        waivers = self._waivers(waived)
        if corpus.sessions or partial:
            findings += self._judge_waivers(waivers, partial=partial)
        return Verdict(
            config=self.config,
            config_name=shown(self.config.path),
            plan=self.plan,
            today=self.today,
            corpus=corpus,
            sessions=sessions,
            limits=tuple(limits),
            waivers=waivers,
            findings=tuple(findings),
            shortages=tuple(dict.fromkeys(shortages)),
            baseline=None if self.baseline is None else self.baseline.origin.file,
            notes=tuple(self.notes(corpus, limits)),
            scope=scope,
        )

    def missing(self) -> list[Shortage]:
        """Say what is not there at all, before anything is replayed: sessions, and those expectations speak of."""
        selection = self.selection
        shortages = [Shortage("not-enough", f"no sessions in {text}") for text in selection.unmatched]
        known = selection.sessions
        if not known and selection.problems:
            problem = selection.problems[0]
            shortages.append(Shortage("unreadable", f"nothing could be read: {problem.shown}: {problem.message}"))
        elif not known and not shortages:
            roots = ", ".join(map(str, selection.roots))
            shortages.append(Shortage("not-enough", f"no sessions in {roots}"))
        elif known and not any(self.counts(session) for session in known):
            shortages.append(Shortage("not-enough", f"no session is labelled {' or '.join(self.config.only)}"))
        return shortages + (self._unmatched_expectations() if known else [])

    def shortages(self, corpus: CorpusReplay, *, partial: bool = False) -> list[Shortage]:
        """Say what keeps the check from being worth anything."""
        shortages = self.missing()
        known = any(self.counts(session) for session in self.selection.sessions)
        if corpus.reports and not any(report.used for report in corpus.reports):
            shortages.append(Shortage("unreadable", _unreadable_text(corpus.reports, partial=partial)))
        else:
            shortages += self._unreadable_roots(corpus.reports)
        if known and not corpus.sessions and not partial and not shortages:
            shortages.append(Shortage("not-enough", "no session that counts could be read"))
        if self.config.strict and not corpus.spotless:
            faults = [report for report in corpus.reports if report.state not in {"ok", "superseded"}]
            told = f": {faults[0].shown} is {faults[0].state}" if faults else f": {corpus.problems[0].shown}"
            number = len(faults) + len(corpus.problems)
            shortages.append(Shortage("unreadable", f"strict: {number} of {len(corpus.reports)} logs not ok{told}"))
        return shortages

    def _unreadable_roots(self, reports: Sequence[ReadReport]) -> list[Shortage]:
        """Say which of the paths lead to logs none of which can be read: a path mistyped, or a folder lost."""
        by_log = {report.shown: report for report in reports}
        shortages: list[Shortage] = []
        for text, logs in self.selection.logs.items():
            read = [by_log[log] for log in sorted(logs) if log in by_log]
            if read and len(read) == len(logs) and not any(one.used or one.state in _FINE_UNUSED for one in read):
                message = f"nothing in {text} could be read: {read[0].shown} is {read[0].state}"
                shortages.append(Shortage("unreadable", message))
        return shortages

    def judge_session(self, row: SessionRow, key: str, waived: _Waived | None = None) -> SessionResult:
        """Hold one session to its expectation and to the baseline.

        Args:
            row: the session.
            key: its name in a baseline (`session_keys` of all sessions that share its id).
            waived: counts what waivers cover.
        """
        waived = waived or _Waived()
        kept = self._unwaived(row, waived)
        findings: list[Finding] = []
        held_to: list[str] = []
        expectation = self._expectation_of(row.session_id, row.path)
        if expectation is not None:
            held_to.append(str(expectation.origin))
            findings += self._judge_expectation(row, kept, expectation)
        if self.baseline is not None and not self._differences:
            held_to.append(self.baseline.origin.file)
            findings += self._judge_entry(row, key, self.baseline, waived)
        return SessionResult(row, tuple(findings), tuple(held_to))

    def _unwaived(self, row: SessionRow, waived: _Waived | None = None) -> tuple[ReplayEvent, ...]:
        """Return a session's events that no waiver takes out."""
        waivers = [
            (number, waiver) for number, waiver in enumerate(self.active) if waiver.speaks_of(row.session_id, row.path)
        ]
        if not waivers:
            return tuple(row.replay.events)
        kept: list[ReplayEvent] = []
        for event in row.replay.events:
            covering = [number for number, waiver in waivers if waiver.covers(event)]
            if not covering:
                kept.append(event)
            elif waived is not None:
                waived.covered.update(covering)
        return tuple(kept)

    # -- limits --------------------------------------------------------------------------------------------------

    def judge_limits(self, corpus: CorpusReplay) -> tuple[list[LimitResult], list[Finding], list[Shortage]]:
        """Hold the corpus to its limits."""
        return self._judge_limits(corpus, partial=False)

    def _judge_limits(
        self, corpus: CorpusReplay, *, partial: bool
    ) -> tuple[list[LimitResult], list[Finding], list[Shortage]]:
        view = View(corpus, tuple(SessionView(row, self._unwaived(row)) for row in corpus.sessions))
        results: list[LimitResult] = []
        findings: list[Finding] = []
        shortages: list[Shortage] = []
        for limit in self.config.limits:
            number = limit.number
            measured = number.value(view)
            holds = None if measured is None else limit.holds(measured)
            why = ""
            if partial and (limit.bound == "least" or not number.partial or measured is None):
                holds, why = None, "needs every session, and only the changed ones were replayed"
            elif measured is None:
                why = _missing_text(number)
                shortages.append(Shortage("not-enough", f"limit {limit.name} ({limit.origin}): {why}"))
            results.append(LimitResult(limit, measured, holds, why))
            if holds is False:
                findings.append(self._limit_finding(limit, measured or Fraction(0), view))
        return results, findings, shortages

    def _limit_finding(self, limit: Limit, measured: Fraction, view: View) -> Finding:
        relation = "at most" if limit.bound == "most" else "at least"
        message = f"{limit.name} is {exact_text(measured)}, must be {relation} {limit.written}"
        if measured.denominator != 1:
            message = (
                f"{limit.name} is {exact_text(measured)} ({float(measured):.4%}), must be {relation} {limit.written}"
            )
        places: list[Place] = []
        untold = 0
        if limit.bound == "most" and limit.number.share is not None:
            shares = [(limit.number.share(one), one) for one in view.sessions]
            worst = sorted((item for item in shares if item[0]), key=lambda item: -item[0])
            places = [self._share_place(limit.number, one) for _, one in worst[:MOST_PLACES]]
            untold = len(worst) - len(places)
        return Finding("limit", limit.name, message, places=tuple(places), places_untold=untold, origin=limit.origin)

    def _share_place(self, number: Number, one: SessionView) -> Place:
        if number.shows is not None:
            for event in one.events:
                if number.shows(event):
                    return place_of_event(one.row, event, self.plan.explain_options)
        place = place_of_session(one.row, self.plan.explain_options)
        streak = one.row.replay.longest_streak
        if number.name.startswith(("sessions_with_streak", "streaks")) and streak is not None:
            return replace(place, measure=streak.measure, count=streak.count)
        return place

    # -- expectations --------------------------------------------------------------------------------------------

    def _expectation_of(self, session_id: str | None, path: str) -> Expectation | None:
        """Return the last expectation that speaks of a session: it is the one that holds."""
        for expectation in reversed(self.config.expectations):
            if expectation.speaks_of(session_id, path):
                return expectation
        return None

    def _judge_expectation(
        self, row: SessionRow, events: Sequence[ReplayEvent], expectation: Expectation
    ) -> list[Finding]:
        findings: list[Finding] = []
        if not expectation.others:
            unexpected: dict[tuple[str, str], list[ReplayEvent]] = {}
            for event in events:
                if not any(pattern.matches(event) for pattern in expectation.events):
                    unexpected.setdefault((event.stage, event.measure), []).append(event)
            for several in unexpected.values():
                times = f", {len(several)} times" if len(several) > 1 else ""
                rule = "no event may show" if not expectation.events else "no such event is expected"
                message = f"{_event_text(several[0])}{times}: {rule}"
                findings.append(
                    self._finding("expectation/unexpected", row, message, expectation.origin, event=several[0])
                )
        for pattern in expectation.events:
            matching = [event for event in row.replay.events if pattern.matches(event)]
            if not matching:
                message = f"{pattern} must show and does not"
                findings.append(self._finding("expectation/missing", row, message, pattern.origin))
            elif pattern.times is not None and len(matching) != pattern.times:
                message = f"{pattern} shows {len(matching)} times, must show {pattern.times}"
                findings.append(self._finding("expectation/times", row, message, pattern.origin, event=matching[0]))
        return findings

    def judge_files(self, corpus: CorpusReplay) -> list[Finding]:
        """Fail what is expected to show something and cannot be read."""
        findings: list[Finding] = []
        known = {session.path: session for session in self.selection.sessions}
        for report in corpus.reports:
            session = known.get(report.shown)
            if session is None or report.used or report.state == "duplicate" or not self.counts(session):
                continue
            expectation = self._expectation_of(session.name, report.shown)
            if expectation is not None:
                findings.append(
                    Finding(
                        "expectation/unreadable",
                        session.name,
                        f"the log cannot be read: {_defect_text(report)}",
                        session=session.name,
                        path=report.shown,
                        origin=expectation.origin,
                    )
                )
        return findings

    def _unmatched_expectations(self) -> list[Shortage]:
        known = [session for session in self.selection.sessions if self.counts(session)]
        return [
            Shortage("not-enough", f"no session matches the expectation {one.glob!r} ({one.origin})")
            for one in self.config.expectations
            if not any(one.speaks_of(session.name, session.path) for session in known)
        ]

    # -- baseline ------------------------------------------------------------------------------------------------

    def judge_baseline(self, corpus: CorpusReplay, *, partial: bool = False) -> list[Finding]:
        """Tell what of the baseline is about no single session: that it cannot be compared, and what has gone."""
        baseline = self.baseline
        if baseline is None:
            return []
        if self._differences:
            message = f"the baseline was made with {'; '.join(self._differences)}: nothing was compared"
            return [Finding("baseline/incompatible", baseline.origin.file, message, origin=baseline.origin)]
        present = set(session_keys(corpus.sessions))
        if partial:
            replayed = {report.shown for report in corpus.reports}
            present |= {one.name for one in self.selection.sessions if one.path not in replayed}
        reports = {report.shown: report for report in corpus.reports}
        findings: list[Finding] = []
        for key in baseline.sessions:
            name = key.partition("#")[0]
            if key in present or (partial and name in present):
                continue
            message, path = self._gone_text(name, reports)
            findings.append(Finding("baseline/gone", key, message, session=name, path=path, origin=baseline.place(key)))
        return findings

    def _gone_text(self, name: str, reports: Mapping[str, ReadReport]) -> tuple[str, str | None]:
        for session in self.selection.sessions:
            if session.name != name:
                continue
            report = reports.get(session.path)
            if report is not None and not report.used:
                return f"the log can no longer be read: {_defect_text(report)}", session.path
            if not self.counts(session):
                return f"the session is labelled {session.label} now and does not count", session.path
            return "the session is there with another log", session.path
        return "the session is gone: the baseline's entry matches nothing (approve anew to drop it)", None

    def _judge_entry(self, row: SessionRow, key: str, baseline: Baseline, waived: _Waived) -> list[Finding]:
        now = entry_of(row)
        then = baseline.sessions.get(key)
        if then is None:
            message = "the session is not in the baseline (approve anew to take it in)"
            return [self._finding("baseline/new", row, message, baseline.origin)]
        origin = baseline.place(key)
        findings: list[Finding] = []
        if then.log != now.log or then.read != now.read:
            findings.append(self._finding("baseline/log-changed", row, _log_text(then, now, row), origin))
        compared = self._compare_events(row, then, now, origin, waived)
        if not compared and not findings and then.shows != now.shows:
            message = "the same stages fire at the same calls as approved, but for other measures or counts"
            compared.append(self._finding("baseline/changed", row, message, origin))
        return [*findings, *compared]

    def _compare_events(
        self, row: SessionRow, then: BaselineEntry, now: BaselineEntry, origin: Origin, waived: _Waived
    ) -> list[Finding]:
        findings: list[Finding] = []
        for key in [*now.events, *(key for key in then.events if key not in now.events)]:
            stage, kind = key
            told = stage if kind == NO_MEASURE else f"{stage} on {kind}"
            before, after = then.events.get(key), now.events.get(key)
            event = next((one for one in row.replay.events if (one.stage, _kind(one)) == key), None)
            rule: Rule
            if before is None and after is not None:
                rule = "baseline/newly-firing"
                message = f"{told} fires at call {after.first}, and did not when approved"
            elif after is None and before is not None:
                rule = "baseline/stopped"
                message = f"{told} fired at call {before.first} when approved, and does not any more"
            elif before is not None and after is not None and before.first != after.first:
                rule = "baseline/earlier" if after.first < before.first else "baseline/later"
                message = f"{told} fires at call {after.first}, when approved at call {before.first}"
            elif before is not None and after is not None and before.count != after.count:
                rule = "baseline/more" if after.count > before.count else "baseline/fewer"
                message = f"{told} fires {after.count} times, when approved {before.count} times"
            else:
                continue
            call = before.first if before is not None and after is None else None
            finding = self._finding(rule, row, message, origin, event=event, call=call)
            findings.append(self._waive(finding, row, stage, event, waived))
        return findings

    def _waive(
        self, finding: Finding, row: SessionRow, stage: str, event: ReplayEvent | None, waived: _Waived
    ) -> Finding:
        for number, waiver in enumerate(self.active):
            if finding.rule not in _WAIVABLE or not waiver.speaks_of(row.session_id, row.path):
                continue
            if event is not None:
                covered = waiver.covers(event)
            else:
                covered = waiver.measure is None and waiver.stage in {None, stage}
            if covered:
                waived.covered[number] += 1
                return replace(finding, waiver=waiver)
        return finding

    def _finding(
        self,
        rule: Rule,
        row: SessionRow,
        message: str,
        origin: Origin,
        *,
        event: ReplayEvent | None = None,
        call: int | None = None,
    ) -> Finding:
        options = self.plan.explain_options
        shown_at_event = None if event is None else place_of_event(row, event, options)
        place = shown_at_event or place_of_session(row, options, call=call)
        return Finding(
            rule, row.session_id, message, session=row.session_id, path=row.path, places=(place,), origin=origin
        )

    # -- waivers and notes ---------------------------------------------------------------------------------------

    def _waivers(self, waived: _Waived) -> tuple[WaiverResult, ...]:
        numbers = {id(waiver): number for number, waiver in enumerate(self.active)}
        return tuple(
            WaiverResult(
                waiver,
                waived.covered[numbers[id(waiver)]] if id(waiver) in numbers else 0,
                expired=waiver.expired(self.today),
            )
            for waiver in self.config.waivers
        )

    def judge_waivers(self, corpus: CorpusReplay) -> list[Finding]:
        """Fail waivers that are expired, or that cover nothing."""
        waived = _Waived()
        for row, key in zip(corpus.sessions, session_keys(corpus.sessions), strict=True):
            self.judge_session(row, key, waived)
        return self._judge_waivers(self._waivers(waived), partial=False)

    def _judge_waivers(self, results: Iterable[WaiverResult], *, partial: bool) -> list[Finding]:
        findings: list[Finding] = []
        for result in results:
            waiver = result.waiver
            if result.expired:
                message = f"the waiver of {waiver.subject} ({waiver.reason}) expired on {waiver.expires}"
                findings.append(Finding("waiver/expired", waiver.subject, message, origin=waiver.origin))
            elif not result.covered and not partial:
                message = f"the waiver of {waiver.subject} ({waiver.reason}) covers nothing any more: remove it"
                findings.append(Finding("waiver/unused", waiver.subject, message, origin=waiver.origin))
        return findings

    def notes(self, corpus: CorpusReplay, limits: Sequence[LimitResult] = ()) -> list[str]:
        """Say what was odd and is no failure."""
        notes = list(self.plan.warnings)
        notes += [f"no session matches {rule.origin} ({rule.glob})" for rule in self.selection.labels.unused()]
        notes += [
            f"{report.shown} is {report.state}: {_defect_text(report)}"
            for report in corpus.reports
            if report.state not in {"ok", "superseded", "duplicate"}
        ]
        notes += [f"not searched: {problem.shown}: {problem.message}" for problem in corpus.problems]
        notes += [f"limit {result.limit.name} not checked: {result.why}" for result in limits if result.why]
        return notes


def _kind(event: ReplayEvent) -> str:
    return kind_of(event.measure) if event.measure else NO_MEASURE


def _event_text(event: ReplayEvent) -> str:
    if not event.measure:
        return f"{event.stage} at call {event.call}"
    return f"{event.stage} at call {event.call} for {event.measure} ({event.count}/{event.threshold:g})"


def _missing_text(number: Number) -> str:
    if number.label is not None:
        caught = " or none was caught" if number.kind == "amount" else ""
        return f"no session is labelled {number.label}{caught}"
    return "no call that succeeded or failed" if number.kind == "rate" else "no sessions"


def _defect_text(report: ReadReport) -> str:
    if not report.defects:
        return report.state
    defect = report.defects[0]
    return f"{report.shown}{defect.place()}: {defect.message}"


def _unreadable_text(reports: Sequence[ReadReport], *, partial: bool) -> str:
    first = next(report for report in reports if not report.used)
    changed = " changed" if partial else ""
    return f"none of {len(reports)}{changed} logs could be read; the first: {first.shown} is {first.state}"


def _log_text(then: BaselineEntry, now: BaselineEntry, row: SessionRow) -> str:
    if then.read != now.read:
        return f"the log reads {now.read}, when approved {then.read}"
    calls = f" ({now.calls} calls, when approved {then.calls})" if now.calls != then.calls else ""
    return f"the log of {row.session_id} is not the one that was approved{calls}"
