"""What several commands take: settings, ruleset, and how they are given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.exits import USAGE, Failed, warn

if TYPE_CHECKING:
    from breaker import Ruleset, Settings

__all__ = [
    "DEFAULT_RULESET_NAME",
    "ConfigOption",
    "MachineOption",
    "RulesetOption",
    "SetOption",
    "load_settings",
]

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Settings of the guard: TOML, JSON, YAML, or the plugin's cordis.patch.yml.",
        show_default="the released defaults",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set one key; repeatable. Entries of maps are dotted (limits.host=9), values are JSON or plain text.",
    ),
]
RulesetOption = Annotated[
    str,
    typer.Option("--ruleset", metavar="NAME", help="Which released behaviour of the guard to use."),
]
MachineOption = Annotated[
    list[str] | None,
    typer.Option(
        "--machine",
        metavar="NAME",
        help="A name or address of the machine the calls ran on, for ssh and its kin; repeatable.",
        show_default="the loopback names only",
    ),
]
DEFAULT_RULESET_NAME = "0.8"


def load_settings(config: Path | None, sets: list[str] | None, ruleset_name: str) -> tuple[Settings, Ruleset]:
    """Load, merge and validate; a key nobody knows is a warning that names the nearest one."""
    from analysis.configs import ConfigError, apply_sets, load_config
    from breaker.kinds import nearest_kind, unknown_kinds
    from breaker.rulesets import UnknownRulesetError, ruleset_named
    from breaker.settings import Settings, SettingsError, nearest_key, unknown_keys

    try:
        ruleset = ruleset_named(ruleset_name)
        given = apply_sets(load_config(config) if config is not None else {}, sets or [])
        settings = Settings.from_config(given, ruleset)
    except (UnknownRulesetError, ConfigError, SettingsError) as error:
        place = f"{config}: " if config is not None and isinstance(error, SettingsError) else ""
        raise Failed(USAGE, f"{place}{error}") from None
    for key in unknown_keys(given, ruleset):
        near = nearest_key(key, ruleset)
        hint = f"; did you mean `{near}`?" if near is not None else ""
        warn(f"`{key}` is no setting of ruleset {ruleset.name} and is ignored{hint}")
    for entry in unknown_kinds(settings):
        near = nearest_kind(entry)
        hint = f"; did you mean `limits.{near}`?" if near is not None else ""
        warn(f"`limits.{entry}` caps nothing: there is no such kind of measure{hint}")
    return settings, ruleset
