"""The breaker and the rules it is compared with, behind one protocol. Pure: no I/O, no look-up of other packages.

```python
from breaker.detectors import FailGuard, SeenCall, SeenOutcome

detector = FailGuard({"threshold": 3})
call = SeenCall(index=0, call=Call("bash", {"command": "make"}))
detector.on_call(call)
findings = detector.on_outcome(call, SeenOutcome(kind="failed", exit_code=2))
```
"""

from __future__ import annotations

from breaker.detectors.fail_guard import FailGuard
from breaker.detectors.guard import BREAKER_STAGES, BreakerDetector, breaker_from_config
from breaker.detectors.limits import FailureStreak, StepCap
from breaker.detectors.patterns import DoomLoop, OpenHands
from breaker.detectors.protocol import (
    NOTHING,
    RIVAL_STAGES,
    Detector,
    DetectorFactory,
    Finding,
    SeenCall,
    SeenOutcome,
    SeenStep,
    SeenTurn,
    StepDetector,
)
from breaker.detectors.registry import BUILT_IN, DETECTORS, DetectorKind
from breaker.detectors.runs import Consecutive, Reminder, RepeatStop
from breaker.detectors.settings import DetectorSettingsError, SettingsReader

__all__ = [
    "BREAKER_STAGES",
    "BUILT_IN",
    "DETECTORS",
    "NOTHING",
    "RIVAL_STAGES",
    "BreakerDetector",
    "Consecutive",
    "Detector",
    "DetectorFactory",
    "DetectorKind",
    "DetectorSettingsError",
    "DoomLoop",
    "FailGuard",
    "FailureStreak",
    "Finding",
    "OpenHands",
    "Reminder",
    "RepeatStop",
    "SeenCall",
    "SeenOutcome",
    "SeenStep",
    "SeenTurn",
    "SettingsReader",
    "StepCap",
    "StepDetector",
    "breaker_from_config",
]
