from __future__ import annotations

from pathlib import Path

import pytest

from analysis.sweep import Sweep
from analysis.synth import Truth, write_corpus
from tests.analysis.sweep.corpora import swept


@pytest.fixture(scope="package")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    """Return the labelled corpus and what is planted in it: 24 good sessions and 16 stuck ones."""
    folder = tmp_path_factory.mktemp("planted")
    return folder, write_corpus(folder, "labelled")


@pytest.fixture(scope="package")
def sweep(planted: tuple[Path, Truth]) -> Sweep:
    """Return that corpus swept over both advisory thresholds."""
    return swept(planted[0], planted[1].sessions)
