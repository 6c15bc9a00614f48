"""`breaker replay`: run recorded sessions through the guard and tell what it saw."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.exits import FINE, NOT_ENOUGH, UNREADABLE, USAGE, Failed, warn
from cli.settings import (
    DEFAULT_RULESET_NAME,
    ConfigOption,
    MachineOption,
    RulesetOption,
    SetOption,
    load_settings,
)

if TYPE_CHECKING:
    from analysis.corpus import CorpusReplay, Period
    from analysis.labels import LabelRules

__all__ = ["OutputFormat", "PolicyName", "ResultSourceName", "replay"]


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


class OutputFormat(StrEnum):
    """How the result is printed."""

    table = "table"
    json = "json"
    jsonl = "jsonl"


class ResultSourceName(StrEnum):
    """What results are classified from."""

    rebuilt = "rebuilt"
    log = "log"


_DEFAULT_TOP = 10


def replay(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH…",
            help="Sessions roots, projects, session folders, log files, exported ZIPs, in any mix.",
            show_default="$DSH_HOME/sessions",
        ),
    ] = None,
    config: ConfigOption = None,
    sets: SetOption = None,
    ruleset: RulesetOption = DEFAULT_RULESET_NAME,
    policy: Annotated[
        PolicyName,
        typer.Option(
            "--policy",
            help="At a gate: nobody answers (unattended), everybody approves, every gate denies, or nothing is "
            "withheld (observe).",
        ),
    ] = PolicyName.unattended,
    shell_http: Annotated[
        ShellHttpModeName,
        typer.Option(
            "--shell-http",
            help="Engage the shell-HTTP policy in sessions that were offered web_fetch_file (auto), in all, in none.",
        ),
    ] = ShellHttpModeName.auto,
    machine: MachineOption = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="NAME=GLOB", help="Label sessions good, stuck or unknown by id or path."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", metavar="FILE", help="CSV or TOML of session id or path glob, label, reason."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DATE", help="Only sessions created at or after (ISO 8601, UTC).")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="DATE", help="Only sessions created before (ISO 8601, UTC).")
    ] = None,
    events: Annotated[bool, typer.Option("--events", help="Also give every event.")] = False,
    messages: Annotated[
        bool, typer.Option("--messages", help="Give the events with what the guard would have said.")
    ] = False,
    output: Annotated[
        OutputFormat, typer.Option("--format", help="A table, one JSON document, or the events as JSON lines.")
    ] = OutputFormat.table,
    top: Annotated[int, typer.Option("--top", min=0, help="Sessions in the table; 0 for all.")] = _DEFAULT_TOP,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 3 unless every file reads ok (older generations aside).")
    ] = False,
    result_source: Annotated[
        ResultSourceName,
        typer.Option(
            "--result-source",
            help="Classify results rebuilt from the log, or only from what the published measurements used (log).",
        ),
    ] = ResultSourceName.rebuilt,
) -> int:
    """Replay recorded sessions call by call through the guard's engine and tell what it saw.

    The worst sessions come first, then the corpus, then what could not be read. A replay is open-loop: the recorded
    run goes on unchanged after a call the guard would have withheld.
    """
    from analysis.corpus import replay_corpus
    from analysis.labels import LabelConflict
    from analysis.replay import ReplayPlan
    from analysis.sessions.find import PathMissing
    from breaker.shellhttp import this_machine
    from cli.progress import byte_progress

    settings, rules = load_settings(config, sets, ruleset)
    events = events or messages
    plan = ReplayPlan(
        settings=settings,
        ruleset=rules,
        policy=policy.value,
        result_source=result_source.value,
        keep_events=events or output is OutputFormat.jsonl,
        keep_messages=messages,
        shell_http=shell_http.value,
        machine=this_machine(machine or []),
    )
    roots = paths or [_default_root()]
    label_rules = _label_rules(label, labels)
    period = _period(since, until)
    with byte_progress("reading sessions") as progress:
        try:
            corpus = replay_corpus(roots, plan, labels=label_rules, period=period, progress=progress)
        except PathMissing as error:
            raise Failed(USAGE, str(error)) from None
        except LabelConflict as error:
            raise Failed(USAGE, str(error)) from None
    for message in corpus.warnings:
        warn(message)
    _print(corpus, output, events=events, top=top)
    return _judge(corpus, strict=strict)


def _default_root() -> Path:
    import os

    from analysis.sessions.find import default_root

    return default_root(os.environ, Path.home())


def _label_rules(label: list[str] | None, labels: Path | None) -> LabelRules:
    from analysis.labels import LabelError, LabelRules, parse_label, read_labels

    try:
        rules = [parse_label(text) for text in label or []]
        if labels is not None:
            rules.extend(read_labels(labels))
    except LabelError as error:
        raise Failed(USAGE, str(error)) from None
    return LabelRules(rules)


def _period(since: str | None, until: str | None) -> Period | None:
    from analysis.corpus import Period

    if since is None and until is None:
        return None
    return Period(since=_epoch("--since", since), until=_epoch("--until", until))


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


def _print(corpus: CorpusReplay, output: OutputFormat, *, events: bool, top: int) -> None:
    from analysis.documents import event_rows, replay_document
    from cli.jsonlines import print_json, print_line

    if output is OutputFormat.json:
        print_json(replay_document(corpus, events=events))
    elif output is OutputFormat.jsonl:
        for row in event_rows(corpus):
            print_line(row)
    else:
        from cli.replay_table import print_replay

        print_replay(corpus, events=events, top=top)


def _judge(corpus: CorpusReplay, *, strict: bool) -> int:
    """Return the exit code a corpus earns: an empty or unreadable one is never fine."""
    if not corpus.reports:
        if corpus.filtered:
            raise Failed(NOT_ENOUGH, f"no session in that time; {corpus.filtered} lie outside it")
        if corpus.problems:
            raise Failed(UNREADABLE, f"nothing could be read: {corpus.problems[0].shown}: {corpus.problems[0].message}")
        raise Failed(NOT_ENOUGH, f"no sessions found in {', '.join(corpus.roots)}")
    if not corpus.sessions:
        raise Failed(UNREADABLE, f"none of {len(corpus.reports)} session files could be read")
    if strict and not corpus.spotless:
        faults = sum(report.state not in {"ok", "superseded"} for report in corpus.reports) + len(corpus.problems)
        raise Failed(UNREADABLE, f"--strict: {faults} of {len(corpus.reports)} session files did not read ok")
    return FINE
