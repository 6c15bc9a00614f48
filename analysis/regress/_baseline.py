"""Baselines: what known-good sessions were approved to show, small enough to read in a diff.

A baseline holds no measure, argument or word of a session: kinds, counts, call numbers and digests only.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

from analysis.corpus import CorpusReplay, SessionRow
from analysis.regress._faults import CheckError, Origin, shown
from analysis.replay import STAGES, ReplayPlan
from breaker.ecmascript import canonical_json
from breaker.kinds import kind_of

__all__ = [
    "BASELINE_SCHEMA",
    "SEMANTICS",
    "Baseline",
    "BaselineEntry",
    "Fired",
    "baseline_of",
    "differences",
    "entry_of",
    "read_baseline",
    "render_baseline",
    "session_keys",
]

BASELINE_SCHEMA = "breaker/baseline/1"
SEMANTICS = 1
"""Raised when the same log under the same settings and ruleset is to give other events than before."""

NO_MEASURE = "none"
"""The kind an event without a measure is counted under."""

_LARGEST_FILE = 64 * 1024 * 1024
_LOG_DIGITS = 32
_EVENT_DIGITS = 16
_KEY_DIGITS = 8
_PLAIN_TEXTS = frozenset({"localHosts", "onLimit"})
_KEY = re.compile(r'("(?:[^"\\]|\\.)*")\s*:')
_PLAIN_HEAD = ("ruleset", "policy", "shell_http", "result_source")
_HEAD_TEXTS = (*_PLAIN_HEAD, "machine", "settings_hash")
_MEMBERS = ("schema", "semantics", *_HEAD_TEXTS, "settings", "sessions")
_ENTRY_MEMBERS = ("calls", "log", "events", "shows", "read")


@dataclass(frozen=True, slots=True)
class Fired:
    """How often a stage fired for a kind of measure, and at which call first."""

    count: int
    first: int


@dataclass(frozen=True, slots=True)
class BaselineEntry:
    """What one session was approved to show."""

    calls: int
    log: str
    """A digest of what the log says, the same for every format version and encoding of it."""
    shows: str
    """A digest of every event, measures included, keyed by the log."""
    events: Mapping[tuple[str, str], Fired]
    """By stage and kind."""
    read: str = "ok"
    """The read state of the log."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Approved sessions, and what they were replayed with."""

    semantics: int
    head: Mapping[str, str]
    """Ruleset, policy, mode of the shell-HTTP policy, source of results, digests of machine names and settings."""
    settings: Mapping[str, object]
    """Numbers, switches and fixed words in clear, to name what changed; digests of the rest."""
    sessions: Mapping[str, BaselineEntry]
    origin: Origin
    lines: Mapping[str, int]
    """On which line of the file a session stands."""

    def place(self, key: str) -> Origin:
        """Return where a session's entry stands."""
        return Origin(self.origin.file, self.lines.get(key))


def baseline_of(corpus: CorpusReplay) -> Baseline:
    """Return what a replay shows, as a baseline. The replay must have kept events and digests."""
    plan = corpus.plan
    keys = session_keys(corpus.sessions)
    entries = {key: entry_of(row) for key, row in zip(keys, corpus.sessions, strict=True)}
    return Baseline(SEMANTICS, _head(plan), _settings(plan), dict(sorted(entries.items())), Origin(""), {})


def session_keys(rows: Sequence[SessionRow]) -> list[str]:
    """Name every session: by its id, and where several share one, by its id and its log."""
    ids = Counter(row.session_id for row in rows)
    return [
        row.session_id if ids[row.session_id] == 1 else f"{row.session_id}#{_log_digest(row)[:_KEY_DIGITS]}"
        for row in rows
    ]


def _hexadecimal(parts: Iterable[bytes], digits: int) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.hexdigest()[:digits]


def _log_digest(row: SessionRow) -> str:
    replay = row.replay
    failures = sorted(
        [key.tool, key.reason, key.detail, key.evidence, count] for key, count in replay.failed_by.items()
    )
    told = [replay.turns, replay.calls, sorted(replay.outcomes.items()), failures]
    return _hexadecimal([*row.digests, json.dumps(told).encode()], _LOG_DIGITS)


def entry_of(row: SessionRow) -> BaselineEntry:
    """Return what one session shows."""
    log = _log_digest(row)
    counts: Counter[tuple[str, str]] = Counter()
    firsts: dict[tuple[str, str], int] = {}
    rows: list[bytes] = [log.encode()]
    for event in row.replay.events:
        key = (event.stage, kind_of(event.measure) if event.measure else NO_MEASURE)
        counts[key] += 1
        firsts[key] = min(event.call, firsts.get(key, event.call))
        told = [event.stage, event.call, event.measure, event.count, float(event.threshold), event.decision]
        rows.append(json.dumps(told).encode())
    events = {key: Fired(counts[key], firsts[key]) for key in sorted(counts, key=_stage_order)}
    return BaselineEntry(row.replay.calls, log, _hexadecimal(rows, _EVENT_DIGITS), events, row.read)


def _stage_order(key: tuple[str, str]) -> tuple[int, str]:
    stage, kind = key
    return (STAGES.index(stage) if stage in STAGES else len(STAGES), kind)


def _head(plan: ReplayPlan) -> dict[str, str]:
    return {
        "ruleset": plan.ruleset.name,
        "policy": plan.policy,
        "shell_http": plan.shell_http,
        "result_source": plan.result_source,
        "machine": _hexadecimal(
            [name.encode("utf-8", "surrogatepass") for name in sorted(plan.machine)], _EVENT_DIGITS
        ),
        "settings_hash": plan.settings.digest,
    }


def _settings(plan: ReplayPlan) -> dict[str, object]:
    """Return the settings so that a change can be named and nothing private is told."""
    told: dict[str, object] = {}
    for key, value in plan.settings.as_config.items():
        if key == "limits":
            limits = cast("Mapping[str, object]", value)
            told |= {f"limits.{kind}": cap for kind, cap in limits.items() if ":" not in kind and kind.isidentifier()}
            rest = {name: cap for name, cap in limits.items() if f"limits.{name}" not in told}
            told["limits of single measures"] = _digest_text(rest)
        elif value is None or isinstance(value, bool | int | float) or key in _PLAIN_TEXTS:
            told[key] = value
        else:
            told[key] = _digest_text(value)
    return dict(sorted(told.items()))


def _digest_text(value: object) -> str:
    return "digest " + _hexadecimal([canonical_json(value).encode("utf-8", "surrogatepass")], _EVENT_DIGITS)


def differences(baseline: Baseline, plan: ReplayPlan) -> list[str]:
    """Name everything a baseline was made with that is another now; while there is any, events cannot be compared."""
    told: list[str] = []
    if baseline.semantics != SEMANTICS:
        told.append(f"semantics {baseline.semantics}, now {SEMANTICS}")
    now = _head(plan)
    told += [
        f"{name.replace('_', '-')} {baseline.head[name]}, now {now[name]}"
        for name in _PLAIN_HEAD
        if baseline.head[name] != now[name]
    ]
    if baseline.head["machine"] != now["machine"]:
        told.append("other machine names")
    if baseline.head["settings_hash"] != now["settings_hash"]:
        told += _settings_differences(baseline.settings, _settings(plan)) or ["other settings"]
    return told


def _settings_differences(then: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    told: list[str] = []
    for key in sorted({*then, *now}):
        before, after = then.get(key), now.get(key)
        if before == after and (key in then) == (key in now):
            continue
        hidden = any(isinstance(value, str) and value.startswith("digest ") for value in (before, after))
        told.append(f"other {key}" if hidden else f"{key} {_value_text(before)}, now {_value_text(after)}")
    return told


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# -- the file ----------------------------------------------------------------------------------------------------


def render_baseline(baseline: Baseline) -> str:
    """Return the file's text: sorted, one session a line, so that a diff shows what was approved anew."""
    members: list[tuple[str, object]] = [
        ("schema", BASELINE_SCHEMA),
        ("semantics", baseline.semantics),
        *((name, baseline.head[name]) for name in _HEAD_TEXTS),
    ]
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}," for name, value in members]
    lines.append('  "settings": {')
    lines += _members(baseline.settings)
    lines += ["  },", '  "sessions": {']
    lines += _members({key: _entry_object(entry) for key, entry in sorted(baseline.sessions.items())})
    lines.append("  }")
    return "\n".join(["{", *lines, "}", ""])


def _members(table: Mapping[str, object]) -> list[str]:
    last = len(table) - 1
    return [
        f"    {json.dumps(key)}: {json.dumps(value)}{',' if number < last else ''}"
        for number, (key, value) in enumerate(table.items())
    ]


def _entry_object(entry: BaselineEntry) -> dict[str, object]:
    events: dict[str, dict[str, dict[str, int]]] = {}
    for (stage, kind), fired in sorted(entry.events.items(), key=lambda item: _stage_order(item[0])):
        events.setdefault(stage, {})[kind] = {"count": fired.count, "first": fired.first}
    read = {} if entry.read == "ok" else {"read": entry.read}
    return {"calls": entry.calls, "events": events, "log": entry.log, **read, "shows": entry.shows}


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        CheckError: the file is missing, cannot be read, or is no baseline; the message names file and line.
    """
    file = shown(path)
    try:
        if path.stat().st_size > _LARGEST_FILE:
            message = f"{file}: too large for a baseline"
            raise CheckError(message)
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"{file}: no such baseline; `breaker approve` writes one"
        raise CheckError(message) from None
    except (OSError, UnicodeDecodeError) as error:
        message = f"{file}: cannot read the baseline: {getattr(error, 'strerror', None) or error}"
        raise CheckError(message) from None
    reader = _BaselineReader(file, text)
    return reader.read()


class _BaselineReader:
    """Reads a baseline's text; nothing in it is taken on trust."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = text

    def read(self) -> Baseline:
        """Return the baseline."""
        document = self._parse()
        if not isinstance(document, dict):
            raise self._error("", "must be an object")
        members = cast("dict[str, object]", document)
        if members.get("schema") != BASELINE_SCHEMA:
            raise self._error("schema", f'must be "{BASELINE_SCHEMA}"')
        for name in members:
            if name not in _MEMBERS:
                raise self._error(name, "is unknown")
        sessions = self._table(members, "sessions")
        return Baseline(
            semantics=self._count(members, "semantics", ""),
            head={name: self._text_of(members, name, "") for name in _HEAD_TEXTS},
            settings=self._table(members, "settings"),
            sessions={key: self._entry(key, value) for key, value in sessions.items()},
            origin=Origin(self._file),
            lines={key: line for key in sessions if (line := self._line(key)) is not None},
        )

    def _parse(self) -> object:
        def refuse(constant: str) -> object:
            raise self._error("", f"{constant} is no JSON")

        try:
            return cast("object", json.loads(self._text, parse_constant=refuse, object_pairs_hook=self._once))
        except json.JSONDecodeError as error:
            message = f"{self._file}:{error.lineno}: not JSON: {error.msg} (column {error.colno})"
            raise CheckError(message) from None
        except RecursionError:
            raise self._error("", "is nested too deeply") from None
        except ValueError as error:
            if isinstance(error, CheckError):
                raise
            raise self._error("", f"is not JSON: {error}") from None

    def _once(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        table: dict[str, object] = {}
        for key, value in pairs:
            if key in table:
                raise self._error(key, "stands there twice")
            table[key] = value
        return table

    def _entry(self, key: str, value: object) -> BaselineEntry:
        if not isinstance(value, dict):
            raise self._error(key, "must be an object")
        members = cast("dict[str, object]", value)
        for name in members:
            if name not in _ENTRY_MEMBERS:
                raise self._error(key, f"has an unknown member `{name}`")
        events: dict[tuple[str, str], Fired] = {}
        for stage, kinds in self._inner(members, "events", key).items():
            if not isinstance(kinds, dict):
                raise self._error(key, f"`events.{stage}` must be an object")
            for kind, fired in cast("dict[str, object]", kinds).items():
                if not isinstance(fired, dict):
                    raise self._error(key, f"`events.{stage}.{kind}` must be an object")
                counts = cast("dict[str, object]", fired)
                events[stage, kind] = Fired(self._count(counts, "count", key), self._count(counts, "first", key))
        return BaselineEntry(
            calls=self._count(members, "calls", key),
            log=self._text_of(members, "log", key),
            shows=self._text_of(members, "shows", key),
            events=events,
            read=self._text_of(members, "read", key) if "read" in members else "ok",
        )

    def _table(self, members: Mapping[str, object], name: str) -> dict[str, object]:
        return self._inner(members, name, "")

    def _inner(self, members: Mapping[str, object], name: str, key: str) -> dict[str, object]:
        value = members.get(name)
        if not isinstance(value, dict):
            raise self._error(key or name, f"`{name}` must be an object" if key else "must be an object")
        return cast("dict[str, object]", value)

    def _count(self, members: Mapping[str, object], name: str, key: str) -> int:
        value = members.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            rule = "must be a whole number, not below 0"
            raise self._error(key or name, f"`{name}` {rule}" if key else rule)
        return value

    def _text_of(self, members: Mapping[str, object], name: str, key: str) -> str:
        value = members.get(name)
        if not isinstance(value, str) or not value:
            raise self._error(key or name, f"`{name}` must be text" if key else "must be text")
        return value

    def _line(self, key: str) -> int | None:
        return self._lines.get(json.dumps(key)) if key else None

    @cached_property
    def _lines(self) -> dict[str, int]:
        lines: dict[str, int] = {}
        for number, line in enumerate(self._text.split("\n"), start=1):
            for spelled in _KEY.findall(line):
                lines.setdefault(spelled, number)
        return lines

    def _error(self, key: str, message: str) -> CheckError:
        named = f"`{key}` " if key else ""
        return CheckError(f"{Origin(self._file, self._line(key))}: {named}{message}")
