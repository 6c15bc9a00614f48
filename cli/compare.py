"""`breaker compare`: two ways to guard the same sessions, side by side."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cli.cache_options import told_cache
from cli.corpus_options import CorpusOptions, corpus_command, judge, require_sessions
from cli.detectors import DetectorConfigOption, DetectorOption, detector_configs, detector_specs, tell_faults
from cli.exits import CHECK_FAILED, USAGE, Failed, warn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analysis.compare import ChangeKind, Comparison, Side
    from analysis.corpus import CorpusReplay
    from analysis.replay import ReplayPlan

__all__ = ["CompareFormat", "FailOn", "compare"]

_DEFAULT_TOP = 10
_SPEC_HELP = "a settings file, key=value settings, a ruleset, a policy, or a detector"


class CompareFormat(StrEnum):
    """How a comparison is printed."""

    table = "table"
    json = "json"
    markdown = "markdown"


class FailOn(StrEnum):
    """Which difference makes the exit code 1."""

    newly_firing = "newly-firing"
    stopped = "stopped"
    any = "any"


_FAILING: Mapping[FailOn, tuple[ChangeKind, ...]] = {
    FailOn.newly_firing: ("newly-firing",),
    FailOn.stopped: ("stopped",),
    FailOn.any: ("newly-firing", "stopped", "earlier", "later"),
}


@corpus_command
def compare(
    options: CorpusOptions,
    a: Annotated[str, typer.Option("--a", metavar="SPEC", help=f"The first side: {_SPEC_HELP}.")],
    b: Annotated[str, typer.Option("--b", metavar="SPEC", help=f"The second side: {_SPEC_HELP}.")],
    detector: DetectorOption = None,
    detector_config: DetectorConfigOption = None,
    output: Annotated[
        CompareFormat, typer.Option("--format", help="A table, one JSON document, or Markdown.")
    ] = CompareFormat.table,
    top: Annotated[int, typer.Option("--top", min=0, help="Sessions shown; 0 for all that differ.")] = _DEFAULT_TOP,
    fail_on: Annotated[
        FailOn | None, typer.Option("--fail-on", help="Exit 1 where a session differs in this way.", show_default="no")
    ] = None,
) -> int:
    """Compare two ways to guard the same sessions: what fires newly, no more, earlier or later from --a to --b.

    Settings, ruleset and policy given as options hold for both sides; a side changes what it names. Each --detector
    joins the agreement matrix.
    """
    from analysis.compare import compare as compare_sides
    from cli.text import counted

    configs = detector_configs(detector_config)
    first, second = _sides(options, (a, b), configs)
    others = detector_specs(detector, configs)
    replayed: list[CorpusReplay] = []

    def replay(plan: ReplayPlan) -> CorpusReplay:
        corpus = options.replay(plan) if not replayed else _again(options, plan)
        replayed.append(corpus)
        return corpus

    from analysis.detect import DetectorError

    try:
        comparison = compare_sides(first, second, replay, others)
    except DetectorError as error:
        raise Failed(USAGE, str(error)) from None
    require_sessions(comparison.corpus)
    if comparison.unmatched:
        warn(f"{counted(comparison.unmatched, 'session')} could be read for one side only: left out")
    _print(comparison, output, top)
    faulty = tell_faults(comparison.corpus)
    code = judge(comparison.corpus, strict=options.strict) or faulty
    if fail_on is None or code:
        return code
    differing = comparison.sessions_with(_FAILING[fail_on])
    if differing:
        sessions = counted(len(comparison.sessions), "session")
        raise Failed(CHECK_FAILED, f"--fail-on {fail_on.value}: {differing} of {sessions}")
    return code


def _again(options: CorpusOptions, plan: ReplayPlan) -> CorpusReplay:
    """Read the sessions once more; what there was to warn of has been told."""
    from analysis.corpus import replay_corpus
    from cli.progress import byte_progress

    with (
        told_cache(options.cache, options.roots) as cache,
        byte_progress("reading sessions for the second side") as progress,
        redirect_stdout(sys.stderr),
    ):
        return replay_corpus(
            options.roots,
            plan,
            labels=options.label_rules(),
            period=options.period(),
            limits=options.limits(),
            progress=progress,
            jobs=options.job_count(),
            cache=cache,
        )


def _sides(
    options: CorpusOptions, texts: tuple[str, str], configs: Mapping[str, Mapping[str, object]]
) -> tuple[Side, Side]:
    from analysis.compare import SideBase, SideError, parse_side
    from analysis.configs import ConfigError, apply_sets, load_config
    from analysis.detect import DetectorError
    from breaker.settings import SettingsError

    plan = options.plan()
    given = apply_sets(load_config(options.config) if options.config is not None else {}, options.sets or [])
    base = SideBase(plan, given, configs)
    sides: list[Side] = []
    for name, text in zip(("--a", "--b"), texts, strict=True):
        try:
            side = parse_side(text, base)
        except (SideError, ConfigError, DetectorError, SettingsError) as error:
            raise Failed(USAGE, f"{name}: {error}") from None
        for note in side.notes:
            warn(f"{name}: {note}; it is ignored")
        sides.append(side)
    return sides[0], sides[1]


def _print(comparison: Comparison, output: CompareFormat, top: int) -> None:
    from analysis.compare_document import compare_document
    from cli.compare_table import print_comparison
    from cli.jsonlines import print_json

    if output is CompareFormat.json:
        print_json(compare_document(comparison))
    else:
        print_comparison(comparison, top=top, markdown=output is CompareFormat.markdown)
