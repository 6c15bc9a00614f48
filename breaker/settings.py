"""Every knob of the guard: defaults, merging, validation in the released order, and a stable hash."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import cast

from breaker.ecmascript import canonical_json, is_number, object_keys, string_text
from breaker.rulesets import DEFAULT_RULESET, Ruleset

__all__ = ["DEFAULT_LIMITS", "Settings", "SettingsError", "known_keys", "nearest_key", "unknown_keys"]

_PREFIX = "repeat-tool-breaker: "

_ANY_TOOL_IGNORED = (
    "description",
    "timeoutMs",
    "run_in_background",
    "justification",
    "reason",
    "title",
    "comment",
)
_SHELL_IGNORED = ("description", "timeoutMs", "run_in_background", "justification")

DEFAULT_LIMITS: Mapping[str, float | None] = {
    "exact": 12,
    "cmd": 12,
    "net": 12,
    "sink": 12,
    "host": 16,
    "site": None,
    "family:http-fetch": None,
    "verb:curl": None,
    "verb:wget": None,
}
_DEFAULT_IGNORE_ARGS: Mapping[str, Sequence[str]] = {
    "*": _ANY_TOOL_IGNORED,
    "bash": _SHELL_IGNORED,
    "pwsh": _SHELL_IGNORED,
    "shell": _SHELL_IGNORED,
}
_DEFAULT_HOST_ALIASES: Mapping[str, str] = {
    "open-data.canada.ca": "open.canada.ca",
    "www.open.canada.ca": "open.canada.ca",
    "www.open-data.canada.ca": "open.canada.ca",
}

_DEFAULTS: Mapping[str, object] = {
    "window": 16,
    "localHosts": "deny",
    "onLimit": "ask",
    "warnAt": 7,
    "summarizeAt": 11,
    "failWarnAt": 3,
    "failLimit": 5,
    "previewChars": 400,
    "resultPreviewChars": 800,
    "includeLocal": False,
    "exclude": ("todo_write",),
    "include": (),
    "ignoreArgs": _DEFAULT_IGNORE_ARGS,
    "hostAliases": _DEFAULT_HOST_ALIASES,
    "limits": DEFAULT_LIMITS,
}
_SHELL_HTTP_DEFAULTS: Mapping[str, object] = {"blockShellHttp": True, "blockLocalHttp": False}
_LATER_KEYS = (*_SHELL_HTTP_DEFAULTS, "shellHttpBlock")
"""Keys a release before the shell-HTTP policy carries along unread."""
_FETCH_TOOL_KEYS: Mapping[str, object] = {"outputDir": "fetched", "maxBytes": 8388608}
"""Validated like the rest, but they steer the guard's own fetch tool only and are no part of the settings."""

_EMPTY: Mapping[str, object] = {}
_MAPS = ("ignoreArgs", "hostAliases", "limits")
_UNCHECKED = ("ignoreArgs", "hostAliases")
"""Maps whose values the released guard takes as they are."""
_STAGES = ("warnAt", "summarizeAt", "failWarnAt")
_SMALLEST_WINDOW = 4
_SMALLEST_LIMIT = 2

_OBJECT_MEMBERS = frozenset(
    {
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "toLocaleString",
        "toString",
        "valueOf",
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
        "__proto__",
    }
)
"""Names every object inherits; the released membership test takes them for removed keys."""

_REMOVED_HINTS = {
    "denyAfter": "use `limits.exact`",
    "warnAfter": "use `warnAt` and `limits`",
    "registerAdvisory": "use `warnAt` and `limits`",
    "maxSamePath": "there is no cap by path alone: a file action is identified by its position, through `exact:`",
    "readTools": "tools are recognised by their name",
    "matchReadBySubstring": "tools are recognised by their name",
    "shellHttpAllow": "use `shellHttpBlock` (0.7.0)",
}


class SettingsError(ValueError):
    """A configuration the guard refuses to load.

    Attributes:
        key: the key, or the entry of `limits`, at fault; None when the configuration is no object at all.
        rule: what the key must be.
        value: the offending value as given.
    """

    def __init__(self, key: str | None, message: str, *, rule: str, value: object = None) -> None:
        self.key = key
        self.rule = rule
        self.value = value
        super().__init__(_PREFIX + message)


def _refuse(key: str, rule: str, value: object, *, entry: bool = False) -> SettingsError:
    shown = f'"{key}" in `limits`' if entry else f"`{key}`"
    return SettingsError(key, f"{shown} {rule} (got {string_text(value)})", rule=rule, value=value)


def _is_finite(value: object) -> bool:
    if not is_number(value):
        return False
    try:
        return math.isfinite(cast("float", value))
    except OverflowError:  # an int beyond the doubles
        return False


def _is_integer(value: object) -> bool:
    return _is_finite(value) and float(cast("float", value)).is_integer()


def _whole(value: float) -> float:
    """Return an int where the number has no fraction, so that 16.0 and 16 are the same setting."""
    return int(value) if float(value).is_integer() else value


def _integer(config: Mapping[str, object], key: str, least: int) -> int:
    value = config[key]
    if not _is_integer(value) or cast("float", value) < least:
        raise _refuse(key, f"must be an integer >= {least}", value)
    return int(cast("float", value))


def _stage(config: Mapping[str, object], key: str) -> int | None:
    value = config[key]
    if value is None:
        return None
    if not _is_finite(value):
        raise _refuse(key, "must be a number, or null/0/negative to disable it", value)
    number = cast("float", value)
    if number <= 0:
        return None
    if not float(number).is_integer():
        raise _refuse(key, "must be an integer", value)
    return int(number)


def _limit(key: str, value: object, *, entry: bool = False) -> float | None:
    if value is None:
        return None
    if not _is_finite(value) or cast("float", value) < _SMALLEST_LIMIT:
        raise _refuse(key, f"must be a finite number >= {_SMALLEST_LIMIT}, or null to disable it", value, entry=entry)
    return _whole(cast("float", value))


def _choice(config: Mapping[str, object], key: str, choices: tuple[str, ...]) -> str:
    value = config[key]
    if not isinstance(value, str) or value not in choices:
        raise _refuse(key, f"must be one of {', '.join(choices)}", value)
    return value


def _boolean(config: Mapping[str, object], key: str) -> bool:
    value = config[key]
    if not isinstance(value, bool):
        raise _refuse(key, "must be true or false", value)
    return value


def _strings(config: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = config[key]
    if not isinstance(value, list | tuple):
        raise _refuse(key, "must be a list of strings", value)
    items = cast("Sequence[object]", value)
    if not all(isinstance(item, str) for item in items):
        raise _refuse(key, "must be a list of strings", items)
    return tuple(cast("Sequence[str]", items))


def _merged_map(config: Mapping[str, object], key: str) -> dict[str, object]:
    default = cast("Mapping[str, object]", _DEFAULTS[key])
    if key not in config:
        return dict(default)
    value = config[key]
    if not isinstance(value, Mapping):
        raise _refuse(key, "must be an object", value)
    return {**default, **_with_text_keys(cast("Mapping[object, object]", value))}


def _with_text_keys(mapping: Mapping[object, object]) -> dict[str, object]:
    """Turn every key into text: YAML also reads numbers, booleans and null as keys."""
    return {string_text(key): value for key, value in mapping.items()}


def _writable(key: str, value: object) -> None:
    """Refuse what has no JSON spelling, such as a date out of YAML: nothing could print or hash it."""
    try:
        canonical_json(value)
    except (AttributeError, TypeError):
        raise _refuse(key, "must hold JSON values only", value) from None


def known_keys(ruleset: Ruleset) -> tuple[str, ...]:
    """Return the configuration keys a release reads, in documented order."""
    if ruleset.shell_http is None:
        return tuple(_DEFAULTS)
    return (*_DEFAULTS, *_SHELL_HTTP_DEFAULTS, ruleset.shell_http.list_key, *_FETCH_TOOL_KEYS)


def unknown_keys(config: Mapping[str, object], ruleset: Ruleset) -> list[str]:
    """Return the keys of a configuration the release would accept and ignore."""
    known = set(known_keys(ruleset))
    return [key for key in config if key not in known and key not in ruleset.removed_keys]


def nearest_key(key: str, ruleset: Ruleset) -> str | None:
    """Return the known key nearest to a mistyped one, or None where none is near."""
    from difflib import get_close_matches

    lowered = {known.lower(): known for known in known_keys(ruleset)}
    matches = get_close_matches(key.lower(), lowered, n=1, cutoff=0.6)
    return lowered[matches[0]] if matches else None


@dataclass(frozen=True, slots=False, eq=False)
class Settings:
    """The effective settings of one guard, validated and hashable; build them with `Settings.from_config`.

    Maps and lists must not be changed after construction. A stage is None when off; `limits` maps a measure kind or a
    whole measure to its cap, None meaning no cap.
    """

    window: int
    local_hosts: str
    on_limit: str
    warn_at: int | None
    summarize_at: int | None
    fail_warn_at: int | None
    fail_limit: float | None
    preview_chars: int
    result_preview_chars: int
    include_local: bool
    exclude: tuple[str, ...]
    include: tuple[str, ...]
    ignore_args: Mapping[str, object]
    host_aliases: Mapping[str, object]
    limits: Mapping[str, float | None]
    block_shell_http: bool | None = field(default=None)
    block_local_http: bool | None = field(default=None)
    shell_http_block: tuple[str, ...] | None = field(default=None)
    """The programs that fetch, from 0.7.0 on."""
    shell_http_allow: tuple[str, ...] | None = field(default=None)
    """The programs that may name any address, in 0.6."""
    carried: Mapping[str, object] = field(default_factory=dict[str, object])
    """Keys only later releases read, as given: the released merge keeps them, so they are part of the settings."""

    @classmethod
    def from_config(cls, config: object = _EMPTY, ruleset: Ruleset = DEFAULT_RULESET) -> Settings:
        """Merge a configuration over the defaults and validate it in the released order.

        Args:
            config: a mapping as decoded from JSON, YAML or TOML. Unknown keys are ignored.
            ruleset: the release whose keys and rules apply.

        Raises:
            SettingsError: the first rule that is broken, naming key, rule and value.
        """
        given = _as_object(config)
        for key in object_keys(given):
            if key in ruleset.removed_keys or key in _OBJECT_MEMBERS:
                hint = _REMOVED_HINTS.get(key, "no such setting")
                message = f"`{key}` was removed in 0.2.0: {hint}"
                raise SettingsError(key, message, rule=f"was removed: {hint}", value=given[key])
        merged: dict[str, object] = {**_DEFAULTS, **given}
        policy = ruleset.shell_http
        if policy is not None:
            merged = {**_SHELL_HTTP_DEFAULTS, policy.list_key: policy.listed, **_FETCH_TOOL_KEYS, **merged}
        maps = {key: _merged_map(given, key) for key in _MAPS}
        for key in (*_UNCHECKED, *_LATER_KEYS):
            _writable(key, maps.get(key, merged.get(key)))
        exclude, include = _strings(merged, "exclude"), _strings(merged, "include")
        listed = None if policy is None else _strings(merged, policy.list_key)
        window = _integer(merged, "window", _SMALLEST_WINDOW)
        if merged["localHosts"] == "ask":
            rule = "no longer takes `ask` (0.4.0): set `onLimit` to ask"
            raise _refuse("localHosts", rule, "ask")
        local_hosts = _choice(merged, "localHosts", ("deny", "allow"))
        on_limit = _choice(merged, "onLimit", ("ask", "deny"))
        include_local = _boolean(merged, "includeLocal")
        warn_at, summarize_at, fail_warn_at = (_stage(merged, key) for key in _STAGES)
        fail_limit = _limit("failLimit", merged["failLimit"])
        block_shell_http = block_local_http = None
        if policy is not None:
            block_shell_http = _boolean(merged, "blockShellHttp")
            block_local_http = _boolean(merged, "blockLocalHttp")
            _check_fetch_tool(merged)
        preview_chars = _integer(merged, "previewChars", 1)
        result_preview_chars = _integer(merged, "resultPreviewChars", 1)
        limits = {key: _limit(key, maps["limits"][key], entry=True) for key in object_keys(maps["limits"])}
        return cls(
            window=window,
            local_hosts=local_hosts,
            on_limit=on_limit,
            warn_at=warn_at,
            summarize_at=summarize_at,
            fail_warn_at=fail_warn_at,
            fail_limit=fail_limit,
            preview_chars=preview_chars,
            result_preview_chars=result_preview_chars,
            include_local=include_local,
            exclude=exclude,
            include=include,
            ignore_args=maps["ignoreArgs"],
            host_aliases=maps["hostAliases"],
            limits=limits,
            block_shell_http=block_shell_http,
            block_local_http=block_local_http,
            shell_http_block=listed if policy is not None and not policy.by_destination else None,
            shell_http_allow=listed if policy is not None and policy.by_destination else None,
            carried={key: given[key] for key in _LATER_KEYS if key in given} if policy is None else {},
        )

    @cached_property
    def as_config(self) -> dict[str, object]:
        """The whole effective settings under the plugin's own key names, JSON-ready; do not change it."""
        config: dict[str, object] = {}
        for member in fields(self):
            value = cast("object", getattr(self, member.name))
            if member.name == "carried" or (member.name in _SHELL_HTTP_MEMBERS and value is None):
                continue
            config[_camel(member.name)] = list(cast("Sequence[str]", value)) if isinstance(value, tuple) else value
        config["ignoreArgs"] = {
            key: list(cast("Sequence[object]", value)) if isinstance(value, tuple) else value
            for key, value in self.ignore_args.items()
        }
        return {**config, **self.carried}

    @cached_property
    def canonical(self) -> str:
        """The settings as canonical JSON; equal settings have equal text."""
        return canonical_json(self.as_config)

    @cached_property
    def digest(self) -> str:
        """The settings' hash as outputs carry it: `sha256:` and 64 hexadecimal digits."""
        import hashlib  # here, since a guard starts without it

        return "sha256:" + hashlib.sha256(self.canonical.encode("utf-8", "surrogatepass")).hexdigest()

    def cap(self, measure: str) -> float | None:
        """Return the cap of a measure, or None where it has none: the whole measure first, then its kind."""
        if measure in self.limits:
            return self.limits[measure]
        return self.limits.get(measure.partition(":")[0])

    def capped(self, measures: Sequence[tuple[str, str]]) -> tuple[tuple[str, float], ...]:
        """Return those of some measures, each given with its kind, that have a cap, with the caps: as `cap` tells."""
        limits = self.limits
        return tuple(
            [
                (measure, cap)
                for measure, kind in measures
                if (cap := limits[measure] if measure in limits else limits.get(kind)) is not None
            ]
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash(self.canonical)


_SHELL_HTTP_MEMBERS = frozenset({"block_shell_http", "block_local_http", "shell_http_block", "shell_http_allow"})


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _as_object(config: object) -> Mapping[str, object]:
    if not isinstance(config, Mapping):
        message = f"config must be an object (got {string_text(config)})"
        raise SettingsError(None, message, rule="must be an object", value=config)
    return _with_text_keys(cast("Mapping[object, object]", config))


def _check_fetch_tool(config: Mapping[str, object]) -> None:
    folder = config["outputDir"]
    if not isinstance(folder, str) or not folder:
        raise _refuse("outputDir", "must be a non-empty string", folder)
    _integer(config, "maxBytes", 1)
