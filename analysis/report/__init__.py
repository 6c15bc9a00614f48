"""A replayed corpus for people who look: one HTML file, pictures, and the same numbers as JSON."""

from __future__ import annotations

from analysis.report.data import (
    REPORT_TABLES,
    Histogram,
    ReportData,
    build_report,
    histogram_document,
    histograms_of,
    report_document,
)
from analysis.report.intervals import CONFIDENCE, Share, clustered_share, session_share
from analysis.report.page import render_page
from analysis.report.plots import PLOT_FORMATS, PlotFormat, histogram_sheet, write_figure

__all__ = [
    "CONFIDENCE",
    "PLOT_FORMATS",
    "REPORT_TABLES",
    "Histogram",
    "PlotFormat",
    "ReportData",
    "Share",
    "build_report",
    "clustered_share",
    "histogram_document",
    "histogram_sheet",
    "histograms_of",
    "render_page",
    "report_document",
    "session_share",
    "write_figure",
]
