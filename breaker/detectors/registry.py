"""The detectors that come with the package, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from breaker.detectors.fail_guard import FailGuard
from breaker.detectors.guard import BREAKER_STAGES, BreakerDetector, breaker_from_config
from breaker.detectors.limits import FailureStreak, StepCap
from breaker.detectors.patterns import DoomLoop, OpenHands
from breaker.detectors.protocol import DetectorFactory
from breaker.detectors.runs import Consecutive, Reminder, RepeatStop

__all__ = ["BUILT_IN", "DETECTORS", "DetectorKind"]

BUILT_IN: Final = "built in"
"""Where the detectors of this package come from."""


@dataclass(frozen=True, slots=True)
class DetectorKind:
    """A detector by name: what it looks for, what it does, and how one is made."""

    name: str
    rule: str
    """What it looks for, in one line."""
    stages: tuple[str, ...]
    """What its findings can be."""
    make: DetectorFactory = field(repr=False)
    defaults: Mapping[str, object] | None = field(default=None, repr=False)
    """Its settings with their defaults; None where they are not known."""
    origin: str = BUILT_IN
    """`built in`, or the package that brings it."""


DETECTORS: Final[Mapping[str, DetectorKind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            DetectorKind("breaker", BreakerDetector.RULE, BREAKER_STAGES, breaker_from_config),
            DetectorKind("fail-guard", FailGuard.RULE, ("trip",), FailGuard, FailGuard.DEFAULTS),
            DetectorKind("reminder", Reminder.RULE, ("notice",), Reminder, Reminder.DEFAULTS),
            DetectorKind("repeat-stop", RepeatStop.RULE, ("deny",), RepeatStop, RepeatStop.DEFAULTS),
            DetectorKind("consecutive", Consecutive.RULE, ("trip",), Consecutive, Consecutive.DEFAULTS),
            DetectorKind("doom-loop", DoomLoop.RULE, ("ask",), DoomLoop, DoomLoop.DEFAULTS),
            DetectorKind("openhands", OpenHands.RULE, ("trip",), OpenHands, OpenHands.DEFAULTS),
            DetectorKind("step-cap", StepCap.RULE, ("trip",), StepCap, StepCap.DEFAULTS),
            DetectorKind(
                "failure-streak", FailureStreak.RULE, ("notice", "deny"), FailureStreak, FailureStreak.DEFAULTS
            ),
        )
    }
)
"""Every built-in detector, the breaker first."""
