"""How one session file is read and replayed where earlier runs may have left what they came to."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from analysis.cache import Answers, Cache, EntryDamaged, RecordingReader, StoredReader
from analysis.cache.answers import UNDECODABLE, AboutSession, about, report_of, session_of
from analysis.cache.keys import Content, key_of
from analysis.cache.store import FACTS
from analysis.read_session import reader_of, replayed
from analysis.reading import Item, Reading, ReadSession, SessionWork
from analysis.replay import ReplayPlan, SessionReplay
from analysis.sessions.decode import IO_FAULT, Limits
from analysis.sessions.report import ReadReport
from analysis.sessions.session_facts import SessionFacts

__all__ = ["CachedReading", "facts_keys"]

_FROM_THE_SYSTEM = frozenset({"unreadable", IO_FAULT})
"""Defects that say nothing of what is in a file: the next time it may be read whole."""


class _Answer(msgspec.Struct, array_like=True):
    about: AboutSession
    made: bytes | None


_ANSWERS = msgspec.msgpack.Decoder(_Answer)


class _Keys(msgspec.Struct, frozen=True):
    facts: bytes
    answer: bytes | None


class CachedReading(msgspec.Struct, frozen=True):
    """Reads a file as a plain reading would, or finds what that came to before."""

    reading: Reading
    cache: Cache
    facts_keys: tuple[bytes, bytes]
    """What beside the bytes decides a session's facts, without and with digests."""
    answers: Answers[SessionReplay] | None = None
    """How what is made of a session is written down; None where it is not."""

    def __call__(self, item: Item, on_bytes: Callable[[int], None]) -> ReadSession:
        """Read one file to its end."""
        content = item.content or self.cache.look_at(item.file, item.header, item.stamp, self.reading.limits)
        if content is None:
            return self.reading(item, on_bytes)
        keys = self._keys(item, content)
        found = self._answered(item, keys) or self._from_facts(item, keys)
        if found is not None:
            on_bytes(item.file.size)
            return found
        return self._from_log(item, content, keys, on_bytes)

    def is_answered(self, item: Item) -> bool:
        """Tell whether what is asked of a file is in the cache, as far as a look at the folder tells."""
        if item.content is None:
            return False
        key = self._keys(item, item.content).answer
        return key is not None and self.answers is not None and self.cache.store.has(self.answers.kind, key)

    def _from_log(self, item: Item, content: Content, keys: _Keys, on_bytes: Callable[[int], None]) -> ReadSession:
        reader = reader_of(self.reading, item, on_bytes)
        if not (self.reading.needs_texts and self.cache.store.has(FACTS, keys.facts)):
            reader = RecordingReader(reader)
        replay = replayed(self.reading, reader)
        report, session = reader.report, reader.session
        stored = 0
        if _hangs_on_the_log(report) and self.cache.is_unchanged(item.file, content):
            if isinstance(reader, RecordingReader):
                stored += self.cache.write(FACTS, keys.facts, reader.payload)
            stored += self._keep_answer(keys, report, session, replay)
        return ReadSession(report, session, replay, "log", stored, self.cache.fault)

    # -- from the cache ------------------------------------------------------------------------------------------

    def _keys(self, item: Item, content: Content) -> _Keys:
        file = item.file
        facts = self.cache.key(
            FACTS,
            content.digest,
            (file.generation, file.compressed, file.note),
            self.facts_keys[item.digests],
        )
        return _Keys(facts, None if self.answers is None else key_of(facts, self.answers.key))

    def _answered(self, item: Item, keys: _Keys) -> ReadSession | None:
        if self.answers is None or keys.answer is None:
            return None
        data = self.cache.store.get(self.answers.kind, keys.answer)
        if data is None:
            return None
        try:
            stored = _ANSWERS.decode(data)
            replay = None if stored.made is None else self.answers.decode(stored.made)
        except UNDECODABLE:
            return None
        report = report_of(stored.about, item.file.shown, item.file.size)
        return ReadSession(report, session_of(stored.about), replay, "answer", 0, self.cache.fault)

    def _from_facts(self, item: Item, keys: _Keys) -> ReadSession | None:
        data = None if self.reading.needs_texts else self.cache.store.get(FACTS, keys.facts)
        if data is None:
            return None
        try:
            reader = StoredReader(item.file, data)
            replay = replayed(self.reading, reader)
        except EntryDamaged:
            return None
        stored = self._keep_answer(keys, reader.report, reader.session, replay)
        return ReadSession(reader.report, reader.session, replay, "facts", stored, self.cache.fault)

    def _keep_answer(
        self,
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

        return self.cache.write(answers.kind, key, payload)


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
