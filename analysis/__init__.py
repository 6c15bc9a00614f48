"""Everything over recorded sessions: read them, replay them, and turn what the engine saw into numbers.

The names below are imported when they are first used, so that a command which needs one module loads one module.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.corpus import CorpusReplay, SessionRow, replay_corpus
    from analysis.plan import POLICIES, ReplayPlan
    from analysis.replay import replay_session
    from analysis.replayed import STAGES, SessionReplay

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

_HOMES = {
    "CorpusReplay": "analysis.corpus",
    "SessionRow": "analysis.corpus",
    "replay_corpus": "analysis.corpus",
    "POLICIES": "analysis.plan",
    "STAGES": "analysis.replayed",
    "ReplayPlan": "analysis.plan",
    "SessionReplay": "analysis.replayed",
    "replay_session": "analysis.replay",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(home), name)
