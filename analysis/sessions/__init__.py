"""Recorded sessions: find the logs, decode their bytes, read their rows, and tell what happened as facts."""

from __future__ import annotations

from analysis.sessions.decode import Limits
from analysis.sessions.facts import (
    CallFact,
    Fact,
    MessageFact,
    ResultSource,
    SessionFacts,
    SettleFact,
    StepFact,
    TurnFact,
)
from analysis.sessions.find import Found, PathMissing, Problem, SessionFile, default_root, find_sessions
from analysis.sessions.header import Header
from analysis.sessions.outcomes import OUTCOME_KINDS, Outcome
from analysis.sessions.report import READ_STATES, ReadDefect, ReadReport
from analysis.sessions.session import SessionReader, read_header

__all__ = [
    "OUTCOME_KINDS",
    "READ_STATES",
    "CallFact",
    "Fact",
    "Found",
    "Header",
    "Limits",
    "MessageFact",
    "Outcome",
    "PathMissing",
    "Problem",
    "ReadDefect",
    "ReadReport",
    "ResultSource",
    "SessionFacts",
    "SessionFile",
    "SessionReader",
    "SettleFact",
    "StepFact",
    "TurnFact",
    "default_root",
    "find_sessions",
    "read_header",
]
