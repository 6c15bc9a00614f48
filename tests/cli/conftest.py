"""The small corpora the command is run over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.synth import Truth, write_corpus


@pytest.fixture(scope="session", autouse=True)
def no_columns() -> Iterator[None]:
    """Take away a width that whoever runs the tests has set; where one is wanted, the test sets it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        yield


@pytest.fixture(scope="session")
def demo_corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    """Return a corpus of every behaviour, one torn file among it, and what is planted in it."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, write_corpus(folder, "demo")


@pytest.fixture(scope="session")
def demo(demo_corpus: tuple[Path, Truth]) -> Path:
    """Return the folder of that corpus."""
    return demo_corpus[0]
