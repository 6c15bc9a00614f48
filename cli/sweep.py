"""`breaker sweep`: try many settings over the same sessions."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.cache_options import told_cache
from cli.corpus_options import CorpusOptions, corpus_command, judge, require_sessions
from cli.exits import BUG, NOT_ENOUGH, USAGE, Failed, warn
from cli.sweep_choice import (
    PictureName,
    check_cv,
    check_plot,
    check_write,
    choosing_of,
    cross_validate,
    draw,
    print_patch,
    require_choice,
    write_settings,
)

if TYPE_CHECKING:
    from analysis.replay import ReplayPlan
    from analysis.sweep import Base, Choosing, GridAxis, HeldOut, Metric, Sweep, SweepPlan, Uncertainty

__all__ = ["SweepFormat", "sweep"]


class SweepFormat(StrEnum):
    """How the result is printed."""

    table = "table"
    json = "json"
    csv = "csv"


_DEFAULT_TOP = 30
_ALPHA = 0.05


@corpus_command
def sweep(
    options: CorpusOptions,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            metavar="KEY=VALUES",
            help="Values of a setting, of `ruleset` or `policy`; repeatable: warnAt=3..10, summarizeAt=4..16..2, "
            "limits.host=9,12,null. Or a file of them.",
        ),
    ] = None,
    candidates: Annotated[
        Path | None, typer.Option("--candidates", metavar="FILE", help="Named settings to try: TOML, JSON or YAML.")
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option("--random", metavar="N", min=1, help="Try N points of the grid, drawn without repetition."),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="What they are drawn from, and the sessions of --intervals and --cv.")
    ] = 0,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort", metavar="METRIC", help="Order the table by a metric, the best first.", show_default="as given"
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=0, help="Rows of the table; 0 for all.")] = _DEFAULT_TOP,
    output: Annotated[
        SweepFormat, typer.Option("--format", help="A table, one JSON document, or CSV.")
    ] = SweepFormat.table,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Also write the rows to a .parquet, .csv or .json file."),
    ] = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Give every metric its 95 % interval, and counts their spread.")
    ] = False,
    require: Annotated[
        list[str] | None,
        typer.Option("--require", metavar="METRIC=N", help="Choose only what keeps to it: good_gated=0, messages<=50."),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            "--objective", metavar="METRIC=WEIGHT,…", help="Choose by weighed sums: good_touched=10,messages=0.1."
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option("--alpha", help="The chance of touching a new good run that is put up with.")
    ] = _ALPHA,
    cv: Annotated[
        str | None,
        typer.Option(
            "--cv", metavar="project|model|K", help="Score the choice on sessions it was not chosen on, in K folds."
        ),
    ] = None,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE.toml", help="Write the chosen settings, a breaker.toml.")
    ] = None,
    patch: Annotated[
        bool, typer.Option("--patch", help="Print only the chosen settings, as the guard's row of a cordis.patch.yml.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Also draw it: .png, .svg or .pdf.")
    ] = None,
    picture: Annotated[list[PictureName] | None, typer.Option("--picture", help="Draw only this; repeatable.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> int:
    """Try many settings over the same sessions: what each choice costs, what it catches, and which to take.

    Every row carries its whole effective settings, and its numbers are those a replay of these settings gives.
    Labels say which sessions are good or stuck; what needs them is null without.
    """
    from analysis.sweep.export import OUTPUT_SUFFIXES, writer_of
    from cli.text import counted

    base_plan = options.plan()
    plan = _plan(options, base_plan, grid, candidates, sample, seed)
    order = _metric(sort)
    choosing = choosing_of(require or [], objective or [], alpha)
    check_cv(cv)
    check_plot(plot, picture or [], options.roots)
    check_write(write, options.roots)
    if patch and output is not SweepFormat.table:
        raise Failed(USAGE, f"--patch prints in place of the table: it does not go with --format {output.value}")
    if out is not None and writer_of(out) is None:
        raise Failed(USAGE, f"--out {out}: its name must end in {', '.join(OUTPUT_SUFFIXES)}")
    if plan.merged:
        told = counted(plan.merged, "configuration has", "configurations have")
        warn(f"{told} the settings of an earlier one: left out")
    result = _sweep(options, plan, base_plan, choosing)
    require_sessions(result.corpus)
    if not result.corpus.sessions and output is SweepFormat.table and not patch:
        from cli.replay_table import print_read_report

        print_read_report(result.corpus)
    code = judge(result.corpus, strict=options.strict)
    if order is not None and all(row.values[order.name] is None for row in result.rows):
        raise Failed(NOT_ENOUGH, f"--sort {order.name}: {result.rows[0].reasons[order.name]}")
    given = {"--require": require, "--objective": objective, "--write": write, "--patch": patch}
    wanted = [option for option, value in given.items() if value]
    chosen = require_choice(result, wanted) if wanted else None
    held_out = cross_validate(result, cv, seed)
    uncertainty = _intervals(result, seed) if intervals else None
    if plot is not None:
        draw(result, plot, picture or [], metric=None if order is None else order.name, force=force)
    if out is not None:
        _write(result, out, uncertainty, held_out, force=force, options=options)
    if write is not None and chosen is not None:
        write_settings(result, chosen, write, force=force)
    if patch and chosen is not None:
        print_patch(result, chosen)
    else:
        _print(result, output, order, top, uncertainty, held_out)
    return code


def _intervals(result: Sweep, seed: int) -> Uncertainty:
    from analysis.sweep import Evidence, sweep_intervals

    evidence = Evidence(result.sessions, len(result.plan.configs))
    return sweep_intervals(evidence, [row.values for row in result.rows], seed=seed)


def _plan(
    options: CorpusOptions,
    base_plan: ReplayPlan,
    grid: list[str] | None,
    candidates: Path | None,
    sample: int | None,
    seed: int,
) -> SweepPlan:
    from analysis.configs import ConfigError
    from analysis.sweep import GridError, plan_sweep, read_candidates

    try:
        base = _base(options, base_plan)
        axes = [axis for text in grid or [] for axis in _axes(text)]
        named = read_candidates(candidates) if candidates is not None else []
        return plan_sweep(base, axes, named, sample=sample, seed=seed)
    except (ConfigError, GridError) as error:
        raise Failed(USAGE, str(error)) from None


def _base(options: CorpusOptions, base_plan: ReplayPlan) -> Base:
    from analysis.configs import apply_sets, load_config
    from analysis.sweep import Base

    given = apply_sets(load_config(options.config) if options.config is not None else {}, options.sets or [])
    return Base(config=given, ruleset=base_plan.ruleset, policy=base_plan.policy)


def _axes(text: str) -> list[GridAxis]:
    from analysis.sweep import parse_axis, read_grid

    return [parse_axis(text)] if "=" in text else read_grid(Path(text))


def _metric(name: str | None) -> Metric | None:
    from analysis.sweep.metrics import SweepError, metric_named

    if name is None:
        return None
    try:
        return metric_named(name)
    except SweepError as error:
        raise Failed(USAGE, f"--sort: {error}") from None


def _sweep(options: CorpusOptions, plan: SweepPlan, base_plan: ReplayPlan, choosing: Choosing) -> Sweep:
    from analysis.labels import LabelConflict
    from analysis.processes.pool import WorkerFault
    from analysis.sessions.find import PathMissing
    from analysis.sweep import sweep_corpus
    from cli.progress import byte_progress

    labels, limits, jobs = options.label_rules(), options.limits(), options.job_count()
    with told_cache(options.cache, options.roots) as cache, byte_progress("reading sessions") as progress:
        try:
            result = sweep_corpus(
                options.roots,
                plan,
                base_plan,
                labels=labels,
                choosing=choosing,
                period=options.period(),
                limits=limits,
                progress=progress,
                jobs=jobs,
                cache=cache,
            )
        except (PathMissing, LabelConflict) as error:
            raise Failed(USAGE, str(error)) from None
        except WorkerFault as error:
            raise Failed(BUG, f"a process that reads has failed: {str(error).strip().splitlines()[-1]}") from None
    if labels.rules and result.corpus.sessions and len(labels.unused()) == len(labels.rules):
        told = "; ".join(result.corpus.warnings)
        raise Failed(NOT_ENOUGH, f"the labels match no session: {told}")
    for message in result.corpus.warnings:
        warn(message)
    return result


def _write(
    result: Sweep,
    out: Path,
    uncertainty: Uncertainty | None,
    held_out: HeldOut | None,
    *,
    force: bool,
    options: CorpusOptions,
) -> None:
    from analysis.files import OutputError, atomic_file, refuse_inside
    from analysis.sweep.export import writer_of

    writer = writer_of(out)
    if writer is None:
        return
    try:
        refuse_inside(out, options.roots)
        with atomic_file(out, force=force) as file:
            writer(result, file, uncertainty, held_out)
    except OutputError as error:
        raise Failed(USAGE, str(error)) from None


def _print(
    result: Sweep,
    output: SweepFormat,
    order: Metric | None,
    top: int,
    uncertainty: Uncertainty | None,
    held_out: HeldOut | None,
) -> None:
    import sys

    from analysis.sweep import sweep_document
    from analysis.sweep.export import csv_text
    from cli.jsonlines import print_json

    if output is SweepFormat.json:
        print_json(sweep_document(result, uncertainty=uncertainty, held_out=held_out))
    elif output is SweepFormat.csv:
        sys.stdout.write(csv_text(result, uncertainty))
    else:
        from cli.sweep_table import print_sweep

        print_sweep(result, order=order, top=top, uncertainty=uncertainty, held_out=held_out)
