"""Corpora made into tables, as the command does it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from analysis.corpus import CorpusReplay, replay_corpus
from analysis.labels import LabelRules, parse_label
from analysis.replay import Policy, ReplayPlan
from analysis.tables import (
    DEFAULT_SHORT_LINE,
    TABLE_NAMES,
    FileFormat,
    Privacy,
    PrivacyMode,
    TablesObservation,
    WrittenTable,
    export_tables,
)
from breaker.settings import Settings

Row = dict[str, Any]


class Gathered:
    """A replayed corpus with its tables."""

    def __init__(
        self,
        *paths: Path,
        privacy: PrivacyMode | Privacy = "full",
        policy: Policy = "unattended",
        labels: Sequence[str] = (),
        short_line: int = DEFAULT_SHORT_LINE,
        plan: ReplayPlan | None = None,
        **settings: object,
    ) -> None:
        self.paths = paths
        self.plan = plan or ReplayPlan(settings=Settings.from_config(settings), policy=policy)
        self.labels = LabelRules(parse_label(text) for text in labels)
        shown = privacy if isinstance(privacy, Privacy) else Privacy(privacy)
        self.observation = TablesObservation(self.plan, shown, TABLE_NAMES, short_line)
        self.corpus: CorpusReplay = replay_corpus(paths, self.plan, labels=self.labels, observation=self.observation)

    def batches(self, name: str) -> list[pa.RecordBatch]:
        return list(self.observation.batches(name, self.corpus))

    def rows(self, name: str) -> list[Row]:
        """Return a table's rows."""
        found: list[Row] = []
        for batch in self.batches(name):
            data: Any = batch
            found += data.to_pylist()
        return found

    def column(self, table: str, name: str) -> list[Any]:
        """Return one column of a table."""
        return [row[name] for row in self.rows(table)]

    def export(self, out: Path, **options: Any) -> tuple[WrittenTable, ...]:
        return export_tables(
            self.observation, self.corpus, out, paths=self.paths, labels=self.labels, period=None, **options
        )


def export(
    *paths: Path,
    out: Path,
    file_format: FileFormat = "parquet",
    privacy: PrivacyMode | Privacy = "shape",
    force: bool = False,
    policy: Policy = "unattended",
) -> Gathered:
    """Write the tables of a corpus into a folder."""
    gathered = Gathered(*paths, privacy=privacy, policy=policy)
    gathered.export(out, file_format=file_format, force=force)
    return gathered
