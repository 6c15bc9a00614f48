"""`breaker replay`: run recorded sessions through the guard and tell what it saw."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cli.corpus_options import CorpusOptions, corpus_command, judge, require_sessions
from cli.detectors import DetectorConfigOption, DetectorOption, detector_configs, detector_specs, tell_faults

if TYPE_CHECKING:
    from analysis.corpus import CorpusReplay

__all__ = ["OutputFormat", "replay"]


class OutputFormat(StrEnum):
    """How the result is printed."""

    table = "table"
    json = "json"
    jsonl = "jsonl"


_DEFAULT_TOP = 10


@corpus_command
def replay(
    options: CorpusOptions,
    events: Annotated[bool, typer.Option("--events", help="Also give every event.")] = False,
    messages: Annotated[
        bool, typer.Option("--messages", help="Give the events with what the guard would have said.")
    ] = False,
    output: Annotated[
        OutputFormat, typer.Option("--format", help="A table, one JSON document, or the events as JSON lines.")
    ] = OutputFormat.table,
    top: Annotated[int, typer.Option("--top", min=0, help="Sessions in the table; 0 for all.")] = _DEFAULT_TOP,
    detector: DetectorOption = None,
    detector_config: DetectorConfigOption = None,
) -> int:
    """Replay recorded sessions call by call through the guard's engine and tell what it saw.

    The worst sessions come first, then the corpus, then what could not be read. A replay is open-loop: the recorded
    run goes on unchanged after a call the guard would have withheld.
    """
    events = events or messages
    plan = options.plan(keep_events=events or output is OutputFormat.jsonl, keep_messages=messages)
    plan = replace(plan, detectors=detector_specs(detector, detector_configs(detector_config)))
    corpus = options.replay(plan)
    require_sessions(corpus)
    _print(corpus, output, events=events, top=top)
    code = tell_faults(corpus)
    return judge(corpus, strict=options.strict) or code


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
