"""The hooks pytest calls. Without `--breaker` they do nothing, and nothing of the tool is imported."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from breaker_pytest.items import BreakerFile
    from breaker_pytest.replays import Replayer

__all__ = [
    "breaker_replay",
    "pytest_addoption",
    "pytest_collect_file",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_terminal_summary",
    "pytest_unconfigure",
]

_MARK = "breaker: a session, limit, baseline or waiver of `breaker check`; there with --breaker"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("breaker", "hold recorded sessions to `breaker check`")
    group.addoption(
        "--breaker", action="store_true", default=False, help="run the configured check, one test for every session"
    )
    group.addoption(
        "--breaker-config",
        metavar="FILE",
        default=None,
        help="the check's configuration (default: the first one found from the working folder upwards)",
    )
    group.addoption(
        "--breaker-today", metavar="DATE", default=None, help="the day waivers are held against (default: today)"
    )
    group.addoption(
        "--breaker-cache",
        metavar="DIR|off",
        default=None,
        help="where what was read of unchanged sessions is kept, or nowhere (default: $BREAKER_CACHE, else the "
        "platform's cache folder)",
    )


def _wanted(config: pytest.Config) -> bool:
    return bool(config.getoption("--breaker"))


def pytest_configure(config: pytest.Config) -> None:
    """Find the configuration and its sessions, so that a mistake ends the run before it begins."""
    if not _wanted(config):
        return
    from breaker_pytest.items import prepare

    config.addinivalue_line("markers", _MARK)
    given = cast("str | None", config.getoption("--breaker-config"))
    day = cast("str | None", config.getoption("--breaker-today"))
    cache = cast("str | None", config.getoption("--breaker-cache"))
    path = prepare(config, None if given is None else Path(given), day or date.today().isoformat(), cache)
    # Workers of a distributed run get these options, and so the same file and day.
    config.option.breaker_config = str(path)
    config.option.breaker_today = day or date.today().isoformat()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> BreakerFile | None:
    """Collect the configuration where it is named, or lies among what is collected."""
    if not _wanted(parent.config):
        return None
    from breaker_pytest.items import collected_file, configured_file

    return collected_file(parent) if file_path == configured_file(parent.config) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the check's tests where they were not collected by their place, before any are selected by name."""
    if not _wanted(config):
        return
    from breaker_pytest.items import BreakerItem, collected_file

    if not any(isinstance(item, BreakerItem) for item in items):
        items.extend(collected_file(session).collect())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Tell why the cache was of no use, where it was."""
    if not _wanted(config):
        return
    from breaker_pytest.items import cache_warnings

    for warning in cache_warnings(config):
        terminalreporter.write_line(f"breaker: warning: {warning}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let go of what is too much in the cache."""
    if not _wanted(config):
        return
    from breaker_pytest.items import close_cache

    close_cache(config)


@pytest.fixture(scope="session")
def breaker_replay() -> Replayer:
    """Replay recorded sessions: `breaker_replay(path, warnAt=3, limits={"host": 9})`.

    The path is a log, a session folder, an archive or a folder of them. Settings go by the guard's own names;
    `ruleset`, `policy` and `shell_http` say how they are replayed.
    """
    from breaker_pytest.replays import replay

    return replay
