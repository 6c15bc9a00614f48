"""How one session file is read and replayed, in this process or another, with or without what earlier runs left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import msgspec

from analysis.cache import Answers, Cache, EntryDamaged, RecordingReader, Source, StoredReader
from analysis.cache.answers import UNDECODABLE, AboutSession, about, report_of, session_of
from analysis.cache.keys import Content, FileStamp, key_of
from analysis.cache.store import FACTS
from analysis.replay import FactsReader, ReplayPlan, RunObserver, SessionReplay, replay_session
from analysis.sessions.decode import IO_FAULT, Limits
from analysis.sessions.facts import SessionFacts
from analysis.sessions.find import SessionFile
from analysis.sessions.header import Header
from analysis.sessions.report import ReadReport
from analysis.sessions.session import SessionReader
from breaker.rulesets import Ruleset

__all__ = ["Item", "ReadSession", "Reading", "SessionReplayer", "SessionWork", "facts_keys"]

SessionReplayer: TypeAlias = Callable[[SessionReader], SessionReplay | None]
"""Reads one session to its end and replays it; None where nothing in it could be used."""

_FROM_THE_SYSTEM = frozenset({"unreadable", IO_FAULT})
"""Defects that say nothing of what is in a file: the next time it may be read whole."""


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


class _Answer(msgspec.Struct, array_like=True):
    about: AboutSession
    made: bytes | None


_ANSWERS = msgspec.msgpack.Decoder(_Answer)


class _Keys(msgspec.Struct, frozen=True):
    facts: bytes
    answer: bytes | None


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
    """The texts of results are looked at, which facts in the cache do not have."""
    answers: Answers[SessionReplay] | None = None
    """How what is made of a session is written down; None where it is not."""
    cache: Cache | None = None
    facts_keys: tuple[bytes, bytes] = (b"", b"")
    """What beside the bytes decides a session's facts, without and with digests; given with a cache."""

    def __call__(self, item: Item, on_bytes: Callable[[int], None]) -> ReadSession:
        """Read one file to its end."""
        cache = self.cache
        content = (
            None if cache is None else item.content or cache.look_at(item.file, item.header, item.stamp, self.limits)
        )
        if cache is None or content is None:
            return self._replayed(self._reader(item, on_bytes))
        keys = self._keys(cache, item, content)
        found = self._answered(cache, item, keys) or self._from_facts(cache, item, keys)
        if found is not None:
            on_bytes(item.file.size)
            return found
        return self._from_log(cache, item, content, keys, on_bytes)

    def is_answered(self, item: Item) -> bool:
        """Tell whether what is asked of a file is in the cache, as far as a look at the folder tells."""
        if self.cache is None or item.content is None:
            return False
        key = self._keys(self.cache, item, item.content).answer
        return key is not None and self.answers is not None and self.cache.store.has(self.answers.kind, key)

    # -- from the log --------------------------------------------------------------------------------------------

    def _reader(self, item: Item, on_bytes: Callable[[int], None]) -> SessionReader:
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

    def _replayed(self, reader: SessionReader) -> ReadSession:
        replay = self.replayer(reader) if self.replayer is not None else self._made(reader)
        return ReadSession(reader.report, reader.session, replay)

    def _made(self, reader: FactsReader) -> SessionReplay | None:
        if self.work is not None:
            return self.work(reader)
        return replay_session(reader, self.plan, self.make_observer)

    def _from_log(
        self, cache: Cache, item: Item, content: Content, keys: _Keys, on_bytes: Callable[[int], None]
    ) -> ReadSession:
        reader = self._reader(item, on_bytes)
        if not (self.needs_texts and cache.store.has(FACTS, keys.facts)):
            reader = RecordingReader(reader)
        replay = self._made(reader)
        report, session = reader.report, reader.session
        stored = 0
        if _hangs_on_the_log(report) and cache.is_unchanged(item.file, content):
            if isinstance(reader, RecordingReader):
                stored += cache.write(FACTS, keys.facts, reader.payload)
            stored += self._keep_answer(cache, keys, report, session, replay)
        return ReadSession(report, session, replay, "log", stored, cache.fault)

    # -- from the cache ------------------------------------------------------------------------------------------

    def _keys(self, cache: Cache, item: Item, content: Content) -> _Keys:
        file = item.file
        facts = cache.key(
            FACTS,
            content.digest,
            (file.generation, file.compressed, file.note),
            self.facts_keys[item.digests],
        )
        return _Keys(facts, None if self.answers is None else key_of(facts, self.answers.key))

    def _answered(self, cache: Cache, item: Item, keys: _Keys) -> ReadSession | None:
        if self.answers is None or keys.answer is None:
            return None
        data = cache.store.get(self.answers.kind, keys.answer)
        if data is None:
            return None
        try:
            stored = _ANSWERS.decode(data)
            replay = None if stored.made is None else self.answers.decode(stored.made)
        except UNDECODABLE:
            return None
        report = report_of(stored.about, item.file.shown, item.file.size)
        return ReadSession(report, session_of(stored.about), replay, "answer", 0, cache.fault)

    def _from_facts(self, cache: Cache, item: Item, keys: _Keys) -> ReadSession | None:
        data = None if self.needs_texts else cache.store.get(FACTS, keys.facts)
        if data is None:
            return None
        try:
            reader = StoredReader(item.file, data)
            replay = self._made(reader)
        except EntryDamaged:
            return None
        stored = self._keep_answer(cache, keys, reader.report, reader.session, replay)
        return ReadSession(reader.report, reader.session, replay, "facts", stored, cache.fault)

    def _keep_answer(
        self,
        cache: Cache,
        keys: _Keys,
        report: ReadReport,
        session: SessionFacts | None,
        replay: SessionReplay | None,
    ) -> bool:
        answers, key = self.answers, keys.answer
        if answers is None or key is None:
            return False

        def payload() -> bytes:
            made = None if replay is None else answers.encode(replay)
            return msgspec.msgpack.encode(_Answer(about(report, session), made))

        return cache.write(answers.kind, key, payload)


def facts_keys(
    plan: ReplayPlan, limits: Limits, short_line: int | None, work: SessionWork | None
) -> tuple[bytes, bytes]:
    """Return what beside the bytes decides a session's facts, without and with digests of its rows."""
    rulesets = (plan.ruleset, *(() if work is None else work.other_rulesets))
    without, having = (key_of(rulesets, plan.result_source, digests, short_line, limits) for digests in (False, True))
    return without, having


def _hangs_on_the_log(report: ReadReport) -> bool:
    """Tell whether the same bytes are read the same way the next time, too."""
    return not report.defects_untold and all(defect.kind not in _FROM_THE_SYSTEM for defect in report.defects)
