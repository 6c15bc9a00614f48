"""`breaker check`: hold known-good sessions to limits, expectations and a baseline."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.cache_options import CacheOption, told_cache
from cli.check_options import (
    EXIT_CODES,
    BaselineOption,
    CheckConfigOption,
    CheckPaths,
    CheckRulesetOption,
    SettingsOption,
    StrictOption,
    load,
    parse_day,
)
from cli.exits import USAGE, Failed
from cli.settings import SetOption

if TYPE_CHECKING:
    from analysis.regress import Verdict

__all__ = ["check"]

_FORMATS = "terminal, json, junit, sarif, github, markdown"


@dataclass(frozen=True, slots=True)
class _Report:
    format: str
    render: Callable[[Verdict], str]
    file: Path | None
    """None for standard output."""


def check(
    paths: CheckPaths = None,
    config: CheckConfigOption = None,
    settings: SettingsOption = None,
    sets: SetOption = None,
    ruleset: CheckRulesetOption = None,
    baseline: BaselineOption = None,
    report: Annotated[
        list[str] | None,
        typer.Option(
            "--report",
            metavar="FORMAT[=FILE]",
            help=f"Repeatable: {_FORMATS}; into a file, or to standard output.",
            show_default="terminal",
        ),
    ] = None,
    changed_since: Annotated[
        str | None,
        typer.Option(
            "--changed-since",
            metavar="REV",
            help="Replay only sessions whose logs differ from this git revision; all of them where the configuration "
            "does.",
        ),
    ] = None,
    strict: StrictOption = False,
    today: Annotated[
        str | None,
        typer.Option("--today", metavar="DATE", help="The day waivers are held against.", show_default="today"),
    ] = None,
    cache: CacheOption = None,
) -> int:
    """Check that known-good sessions are still let through: limits, expectations, baseline, waivers.

    Exits 1 where a check fails, 2 on a wrong configuration or path, 3 where nothing can be read, 4 where there is
    nothing to check. Each failure comes with the command that shows it.
    """
    from analysis.regress import Checker, CheckError
    from cli.progress import byte_progress

    reports = _reports(report or [])
    day = parse_day("--today", today)
    try:
        loaded, plan = load(config, settings=settings, sets=sets, ruleset=ruleset, baseline=baseline, strict=strict)
        checker = Checker(loaded, plan, day, paths)
        for one in reports:
            if one.file is not None:
                checker.refuse_overwriting(one.file)
        with told_cache(cache, checker.selection.roots) as kept, byte_progress("checking sessions") as progress:
            verdict = checker.run(changed_since, progress, kept)
    except CheckError as error:
        raise Failed(USAGE, str(error)) from None
    for one in reports:
        _write(one, one.render(verdict))
    return EXIT_CODES[verdict.outcome]


def _reports(given: Sequence[str]) -> list[_Report]:
    """Read the reports asked for before anything is replayed; a person always gets one."""
    from analysis.regress.reports import DOCUMENTS, REPORTS

    reports: list[_Report] = []
    for text in given:
        name, equals, file = text.partition("=")
        if name not in REPORTS or (equals and not file):
            raise Failed(USAGE, f"--report {text}: must be FORMAT or FORMAT=FILE; formats are {', '.join(REPORTS)}")
        path = Path(file) if file else None
        if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
            reason = "is a folder" if path.is_dir() else "its folder does not exist"
            raise Failed(USAGE, f"--report {text}: cannot write {file}: {reason}")
        reports.append(_Report(name, REPORTS[name], path))
    files = [os.path.realpath(one.file) for one in reports if one.file is not None]
    if len(set(files)) < len(files):
        raise Failed(USAGE, "--report: two reports into one file")
    printed = [one.format for one in reports if one.file is None]
    if len(printed) > 1 and DOCUMENTS.intersection(printed):
        raise Failed(USAGE, f"--report: {', '.join(printed)} cannot share standard output; give all but one a FILE")
    if not printed:
        reports.insert(0, _Report("terminal", REPORTS["terminal"], None))
    return reports


def _write(report: _Report, text: str) -> None:
    from analysis.regress.files import write_whole

    if report.file is None:
        sys.stdout.write(text)
        return
    try:
        write_whole(report.file, text)
    except OSError as error:
        raise Failed(USAGE, f"--report {report.format}={report.file}: {error.strerror or error}") from None
