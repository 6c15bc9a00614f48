"""Settings files: TOML, JSON, YAML, and the plugin's own `cordis.patch.yml`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import yaml

from breaker.ecmascript import parse_json

__all__ = ["ConfigError", "apply_sets", "load_config"]

_ROW_ID = "repeat-tool-breaker"
_ROW_NAME = "dsh-repeat-tool-breaker"
_MAPS = frozenset({"limits", "ignoreArgs", "hostAliases"})
_TOML_NULL = "null"
_SETTINGS_TABLE = "settings"
_LARGEST_FILE = 16 * 1024 * 1024


class ConfigError(ValueError):
    """A settings file or a `key=value` that cannot be used; the message names place and value."""


def _unread(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> None:
    del loader, suffix, node


class _TolerantLoader(yaml.SafeLoader):
    """Safe YAML in which a tag of somebody else's is passed over unread."""

    yaml_multi_constructors: ClassVar[dict[str | None, Any]] = {"": _unread}


def load_config(path: Path) -> dict[str, object]:
    """Read the guard's settings out of a file, by its suffix: `.toml`, `.json`, `.yml` or `.yaml`.

    Settings stand at the top level or under a table `settings`. A YAML list is taken as a `cordis.patch.yml`: the
    settings are the `config` of the guard's row, the last one where there are several. TOML has no null; there the
    text `"null"` stands for it.

    Raises:
        ConfigError: the file cannot be read or does not parse (with its line), or holds no settings.
    """
    try:
        if path.stat().st_size > _LARGEST_FILE:
            message = f"{path}: too large for a settings file"
            raise ConfigError(message)
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        message = f"{path}: cannot read the settings: {reason}"
        raise ConfigError(message) from None
    suffix = path.suffix.lower()
    readers = {".toml": _read_toml, ".json": _read_json, ".yml": _read_yaml, ".yaml": _read_yaml}
    if suffix not in readers:
        message = f"{path}: not a settings file; its name must end in {', '.join(readers)}"
        raise ConfigError(message)
    document = readers[suffix](path, text)
    if isinstance(document, list):
        return _patched_row(path, cast("list[object]", document))
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        message = f"{path}: the settings must be an object"
        raise ConfigError(message)
    settings = dict(cast("Mapping[str, object]", document))
    nested = settings.get(_SETTINGS_TABLE)
    return dict(cast("Mapping[str, object]", nested)) if isinstance(nested, Mapping) else settings


def _read_toml(path: Path, text: str) -> object:
    try:
        return _with_nulls(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        message = f"{path}: {error}"
        raise ConfigError(message) from None


def _with_nulls(value: object) -> object:
    if value == _TOML_NULL:
        return None
    if isinstance(value, dict):
        return {key: _with_nulls(member) for key, member in cast("dict[str, object]", value).items()}
    return value


def _read_json(path: Path, text: str) -> object:
    try:
        json.loads(text, parse_int=float)
        return parse_json(text)
    except json.JSONDecodeError as error:
        message = f"{path}:{error.lineno}: {error.msg} (column {error.colno})"
        raise ConfigError(message) from None
    except (ValueError, RecursionError) as error:
        message = f"{path}: {error}"
        raise ConfigError(message) from None


def _read_yaml(path: Path, text: str) -> object:
    try:
        return _TolerantLoader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        message = f"{place}: {error.problem}"
        raise ConfigError(message) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        message = f"{path}: {' '.join(str(error).split())}"
        raise ConfigError(message) from None


def _patched_row(path: Path, operations: list[object]) -> dict[str, object]:
    found: object = None
    seen = False
    for operation in operations:
        if not isinstance(operation, Mapping):
            continue
        row = cast("Mapping[str, object]", operation)
        inserted = row.get("insert")
        rows = [row, *cast("Sequence[object]", inserted)] if isinstance(inserted, list) else [row]
        for candidate in rows:
            if isinstance(candidate, Mapping) and _is_breaker_row(cast("Mapping[str, object]", candidate)):
                found = cast("Mapping[str, object]", candidate).get("config")
                seen = True
    if not seen:
        message = f"{path}: has no row with `id: {_ROW_ID}` or `name: {_ROW_NAME}`"
        raise ConfigError(message)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        message = f"{path}: the `config` of row {_ROW_ID} must be an object"
        raise ConfigError(message)
    return dict(cast("Mapping[str, object]", found))


def _is_breaker_row(row: Mapping[str, object]) -> bool:
    return row.get("id") == _ROW_ID or row.get("name") == _ROW_NAME


def apply_sets(config: Mapping[str, object], assignments: Sequence[str]) -> dict[str, object]:
    """Lay `key=value` assignments over a configuration; entries of maps are `limits.host=9`.

    A value is JSON, and plain text where it is not.

    Raises:
        ConfigError: an assignment without `=` or without a key.
    """
    merged = dict(config)
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        head, dot, entry = name.partition(".")
        if head == "limits" and ":" in entry and "=" in text:
            entry, text = _split_measure(entry, text)
        if not equals or not head or (dot and not entry):
            message = f"--set {assignment}: must be key=value, or map.entry=value"
            raise ConfigError(message)
        value = _value(text)
        if not dot:
            merged[head] = value
            continue
        if head not in _MAPS:
            message = f"--set {assignment}: `{head}` has no entries; maps are {', '.join(sorted(_MAPS))}"
            raise ConfigError(message)
        current = merged.get(head)
        if current is not None and not isinstance(current, Mapping):
            message = f"--set {assignment}: `{head}` is not an object"
            raise ConfigError(message)
        merged[head] = {**cast("Mapping[str, object]", current or {}), entry: value}
    return merged


def _split_measure(entry: str, text: str) -> tuple[str, str]:
    """Take a measure that holds `=` itself (a query) up to the last one."""
    head, _, value = text.rpartition("=")
    return f"{entry}={head}", value


def _value(text: str) -> object:
    try:
        return parse_json(text)
    except ValueError:
        return text
