"""Everything over recorded sessions: read them, replay them, and turn what the engine saw into numbers."""

from __future__ import annotations

from analysis.corpus import CorpusReplay, SessionRow, replay_corpus
from analysis.replay import POLICIES, STAGES, ReplayPlan, SessionReplay, replay_session

__all__ = [
    "POLICIES",
    "STAGES",
    "CorpusReplay",
    "ReplayPlan",
    "SessionReplay",
    "SessionRow",
    "replay_corpus",
    "replay_session",
]
