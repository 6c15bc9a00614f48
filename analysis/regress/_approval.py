"""Approve what sessions show: the baseline that is written, and how it differs from the one before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from analysis.cache import Cache
from analysis.progress import NO_PROGRESS, Progress
from analysis.regress._baseline import (
    Baseline,
    BaselineEntry,
    Fired,
    baseline_of,
    differences,
    read_baseline,
    render_baseline,
)
from analysis.regress._check import Checker, Shortage
from analysis.regress._config import CheckConfig, Plan
from analysis.regress._faults import CheckError, shown
from analysis.regress.files import write_whole

__all__ = ["Approval"]


def _no_cache(roots: Sequence[Path]) -> None:
    del roots


@dataclass(frozen=True, slots=True)
class Approval:
    """A baseline ready to be written."""

    path: Path
    baseline: Baseline
    changes: tuple[str, ...]
    """How it differs from the one before, a line each."""
    shortages: tuple[Shortage, ...]
    """Why it must not be written."""
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        config: CheckConfig,
        plan: Plan,
        paths: Sequence[str] | None,
        progress: Progress = NO_PROGRESS,
        open_cache: Callable[[Sequence[Path]], Cache | None] = _no_cache,
    ) -> Approval:
        """Replay the sessions of a check and take down what they show; the cache is opened for what is read.

        Raises:
            CheckError: the baseline is switched off, a path does not exist, labels contradict each other.
        """
        if config.baseline is None:
            message = f"{shown(config.path)}: `baseline` is false: there is none to write"
            raise CheckError(message)
        checker = Checker(replace(config, baseline=None), plan, date.max, paths)
        checker.refuse_overwriting(config.baseline)
        corpus = checker.replay(progress=progress, cache=open_cache(checker.selection.roots))
        baseline = baseline_of(corpus)
        notes = checker.notes(corpus)
        changes: list[str] = []
        if config.baseline.exists():
            try:
                changes = _changes(read_baseline(config.baseline), baseline, plan)
            except CheckError as error:
                notes.append(f"what stood there was no baseline: {error}")
        return cls(config.baseline, baseline, tuple(changes), tuple(checker.shortages(corpus)), tuple(notes))

    @property
    def name(self) -> str:
        """The file, as people write it."""
        return shown(self.path)

    def write(self) -> None:
        """Write the baseline.

        Raises:
            OSError: it cannot be written; what was there before is untouched.
        """
        write_whole(self.path, render_baseline(self.baseline))


def _changes(then: Baseline, now: Baseline, plan: Plan) -> list[str]:
    lines = [f"made anew with {difference}" for difference in differences(then, plan.replay)]
    for key in sorted({*then.sessions, *now.sessions}):
        before, after = then.sessions.get(key), now.sessions.get(key)
        if before is None:
            lines.append(f"+ {key}")
        elif after is None:
            lines.append(f"- {key}")
        elif before != after:
            lines.append(f"~ {key}: {_difference(before, after)}")
    return lines


def _difference(before: BaselineEntry, after: BaselineEntry) -> str:
    told = [
        f"{stage} on {kind} {_fired(then)}, now {_fired(now)}"
        for stage, kind in sorted({*before.events, *after.events})
        if (then := before.events.get((stage, kind))) != (now := after.events.get((stage, kind)))
    ]
    if before.log != after.log or before.read != after.read:
        told.append("another log")
    return "; ".join(told) or "other measures or counts"


def _fired(fired: Fired | None) -> str:
    return "never" if fired is None else f"{fired.count} from call {fired.first}"
