"""What one sweep came to in one session, as the cache keeps it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from analysis.cache.keys import key_of
from analysis.cache.store import SWEEP
from analysis.cache.values import Number
from analysis.replay import ReplayPlan, SessionReplay, StageName
from analysis.sweep.grid import SweepConfig
from analysis.sweep.metrics import Lead, SessionView
from analysis.sweep.peaks import SessionPeaks
from analysis.sweep.sessions import SweptReplay

__all__ = ["SweepAnswers"]


class _View(msgspec.Struct, array_like=True):
    stages: dict[StageName, dict[str, int]]
    asks: int
    denials: int
    false_rejections: int
    lead: tuple[int, Number | None, int | None] | None
    members: list[int]


class _Swept(msgspec.Struct, array_like=True):
    shell_http: bool
    turns: int
    calls: int
    engine_runs: int
    peaks: dict[str, int] | None
    streak: int
    views: list[_View]


_SWEPT = msgspec.msgpack.Decoder(_Swept)


class SweepAnswers:
    """Writes down what all configurations of a sweep came to in one session; labels are no part of it.

    Only where there are labels are peaks asked for, and those are a run of the engine of their own; without them it is
    another answer.
    """

    def __init__(self, configs: Sequence[SweepConfig], base: ReplayPlan, *, with_peaks: bool) -> None:
        self.kind = SWEEP
        self._configs = configs
        self._base = base
        self._with_peaks = with_peaks
        self._key: bytes | None = None

    @property
    def key(self) -> bytes:
        """What decides the answers; where there is no cache, nobody asks."""
        if self._key is None:
            tried = [(config.settings, config.ruleset, config.policy) for config in self._configs]
            self._key = key_of(self.kind, self._base, tried, self._with_peaks)
        return self._key

    def encode(self, made: SessionReplay) -> bytes:
        """Write down a session.

        Raises:
            TypeError: no sweep made it.
        """
        if not isinstance(made, SweptReplay):
            message = "not swept"
            raise TypeError(message)
        peaks = made.peaks
        return msgspec.msgpack.encode(
            _Swept(
                made.shell_http,
                made.turns,
                made.calls,
                made.engine_runs,
                None if peaks is None else dict(peaks.by_kind),
                0 if peaks is None else peaks.streak,
                [
                    _View(
                        {stage: dict(kinds) for stage, kinds in view.stages.items()},
                        view.asks,
                        view.denials,
                        view.false_rejections,
                        view.lead,
                        members,
                    )
                    for view, members in made.counted
                ],
            )
        )

    def decode(self, data: bytes) -> SweptReplay:
        """Read a session.

        Raises:
            ValueError: it speaks of configurations there are none of.
        """
        stored = _SWEPT.decode(data)
        if any(not 0 <= member < len(self._configs) for view in stored.views for member in view.members):
            message = "another sweep"
            raise ValueError(message)
        return SweptReplay(
            shell_http=stored.shell_http,
            turns=stored.turns,
            calls=stored.calls,
            engine_runs=stored.engine_runs,
            peaks=None if stored.peaks is None else SessionPeaks(stored.peaks, stored.streak),
            counted=[(_view(view), view.members) for view in stored.views],
        )


def _view(stored: _View) -> SessionView:
    return SessionView(
        stages={stage: Counter(kinds) for stage, kinds in stored.stages.items()},
        asks=stored.asks,
        denials=stored.denials,
        false_rejections=stored.false_rejections,
        lead=None if stored.lead is None else Lead(*stored.lead),
    )
