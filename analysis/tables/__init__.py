"""Tables with fixed schemas over a replayed corpus, and their files.

The names below are imported when they are first used: what only counts loads no Arrow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    from analysis.tables.reproduction import Difference, Manifest, ManifestError, Reproduction, read_manifest, reproduce
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

_HOMES = {
    "DEFAULT_SHORT_LINE": "analysis.tables.collect",
    "TABLE_NAMES": "analysis.tables.collect",
    "SessionCollector": "analysis.tables.collect",
    "TablesObservation": "analysis.tables.collect",
    "FORMATS": "analysis.tables.export",
    "MANIFEST_NAME": "analysis.tables.export",
    "FileFormat": "analysis.tables.export",
    "WrittenTable": "analysis.tables.export",
    "export_tables": "analysis.tables.export",
    "WHATS": "analysis.tables.histograms",
    "HistogramKey": "analysis.tables.histograms",
    "HistogramObservation": "analysis.tables.histograms",
    "HistogramObserver": "analysis.tables.histograms",
    "Histograms": "analysis.tables.histograms",
    "What": "analysis.tables.histograms",
    "caps_by_kind": "analysis.tables.histograms",
    "thresholds": "analysis.tables.histograms",
    "DEFAULT_PRIVACY": "analysis.tables.privacy",
    "PRIVACIES": "analysis.tables.privacy",
    "SALT_BYTES": "analysis.tables.privacy",
    "Privacy": "analysis.tables.privacy",
    "PrivacyMode": "analysis.tables.privacy",
    "printable_unicode": "analysis.tables.privacy",
    "Difference": "analysis.tables.reproduction",
    "Manifest": "analysis.tables.reproduction",
    "ManifestError": "analysis.tables.reproduction",
    "Reproduction": "analysis.tables.reproduction",
    "read_manifest": "analysis.tables.reproduction",
    "reproduce": "analysis.tables.reproduction",
    "SCHEMA_VERSION": "analysis.tables.schemas",
    "TABLES": "analysis.tables.schemas",
    "Column": "analysis.tables.schemas",
    "Table": "analysis.tables.schemas",
    "table_named": "analysis.tables.schemas",
    "tables_document": "analysis.tables.schemas",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(home), name)
