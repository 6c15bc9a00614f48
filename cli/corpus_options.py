"""What every command over recorded sessions takes, declared once: which sessions, and how they are replayed."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from copy import copy
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast, get_type_hints

import typer

from cli.cache_names import is_off
from cli.cache_options import CacheOption, told_cache
from cli.early import jobs_number
from cli.exits import BUG, FINE, NOT_ENOUGH, UNREADABLE, USAGE, Failed, warn
from cli.settings import (
    DEFAULT_RULESET_NAME,
    ConfigOption,
    MachineOption,
    RulesetOption,
    SetOption,
    load_settings,
)
from cli.sizes import size_of

if TYPE_CHECKING:
    from analysis.corpus import CorpusReplay, Observation, Period
    from analysis.labels import LabelRules
    from analysis.replay import ReplayPlan
    from analysis.sessions.decode import Limits

__all__ = [
    "CorpusOptions",
    "PolicyName",
    "ResultSourceName",
    "ShellHttpModeName",
    "corpus_command",
    "judge",
    "require_sessions",
]

Result = TypeVar("Result")

DEFAULT_MAX_LINE = "64MiB"
DEFAULT_MAX_EXPANDED = "64GiB"


class PolicyName(StrEnum):
    """What becomes of an ask."""

    unattended = "unattended"
    approve = "approve"
    deny = "deny"
    observe = "observe"


class ShellHttpModeName(StrEnum):
    """Where the shell-HTTP policy is engaged."""

    auto = "auto"
    on = "on"
    off = "off"


class ResultSourceName(StrEnum):
    """What results are classified from."""

    rebuilt = "rebuilt"
    log = "log"


def _given_path(text: str) -> Path:
    """Take a path as given; an empty one, as from a variable that is not set, is not the folder one stands in."""
    if not text:
        message = "an empty path"
        raise typer.BadParameter(message)
    return Path(text)


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """The options of a command over recorded sessions, as given. Each field is a parameter of the command."""

    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=_given_path,
            metavar="PATH…",
            help="Sessions roots, projects, session folders, log files, exported ZIPs, in any mix.",
            show_default="$DSH_HOME/sessions",
        ),
    ] = None
    config: ConfigOption = None
    sets: SetOption = None
    ruleset: RulesetOption = DEFAULT_RULESET_NAME
    policy: Annotated[
        PolicyName,
        typer.Option(
            "--policy",
            help="At a gate: nobody answers (unattended), everybody approves, every gate denies, or nothing is "
            "withheld (observe).",
        ),
    ] = PolicyName.unattended
    shell_http: Annotated[
        ShellHttpModeName,
        typer.Option(
            "--shell-http",
            help="Engage the shell-HTTP policy in sessions that were offered web_fetch_file (auto), in all, in none.",
        ),
    ] = ShellHttpModeName.auto
    machine: MachineOption = None
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="NAME=GLOB", help="Label sessions good, stuck or unknown by id or path."),
    ] = None
    labels: Annotated[
        Path | None,
        typer.Option("--labels", metavar="FILE", help="CSV or TOML of session id or path glob, label, reason."),
    ] = None
    since: Annotated[
        str | None, typer.Option("--since", metavar="DATE", help="Only sessions created at or after (ISO 8601, UTC).")
    ] = None
    until: Annotated[
        str | None, typer.Option("--until", metavar="DATE", help="Only sessions created before (ISO 8601, UTC).")
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 3 unless every file reads ok (older generations aside).")
    ] = False
    result_source: Annotated[
        ResultSourceName,
        typer.Option(
            "--result-source",
            help="Classify results rebuilt from the log, or only from what the published measurements used (log).",
        ),
    ] = ResultSourceName.rebuilt
    jobs: Annotated[
        str,
        typer.Option(
            "--jobs", metavar="N|auto", help="Processes that read; auto takes every processor where it is worth it."
        ),
    ] = "auto"
    max_line: Annotated[
        str,
        typer.Option("--max-line", metavar="SIZE", help="Longest line read; a longer one is left out and reported."),
    ] = DEFAULT_MAX_LINE
    max_expanded: Annotated[
        str,
        typer.Option(
            "--max-expanded", metavar="SIZE", help="Most text read of one file; it is reported where more was there."
        ),
    ] = DEFAULT_MAX_EXPANDED

    cache: CacheOption = None

    @property
    def roots(self) -> list[Path]:
        """The paths given, or the harness' own sessions folder."""
        return self.paths or [_default_root()]

    def plan(self, *, keep_events: bool = False, keep_messages: bool = False) -> ReplayPlan:
        """Load the settings and return how sessions are replayed.

        Raises:
            Failed: settings or ruleset are wrong.
        """
        from analysis.plan import ReplayPlan
        from breaker.shellhttp import this_machine

        settings, rules = load_settings(self.config, self.sets, self.ruleset)
        return ReplayPlan(
            settings=settings,
            ruleset=rules,
            policy=self.policy.value,
            result_source=self.result_source.value,
            keep_events=keep_events,
            keep_messages=keep_messages,
            shell_http=self.shell_http.value,
            machine=this_machine(self.machine or []),
        )

    def label_rules(self) -> LabelRules:
        """Read the labels given.

        Raises:
            Failed: a label or a label file is wrong.
        """
        from analysis.labels import LabelError, LabelRules, parse_label, read_labels

        try:
            rules = [parse_label(text) for text in self.label or []]
            if self.labels is not None:
                rules.extend(read_labels(self.labels))
        except LabelError as error:
            raise Failed(USAGE, str(error)) from None
        return LabelRules(rules)

    def period(self) -> Period | None:
        """Return the stretch of time asked for, None where there is none.

        Raises:
            Failed: a date is none.
        """
        from analysis.corpus import Period

        if self.since is None and self.until is None:
            return None
        return Period(since=_epoch("--since", self.since), until=_epoch("--until", self.until))

    def limits(self) -> Limits:
        """Return the bounds on what one file may take.

        Raises:
            Failed: a size is none.
        """
        from analysis.sessions.decode import Limits

        return Limits(
            max_line=size_of("--max-line", self.max_line, least=1),
            max_expanded=size_of("--max-expanded", self.max_expanded, least=1),
        )

    def job_count(self) -> int | None:
        """Return how many processes may read; None leaves it to the size of the corpus.

        Raises:
            Failed: it is no number.
        """
        if self.jobs == "auto":
            return None
        number = jobs_number(self.jobs)
        if number is None:
            raise Failed(USAGE, f"--jobs {self.jobs}: not a number of processes from 1 to 999, nor auto")
        return number

    @contextmanager
    def reading_ahead(self) -> Generator[None]:
        """Start the processes that will read, before anything else is loaded.

        Raises:
            Failed: the number of processes is none.
        """
        from analysis.processes.ahead import reading_ahead

        with reading_ahead(self.roots, self.job_count()):
            yield

    def replay(self, plan: ReplayPlan, observation: Observation | None = None) -> CorpusReplay:
        """Replay the sessions asked for, with a progress bar where somebody looks, and tell the corpus' warnings.

        Args:
            plan: how they are replayed.
            observation: watches every session's replay.

        Raises:
            Failed: a path does not exist, a label contradicts another, an option is wrong.
        """
        from analysis.corpus import replay_corpus
        from analysis.labels import LabelConflict
        from analysis.processes.pool import WorkerFault
        from analysis.sessions.find import PathMissing
        from cli.progress import byte_progress

        label_rules = self.label_rules()
        period = self.period()
        limits = self.limits()
        jobs = self.job_count()
        with (
            told_cache(self.cache, self.roots) as cache,
            byte_progress("reading sessions") as progress,
            redirect_stdout(sys.stderr),  # what a detector prints is no part of the output
        ):
            try:
                corpus = replay_corpus(
                    self.roots,
                    plan,
                    labels=label_rules,
                    period=period,
                    limits=limits,
                    progress=progress,
                    observation=observation,
                    jobs=jobs,
                    cache=cache,
                )
            except (PathMissing, LabelConflict) as error:
                raise Failed(USAGE, str(error)) from None
            except WorkerFault as error:
                raise Failed(BUG, f"a process that reads has failed: {str(error).strip().splitlines()[-1]}") from None
        for message in corpus.warnings:
            warn(message)
        return corpus


def corpus_command(
    verb: Callable[..., Result], *, without: Collection[str] = (), sure_to_read: bool = True
) -> Callable[..., Result]:
    """Give a verb the parameters of `CorpusOptions` on its command line; it gets them as its first argument.

    Args:
        verb: what the command does.
        without: the parameters that would do nothing for it; they keep their defaults.
        sure_to_read: it reads sessions also where no path is given, so the processes which will can be started at once.
    """
    shared = {field.name: field.default for field in fields(CorpusOptions) if field.name not in without}
    hints = get_type_hints(CorpusOptions, include_extras=True)
    if not sure_to_read:
        hints["paths"] = _without_default(hints["paths"])
    own_hints = get_type_hints(verb, include_extras=True)
    _, *own = inspect.signature(verb).parameters.values()
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
        for name, default in shared.items()
    ]
    parameters += [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=own_hints[parameter.name])
        for parameter in own
    ]

    @wraps(verb)
    def command(**given: object) -> Result:
        named = cast("Mapping[str, Any]", {name: given.pop(name) for name in shared if name in given})
        options = CorpusOptions(**named)
        # A cache may make them needless.
        ahead = sure_to_read and "jobs" not in without and is_off(options.cache)
        with options.reading_ahead() if ahead else nullcontext():
            return verb(options, **given)

    signature = inspect.Signature(parameters, return_annotation=own_hints.get("return"))
    vars(command)["__signature__"] = signature
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _without_default(hint: Any) -> Any:
    """Return what describes an argument, without the default its help names."""
    told = copy(hint.__metadata__[0])
    told.show_default = False
    return Annotated[hint.__origin__, told]


def require_sessions(corpus: CorpusReplay) -> None:
    """Refuse a corpus there is nothing to tell of.

    Raises:
        Failed: no session was found, or none in the time asked for.
    """
    from cli.text import counted

    if corpus.filtered and not corpus.sessions:
        raise Failed(NOT_ENOUGH, f"no session in that time; {counted(corpus.filtered, 'lies', 'lie')} outside it")
    if not corpus.reports and not corpus.problems:
        raise Failed(NOT_ENOUGH, f"no sessions found in {', '.join(corpus.roots)}")


def judge(corpus: CorpusReplay, *, strict: bool, needs_calls: bool = False, allow_empty: bool = False) -> int:
    """Return the exit code a corpus earns: an empty or unreadable one is never fine.

    Args:
        corpus: what was replayed.
        strict: every file must read ok.
        needs_calls: there must be calls, too.
        allow_empty: finding nothing is fine; reading nothing of what was found is not.

    Raises:
        Failed: nothing was found, nothing could be read, or under `strict` anything did not read ok.
    """
    from cli.text import counted

    if not corpus.reports:
        if corpus.problems:
            raise Failed(UNREADABLE, f"nothing could be read: {corpus.problems[0].shown}: {corpus.problems[0].message}")
        if corpus.filtered and not allow_empty:
            raise Failed(NOT_ENOUGH, f"no session in that time; {counted(corpus.filtered, 'lies', 'lie')} outside it")
        if not allow_empty:
            raise Failed(NOT_ENOUGH, f"no sessions found in {', '.join(corpus.roots)}")
        return FINE
    if not corpus.sessions:
        count = len(corpus.reports)
        none = "the only session file could not" if count == 1 else f"none of {count} session files could"
        raise Failed(UNREADABLE, f"{none} be read")
    if strict and not corpus.spotless:
        faults = sum(report.state not in {"ok", "superseded"} for report in corpus.reports) + len(corpus.problems)
        files = counted(len(corpus.reports), "session file")
        raise Failed(UNREADABLE, f"--strict: {faults} of {files} did not read ok")
    if needs_calls and not allow_empty and not corpus.totals.calls:
        told = counted(len(corpus.sessions), "session holds", "sessions hold")
        raise Failed(NOT_ENOUGH, f"the {told} no calls")
    return FINE


def _default_root() -> Path:
    import os

    from analysis.sessions.find import default_root

    return default_root(os.environ, Path.home())


def _epoch(option: str, text: str | None) -> float | None:
    from datetime import UTC, datetime

    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        message = f"{option} {text}: not a date (ISO 8601, such as 2026-01-31 or 2026-01-31T12:00)"
        raise Failed(USAGE, message) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp() * 1000
