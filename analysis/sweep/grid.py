"""Which settings a sweep tries: grids, named candidates, random samples of large spaces."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import count, islice
from pathlib import Path
from typing import cast

from analysis.configs import CONFIG_SUFFIXES, laid_over, load_config
from analysis.replay import POLICIES, Policy
from breaker.ecmascript import canonical_json, parse_json, string_text
from breaker.kinds import KINDS
from breaker.rulesets import DEFAULT_RULESET, RULESETS, Ruleset, UnknownRulesetError, ruleset_named
from breaker.settings import Settings, SettingsError, known_keys

__all__ = [
    "MOST_CONFIGS",
    "Base",
    "Candidate",
    "GridAxis",
    "GridError",
    "SweepConfig",
    "SweepPlan",
    "check_axes",
    "parse_axis",
    "plan_sweep",
    "read_candidates",
    "read_grid",
]

MOST_CONFIGS = 100_000
"""Configurations one sweep takes on; a larger space is sampled."""

_LONGEST_RANGE = 10_000
_RULESET, _POLICY = "ruleset", "policy"
_MAPS = ("limits", "ignoreArgs", "hostAliases")
_RANGE = re.compile(r"\s*(-?[0-9]+)\.\.(-?[0-9]+)(?:\.\.(-?[0-9]+))?\s*\Z")
_NULL = "null"
_GRID_TABLE, _CANDIDATES_TABLE = "grid", "candidates"


class GridError(ValueError):
    """A grid or a candidate that cannot be swept; the message names key, value or configuration."""


@dataclass(frozen=True, slots=True)
class GridAxis:
    """One key and the values it takes. A key is a setting, an entry of a map (`limits.host`), `ruleset` or `policy`."""

    key: str
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """Named settings, laid over the base like a grid point."""

    name: str
    config: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Base:
    """What grid points and candidates are laid over."""

    config: Mapping[str, object] = field(default_factory=dict[str, object])
    """Settings as given, before the defaults are filled in: the defaults differ by ruleset."""
    ruleset: Ruleset = DEFAULT_RULESET
    policy: Policy = "unattended"


@dataclass(frozen=True, slots=True)
class SweepConfig:
    """One configuration to try: whole effective settings, the ruleset and the policy."""

    settings: Settings
    ruleset: Ruleset
    policy: Policy
    name: str | None
    """The candidate's name; None for a point of the grid."""
    point: Mapping[str, object]
    """What it changes of the base, as given."""

    @property
    def told(self) -> str:
        """The configuration in a few words, for people."""
        if self.name is not None:
            return self.name
        return ", ".join(f"{key}={_shown(value)}" for key, value in self.point.items()) or "the base settings"


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """What a sweep tries, in the order of its rows."""

    configs: tuple[SweepConfig, ...]
    grid: Mapping[str, tuple[object, ...]]
    points: int
    """The size of the whole grid."""
    merged: int
    """Points and candidates left out because an earlier one has the same effective settings."""
    seed: int | None = None
    """The seed of the sample, where the grid was sampled."""


# -- reading what is given ---------------------------------------------------------------------------------------------


def parse_axis(text: str) -> GridAxis:
    """Read `key=values`: values are separated by commas; `3..10` and `4..16..2` are ranges with both ends.

    Each value is JSON, and plain text where it is not; lists of lists are written as JSON.

    Raises:
        GridError: no key, no value, a range that goes nowhere.
    """
    key, equals, values = text.partition("=")
    if key.startswith("limits.") and ":" in key and "=" in values:  # a measure may hold `=` itself
        head, _, values = values.rpartition("=")
        key = f"{key}={head}"
    key = key.strip()
    if not equals or not key:
        message = f"--grid {text}: must be key=values"
        raise GridError(message)
    return GridAxis(key, _values(key, values))


def _values(key: str, text: str) -> tuple[object, ...]:
    if key in {_RULESET, _POLICY}:
        return _distinct(key, [piece.strip() for piece in text.split(",")])
    if "[" in text or "{" in text or '"' in text:
        try:
            listed = parse_json(f"[{text}]")
        except ValueError:
            pass
        else:
            return _distinct(key, cast("list[object]", listed))
    found: list[object] = []
    for piece in text.split(","):
        found.extend(_piece(key, piece))
    return _distinct(key, found)


def _piece(key: str, text: str) -> Sequence[object]:
    span = _RANGE.match(text)
    if span is None:
        try:
            return [parse_json(text)]
        except ValueError:
            return [text.strip()]
    first, last, step = int(span[1]), int(span[2]), int(span[3] or 1)
    if step <= 0 or last < first:
        message = f"{key}: the range {text.strip()} is empty"
        raise GridError(message)
    if (last - first) // step >= _LONGEST_RANGE:
        message = f"{key}: the range {text.strip()} is longer than {_LONGEST_RANGE} values"
        raise GridError(message)
    return range(first, last + 1, step)


def _distinct(key: str, values: Sequence[object]) -> tuple[object, ...]:
    kept: dict[str, object] = {}
    for value in values:
        if value == "":
            message = f"{key}: an empty value"
            raise GridError(message)
        kept.setdefault(_spelled(value), value)
    if not kept:
        message = f"{key}: no values"
        raise GridError(message)
    return tuple(kept.values())


def _spelled(value: object) -> str:
    try:
        return canonical_json(value)
    except (AttributeError, TypeError):  # such as a date out of YAML; the settings refuse it by name
        return repr(value)


def _shown(value: object) -> str:
    return value if isinstance(value, str) else _spelled(value)


def read_grid(path: Path) -> list[GridAxis]:
    """Read a grid from a file: `warnAt = [3, 4]`, `warnAt = "3..10"`, `[limits]` with `host = [9, 12, "null"]`.

    Keys stand at the top level or under a table `grid`; TOML, JSON and YAML are told apart by the name.

    Raises:
        ConfigError: the file cannot be read or does not parse.
        GridError: a key has no values; the text names no file but, so it seems, a key without values.
    """
    if path.suffix.lower() not in CONFIG_SUFFIXES and not path.exists():
        message = f"--grid {path}: must be key=values, or a file of them ({', '.join(CONFIG_SUFFIXES)})"
        raise GridError(message)
    document = load_config(path)
    table = document.get(_GRID_TABLE, document)
    axes: list[GridAxis] = []
    for key, value in _entries(table):
        if isinstance(value, Mapping):
            axes.extend(
                GridAxis(f"{key}.{entry}", _listed(entry, inner)) for entry, inner in _entries(cast("object", value))
            )
        else:
            axes.append(GridAxis(key, _listed(key, value)))
    return axes


def _entries(table: object) -> list[tuple[str, object]]:
    if not isinstance(table, Mapping):
        message = "a grid must be a table of keys and values"
        raise GridError(message)
    return [(string_text(key), value) for key, value in cast("Mapping[object, object]", table).items()]


def _listed(key: str, value: object) -> tuple[object, ...]:
    if isinstance(value, str):
        return _values(key, value)
    if not isinstance(value, list):
        return (value,)
    found: list[object] = []
    for item in cast("list[object]", value):
        if item == _NULL:
            found.append(None)
        elif isinstance(item, str) and _RANGE.match(item):
            found.extend(_piece(key, item))
        else:
            found.append(item)
    return _distinct(key, found)


def read_candidates(path: Path) -> list[Candidate]:
    """Read named settings: one table per name, at the top level or under a table `candidates`.

    Raises:
        ConfigError: the file cannot be read or does not parse.
        GridError: it names no candidate, or one of them is no table.
    """
    document = load_config(path)
    table = document.get(_CANDIDATES_TABLE, document)
    candidates: list[Candidate] = []
    for name, config in _entries(table):
        if not isinstance(config, Mapping):
            message = f"{path}: candidate {name!r} must be a table of settings"
            raise GridError(message)
        members = cast("Mapping[object, object]", config).items()
        candidates.append(Candidate(name, {string_text(key): value for key, value in members}))
    if not candidates:
        message = f"{path}: names no candidate"
        raise GridError(message)
    return candidates


# -- from keys to configurations ---------------------------------------------------------------------------------------


def check_axes(axes: Sequence[GridAxis], base: Base) -> None:
    """Refuse a grid that contradicts itself or names what no ruleset in it knows.

    Raises:
        GridError: a key given twice, a map together with one of its entries, an unknown key (the nearest is named).
    """
    seen: set[str] = set()
    for axis in axes:
        if axis.key in seen:
            message = f"the grid gives {axis.key} twice"
            raise GridError(message)
        seen.add(axis.key)
    for key in seen:
        head, dot, _ = key.partition(".")
        if dot and head in seen:
            message = f"the grid gives both {head} and its entry {key}: which one holds?"
            raise GridError(message)
    named = [value for axis in axes if axis.key == _RULESET for value in axis.values]
    rulesets = [_ruleset(value) for value in named] or [base.ruleset]
    for key in seen:
        _check_key(key, rulesets)


def _check_key(key: str, rulesets: Sequence[Ruleset]) -> None:
    known = {name for ruleset in rulesets for name in known_keys(ruleset)} | {_RULESET, _POLICY}
    removed = {name for ruleset in rulesets for name in ruleset.removed_keys}
    if key in known or key in removed:  # a removed key is refused by the settings, with its hint
        return
    head, dot, entry = key.partition(".")
    if dot and entry and head in _MAPS and (head != "limits" or entry.partition(":")[0] in KINDS):
        return
    readers = [ruleset.name for ruleset in RULESETS.values() if key in known_keys(ruleset)]
    if readers:
        message = f"the grid names `{key}`, which only the rulesets {', '.join(readers)} read"
        raise GridError(message)
    choices = {name.lower(): name for name in [*known, *(f"limits.{kind}" for kind in KINDS)]}
    near = get_close_matches(key.lower(), choices, n=1, cutoff=0.5)
    hint = f"; did you mean `{choices[near[0]]}`?" if near else f"; known: {', '.join(sorted(known))}"
    message = f"the grid names `{key}`, which is no setting{hint}"
    raise GridError(message)


def _ruleset(value: object) -> Ruleset:
    try:
        return ruleset_named(_shown(value))
    except UnknownRulesetError as error:
        raise GridError(str(error)) from None


def _policy(value: object) -> Policy:
    for policy in POLICIES:
        if value == policy:
            return policy
    message = f"unknown policy {_shown(value)!r}; known: {', '.join(POLICIES)}"
    raise GridError(message)


def plan_sweep(
    base: Base,
    axes: Sequence[GridAxis] = (),
    candidates: Sequence[Candidate] = (),
    *,
    sample: int | None = None,
    seed: int = 0,
) -> SweepPlan:
    """Lay out every configuration: the candidates first, then the grid, its last key running fastest.

    Args:
        base: what they are laid over.
        axes: the grid; none for candidates alone.
        candidates: named settings.
        sample: this many points of the grid, drawn without repetition; all where the grid has no more.
        seed: what the sample is drawn from.

    Raises:
        GridError: nothing to try, a contradiction, an unknown key, settings the guard refuses (which configuration),
            too many configurations.
    """
    if not axes and not candidates:
        message = "nothing to sweep: give --grid key=values, or --candidates FILE"
        raise GridError(message)
    if sample is not None and not axes:
        message = "--random draws from a grid, and there is none"
        raise GridError(message)
    check_axes(axes, base)
    points = _product(axes) if axes else 0
    drawn = sample if sample is not None and sample < points else None
    size = len(candidates) + (points if drawn is None else drawn)
    if size > MOST_CONFIGS:
        message = f"{size} configurations are more than the {MOST_CONFIGS} of one sweep; draw some with --random N"
        raise GridError(message)
    numbers = range(points) if drawn is None else sorted(islice(_drawn(points, seed), drawn))
    named = ((candidate.name, candidate.config) for candidate in candidates)
    gridded = ((None, _point(axes, number)) for number in numbers)
    configs: dict[tuple[str, str, str], SweepConfig] = {}
    merged = 0
    for name, point in (*named, *gridded):
        config = _config(base, name, point)
        key = (config.settings.digest, config.ruleset.name, config.policy)
        merged += key in configs
        configs.setdefault(key, config)
    return SweepPlan(
        configs=tuple(configs.values()),
        grid={axis.key: axis.values for axis in axes},
        points=points,
        merged=merged,
        seed=None if drawn is None else seed,
    )


def _product(axes: Sequence[GridAxis]) -> int:
    points = 1
    for axis in axes:
        points *= len(axis.values)
    return points


def _drawn(points: int, seed: int) -> Iterator[int]:
    """Draw distinct numbers below `points`; the same on every machine and Python."""
    seen: set[int] = set()
    for turn in count():
        digest = hashlib.sha256(f"{seed}/{turn}".encode()).digest()
        number = int.from_bytes(digest, "big") % points
        if number not in seen:
            seen.add(number)
            yield number


def _point(axes: Sequence[GridAxis], number: int) -> dict[str, object]:
    values: dict[str, object] = {}
    for axis in reversed(axes):
        number, position = divmod(number, len(axis.values))
        values[axis.key] = axis.values[position]
    return dict(reversed(values.items()))


def _config(base: Base, name: str | None, point: Mapping[str, object]) -> SweepConfig:
    settings = {key: value for key, value in point.items() if key not in {_RULESET, _POLICY}}
    ruleset = _ruleset(point[_RULESET]) if _RULESET in point else base.ruleset
    policy = _policy(point[_POLICY]) if _POLICY in point else base.policy
    shown = SweepConfig(Settings.from_config({}, ruleset), ruleset, policy, name, point)
    if name is not None:
        for key in settings:
            try:
                _check_key(key, list(RULESETS.values()))
            except GridError as error:
                message = f"candidate {name}: {str(error).removeprefix('the grid ')}"
                raise GridError(message) from None
    try:
        effective = Settings.from_config(laid_over(base.config, settings), ruleset)
    except SettingsError as error:
        message = f"config {shown.told}: {error}"
        raise GridError(message) from None
    return SweepConfig(effective, ruleset, policy, name, point)
