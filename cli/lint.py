"""`breaker lint`: settings that do not do what they seem to."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from cli.corpus_options import CorpusOptions, corpus_command, judge, require_sessions
from cli.exits import CHECK_FAILED, FINE, USAGE, Failed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analysis.corpus import CorpusReplay
    from analysis.lint import Finding
    from analysis.replay import ReplayPlan, StageName

__all__ = ["lint"]


class LintFormat(StrEnum):
    """How the findings are printed."""

    table = "table"
    json = "json"


class SeverityName(StrEnum):
    """From least to worst."""

    note = "note"
    warning = "warning"
    error = "error"


@partial(corpus_command, without=("label", "labels"), sure_to_read=False)
def lint(
    options: CorpusOptions,
    fail_on: Annotated[
        SeverityName | None, typer.Option("--fail-on", help="Exit 1 if there is a finding as bad as this, or worse.")
    ] = None,
    output: Annotated[LintFormat, typer.Option("--format", help="A table, or one JSON document.")] = LintFormat.table,
) -> int:
    """Look through settings for stages that cannot speak, caps beyond reach, and values that do not hold.

    With sessions given it also says which stages they never reach.
    """
    from analysis.lint import SEVERITIES, lint_settings

    plan = options.plan()
    corpus = options.replay(plan) if options.paths else None
    if corpus is not None:
        require_sessions(corpus)
    findings = lint_settings(_given(options), plan.ruleset, policy=plan.policy, reached=_reached(corpus))
    if output is LintFormat.json:
        _print_json(findings, plan, corpus)
    else:
        _print_table(findings, plan)
    code = judge(corpus, strict=options.strict) if corpus is not None else FINE
    if fail_on is not None:
        least = SEVERITIES.index(fail_on.value)
        if any(SEVERITIES.index(finding.severity) >= least for finding in findings):
            return CHECK_FAILED
    return code


def _given(options: CorpusOptions) -> dict[str, object]:
    from analysis.configs import ConfigError, apply_sets, load_config

    try:
        return apply_sets(load_config(options.config) if options.config is not None else {}, options.sets or [])
    except ConfigError as error:
        raise Failed(USAGE, str(error)) from None


def _reached(corpus: CorpusReplay | None) -> dict[StageName, dict[str, int]] | None:
    if corpus is None:
        return None
    counts: dict[StageName, Counter[str]] = {}
    for kind, stages in corpus.totals.stages_by_kind.items():
        for stage, times in stages.items():
            counts.setdefault(stage, Counter())[kind] += times
    return {stage: dict(kinds) for stage, kinds in counts.items()}


def _print_json(findings: Sequence[Finding], plan: ReplayPlan, corpus: CorpusReplay | None) -> None:
    from analysis.lint_document import lint_document
    from cli.jsonlines import print_json

    print_json(lint_document(findings, plan, corpus))


def _print_table(findings: Sequence[Finding], plan: ReplayPlan) -> None:
    from cli.text import plain

    for finding in findings:
        kinds = f" [{', '.join(finding.kinds)}]" if finding.kinds else ""
        print(f"{finding.severity}: {plain(finding.key)}{plain(kinds)}: {plain(finding.message)}")
        print(f"    {plain(finding.remedy)} ({finding.code})")
    counts = Counter(finding.severity for finding in findings)
    told = ", ".join(f"{count} {severity}s" if count > 1 else f"1 {severity}" for severity, count in counts.items())
    print(f"{told or 'nothing to say'}; ruleset {plan.ruleset.name}, policy {plan.policy}, {plan.settings.digest}")
