"""What every test room shares: the folder of recorded answers, and what happens where it is absent."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

SHARED = Path(__file__).parent.parent.parent / "shared"
LEFT_OUT = pytest.StashKey[int]()


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder beside the checkout that holds vectors and recorded logs."""
    return SHARED


def pytest_configure() -> None:
    """Keep what surrounds a run out of it: the cache of whoever runs it, and signals that are ignored there."""
    os.environ["BREAKER_CACHE"] = "off"
    # A shell that starts a job in the background has it ignore interrupts, and what the tests start would inherit that.
    for number in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if SHARED.is_dir():
        return
    marked = [item for item in items if item.get_closest_marker("shared") is not None]
    if marked:
        config.stash[LEFT_OUT] = len(marked)
        items[:] = [item for item in items if item.get_closest_marker("shared") is None]
        config.hook.pytest_deselected(items=marked)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if SHARED.is_dir():
        return
    # Where several processes run the tests, only they know how many.
    count = config.stash.get(LEFT_OUT, None)
    told = "the tests" if count is None else f"{count} tests"
    terminalreporter.write_line(f"{told} marked `shared` left out: no folder `shared` beside the checkout")
