"""Read one session file and replay it, as a reading says."""

from __future__ import annotations

from collections.abc import Callable

from analysis.reading import Item, Reading, ReadSession
from analysis.replay import FactsReader, SessionReplay, replay_session
from analysis.sessions.session import SessionReader

__all__ = ["read_session", "reader_of", "replayed"]


def read_session(reading: Reading, item: Item, on_bytes: Callable[[int], None]) -> ReadSession:
    """Read one file to its end.

    Args:
        reading: how.
        item: the file.
        on_bytes: told how many bytes were read.
    """
    reader = reader_of(reading, item, on_bytes)
    replay = reading.replayer(reader) if reading.replayer is not None else replayed(reading, reader)
    return ReadSession(reader.report, reader.session, replay)


def reader_of(reading: Reading, item: Item, on_bytes: Callable[[int], None]) -> SessionReader:
    """Return what reads a file."""
    plan = reading.plan
    reader = SessionReader(
        item.file,
        plan.ruleset,
        source=plan.result_source,
        digests=item.digests,
        short_line=reading.short_line,
        limits=reading.limits,
        on_bytes=on_bytes,
        closely=reading.closely,
        keep_texts=reading.needs_texts or reading.replayer is not None,
    )
    if reading.work is not None:
        reader.other_rulesets = reading.work.other_rulesets
    return reader


def replayed(reading: Reading, reader: FactsReader) -> SessionReplay | None:
    """Read a session's facts to their end; None where nothing could be used."""
    if reading.work is not None:
        return reading.work(reader)
    return replay_session(reader, reading.plan, reading.make_observer)
