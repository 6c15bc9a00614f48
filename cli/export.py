"""`breaker export`: tables with fixed schemas, and a manifest."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli.corpus_options import CorpusOptions, corpus_command, judge, require_sessions
from cli.exits import USAGE, Failed
from cli.output_options import (
    DEFAULT_SHORT_LINE,
    AllowEmptyOption,
    ForceOption,
    PrivacyName,
    PrivacyOption,
    SaltFileOption,
    ShortLineOption,
    load_privacy,
    output_faults,
    refuse_corpus,
)

__all__ = ["FileFormatName", "export"]


class FileFormatName(StrEnum):
    """What kind of file a table becomes."""

    parquet = "parquet"
    csv = "csv"
    ndjson = "ndjson"
    arrow = "arrow"


@corpus_command
def export(
    options: CorpusOptions,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the tables and their manifest.")],
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--tables",
            metavar="NAMES",
            help="Only these tables, separated by commas: sessions, turns, calls, events, measures, streaks, "
            "histogram, read_report.",
            show_default="all",
        ),
    ] = None,
    file_format: Annotated[FileFormatName, typer.Option("--format", help="Of the files.")] = FileFormatName.parquet,
    privacy: PrivacyOption = PrivacyName.shape,
    salt_file: SaltFileOption = None,
    short_line: ShortLineOption = DEFAULT_SHORT_LINE,
    force: ForceOption = False,
    allow_empty: AllowEmptyOption = False,
) -> int:
    """Write what a replay knows as tables: one file each, and a manifest of what they were made from and how.

    Every file appears whole or not at all. The same input and options give the same bytes, hashed texts aside. Unless
    all texts are kept (--privacy full), paths, label globs, limits of single measures and host aliases are private
    too, in the manifest as in the tables: `breaker reproduce` has to be given them again.
    """
    chosen = _tables(tables)
    plan = options.plan()
    shown = load_privacy(privacy, salt_file)
    refuse_corpus(out, options.roots)
    from analysis.tables import TablesObservation, export_tables

    observation = TablesObservation(plan, shown, chosen, short_line)
    try:
        with output_faults():
            corpus = options.replay(plan, observation)
            if not allow_empty:
                require_sessions(corpus)
            written = export_tables(
                observation,
                corpus,
                out,
                paths=options.roots,
                labels=options.label_rules(),
                period=options.period(),
                limits=options.limits(),
                tables=chosen,
                file_format=file_format.value,
                force=force,
            )
    finally:
        observation.close()
    width = max(len(table.file) for table in written)
    for table in written:
        print(f"{table.file:<{width}}  {table.rows:>9} rows  {table.bytes:>10} bytes")
    print(f"privacy {privacy.value} · ruleset {plan.ruleset.name} · settings {plan.settings.digest}")
    return judge(corpus, strict=options.strict, needs_calls=True, allow_empty=allow_empty)


def _tables(given: list[str] | None) -> list[str]:
    from analysis.tables import TABLE_NAMES

    names = [name.strip() for text in given or [] for name in text.split(",") if name.strip()]
    for name in names:
        if name not in TABLE_NAMES:
            raise Failed(USAGE, f"--tables {name}: no such table; known: {', '.join(TABLE_NAMES)}")
    return names or list(TABLE_NAMES)
