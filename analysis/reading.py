"""How one session file is read and replayed, in this process or another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from analysis.replay import FactsReader, ReplayPlan, RunObserver, SessionReplay, replay_session
from analysis.sessions.decode import Limits
from analysis.sessions.facts import SessionFacts
from analysis.sessions.find import SessionFile
from analysis.sessions.header import Header
from analysis.sessions.report import ReadReport
from analysis.sessions.session import SessionReader
from breaker.rulesets import Ruleset

if TYPE_CHECKING:
    from analysis.cache import Answers, Source
    from analysis.cache.keys import Content, FileStamp

__all__ = ["Item", "ReadSession", "Reading", "SessionReplayer", "SessionWork"]

SessionReplayer: TypeAlias = Callable[[SessionReader], SessionReplay | None]
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

    def __call__(self, item: Item, on_bytes: Callable[[int], None]) -> ReadSession:
        """Read one file to its end."""
        reader = self.reader(item, on_bytes)
        replay = self.replayer(reader) if self.replayer is not None else self.replayed(reader)
        return ReadSession(reader.report, reader.session, replay)

    def reader(self, item: Item, on_bytes: Callable[[int], None]) -> SessionReader:
        """Return what reads a file."""
        reader = SessionReader(
            item.file,
            self.plan.ruleset,
            source=self.plan.result_source,
            digests=item.digests,
            short_line=self.short_line,
            limits=self.limits,
            on_bytes=on_bytes,
            closely=self.closely,
            keep_texts=self.needs_texts or self.replayer is not None,
        )
        if self.work is not None:
            reader.other_rulesets = self.work.other_rulesets
        return reader

    def replayed(self, reader: FactsReader) -> SessionReplay | None:
        """Read a session's facts to their end; None where nothing could be used."""
        if self.work is not None:
            return self.work(reader)
        return replay_session(reader, self.plan, self.make_observer)

    def is_answered(self, item: Item) -> bool:
        """Tell that nothing is known of a file before it is read."""
        del item
        return False
