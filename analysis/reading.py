"""How one session file is read and replayed, in this process or another: what is asked, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

import msgspec

from analysis.plan import ReplayPlan
from analysis.replayed import RunObserver, SessionReplay
from analysis.sessions.decode import Limits
from analysis.sessions.find import SessionFile
from analysis.sessions.header import Header
from analysis.sessions.report import ReadReport
from breaker.rulesets import Ruleset

if TYPE_CHECKING:
    from analysis.cache import Answers, Source
    from analysis.cache.keys import Content, FileStamp
    from analysis.replay import FactsReader
    from analysis.sessions.session import SessionReader
    from analysis.sessions.session_facts import SessionFacts

__all__ = ["Item", "ReadSession", "Reading", "SessionReplayer", "SessionWork"]

SessionReplayer: TypeAlias = "Callable[[SessionReader], SessionReplay | None]"
"""Reads one session to its end and replays it; None where nothing in it could be used."""


class SessionWork(Protocol):
    """What is made of a session's facts in place of the plain replay; never of the texts of its results. Picklable."""

    @property
    def other_rulesets(self) -> tuple[Ruleset, ...]:
        """The rulesets under which outcomes are decided besides the plan's."""
        ...

    @property
    def answers(self) -> Answers[SessionReplay]:
        """How what is made is written down."""
        ...

    def __call__(self, reader: FactsReader) -> SessionReplay | None:
        """Read one session to its end; None where nothing in it could be used."""
        ...


class Item(msgspec.Struct, frozen=True):
    """One file to be read."""

    file: SessionFile
    header: Header | None
    digests: bool
    """Its rows' digests are wanted."""
    stamp: FileStamp | None = None
    """The file's before its header was read, where there is a cache."""
    content: Content | None = None
    """What it holds, where that is known already."""


class ReadSession(msgspec.Struct, frozen=True):
    """What came of one file."""

    report: ReadReport
    session: SessionFacts | None
    replay: SessionReplay | None
    source: Source = "log"
    stored: int = 0
    """Entries written to the cache."""
    fault: str | None = None
    """Why the cache cannot be written."""


class Reading(msgspec.Struct, frozen=True):
    """How one file is read and replayed."""

    plan: ReplayPlan
    limits: Limits
    short_line: int | None
    closely: bool
    make_observer: Callable[[], RunObserver] | None
    replayer: SessionReplayer | None = None
    work: SessionWork | None = None
    needs_texts: bool = True
    """The texts of results are looked at."""

    loads: ClassVar[str] = "analysis.read_session"
    """What does the reading: loaded where something is read, not where it is only asked for."""

    def __call__(self, item: Item, on_bytes: Callable[[int], None]) -> ReadSession:
        """Read one file to its end."""
        from analysis.read_session import read_session

        return read_session(self, item, on_bytes)
