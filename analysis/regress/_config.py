"""Read what a check is to do: `[check]` of a `breaker.toml`, or `[tool.breaker]` of a `pyproject.toml`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar, cast

from analysis.configs import ConfigError, load_config
from analysis.globs import glob_fault
from analysis.labels import LABELS, Label, LabelError, LabelRule, label_tables, read_labels
from analysis.regress._faults import CheckError, Origin, shown
from analysis.regress._numbers import BOUND_ENDINGS, LEAST_ENDING, nearest_number, number_named
from analysis.regress._rules import Bound, EventPattern, Expectation, Limit, Waiver, parse_bound
from analysis.regress._toml import KeyPath, TomlFile, read_toml
from analysis.replay import POLICIES, SHELL_HTTP_MODES, STAGES, Policy, ReplayPlan, ShellHttpMode, StageName
from analysis.sessions.session_facts import ResultSource
from breaker.rulesets import DEFAULT_RULESET, RULESETS, Ruleset, UnknownRulesetError, ruleset_named
from breaker.settings import Settings, SettingsError, known_keys, nearest_key, unknown_keys
from breaker.shellhttp import this_machine

__all__ = ["BASELINE_NAME", "CONFIG_NAME", "PROJECT_NAME", "CheckConfig", "Plan", "find_config", "load_check"]

CONFIG_NAME = "breaker.toml"
PROJECT_NAME = "pyproject.toml"
BASELINE_NAME = "breaker.baseline.json"

_CHECK = "check"
_LABEL = "label"
_SETTINGS = "settings"
_PROJECT_TABLE = ("tool", "breaker")
_RESULT_SOURCES: tuple[ResultSource, ...] = ("rebuilt", "log")
_CHECK_KEYS = (
    "sessions",
    "settings",
    "ruleset",
    "policy",
    "shell_http",
    "machine",
    "result_source",
    "labels",
    "only",
    "strict",
    "baseline",
    "limits",
    "expect",
    "waiver",
)
_EXPECT_KEYS = ("session", "events", "others", "reason")
_EVENT_KEYS = ("stage", "measure", "count", "times")
_WAIVER_KEYS = ("session", "measure", "stage", "reason", "expires")

Choice = TypeVar("Choice", bound=str)


@dataclass(frozen=True, slots=True)
class Plan:
    """How the sessions of a check are replayed, and what was odd about it."""

    replay: ReplayPlan
    warnings: tuple[str, ...]
    explain_options: tuple[str, ...]
    """What `breaker explain` needs to see the same."""


@dataclass(frozen=True)
class CheckConfig:
    """A check as configured. Paths are absolute or as the folder of the file gives them."""

    path: Path
    folder: Path
    sessions: tuple[str, ...]
    """Paths or globs, as written."""
    settings: Mapping[str, object]
    settings_file: Path | None
    """The file the settings came from; None where there are none."""
    ruleset: str
    policy: Policy
    shell_http: ShellHttpMode
    machine: tuple[str, ...]
    result_source: ResultSource
    labels: tuple[LabelRule, ...]
    only: tuple[Label, ...]
    """Only sessions so labelled count; all where it is empty."""
    strict: bool
    baseline: Path | None
    """None where it is switched off."""
    baseline_required: bool
    limits: tuple[Limit, ...]
    expectations: tuple[Expectation, ...]
    waivers: tuple[Waiver, ...]
    files: tuple[Path, ...]
    """Every file the result hangs on beside the sessions."""

    def plan(
        self,
        *,
        settings: Path | None = None,
        ruleset: str | None = None,
        adjust: Callable[[Mapping[str, object]], dict[str, object]] = dict,
        adjusted: Sequence[str] = (),
    ) -> Plan:
        """Return how the sessions are replayed.

        Args:
            settings: another settings file.
            ruleset: another ruleset.
            adjust: lays changes over the settings.
            adjusted: those changes, as the command line gives them.

        Raises:
            CheckError: settings or ruleset are wrong, or a setting is none that any ruleset reads.
        """
        file = settings or self.settings_file
        origin = shown(file or self.path)
        try:
            rules = ruleset_named(ruleset or self.ruleset)
            written = self.settings if settings is None else load_config(settings)
            given = adjust(written)
            effective = Settings.from_config(given, rules)
        except ConfigError as error:
            raise CheckError(str(error)) from None
        except (UnknownRulesetError, SettingsError) as error:
            message = f"{origin}: {error}"
            raise CheckError(message) from None
        warnings: list[str] = []
        for key in unknown_keys(given, rules):
            if not _is_setting(key):
                raise Origin(origin if key in written else "--set", key=key).error(_no_setting(key, rules))
            warnings.append(f"{origin}: `{key}` is no setting of ruleset {rules.name} and is ignored")
        replay = ReplayPlan(
            settings=effective,
            ruleset=rules,
            policy=self.policy,
            result_source=self.result_source,
            keep_events=True,
            shell_http=self.shell_http,
            machine=this_machine(self.machine),
        )
        return Plan(replay, tuple(warnings), _explain_options(self, replay, file, adjusted))


def _explain_options(config: CheckConfig, plan: ReplayPlan, file: Path | None, sets: Sequence[str]) -> tuple[str, ...]:
    options: list[str] = []
    if file is not None:
        options += ["--config", shown(file)]
    for assignment in sets:
        options += ["--set", assignment]
    if plan.ruleset.name != DEFAULT_RULESET.name:
        options += ["--ruleset", plan.ruleset.name]
    if plan.policy != "unattended":
        options += ["--policy", plan.policy]
    if plan.shell_http != "auto":
        options += ["--shell-http", plan.shell_http]
    for name in config.machine:
        options += ["--machine", name]
    if plan.result_source != "rebuilt":
        options += ["--result-source", plan.result_source]
    return tuple(options)


def find_config(start: Path) -> Path:
    """Look for a configuration in a folder and those above it.

    In each folder a `breaker.toml` with a table `check` comes before a `pyproject.toml` with a table `tool.breaker`.

    Raises:
        CheckError: there is none, or a file on the way does not parse.
    """
    without: list[str] = []
    start = start.absolute()
    for folder in (start, *start.parents):
        for name in (CONFIG_NAME, PROJECT_NAME):
            path = folder / name
            if not path.is_file():
                continue
            document = read_toml(path).document
            if (_CHECK in document) if name == CONFIG_NAME else (_project_table(document) is not None):
                return path
            if name == CONFIG_NAME:
                without.append(shown(path))
    seen = f" ({', '.join(without)} has no [{_CHECK}])" if without else ""
    message = (
        f"no configuration: neither a {CONFIG_NAME} with [{_CHECK}] nor a {PROJECT_NAME} with [tool.breaker] in "
        f"{start} or above it{seen}"
    )
    raise CheckError(message)


def _project_table(document: Mapping[str, object]) -> object:
    outer, inner = _PROJECT_TABLE
    table = document.get(outer)
    return cast("Mapping[str, object]", table).get(inner) if isinstance(table, Mapping) else None


def load_check(path: Path) -> CheckConfig:
    """Read a configuration.

    Raises:
        CheckError: the file or something in it cannot be used; the message names file, line and key.
    """
    path = path.absolute()
    file = read_toml(path)
    prefix: KeyPath = ()
    document: object = file.document
    if path.name == PROJECT_NAME:
        prefix = _PROJECT_TABLE
        document = _project_table(file.document)
        if document is None:
            message = f"{shown(path)}: has no [tool.breaker]"
            raise CheckError(message)
    whole = _Reader(file, prefix, _table(file, prefix, document))
    own_table = path.name == PROJECT_NAME and _CHECK not in whole.table
    if not own_table and _CHECK not in whole.table:
        message = f"{shown(path)}: has no [{_CHECK}]"
        raise CheckError(message)
    if own_table:
        check = whole
    else:
        check = whole.inner(_CHECK)
        if _SETTINGS in whole.table and isinstance(whole.table[_SETTINGS], Mapping):
            whole.known((_CHECK, _LABEL, _SETTINGS))
    check.known((*_CHECK_KEYS, _LABEL) if own_table else _CHECK_KEYS)
    settings, settings_file = _settings(check, path, has_own=not own_table)
    if settings_file == path:
        own = whole.inner(_SETTINGS) if isinstance(whole.table.get(_SETTINGS), Mapping) else whole
        for key in settings:
            if not _is_setting(key):
                raise own.origin(key).error(_no_setting(key, DEFAULT_RULESET))
    label_files = check.paths("labels")
    baseline, required = _baseline(check, path)
    files = [path, *([settings_file] if settings_file is not None else []), *label_files]
    return CheckConfig(
        path=path,
        folder=path.parent,
        sessions=check.texts("sessions"),
        settings=settings,
        settings_file=settings_file,
        ruleset=check.text("ruleset", DEFAULT_RULESET.name),
        policy=check.choice("policy", POLICIES, "unattended"),
        shell_http=check.choice("shell_http", SHELL_HTTP_MODES, "auto"),
        machine=check.texts("machine"),
        result_source=check.choice("result_source", _RESULT_SOURCES, "rebuilt"),
        labels=_labels(whole, label_files),
        only=check.choices("only", LABELS),
        strict=check.boolean("strict"),
        baseline=baseline,
        baseline_required=required,
        limits=_limits(check),
        expectations=tuple(_expectation(one) for one in check.tables("expect")),
        waivers=tuple(_waiver(one) for one in check.tables("waiver")),
        files=tuple(dict.fromkeys(files)),
    )


class _Reader:
    """Reads the members of one table; every fault names file, line and key."""

    def __init__(self, file: TomlFile, path: KeyPath, table: Mapping[str, object]) -> None:
        self.file = file
        self.path = path
        self.table = table

    def origin(self, *key: str | int) -> Origin:
        """Return where a member stands."""
        return self.file.origin((*self.path, *key))

    def known(self, names: Sequence[str]) -> None:
        """Refuse members nobody reads: a mistyped key must not switch a check off."""
        for key in self.table:
            if key not in names:
                near = get_close_matches(key.lower(), names, n=1)
                hint = f"; did you mean `{near[0]}`?" if near else f"; known: {', '.join(names)}"
                raise self.origin(key).error(f"is unknown{hint}")

    def inner(self, key: str) -> _Reader:
        """Return the reader of a table in this one; of an empty one where it is absent."""
        path = (*self.path, key)
        return _Reader(self.file, path, _table(self.file, path, self.table.get(key, {})))

    def tables(self, key: str) -> list[_Reader]:
        """Return the readers of an array of tables."""
        value = self.table.get(key, [])
        if not isinstance(value, list):
            raise self.origin(key).error(f"must be tables ([[{key}]])")
        items = cast("Sequence[object]", value)
        paths = [(*self.path, key, number) for number in range(len(items))]
        return [
            _Reader(self.file, path, _table(self.file, path, item)) for path, item in zip(paths, items, strict=True)
        ]

    def text(self, key: str, default: str) -> str:
        """Return a text that is not empty."""
        value = self.table.get(key, default)
        if not isinstance(value, str) or (key in self.table and not value):
            raise self.origin(key).error("must be text")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; one text stands for a list of one."""
        value = self.table.get(key, [])
        items = cast("Sequence[object]", value) if isinstance(value, list) else [value]
        if not all(isinstance(item, str) and item for item in items):
            raise self.origin(key).error("must be text, or a list of texts")
        return tuple(cast("Sequence[str]", items))

    def choice(self, key: str, known: Sequence[Choice], default: Choice) -> Choice:
        """Return one of several words."""
        return self._known_word(key, self.table.get(key, default), known)

    def choices(self, key: str, known: Sequence[Choice]) -> tuple[Choice, ...]:
        """Return some of several words."""
        return tuple(self._known_word(key, item, known) for item in self.texts(key))

    def _known_word(self, key: str, value: object, known: Sequence[Choice]) -> Choice:
        for word in known:
            if value == word:
                return word
        near = get_close_matches(str(value), known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise self.origin(key).error(f"must be one of {', '.join(known)}, got {value}{hint}")

    def boolean(self, key: str) -> bool:
        """Return a truth value; absent is false."""
        value = self.table.get(key, False)
        if not isinstance(value, bool):
            raise self.origin(key).error("must be true or false")
        return value

    def whole(self, key: str, least: int) -> int | None:
        """Return a whole number, None where it is absent."""
        value = self.table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.origin(key).error(f"must be a whole number, at least {least}")
        return value

    def glob(self, key: str) -> str | None:
        """Return a glob, None where it is absent."""
        value = self.table.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.origin(key).error("must be text")
        fault = glob_fault(value)
        if fault is not None:
            raise self.origin(key).error(f"is {fault}")
        return value

    def paths(self, key: str) -> list[Path]:
        """Return files, which must exist, relative to the configuration's folder."""
        files = [self.file.path.parent / text for text in self.texts(key)]
        for file in files:
            if not file.is_file():
                raise self.origin(key).error(f"names {shown(file)}, which is no file")
        return files


def _table(file: TomlFile, path: KeyPath, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise file.origin(path).error("must be a table")
    return cast("Mapping[str, object]", value)


def _settings(check: _Reader, path: Path, *, has_own: bool) -> tuple[Mapping[str, object], Path | None]:
    """Return the guard's settings and the file that holds them."""
    named = check.table.get(_SETTINGS)
    source = path
    if isinstance(named, str):
        source = check.paths(_SETTINGS)[0]
    elif named is not None and (has_own or not isinstance(named, Mapping)):
        where = "settings themselves stand at the top level or in [settings]" if has_own else "or the settings"
        raise check.origin(_SETTINGS).error(f"must name a settings file ({where})")
    try:
        settings = load_config(source)
    except ConfigError as error:
        raise CheckError(str(error)) from None
    return settings, source if settings or source != path else None


def _is_setting(key: str) -> bool:
    """Tell whether any ruleset reads a key, or refuses it as one that earlier releases read."""
    return any(key in known_keys(ruleset) or key in ruleset.removed_keys for ruleset in RULESETS.values())


def _no_setting(key: str, ruleset: Ruleset) -> str:
    near = nearest_key(key, ruleset)
    return "is no setting of the guard" + (f"; did you mean `{near}`?" if near is not None else "")


def _labels(whole: _Reader, files: Sequence[Path]) -> tuple[LabelRule, ...]:
    tables = whole.table.get(_LABEL, [])
    if not isinstance(tables, list):
        raise whole.origin(_LABEL).error("must be tables ([[label]])")
    try:
        rules = label_tables(cast("Sequence[object]", tables), shown(whole.file.path))
        for file in files:
            if file != whole.file.path:
                rules += read_labels(file)
    except LabelError as error:
        raise CheckError(str(error)) from None
    return tuple(rules)


def _baseline(check: _Reader, path: Path) -> tuple[Path | None, bool]:
    value = check.table.get("baseline")
    if value is False:
        return None, False
    if value is None:
        return path.parent / BASELINE_NAME, False
    if not isinstance(value, str) or not value:
        raise check.origin("baseline").error("must name a file, or be false for none")
    return path.parent / value, True


def _limits(check: _Reader) -> tuple[Limit, ...]:
    limits: list[Limit] = []
    _collect_limits(check.inner("limits"), (), limits)
    return tuple(limits)


def _collect_limits(reader: _Reader, above: tuple[str, ...], limits: list[Limit]) -> None:
    """Read limits; tables inside are names with dots."""
    for key, value in reader.table.items():
        name = ".".join((*above, key))
        origin = reader.origin(key)
        if isinstance(value, Mapping):
            _collect_limits(reader.inner(key), (*above, key), limits)
            continue
        ending = next((ending for ending in BOUND_ENDINGS if name.endswith(ending)), "")
        bound: Bound = "least" if ending == LEAST_ENDING else "most"
        number = number_named(name.removesuffix(ending))
        if number is None:
            near = nearest_number(name)
            hint = f"; did you mean `{near}`?" if near is not None else ""
            raise Origin(origin.file, origin.line).error(f"unknown limit `{name}`{hint}")
        read = parse_bound(value, number.kind)
        if isinstance(read, str):
            raise Origin(origin.file, origin.line).error(f"limit `{name}` {read}")
        limits.append(Limit(name, number, bound, read, str(value), origin))


def _expectation(reader: _Reader) -> Expectation:
    reader.known(_EXPECT_KEYS)
    glob = reader.glob("session")
    if glob is None:
        raise reader.origin().error("needs a session (a glob over ids and paths)")
    value = reader.table.get("events")
    if not isinstance(value, list):
        raise reader.origin("events").error("must be a list of events; an empty one means that none may show")
    items = cast("Sequence[object]", value)
    return Expectation(
        glob=glob,
        events=tuple(_pattern(reader, number, item) for number, item in enumerate(items)),
        others=reader.boolean("others"),
        reason=reader.text("reason", ""),
        origin=reader.origin(),
    )


def _pattern(reader: _Reader, number: int, value: object) -> EventPattern:
    origin = reader.origin("events", number)
    if isinstance(value, str):
        stage, _, measure = value.strip().partition(" ")
        value = {"stage": stage, **({"measure": measure.strip()} if measure else {})}
    if not isinstance(value, Mapping):
        raise origin.error('must be a table, or text such as "warn" or "gate host:*"')
    members = _Reader(reader.file, (*reader.path, "events", number), cast("Mapping[str, object]", value))
    members.known(_EVENT_KEYS)
    stage, measure = _stage(members), members.glob("measure")
    if stage is None and measure is None:
        raise origin.error("needs a stage or a measure")
    return EventPattern(stage, measure, members.whole("count", 1), members.whole("times", 1), origin)


def _stage(reader: _Reader) -> StageName | None:
    if "stage" not in reader.table:
        return None
    stage: StageName = reader.choice("stage", STAGES, STAGES[0])
    return stage


def _waiver(reader: _Reader) -> Waiver:
    reader.known(_WAIVER_KEYS)
    session, measure = reader.glob("session"), reader.glob("measure")
    if session is None and measure is None:
        raise reader.origin().error("needs a session or a measure (globs)")
    reason = reader.text("reason", "")
    if not reason.strip():
        raise reader.origin().error("needs a reason")
    return Waiver(session, measure, _stage(reader), reason, _day(reader, "expires"), reader.origin())


def _day(reader: _Reader, key: str) -> date:
    value = reader.table.get(key)
    if value is None:
        raise reader.origin().error("needs an expiry date: expires = 2026-12-31")
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(cast("str", value))
    except (TypeError, ValueError):
        raise reader.origin(key).error(f"must be a date such as 2026-12-31, got {value}") from None
