"""Hold the line: limits, expectations, baselines and waivers over known-good sessions."""

from __future__ import annotations

from analysis.regress._approval import Approval
from analysis.regress._baseline import (
    SEMANTICS,
    Baseline,
    BaselineEntry,
    Fired,
    baseline_of,
    differences,
    read_baseline,
    render_baseline,
    session_keys,
)
from analysis.regress._changes import Changes, changes_since
from analysis.regress._check import (
    Checker,
    LimitResult,
    Outcome,
    Scope,
    SessionResult,
    Shortage,
    Verdict,
    WaiverResult,
)
from analysis.regress._config import BASELINE_NAME, CheckConfig, Plan, find_config, load_check
from analysis.regress._faults import CheckError, Origin
from analysis.regress._findings import RULES, Finding, Place, Rule
from analysis.regress._numbers import number_names
from analysis.regress._rules import EventPattern, Expectation, Limit, Waiver, exact_text
from analysis.regress._selection import KnownSession, Selection, Unit

__all__ = [
    "BASELINE_NAME",
    "RULES",
    "SEMANTICS",
    "Approval",
    "Baseline",
    "BaselineEntry",
    "Changes",
    "CheckConfig",
    "CheckError",
    "Checker",
    "EventPattern",
    "Expectation",
    "Finding",
    "Fired",
    "KnownSession",
    "Limit",
    "LimitResult",
    "Origin",
    "Outcome",
    "Place",
    "Plan",
    "Rule",
    "Scope",
    "Selection",
    "SessionResult",
    "Shortage",
    "Unit",
    "Verdict",
    "Waiver",
    "WaiverResult",
    "baseline_of",
    "changes_since",
    "differences",
    "exact_text",
    "find_config",
    "load_check",
    "number_names",
    "read_baseline",
    "render_baseline",
    "session_keys",
]
