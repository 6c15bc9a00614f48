"""Two ways to guard the same sessions, side by side: settings, rulesets, policies, detectors.

Either side is a replay of the breaker or another detector. A session is compared by the first call at which each side
reaches a stage. Two sides with the same stages are compared stage by stage; a breaker and another detector by what
their stages amount to: a message to the model, or a stop (a gate, a halt, an ask, a denial).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Literal, cast

from analysis.agreement import Agreement
from analysis.configs import ConfigError, apply_sets, load_config
from analysis.corpus import CorpusReplay, SessionRow
from analysis.detect import (
    BREAKER_NAME,
    DetectorError,
    DetectorReplay,
    DetectorSpec,
    known_detectors,
    parse_detectors,
    split_assignments,
)
from analysis.labels import LABELS, Label
from analysis.replay import POLICIES, Policy, ReplayPlan, SessionReplay
from breaker.detectors import BREAKER_STAGES, RIVAL_STAGES
from breaker.rulesets import RULESETS, Ruleset, UnknownRulesetError, ruleset_named
from breaker.settings import Settings, SettingsError, nearest_key, unknown_keys

__all__ = [
    "CHANGES",
    "Change",
    "ChangeKind",
    "Comparison",
    "GroupTotals",
    "LabelTotals",
    "SessionComparison",
    "Side",
    "SideBase",
    "SideError",
    "compare",
    "parse_side",
]

ChangeKind = Literal["newly-firing", "stopped", "earlier", "later", "same", "silent"]
CHANGES: tuple[ChangeKind, ...] = ("newly-firing", "stopped", "earlier", "later", "same", "silent")
"""From the first side to the second: only the second fires, only the first, both (by their first calls), neither."""

MESSAGES = ("warn", "summarize", "fail-warn", "notice")
STOPS = ("gate", "fail-gate", "shell-http", "trip", "ask", "deny")
_GROUPS: Mapping[str, tuple[str, ...]] = {"any": (*MESSAGES, *STOPS), "message": MESSAGES, "stop": STOPS}
_NO_KIND = "none"
"""Stands for the kind of an event that names no measure: a refused shell fetch."""
_RESERVED = ("ruleset", "policy")
_SETTINGS_SUFFIXES = frozenset({".toml", ".json", ".yml", ".yaml"})

_FORMS = (
    "a settings file (its name ends in .toml, .json, .yml or .yaml), key=value settings, a ruleset, a policy, or a "
    "detector NAME[:key=value,…]; file:, set:, ruleset:, policy: and detector: before it say which is meant"
)


class SideError(ValueError):
    """A side that cannot be understood; the message says what it may be."""


@dataclass(frozen=True, slots=True)
class Side:
    """One way to guard: the breaker under a plan, or another detector."""

    label: str
    plan: ReplayPlan
    """How the breaker is replayed; where there is a detector, how outcomes are classified."""
    detector: DetectorSpec | None = None
    notes: tuple[str, ...] = ()
    """What a person should be told of it."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages it can reach."""
        return BREAKER_STAGES if self.detector is None else self.detector.stages

    @property
    def kind(self) -> str:
        """What it is, for outputs: `breaker` or `detector`."""
        return BREAKER_NAME if self.detector is None else "detector"


@dataclass(frozen=True, slots=True)
class SideBase:
    """What a side does not speak of: how the breaker is replayed, and the settings that were given for it."""

    plan: ReplayPlan
    given: Mapping[str, object] = field(default_factory=dict[str, object])
    """The settings as given, before the ruleset's defaults: they stay where a side names another ruleset."""
    configs: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])
    """Settings of detectors from a file, by name."""

    def laid_over(self, given: Mapping[str, object], ruleset: Ruleset) -> ReplayPlan:
        """Return the plan with other settings and another ruleset."""
        return replace(self.plan, settings=Settings.from_config(given, ruleset), ruleset=ruleset)


def parse_side(text: str, base: SideBase) -> Side:
    """Read a side: what it names is laid over the base.

    Args:
        text: a settings file, `key=value[,key=value…]` (`ruleset` and `policy` too), a ruleset, a policy, or a
            detector.
        base: everything the side does not speak of.

    Raises:
        SideError: the text is none of these; the message lists what it may be.
        ConfigError: the settings file cannot be used.
        SettingsError: a setting breaks a rule.
        DetectorError: the detector cannot be made.
    """
    form, colon, rest = text.partition(":")
    if colon and form in _READERS:
        return _READERS[form](text, rest, base)
    if Path(text).suffix.lower() in _SETTINGS_SUFFIXES and ("=" not in text or Path(text).exists()):
        return _file_side(text, text, base)
    if text in POLICIES:
        return _policy_side(text, text, base)
    if text in RULESETS:
        return _ruleset_side(text, text, base)
    if form.strip() in known_detectors():
        return _detector_side(text, text, base)
    if "=" in text and ("=" in form or "." in form):
        return _set_side(text, text, base)
    message = (
        f"{text!r} is neither {_FORMS}; rulesets: {', '.join(RULESETS)}; policies: {', '.join(POLICIES)}; "
        f"detectors: {', '.join(known_detectors())}"
    )
    raise SideError(message)


def _file_side(label: str, text: str, base: SideBase) -> Side:
    given = load_config(Path(text))
    try:
        plan = base.laid_over({**base.given, **given}, base.plan.ruleset)
    except SettingsError as error:
        message = f"{text}: {error}"
        raise ConfigError(message) from None
    notes = tuple(_unknown(label, key, plan.ruleset) for key in unknown_keys(given, plan.ruleset))
    return Side(label, plan, notes=notes)


def _unknown(label: str, key: str, ruleset: Ruleset) -> str:
    near = nearest_key(key, ruleset)
    hint = f"; did you mean `{near}`?" if near is not None else ""
    return f"{label}: `{key}` is no setting of ruleset {ruleset.name}{hint}"


def _set_side(label: str, text: str, base: SideBase) -> Side:
    """Lay assignments over the base, a ruleset and a policy among them."""
    assignments = split_assignments(text)
    own = {key: value for key, _, value in (one.partition("=") for one in assignments) if key in _RESERVED}
    ruleset = _ruleset(own["ruleset"]) if "ruleset" in own else base.plan.ruleset
    policy = _policy(own["policy"]) if "policy" in own else base.plan.policy
    assignments = [one for one in assignments if one.partition("=")[0] not in _RESERVED]
    for key in unknown_keys(apply_sets({}, assignments), ruleset):
        raise SideError(_unknown(label, key, ruleset))
    plan = base.laid_over(apply_sets(base.given, assignments), ruleset)
    return Side(label, replace(plan, policy=policy))


def _ruleset_side(label: str, text: str, base: SideBase) -> Side:
    return Side(label, base.laid_over(base.given, _ruleset(text)))


def _ruleset(name: str) -> Ruleset:
    try:
        return ruleset_named(name)
    except UnknownRulesetError as error:
        raise SideError(str(error)) from None


def _policy_side(label: str, text: str, base: SideBase) -> Side:
    return Side(label, replace(base.plan, policy=_policy(text)))


def _policy(name: str) -> Policy:
    if name not in POLICIES:
        message = f"unknown policy {name!r}; known: {', '.join(POLICIES)}"
        raise SideError(message)
    return name


def _detector_side(label: str, text: str, base: SideBase) -> Side:
    name, colon, rest = text.partition(":")
    if name.strip() == BREAKER_NAME:
        return _set_side(label, rest, base) if colon else Side(label, base.plan)
    (spec,) = parse_detectors([text], base.configs)
    return Side(label, base.plan, replace(spec, label=label))


_READERS: Mapping[str, Callable[[str, str, SideBase], Side]] = {
    "file": _file_side,
    "set": _set_side,
    "ruleset": _ruleset_side,
    "policy": _policy_side,
    "detector": _detector_side,
}


@dataclass(frozen=True, slots=True)
class _Fired:
    """What one side did in one session: counts and first calls, by stage and kind of measure."""

    counts: Mapping[tuple[str, str], int]
    first: Mapping[tuple[str, str], int]
    withheld: int
    false_rejections: int

    def narrowed(self, stages: Iterable[str] | None = None, kind: str | None = None) -> tuple[int, int | None]:
        """Return how often and at which call first it fired, of some stages or one kind."""
        among = None if stages is None else frozenset(stages)
        keys = [key for key in self.counts if (among is None or key[0] in among) and kind in (None, key[1])]
        return sum(self.counts[key] for key in keys), min((self.first[key] for key in keys), default=None)


def _fired(replay: SessionReplay | DetectorReplay) -> _Fired:
    counts = {
        (str(stage), kind): count
        for kind, stages in replay.stages_by_kind.items()
        for stage, count in stages.items()
        if count
    }
    first = {(stage, kind or _NO_KIND): call for (stage, kind), call in replay.first_calls.items()}
    refused = cast("Counter[str]", replay.stages)["shell-http"]
    if refused:
        counts["shell-http", _NO_KIND] = refused
    return _Fired(counts, first, replay.denials, replay.false_rejections)


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one session, for some stages or one kind, from the first side to the second."""

    kind: ChangeKind
    first_a: int | None
    """The first call at which the first side fired."""
    first_b: int | None
    count_a: int
    count_b: int

    @property
    def differs(self) -> bool:
        """Tell whether the sides fire in different sessions or at different calls."""
        return self.kind not in {"same", "silent"}


def _change(before: tuple[int, int | None], after: tuple[int, int | None]) -> Change:
    (count_a, first_a), (count_b, first_b) = before, after
    kind: ChangeKind
    if first_a is None or first_b is None:
        kind = "silent" if first_a is first_b else "newly-firing" if first_a is None else "stopped"
    elif first_a == first_b:
        kind = "same"
    else:
        kind = "earlier" if first_b < first_a else "later"
    return Change(kind, first_a, first_b, count_a, count_b)


@dataclass(frozen=True, slots=True)
class SessionComparison:
    """One session under both sides."""

    session_id: str
    path: str
    label: Label
    agent: str
    stages: Mapping[str, Change]
    """By group: `any`, `message`, `stop`, and each stage where both sides have the same ones."""
    kinds: Mapping[str, Change]
    """By kind of measure."""
    withheld: tuple[int, int]
    false_rejections: tuple[int, int]
    fires: Mapping[str, bool]
    """By detector, the two sides first: whether it fired at all."""

    @property
    def differs(self) -> bool:
        """Tell whether any group differs."""
        return any(change.differs for change in self.stages.values())


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """Some stages, or one kind, over all sessions."""

    changes: Mapping[ChangeKind, int]
    """Sessions."""
    events: tuple[int, int]
    sessions: tuple[int, int]
    """Sessions in which each side fired."""


@dataclass(frozen=True, slots=True)
class LabelTotals:
    """The sessions of one label, by who fired in them. For stuck ones that is a catch, for good ones a wrong touch."""

    sessions: int
    both: int
    neither: int
    only_a: tuple[str, ...]
    """Ids of the sessions in which only the first side fired."""
    only_b: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Two sides, session by session; every rendering is made of it."""

    a: Side
    b: Side
    corpora: tuple[CorpusReplay, CorpusReplay]
    """The replays the sides were taken from; one and the same where one reading was enough."""
    sessions: tuple[SessionComparison, ...]
    groups: tuple[str, ...]
    """The groups of stages compared."""
    detectors: tuple[str, ...]
    """Everything in the agreement matrix, the two sides first."""

    @property
    def corpus(self) -> CorpusReplay:
        """The replay that tells what was read."""
        return self.corpora[0]

    @property
    def unmatched(self) -> int:
        """Sessions one of two readings lost (a worker died, a file changed): they are left out."""
        return max(len(corpus.sessions) for corpus in self.corpora) - len(self.sessions)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of measures any event named."""
        return tuple(sorted({kind for session in self.sessions for kind in session.kinds}))

    @cached_property
    def totals(self) -> dict[str, GroupTotals]:
        """The sums by group of stages."""
        return {group: _totals([session.stages[group] for session in self.sessions]) for group in self.groups}

    @cached_property
    def kind_totals(self) -> dict[str, GroupTotals]:
        """The sums by kind of measure; sessions that know nothing of a kind are silent."""
        silent = _change((0, None), (0, None))
        return {kind: _totals([session.kinds.get(kind, silent) for session in self.sessions]) for kind in self.kinds}

    @cached_property
    def labels(self) -> dict[Label, LabelTotals]:
        """The sessions of each label there is, by who fired in them."""
        totals: dict[Label, LabelTotals] = {}
        for label in LABELS:
            changes = [(one.session_id, one.stages["any"]) for one in self.sessions if one.label == label]
            if not changes:
                continue
            kinds = Counter(change.kind for _, change in changes)
            totals[label] = LabelTotals(
                sessions=len(changes),
                both=kinds["earlier"] + kinds["later"] + kinds["same"],
                neither=kinds["silent"],
                only_a=tuple(name for name, change in changes if change.kind == "stopped"),
                only_b=tuple(name for name, change in changes if change.kind == "newly-firing"),
            )
        return totals

    @cached_property
    def alone(self) -> dict[str, int]:
        """In how many sessions each detector fires and no other does."""
        alone = dict.fromkeys(self.detectors, 0)
        for session in self.sessions:
            firing = [name for name in self.detectors if session.fires[name]]
            if len(firing) == 1:
                alone[firing[0]] += 1
        return alone

    @cached_property
    def firing(self) -> dict[str, int]:
        """In how many sessions each detector fires."""
        return {name: sum(session.fires[name] for session in self.sessions) for name in self.detectors}

    @cached_property
    def agreements(self) -> dict[tuple[str, str], Agreement]:
        """How far each pair of detectors agrees on which sessions to fire in."""
        agreements: dict[tuple[str, str], Agreement] = {}
        for first, second in combinations(self.detectors, 2):
            cells = Counter((session.fires[first], session.fires[second]) for session in self.sessions)
            agreements[first, second] = Agreement(
                cells[True, True], cells[True, False], cells[False, True], cells[False, False]
            )
        return agreements

    def sessions_with(self, kinds: Iterable[ChangeKind]) -> int:
        """Count the sessions in which any group changed in one of these ways."""
        wanted = frozenset(kinds)
        return sum(any(change.kind in wanted for change in one.stages.values()) for one in self.sessions)


def _totals(changes: Sequence[Change]) -> GroupTotals:
    counted = Counter(change.kind for change in changes)
    return GroupTotals(
        changes={kind: counted[kind] for kind in CHANGES},
        events=(sum(change.count_a for change in changes), sum(change.count_b for change in changes)),
        sessions=(
            sum(change.first_a is not None for change in changes),
            sum(change.first_b is not None for change in changes),
        ),
    )


def compare(
    a: Side,
    b: Side,
    replay: Callable[[ReplayPlan], CorpusReplay],
    others: Sequence[DetectorSpec] = (),
) -> Comparison:
    """Replay the sessions under both sides and compare them.

    The sessions are read once where one replay of the breaker is enough, else twice. Other detectors, and a side that
    is one, see the outcomes as the first reading classifies them.

    Args:
        a: the first side, "before".
        b: the second side, "after".
        replay: replays the sessions under a plan.
        others: more detectors for the agreement matrix.

    Raises:
        DetectorError: two detectors have one name.
    """
    if b.detector is not None and b.label == a.label:
        b = replace(b, detector=replace(b.detector, label=f"{b.label} (b)"))
    beside = [side.detector for side in (a, b) if side.detector is not None]
    names = {a.label, b.label, *(spec.label for spec in beside)}
    for spec in others:
        if spec.label in names:
            message = f"detector {spec.label} is given twice"
            raise DetectorError(message)
    specs = (*beside, *others)
    plan_a = a.plan if a.detector is None else b.plan
    first = replay(replace(plan_a, detectors=specs))
    again = a.detector is None and b.detector is None and a.plan != b.plan
    second = replay(b.plan) if again else first
    rows_b = {row.path: row for row in second.sessions}
    same_stages = (a.detector is None) == (b.detector is None)
    stages = BREAKER_STAGES if a.detector is None else RIVAL_STAGES
    groups = (*_GROUPS, *(stages if same_stages else ()))
    sessions = [_session(a, b, row, rows_b[row.path], groups, others) for row in first.sessions if row.path in rows_b]
    detectors = tuple(dict.fromkeys((a.label, b.label, *(spec.label for spec in others))))
    return Comparison(a, b, (first, second), tuple(sessions), groups, detectors)


def _session(
    a: Side, b: Side, row: SessionRow, row_b: SessionRow, groups: Sequence[str], others: Sequence[DetectorSpec]
) -> SessionComparison:
    seen = {replay.label: replay for replay in row.replay.detectors}
    fired_a = _fired(row.replay if a.detector is None else seen[a.detector.label])
    fired_b = _fired(row_b.replay if b.detector is None else seen[b.detector.label])
    kinds = sorted({kind for fired in (fired_a, fired_b) for _, kind in fired.counts})
    fires = {a.label: bool(fired_a.counts), b.label: bool(fired_b.counts)}
    fires |= {spec.label: bool(seen[spec.label].stages) for spec in others}
    return SessionComparison(
        session_id=row.session_id,
        path=row.path,
        label=row.label,
        agent=row.agent,
        stages={
            group: _change(*(fired.narrowed(_GROUPS.get(group, (group,))) for fired in (fired_a, fired_b)))
            for group in groups
        },
        kinds={kind: _change(*(fired.narrowed(kind=kind) for fired in (fired_a, fired_b))) for kind in kinds},
        withheld=(fired_a.withheld, fired_b.withheld),
        false_rejections=(fired_a.false_rejections, fired_b.false_rejections),
        fires=fires,
    )
