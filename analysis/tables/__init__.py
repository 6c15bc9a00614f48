"""Tables with fixed schemas over a replayed corpus, and their files."""

from __future__ import annotations

from analysis.tables.collect import DEFAULT_SHORT_LINE, TABLE_NAMES, SessionCollector, TablesObservation
from analysis.tables.export import FORMATS, MANIFEST_NAME, FileFormat, WrittenTable, export_tables
from analysis.tables.histograms import (
    WHATS,
    HistogramKey,
    HistogramObservation,
    HistogramObserver,
    Histograms,
    What,
    caps_by_kind,
    thresholds,
)
from analysis.tables.privacy import DEFAULT_PRIVACY, PRIVACIES, SALT_BYTES, Privacy, PrivacyMode, printable_unicode
from analysis.tables.reproduce import Difference, Manifest, ManifestError, Reproduction, read_manifest, reproduce
from analysis.tables.schemas import SCHEMA_VERSION, TABLES, Column, Table, table_named, tables_document

__all__ = [
    "DEFAULT_PRIVACY",
    "DEFAULT_SHORT_LINE",
    "FORMATS",
    "MANIFEST_NAME",
    "PRIVACIES",
    "SALT_BYTES",
    "SCHEMA_VERSION",
    "TABLES",
    "TABLE_NAMES",
    "WHATS",
    "Column",
    "Difference",
    "FileFormat",
    "HistogramKey",
    "HistogramObservation",
    "HistogramObserver",
    "Histograms",
    "Manifest",
    "ManifestError",
    "Privacy",
    "PrivacyMode",
    "Reproduction",
    "SessionCollector",
    "Table",
    "TablesObservation",
    "What",
    "WrittenTable",
    "caps_by_kind",
    "export_tables",
    "printable_unicode",
    "read_manifest",
    "reproduce",
    "table_named",
    "tables_document",
    "thresholds",
]
