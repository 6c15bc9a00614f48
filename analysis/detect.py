"""Detectors over recorded sessions: found by name, built from settings, driven over facts beside the breaker."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, cast

from analysis.sessions.facts import CallFact, Fact, MessageFact, SettleFact, StepFact, TurnFact
from breaker.detectors import (
    BREAKER_STAGES,
    BUILT_IN,
    DETECTORS,
    RIVAL_STAGES,
    Detector,
    DetectorFactory,
    DetectorKind,
    FailGuard,
    Finding,
    SeenCall,
    SeenOutcome,
    SeenStep,
    SeenTurn,
    StepDetector,
)
from breaker.ecmascript import is_number, parse_json
from breaker.failure import Failure
from breaker.kinds import kind_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from analysis.replay import Policy, ReplayEvent, SessionReplay

__all__ = [
    "BREAKER_NAME",
    "ENTRY_POINTS",
    "DetectorError",
    "DetectorEvent",
    "DetectorFault",
    "DetectorReplay",
    "DetectorRun",
    "DetectorSpec",
    "DetectorTotals",
    "happened",
    "known_detectors",
    "parse_detectors",
    "plain_settings",
    "read_detector_config",
    "split_assignments",
    "sum_detectors",
]

ENTRY_POINTS = "breaker.detectors"
"""The entry point group under which other packages add detectors."""

BREAKER_NAME = "breaker"

_PROTOCOL = ("on_turn", "on_call", "on_outcome")
_KNOWN_STAGES = frozenset((*RIVAL_STAGES, *BREAKER_STAGES))
_ASK_ANSWERS: Mapping[str, str] = {
    "unattended": "ask-declined",
    "approve": "ask-approved",
    "deny": "deny",
    "observe": "observed",
}
_WITHHELD = frozenset({"deny", "ask-declined", "deny-shell-http"})
_PLUGIN_ROWS: Mapping[str, tuple[str, ...]] = {
    "fail-guard": ("dsh-fail-guard",),
    "reminder": ("repeat-tool-reminder", "dsh-repeat-tool-reminder", "@deepseek-ai/dsh-repeat-tool-reminder"),
    BREAKER_NAME: ("repeat-tool-breaker", "dsh-repeat-tool-breaker"),
}
"""By what id or name a detector's own plugin stands in a `cordis.patch.yml`."""


class DetectorError(ValueError):
    """A detector that is not known, cannot be made, or whose settings it refuses; the message names which and why."""


@dataclass(frozen=True, slots=True)
class DetectorSpec:
    """A detector and its settings: what makes a new one for each session."""

    name: str
    label: str
    """What its events carry: the name, or the whole text where one name is used with several settings."""
    make: DetectorFactory = field(repr=False)
    stages: tuple[str, ...] = RIVAL_STAGES
    config: Mapping[str, object] = field(default_factory=dict[str, object])
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    """The effective settings, as far as the detector tells them."""


@dataclass(frozen=True, slots=True)
class DetectorEvent:
    """One finding. `seq` and `call` are those of the call it speaks of, also for what its result set off.

    A step without a call has the seq of its own row, and the index the next call would have.
    """

    seq: int
    turn: int
    call: int
    tool: str
    """Empty for a step without a call."""
    stage: str
    track: str
    measure: str
    count: int
    threshold: float
    decision: str
    failure: Failure | None = None
    message: str | None = None
    """What it would tell the model, where that was asked for."""
    on_rebuilt: bool = False
    """It would not have been found without a rebuilt exit code."""
    position: int = field(default=0, compare=False)
    """Which fact of the session set it off."""


@dataclass(frozen=True, slots=True)
class DetectorFault:
    """A detector that raised, or answered with what is no finding; the session went on without it."""

    label: str
    call: int
    """The index of the call at hand; -1 before the first."""
    seq: int
    message: str


@dataclass(slots=True)
class DetectorReplay:
    """What one detector saw in one session."""

    label: str
    stages: Counter[str] = field(default_factory=Counter[str])
    stages_by_kind: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    first_calls: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """By stage and kind of measure: the first call it spoke of."""
    denials: int = 0
    """Calls it would have withheld."""
    false_rejections: int = 0
    """Those of them that succeeded in the record."""
    on_rebuilt: int = 0
    """Findings that rest on a rebuilt exit code."""
    failures: int = 0
    """Failed results counted by a detector that reads exit codes."""
    rebuilt_failures: int = 0
    """Those of them that rest on a rebuilt exit code alone."""
    events: list[DetectorEvent] = field(default_factory=list[DetectorEvent])
    fault: DetectorFault | None = None


@dataclass(slots=True)
class DetectorTotals:
    """What one detector saw in all sessions."""

    stages: Counter[str] = field(default_factory=Counter[str])
    sessions: int = 0
    """Sessions in which it spoke at all."""
    denials: int = 0
    false_rejections: int = 0
    on_rebuilt: int = 0
    failures: int = 0
    rebuilt_failures: int = 0
    faults: int = 0
    """Sessions in which it raised."""


def sum_detectors(specs: Sequence[DetectorSpec], sessions: Iterable[SessionReplay]) -> dict[str, DetectorTotals]:
    """Add up what each detector saw, by label, in the order of the specs."""
    totals = {spec.label: DetectorTotals() for spec in specs}
    for session in sessions:
        for replay in session.detectors:
            total = totals[replay.label]
            total.stages.update(replay.stages)
            total.sessions += bool(replay.stages)
            total.denials += replay.denials
            total.false_rejections += replay.false_rejections
            total.on_rebuilt += replay.on_rebuilt
            total.failures += replay.failures
            total.rebuilt_failures += replay.rebuilt_failures
            total.faults += replay.fault is not None
    return totals


def happened(replay: SessionReplay) -> list[tuple[str, ReplayEvent | DetectorEvent]]:
    """Return every event of a session with its detector's name, in the order they happened; the breaker's first."""
    events: list[tuple[str, ReplayEvent | DetectorEvent]] = [(BREAKER_NAME, event) for event in replay.events]
    for detector in replay.detectors:
        events.extend((detector.label, event) for event in detector.events)
    if replay.detectors:
        events.sort(key=lambda named: named[1].position)
    return events


# -- names and settings ------------------------------------------------------------------------------------------


def known_detectors() -> dict[str, DetectorKind]:
    """Return every detector there is: the built-in ones, then those other packages bring. Loads none of theirs.

    Raises:
        DetectorError: two detectors have one name.
    """
    known = dict(DETECTORS)
    for name, entry in _entry_points().items():
        distribution = entry.dist
        origin = entry.value if distribution is None else f"{distribution.name} ({entry.value})"
        if name in known:
            message = f"two detectors are named {name!r}: {known[name].origin}, and {origin}"
            raise DetectorError(message)
        known[name] = DetectorKind(name, "of another package", RIVAL_STAGES, _LateFactory(name), None, origin)
    return known


def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda one: (one.name, one.value)):
        if entry.name in found and found[entry.name].value != entry.value:
            message = f"two detectors are named {entry.name!r}: {found[entry.name].value}, and {entry.value}"
            raise DetectorError(message)
        found[entry.name] = entry
    return found


@dataclass(frozen=True, slots=True)
class _LateFactory:
    """Loads another package's detector when one is made; what is carried to another process is its name."""

    name: str

    def __call__(self, config: Mapping[str, object]) -> Detector:
        return _load(self.name)(config)


@cache
def _load(name: str) -> DetectorFactory:
    entry = _entry_points()[name]
    caught = _Caught()
    loaded: object = None
    with caught:
        loaded = entry.load()
    if caught.error is not None:
        message = f"detector {name}: {entry.value} cannot be loaded: {caught.told}"
        raise DetectorError(message)
    if not callable(loaded):
        message = f"detector {name}: {entry.value} is nothing that can be called with settings"
        raise DetectorError(message)
    return cast("DetectorFactory", loaded)


def parse_detectors(
    texts: Sequence[str], configs: Mapping[str, Mapping[str, object]] | None = None
) -> tuple[DetectorSpec, ...]:
    """Read `NAME[:key=value,…]` texts into detectors, and make one of each to see that its settings hold.

    Values are JSON, or plain text where they are not; a comma inside brackets or quotes belongs to the value. An entry
    of a map is `map.entry=value`. One name used several times is told apart by its whole text.

    Args:
        texts: the detectors as given.
        configs: settings from a file by detector name; what stands in a text comes on top.

    Raises:
        DetectorError: a name nobody knows (the known ones are named), a setting it refuses, a factory that fails.
    """
    known = known_detectors()
    parsed = [(text, *_split(text)) for text in texts]
    names = Counter(name for _, name, _ in parsed)
    specs: list[DetectorSpec] = []
    for text, name, given in parsed:
        kind = known.get(name)
        if kind is None:
            message = f"unknown detector {name!r}; known: {', '.join(known)}"
            raise DetectorError(message)
        label = text if names[name] > 1 or (name == BREAKER_NAME and given) else name
        if any(spec.label == label for spec in specs):
            message = f"detector {text} is given twice"
            raise DetectorError(message)
        config = _laid_over((configs or {}).get(name, {}), given)
        settings = _try_out(kind, config)
        specs.append(DetectorSpec(name, label, kind.make, kind.stages, config, settings))
    return tuple(specs)


def _split(text: str) -> tuple[str, dict[str, object]]:
    name, colon, rest = text.partition(":")
    name = name.strip()
    given: dict[str, object] = {}
    if not colon:
        return name, given
    for part in split_assignments(rest):
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals or not key:
            message = f"detector {text}: {part!r} must be key=value"
            raise DetectorError(message)
        if key in given:
            message = f"detector {text}: `{key}` is given twice"
            raise DetectorError(message)
        given[key] = _value(value)
    return name, given


def split_assignments(text: str) -> list[str]:
    """Split `key=value,…` at the commas that stand outside brackets and quotes."""
    parts = [""]
    depth = 0
    quoted = escaped = False
    for character in text:
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        elif character == "," and depth <= 0:
            parts.append("")
            continue
        parts[-1] += character
    return parts


def _value(text: str) -> object:
    """Read a value as JSON, and as plain text where it is none; a whole number stays one."""
    try:
        parse_json(text)
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return text


def _laid_over(config: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    merged = dict(config)
    for key, value in given.items():
        head, dot, entry = key.partition(".")
        if not dot:
            merged[key] = value
            continue
        current = merged.get(head)
        entries = dict(cast("Mapping[str, object]", current)) if isinstance(current, Mapping) else {}
        merged[head] = {**entries, entry: value}
    return merged


def _try_out(kind: DetectorKind, config: Mapping[str, object]) -> Mapping[str, object]:
    """Make one detector and return its effective settings."""
    caught = _Caught()
    missing: list[str] = []
    settings: dict[str, object] = {}
    with caught:
        detector: object = kind.make(config)
        missing = [name for name in _PROTOCOL if not callable(getattr(detector, name, None))]
        told: object = getattr(detector, "settings", None)
        settings = plain_settings(cast("Mapping[object, object]", told) if isinstance(told, Mapping) else config)
    if isinstance(caught.error, DetectorError):
        raise caught.error
    if caught.error is not None:
        told = str(caught.error) if isinstance(caught.error, ValueError) else caught.told
        named = kind.origin == BUILT_IN and told.startswith(f"{kind.name}: ")
        message = f"detector {told}" if named else f"detector {kind.name}: {told}"
        raise DetectorError(message)
    if missing:
        message = f"detector {kind.name}: {kind.origin} makes something without {', '.join(missing)}"
        raise DetectorError(message)
    return settings


def plain_settings(settings: Mapping[object, object] | Mapping[str, object]) -> dict[str, object]:
    """Return settings as JSON can write them: lists for tuples and sets, text for what it cannot write."""
    return {str(key): _plain(value) for key, value in settings.items()}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return plain_settings(cast("Mapping[object, object]", value))
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in cast("Iterable[object]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def read_detector_config(path: Path) -> dict[str, dict[str, object]]:
    """Read settings of detectors out of a file: by name, or as rows of a `cordis.patch.yml`.

    A TOML, JSON or YAML file holds one table per detector. A patch file holds the rows of the plugins themselves
    (`dsh-fail-guard`, `repeat-tool-reminder`, `repeat-tool-breaker`), each with its `config`; the last row counts.

    Raises:
        ConfigError: the file cannot be read, or holds no settings of a detector.
    """
    from analysis.configs import ConfigError, load_document, patch_rows

    document = load_document(path)
    configs: dict[str, dict[str, object]] = {}
    if isinstance(document, list):
        rows = patch_rows(cast("list[object]", document))
        for name, identities in _PLUGIN_ROWS.items():
            for row in rows:
                if row.get("id") in identities or row.get("name") in identities:
                    configs[name] = _table(path, name, row.get("config"))
        if not configs:
            known = ", ".join(identities[0] for identities in _PLUGIN_ROWS.values())
            message = f"{path}: has no row of a detector's plugin ({known})"
            raise ConfigError(message)
        return configs
    if not isinstance(document, Mapping):
        message = f"{path}: must hold one table of settings per detector"
        raise ConfigError(message)
    return {name: _table(path, name, table) for name, table in cast("Mapping[str, object]", document).items()}


def _table(path: Path, name: str, table: object) -> dict[str, object]:
    from analysis.configs import ConfigError

    if table is None:
        return {}
    if not isinstance(table, Mapping):
        message = f"{path}: the settings of {name} must be an object"
        raise ConfigError(message)
    return {str(key): value for key, value in cast("Mapping[object, object]", table).items()}


# -- driving them ------------------------------------------------------------------------------------------------


class _Caught:
    """Catches what foreign code raises and keeps it; an interruption by the person passes."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> None:
        self.error = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception | SystemExit):
            return False
        self.error = error
        return True

    @property
    def told(self) -> str:
        """The error in one line."""
        text = " ".join(str(self.error).split())
        return f"{type(self.error).__name__}: {text}" if text else type(self.error).__name__


class _Member:
    """One detector in one session."""

    def __init__(self, spec: DetectorSpec) -> None:
        self.replay = DetectorReplay(spec.label)
        self.detector: Detector | None = None
        self.counts_steps = False
        self.pending: list[Finding] = []
        """What it found at the begin of a step, until the step's first call is known."""
        self._spec = spec
        self._caught = _Caught()

    def begin(self) -> None:
        """Make the detector; one that was fine when it was tried out may still fail."""
        caught = self._caught
        with caught:
            self.detector = self._spec.make(self._spec.config)
            self.counts_steps = isinstance(self.detector, StepDetector)
        self._fail(-1, 0)

    def turn(self, turn: SeenTurn, call: int, seq: int) -> None:
        if self.detector is not None:
            with self._caught:
                self.detector.on_turn(turn)
            self._fail(call, seq)

    def step(self, step: SeenStep, call: int, seq: int) -> None:
        if self.counts_steps and isinstance(self.detector, StepDetector):
            found: object = None
            with self._caught:
                found = self.detector.on_step(step)
            self._fail(call, seq)
            self.pending += self._checked(found, call, seq)

    def call(self, call: SeenCall, seq: int) -> list[Finding]:
        found: object = None
        if self.detector is not None:
            with self._caught:
                found = self.detector.on_call(call)
            self._fail(call.index, seq)
        return self._checked(found, call.index, seq)

    def outcome(self, call: SeenCall, outcome: SeenOutcome, seq: int) -> list[Finding]:
        found: object = None
        if self.detector is not None:
            with self._caught:
                found = self.detector.on_outcome(call, outcome)
            self._fail(call.index, seq)
        return self._checked(found, call.index, seq)

    def finish(self) -> DetectorReplay:
        detector = self.detector
        if isinstance(detector, FailGuard):
            self.replay.failures = detector.failures
            self.replay.rebuilt_failures = detector.rebuilt_failures
        return self.replay

    def _fail(self, call: int, seq: int) -> None:
        if self._caught.error is not None:
            self._drop(call, seq, self._caught.told)

    def _drop(self, call: int, seq: int, message: str) -> None:
        self.replay.fault = DetectorFault(self._spec.label, call, seq, message)
        self.detector = None
        self.counts_steps = False
        self._caught.error = None

    def _checked(self, found: object, call: int, seq: int) -> list[Finding]:
        """Return the findings of an answer; one that holds anything else is a fault like any other."""
        if found is None or self.detector is None:
            return []
        if not isinstance(found, list | tuple):
            self._drop(call, seq, f"answered {type(found).__name__}, no sequence of findings")
            return []
        findings: list[Finding] = []
        for item in cast("Sequence[object]", found):
            wrong = _wrong(item)
            if wrong:
                self._drop(call, seq, wrong)
                break
            findings.append(cast("Finding", item))
        return findings


def _wrong(item: object) -> str:
    if not isinstance(item, Finding):
        return f"answered {type(item).__name__}, no finding"
    if item.stage not in _KNOWN_STAGES:
        return f"answered the unknown stage {item.stage!r}; known: {', '.join(RIVAL_STAGES)}"
    values = cast("tuple[object, ...]", (item.count, item.threshold))
    if not all(is_number(value) and math.isfinite(cast("float", value)) for value in values):
        return f"answered a count or threshold that is no number: {item.count!r}, {item.threshold!r}"
    texts = cast("tuple[object, ...]", (item.measure, item.track, item.decision, item.message))
    if not all(isinstance(text, str) for text in texts):
        return "answered a finding whose measure, track, decision or message is no text"
    return ""


class DetectorRun:
    """Drives several detectors over one session's facts, in order. Use one per session.

    A step begins where its row stands, or with the first call that names another step; a human message that stands
    between a step's row and the model's answer opens the turn that step belongs to.
    """

    def __init__(
        self, specs: Sequence[DetectorSpec], policy: Policy, *, keep_events: bool, keep_messages: bool
    ) -> None:
        self._members = [_Member(spec) for spec in specs]
        self._policy = policy
        self._keep_events = keep_events
        self._keep_messages = keep_messages
        self._position = 0
        self._in_flight: dict[int, SeenCall] = {}
        self._held_step: StepFact | None = None
        self._step_key: tuple[int | None, int | None] | None = None
        self._step = -1
        self._turn = 0
        self._next_call = 0
        self._last_call = (-1, 0)
        self._step_row = 0
        for member in self._members:
            member.begin()

    def take(self, fact: Fact) -> None:
        """Take one fact."""
        self._position += 1
        match fact:
            case CallFact():
                self._take_call(fact)
            case SettleFact():
                self._take_outcome(fact)
            case TurnFact():
                self._take_turn(fact)
            case StepFact():
                self._release_step()
                self._held_step = fact
            case MessageFact():
                self._release_step()

    def finish(self) -> tuple[DetectorReplay, ...]:
        """Close the session."""
        self._release_step()
        self._tell_pending(None)
        return tuple(member.finish() for member in self._members)

    def _take_turn(self, fact: TurnFact) -> None:
        if fact.cause != "human":
            self._release_step()
        self._tell_pending(None)
        self._turn = fact.turn
        for member in self._members:
            member.turn(SeenTurn(fact.cause, fact.turn), *self._last_call)

    def _release_step(self) -> None:
        step, self._held_step = self._held_step, None
        if step is not None:
            self._begin_step((step.recorded_turn, step.step), step.seq)

    def _begin_step(self, key: tuple[int | None, int | None], seq: int) -> None:
        self._tell_pending(None)
        self._step_key = key
        self._step += 1
        self._step_row = seq
        step = SeenStep(self._step, self._turn, self._next_call)
        for member in self._members:
            member.step(step, *self._last_call)

    def _take_call(self, fact: CallFact) -> None:
        self._release_step()
        key = (fact.recorded_turn, fact.step)
        if not fact.nested and (self._step_key is None or (key != self._step_key and key != (None, None))):
            self._begin_step(key, fact.seq)
        call = SeenCall(
            index=fact.index,
            call=fact.call,
            turn=fact.turn,
            step=max(self._step, 0),
            nested=fact.nested,
            met_guard=fact.outcome.commits,
        )
        self._next_call = fact.index + 1
        self._last_call = (fact.index, fact.seq)
        self._in_flight[fact.seq] = call
        self._tell_pending(fact)
        for member in self._members:
            for finding in member.call(call, fact.seq):
                self._note(member.replay, finding, fact)

    def _take_outcome(self, fact: SettleFact) -> None:
        call = self._in_flight.pop(fact.fact.seq, None)
        if call is None:
            return
        outcome = fact.fact.outcome
        seen = SeenOutcome(
            kind=outcome.kind,
            settles=outcome.settles,
            failure=outcome.failure,
            is_error=fact.is_error,
            exit_code=outcome.exit_code,
            exit_code_rebuilt=outcome.exit_code_rebuilt,
            text=fact.text,
            closer=fact.closer,
        )
        for member in self._members:
            for finding in member.outcome(call, seen, fact.fact.seq):
                self._note(member.replay, finding, fact.fact)

    def _tell_pending(self, fact: CallFact | None) -> None:
        """Note what was found at the begin of a step: at its first call, or without one where it has none."""
        for member in self._members:
            for finding in member.pending:
                self._note(member.replay, finding, fact)
            member.pending.clear()

    def _note(self, replay: DetectorReplay, finding: Finding, fact: CallFact | None) -> None:
        stage = finding.stage
        decision = finding.decision or self._decision(stage)
        call = self._next_call if fact is None else fact.index
        replay.stages[stage] += 1
        replay.on_rebuilt += finding.on_rebuilt
        kind = kind_of(finding.measure)
        replay.stages_by_kind.setdefault(kind, Counter())[stage] += 1
        replay.first_calls.setdefault((stage, kind), call)
        if decision in _WITHHELD:
            replay.denials += 1
            replay.false_rejections += fact is not None and fact.outcome.kind == "ok"
        if not self._keep_events:
            return
        replay.events.append(
            DetectorEvent(
                seq=self._step_row if fact is None else fact.seq,
                turn=self._turn if fact is None else fact.turn,
                call=call,
                tool="" if fact is None else fact.call.name,
                stage=stage,
                track=finding.track,
                measure=finding.measure,
                count=finding.count,
                threshold=finding.threshold,
                decision=decision,
                failure=finding.failure,
                message=finding.message if self._keep_messages and finding.message else None,
                on_rebuilt=finding.on_rebuilt,
                position=self._position,
            )
        )

    def _decision(self, stage: str) -> str:
        if stage == "ask":
            return _ASK_ANSWERS[self._policy]
        if stage == "deny":
            return "observed" if self._policy == "observe" else "deny"
        return "allow"
