"""A check as pytest items: one for every session, limit, and for baseline, waivers and what could be read.

Every process replays a session once, when the first test needs it; a distributed run shares nothing but the cache.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest

from analysis.cache import CACHE_VARIABLE, OFF, Cache, CacheRefused, open_cache
from analysis.corpus import CorpusReplay
from analysis.regress import (
    Checker,
    CheckError,
    Finding,
    KnownSession,
    Unit,
    find_config,
    load_check,
    session_keys,
)
from analysis.regress.reports.words import finding_title, place_line, with_origin
from analysis.text import counted, plain

__all__ = [
    "BreakerFile",
    "BreakerItem",
    "CheckFailed",
    "cache_warnings",
    "close_cache",
    "collected_file",
    "configured_file",
    "prepare",
]


class CheckFailed(Exception):
    """What a test of the check found."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join(lines))


class _Run:
    """One check in one process, and the replays it has made so far."""

    def __init__(self, checker: Checker, cache: Cache | None, warning: str | None) -> None:
        self.checker = checker
        self.cache = cache
        self.warning = warning
        self._parts: dict[int, CorpusReplay] = {}
        self._units = {unit: number for number, unit in enumerate(checker.selection.units)}
        self._whole: CorpusReplay | None = None

    def part(self, unit: Unit) -> CorpusReplay:
        """Return the replay of the logs that belong together."""
        number = self._units[unit]
        if number not in self._parts:
            self._parts[number] = self.checker.replay([unit], cache=self.cache)
        return self._parts[number]

    @property
    def whole(self) -> CorpusReplay:
        """The replay of everything."""
        if self._whole is None:
            self._whole = self.checker.join(self.part(unit) for unit in self.checker.selection.units)
        return self._whole


_RUN = pytest.StashKey[_Run]()


def prepare(config: pytest.Config, path: Path | None, day: str, cache: str | None) -> Path:
    """Read the configuration and find its sessions; return its file.

    Raises:
        UsageError: it is missing or wrong, there is no session to check, or the cache cannot be one.
    """
    try:
        today = date.fromisoformat(day)
    except ValueError:
        message = f"--breaker-today {day}: not a date such as 2026-12-31"
        raise pytest.UsageError(message) from None
    folder = config.invocation_params.dir
    try:
        check = load_check(find_config(folder) if path is None else folder / path)
        checker = Checker(check, check.plan(), today)
        checker.require_rules()
    except CheckError as error:
        message = f"breaker: {error}"
        raise pytest.UsageError(message) from None
    missing = checker.missing()
    if missing:
        message = "breaker: " + "; ".join(shortage.message for shortage in missing)
        raise pytest.UsageError(message)
    chosen = os.environ.get(CACHE_VARIABLE) or None if cache is None else cache
    if chosen not in {None, OFF}:
        chosen = str(folder / str(chosen))
    try:
        config.stash[_RUN] = _Run(checker, *open_cache(chosen, checker.selection.roots, os.environ))
    except CacheRefused as error:
        message = f"--breaker-cache {error}"
        raise pytest.UsageError(message) from None
    return check.path


def cache_warnings(config: pytest.Config) -> list[str]:
    """Return why the cache was of no use; nothing where it was."""
    run = config.stash.get(_RUN, None)
    if run is None:
        return []
    return [told for told in (run.warning, run.cache.fault if run.cache is not None else None) if told is not None]


def close_cache(config: pytest.Config) -> None:
    """End the use of the cache."""
    run = config.stash.get(_RUN, None)
    if run is not None and run.cache is not None:
        run.cache.close()


def configured_file(config: pytest.Config) -> Path:
    """Return the check's configuration."""
    return config.stash[_RUN].checker.config.path


def _made(kind: Any, parent: pytest.Collector, **members: object) -> object:
    """Make a node; pytest types neither its parent nor its members."""
    return cast("object", kind.from_parent(parent, **members))


def collected_file(parent: pytest.Collector) -> BreakerFile:
    """Return the check's configuration as a collector below a node."""
    return cast("BreakerFile", _made(BreakerFile, parent, path=configured_file(parent.config)))


class BreakerFile(pytest.File):
    """The configuration, as what collects its tests."""

    def collect(self) -> Iterator[BreakerItem]:
        """Give out the tests: sessions first, in the order they were found, then what is about all of them."""
        run = self.config.stash[_RUN]
        checker = run.checker
        seen: dict[str, int] = {}
        for unit in checker.selection.units:
            for session in unit.sessions:
                if not checker.counts(session):
                    continue
                seen[session.name] = seen.get(session.name, 0) + 1
                again = f"#{seen[session.name]}" if seen[session.name] > 1 else ""
                yield self._item(session.name + again, _session_test(run, unit, session))
        for limit in checker.config.limits:
            yield self._item(f"limit {limit.name}", _limit_test(run, limit.name))
        if checker.baseline is not None:
            yield self._item("baseline", lambda: _raise_on(checker.judge_baseline(run.whole)))
        if checker.config.waivers:
            yield self._item("waivers", lambda: _raise_on(checker.judge_waivers(run.whole)))
        yield self._item("read", lambda: _read_test(run))

    def _item(self, name: str, test: Callable[[], None]) -> BreakerItem:
        item = cast("BreakerItem", _made(BreakerItem, self, name=plain(name)))
        item.test = test
        item.add_marker("breaker")
        return item


class BreakerItem(pytest.Item):
    """One test of the check."""

    test: Callable[[], None]

    def runtest(self) -> None:
        """Run it.

        Raises:
            CheckFailed: it does not hold.
        """
        self.test()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the cause alone; where in the tool it was found helps nobody."""
        if isinstance(excinfo.value, CheckFailed):
            return "\n".join(excinfo.value.lines)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the place pytest shows."""
        return self.path, None, self.name


def _session_test(run: _Run, unit: Unit, session: KnownSession) -> Callable[[], None]:
    def test() -> None:
        part = run.part(unit)
        keys = session_keys(part.sessions)
        for row, key in zip(part.sessions, keys, strict=True):
            if row.path == session.path:
                _raise_on(run.checker.judge_session(row, key).findings)
                return
        findings = [one for one in run.checker.judge_files(part) if one.path == session.path]
        _raise_on(findings)
        states = [f"{one.shown} is {one.state}" for one in part.reports if one.shown == session.path]
        pytest.skip("; ".join(states))

    return test


def _limit_test(run: _Run, name: str) -> Callable[[], None]:
    def test() -> None:
        _, findings, shortages = run.checker.judge_limits(run.whole)
        _raise_on([one for one in findings if one.subject == name])
        lacking = [one.message for one in shortages if one.message.startswith(f"limit {name} ")]
        if lacking:
            raise CheckFailed(lacking)

    return test


def _read_test(run: _Run) -> None:
    shortages = run.checker.shortages(run.whole)
    if shortages:
        raise CheckFailed([f"{one.kind}: {one.message}" for one in shortages])


def _raise_on(findings: Iterable[Finding]) -> None:
    lines: list[str] = []
    for finding in findings:
        if not finding.fails:
            continue
        lines += [finding_title(finding), f"  {with_origin(finding)}"]
        for place in finding.places:
            lines += [f"  {place_line(place)}", f"    {plain(place.explain)}"]
        if finding.places_untold:
            lines.append(f"  … and {counted(finding.places_untold, 'more session')}")
    if lines:
        raise CheckFailed(lines)
