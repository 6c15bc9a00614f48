"""Settings files: TOML, JSON, YAML, and the plugin's own `cordis.patch.yml`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from breaker.ecmascript import parse_json

__all__ = [
    "CONFIG_SUFFIXES",
    "ROW_ID",
    "ConfigError",
    "apply_sets",
    "laid_over",
    "load_config",
    "load_document",
    "patch_rows",
    "with_nulls",
]

CONFIG_SUFFIXES = (".toml", ".json", ".yml", ".yaml")
"""How the name of a settings file ends."""

ROW_ID = "repeat-tool-breaker"
"""The guard's row in a `cordis.patch.yml`."""
_ROW_NAME = "dsh-repeat-tool-breaker"
_MAPS = frozenset({"limits", "ignoreArgs", "hostAliases"})
_TOML_NULL = "null"
_SETTINGS_TABLE = "settings"
_OTHER_TABLES = ("check", "label")
"""What else a `breaker.toml` holds beside the guard's settings."""
_PROJECT_FILE = "pyproject.toml"
_PROJECT_TABLE = ("tool", "breaker")
_TEXT_OR_CONSTANT = re.compile(r'"(?:\\.|[^"\\])*"|(NaN|-?Infinity)')
"""Finds what Python reads as a number and JSON does not know, outside of text."""
_LARGEST_FILE = 16 * 1024 * 1024


class ConfigError(ValueError):
    """A settings file or a `key=value` that cannot be used; the message names place and value."""


def load_config(path: Path) -> dict[str, object]:
    """Read the guard's settings out of a file, by its suffix: `.toml`, `.json`, `.yml` or `.yaml`.

    Settings stand at the top level or under a table `settings`; in a `pyproject.toml` the same under `tool.breaker`.
    A YAML list is taken as a `cordis.patch.yml`: the settings are the `config` of the guard's row, the last one where
    there are several. TOML has no null; there the text `"null"` stands for it.

    Raises:
        ConfigError: the file cannot be read or does not parse (with its line), or holds no settings.
    """
    document = load_document(path)
    if isinstance(document, list):
        return _patched_row(path, cast("list[object]", document))
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        message = f"{path}: the settings must be an object"
        raise ConfigError(message)
    settings = dict(cast("Mapping[str, object]", document))
    if path.name == _PROJECT_FILE:
        settings = _project_table(settings)
    nested = settings.get(_SETTINGS_TABLE)
    if isinstance(nested, Mapping):
        return dict(cast("Mapping[str, object]", nested))
    return {
        key: value for key, value in settings.items() if key not in _OTHER_TABLES or not isinstance(value, dict | list)
    }


def _project_table(document: dict[str, object]) -> dict[str, object]:
    """Return what a `pyproject.toml` says of the guard; without a table `check` all of it is about the check."""
    table: object = document
    for name in _PROJECT_TABLE:
        table = cast("Mapping[str, object]", table).get(name) if isinstance(table, Mapping) else None
    if not isinstance(table, Mapping):
        return {}
    members = dict(cast("Mapping[str, object]", table))
    return members if "check" in members else {_SETTINGS_TABLE: members.get(_SETTINGS_TABLE, {})}


def load_document(path: Path) -> object:
    """Read a settings file as it stands, by its suffix.

    Raises:
        ConfigError: the file cannot be read or does not parse, with its line.
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
    if suffix not in CONFIG_SUFFIXES:
        message = f"{path}: not a settings file; its name must end in {', '.join(CONFIG_SUFFIXES)}"
        raise ConfigError(message)
    return {".toml": _read_toml, ".json": _read_json}.get(suffix, _read_yaml)(path, text)


def _read_toml(path: Path, text: str) -> object:
    import tomllib

    from analysis.toml_faults import toml_fault

    try:
        return with_nulls(tomllib.loads(text))
    except (ValueError, RecursionError) as error:
        line, said = toml_fault(text, error)
        message = f"{path}: {said}" if line is None else f"{path}:{line}: {said}"
        raise ConfigError(message) from None


def with_nulls(value: object) -> object:
    """Return a TOML document with null where the text `null` stands as a value."""
    if value == _TOML_NULL:
        return None
    if isinstance(value, dict):
        return {key: with_nulls(member) for key, member in cast("dict[str, object]", value).items()}
    return value


def _read_json(path: Path, text: str) -> object:
    try:
        json.loads(text, parse_int=float)
        return parse_json(text)
    except json.JSONDecodeError as error:
        message = f"{path}:{error.lineno}: {error.msg} (column {error.colno})"
        raise ConfigError(message) from None
    except (ValueError, RecursionError) as error:
        constant = next((found for found in _TEXT_OR_CONSTANT.finditer(text) if found[1]), None)
        line = "" if constant is None else f":{text.count(chr(10), 0, constant.start()) + 1}"
        message = f"{path}{line}: {error}"
        raise ConfigError(message) from None


def _read_yaml(path: Path, text: str) -> object:
    from analysis.yaml_text import YamlFault, parse_yaml

    try:
        return parse_yaml(text)
    except YamlFault as fault:
        place = f"{path}:{fault.line}" if fault.line is not None else str(path)
        message = f"{place}: {fault}"
        raise ConfigError(message) from None


def _patched_row(path: Path, operations: list[object]) -> dict[str, object]:
    found: object = None
    seen = False
    for row in patch_rows(operations):
        if _is_breaker_row(row):
            found = row.get("config")
            seen = True
    if not seen:
        message = f"{path}: has no row with `id: {ROW_ID}` or `name: {_ROW_NAME}`"
        raise ConfigError(message)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        message = f"{path}: the `config` of row {ROW_ID} must be an object"
        raise ConfigError(message)
    return dict(cast("Mapping[str, object]", found))


def patch_rows(operations: Sequence[object]) -> list[Mapping[str, object]]:
    """Return the rows of a `cordis.patch.yml`, those inside an `insert` list too, in order."""
    rows: list[Mapping[str, object]] = []
    for operation in operations:
        if not isinstance(operation, Mapping):
            continue
        row = cast("Mapping[str, object]", operation)
        inserted = row.get("insert")
        candidates = [row, *cast("Sequence[object]", inserted)] if isinstance(inserted, list) else [row]
        rows += [cast("Mapping[str, object]", candidate) for candidate in candidates if isinstance(candidate, Mapping)]
    return rows


def _is_breaker_row(row: Mapping[str, object]) -> bool:
    return row.get("id") == ROW_ID or row.get("name") == _ROW_NAME


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


def laid_over(config: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    """Lay settings over a configuration: maps entry by entry, dotted keys into their map, the rest whole."""
    merged = dict(config)
    for key, value in changes.items():
        head, dot, entry = key.partition(".")
        if dot and head in _MAPS:
            value = {entry: value}
        elif head in _MAPS and isinstance(value, Mapping):
            value = cast("Mapping[str, object]", value)
        else:
            merged[key] = value
            continue
        present = merged.get(head)
        given = cast("Mapping[str, object]", present) if isinstance(present, Mapping) else dict[str, object]()
        merged[head] = {**given, **value}
    return merged
