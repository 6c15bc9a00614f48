"""The chosen settings as files: a `breaker.toml`, and the plugin's row of a `cordis.patch.yml`."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from textwrap import wrap
from typing import Any, cast

import yaml

from analysis.configs import ROW_ID, load_config, with_nulls
from analysis.sweep.grid import SweepConfig
from breaker.settings import Settings

__all__ = ["UnwritableError", "patch_text", "settings_toml", "tables_beside"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")
_UNESCAPED = re.compile(r"[\x00-\x1f\x7f]")
_NULL = "null"
_WIDTH = 100
_SETTINGS_TABLE = "settings"


class UnwritableError(ValueError):
    """Settings that a file of that kind cannot hold; the message says why."""


def settings_toml(config: SweepConfig, why: str) -> str:
    """Return a configuration as a `breaker.toml`: its whole effective settings, read back to the same hash.

    Args:
        config: the configuration.
        why: the reason of the choice, for a comment.

    Raises:
        UnwritableError: the settings hold what TOML cannot.
    """
    settings = config.settings
    lines = [
        "# Chosen by `breaker sweep`.",
        *(f"# {line}" for line in _comment(config, why)),
        "",
        f"[{_SETTINGS_TABLE}]",
    ]
    tables: list[str] = []
    for key, value in settings.as_config.items():
        if isinstance(value, Mapping):
            tables += ["", f"[{_SETTINGS_TABLE}.{_key(key)}]"]
            members = cast("Mapping[str, object]", value)
            tables += [f"{_key(name)} = {_value(member)}" for name, member in members.items()]
        else:
            lines.append(f"{_key(key)} = {_value(value)}")
    text = "\n".join([*lines, *tables, ""])
    try:
        read = cast("dict[str, dict[str, object]]", with_nulls(tomllib.loads(text)))
    except tomllib.TOMLDecodeError as error:
        message = f"these settings cannot be written as TOML: {error}"
        raise UnwritableError(message) from None
    _held_equal(read[_SETTINGS_TABLE], config, "TOML, where the text `null` stands for null")
    return text


def patch_text(config: SweepConfig, why: str) -> str:
    """Return a configuration as the guard's row of a `cordis.patch.yml`, which replaces the guard's whole `config`.

    Raises:
        UnwritableError: the settings hold what YAML cannot.
    """
    dump: Any = import_module("yaml").safe_dump
    row = [{"id": ROW_ID, "config": _plain(config.settings.as_config)}]
    try:
        text = dump(row, sort_keys=False, allow_unicode=True, default_flow_style=None, width=_WIDTH)
        read = cast("list[dict[str, dict[str, object]]]", yaml.safe_load(text))
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        message = f"these settings cannot be written as YAML: {' '.join(str(error).split())}"
        raise UnwritableError(message) from None
    _held_equal(read[0]["config"], config, "YAML")
    return "".join(f"# {line}\n" for line in _comment(config, why)) + text


def tables_beside(path: Path) -> list[str]:
    """Return what a settings file that is there already holds beside the settings, which must not get lost.

    Raises:
        ConfigError: it cannot be read or does not parse.
    """
    if not path.is_file():
        return []
    load_config(path)
    return [key for key in tomllib.loads(path.read_text(encoding="utf-8-sig")) if key in {"check", "label", "tool"}]


def _comment(config: SweepConfig, why: str) -> list[str]:
    told = (
        f"{config.told}: {why}",
        f"ruleset {config.ruleset.name}, policy {config.policy}, settings {config.settings.digest}",
    )
    lines = [_UNESCAPED.sub(" ", line).encode("utf-8", "replace").decode() for line in told]
    return [piece for line in lines for piece in wrap(line, _WIDTH, break_long_words=False, break_on_hyphens=False)]


def _held_equal(read: Mapping[str, object], config: SweepConfig, notation: str) -> None:
    if Settings.from_config(read, config.ruleset) != config.settings:
        message = f"these settings cannot be written as {notation}"
        raise UnwritableError(message)


def _plain(value: object) -> object:
    """Return a value without numbers that YAML spells in a way others read as text."""
    if isinstance(value, Mapping):
        return {key: _plain(member) for key, member in cast("Mapping[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in cast("Sequence[object]", value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _key(key: str) -> str:
    return key if _BARE_KEY.match(key) else _text(key)


def _text(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    escaped = _UNESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
    return escaped.encode("utf-8", "replace").decode()


def _value(value: object) -> str:
    if value is None:
        return f'"{_NULL}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value).items()
        return "{ " + ", ".join(f"{_key(key)} = {_value(member)}" for key, member in members) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, cast("Sequence[object]", value))) + "]"
    number = cast("float", value)
    return str(int(number)) if math.isfinite(number) and float(number).is_integer() else repr(number)
