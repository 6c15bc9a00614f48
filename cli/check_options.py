"""What `breaker check` and `breaker approve` take alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.exits import CHECK_FAILED, FINE, NOT_ENOUGH, UNREADABLE, USAGE, Failed

if TYPE_CHECKING:
    from analysis.regress import CheckConfig, Outcome, Plan

__all__ = [
    "EXIT_CODES",
    "BaselineOption",
    "CheckConfigOption",
    "CheckPaths",
    "CheckRulesetOption",
    "SettingsOption",
    "StrictOption",
    "load",
    "parse_day",
]

CheckPaths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH…",
        help="Sessions to check: folders, logs, archives, globs.",
        show_default="`sessions` of the configuration",
    ),
]
CheckConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The check's configuration: a breaker.toml with [check], or a pyproject.toml with [tool.breaker].",
        show_default="the first one found from here upwards",
    ),
]
SettingsOption = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        metavar="FILE",
        help="Settings of the guard to check with: TOML, JSON, YAML, or the plugin's cordis.patch.yml.",
        show_default="those of the configuration",
    ),
]
CheckRulesetOption = Annotated[
    str | None,
    typer.Option(
        "--ruleset",
        metavar="NAME",
        help="Which released behaviour of the guard to use.",
        show_default="that of the configuration",
    ),
]
BaselineOption = Annotated[
    Path | None,
    typer.Option("--baseline", metavar="FILE", help="The baseline.", show_default="that of the configuration"),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Exit 3 unless every log reads ok (older generations aside).")
]

EXIT_CODES: Mapping[Outcome, int] = {
    "passed": FINE,
    "failed": CHECK_FAILED,
    "unreadable": UNREADABLE,
    "not-enough": NOT_ENOUGH,
}


def load(
    config: Path | None,
    *,
    settings: Path | None,
    sets: list[str] | None,
    ruleset: str | None,
    baseline: Path | None,
    strict: bool,
) -> tuple[CheckConfig, Plan]:
    """Read the configuration and lay the command line over it.

    Raises:
        CheckError: something in it cannot be used.
    """
    from analysis.configs import ConfigError, apply_sets
    from analysis.regress import CheckError, find_config, load_check

    check = load_check(config if config is not None else find_config(Path.cwd()))
    if baseline is not None:
        check = replace(check, baseline=baseline.absolute(), baseline_required=True)
    if strict:
        check = replace(check, strict=True)
    if settings is not None:
        check = replace(check, files=(*check.files, settings.absolute()))

    def adjust(given: Mapping[str, object]) -> dict[str, object]:
        try:
            return apply_sets(given, sets or [])
        except ConfigError as error:
            raise CheckError(str(error)) from None

    return check, check.plan(settings=settings, ruleset=ruleset, adjust=adjust, adjusted=sets or [])


def parse_day(option: str, text: str | None) -> date:
    """Return a day given on the command line; without one, today.

    Raises:
        Failed: it is none.
    """
    if text is None:
        return date.today()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Failed(USAGE, f"{option} {text}: not a date such as 2026-12-31") from None
