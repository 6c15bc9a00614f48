"""A replayed corpus for people who look: one HTML file, pictures, and the same numbers as JSON.

The names below are imported when they are first used: what only counts draws nothing and loads nothing that draws.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.report.data import (
        REPORT_TABLES,
        Histogram,
        ReportData,
        build_report,
        histogram_document,
        histograms_of,
        report_document,
    )
    from analysis.report.page import render_page
    from analysis.report.plots import PLOT_FORMATS, PlotFormat, histogram_sheet, write_figure

__all__ = [
    "PLOT_FORMATS",
    "REPORT_TABLES",
    "Histogram",
    "PlotFormat",
    "ReportData",
    "build_report",
    "histogram_document",
    "histogram_sheet",
    "histograms_of",
    "render_page",
    "report_document",
    "write_figure",
]

_HOMES = {
    "REPORT_TABLES": "analysis.report.data",
    "Histogram": "analysis.report.data",
    "ReportData": "analysis.report.data",
    "build_report": "analysis.report.data",
    "histogram_document": "analysis.report.data",
    "histograms_of": "analysis.report.data",
    "report_document": "analysis.report.data",
    "render_page": "analysis.report.page",
    "PLOT_FORMATS": "analysis.report.plots",
    "PlotFormat": "analysis.report.plots",
    "histogram_sheet": "analysis.report.plots",
    "write_figure": "analysis.report.plots",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(home), name)
