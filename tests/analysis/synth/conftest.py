"""A reader of the plainest kind, so that the writer is not held to the project's own reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import zstandard

from analysis.synth import Truth, write_corpus

Row = dict[str, object]
Log = tuple[Row, list[Row], list[bytes]]


def _frames(content: bytes) -> list[bytes]:
    """Return the text of each whole frame; a frame that is cut is left out."""
    texts: list[bytes] = []
    while content:
        frame = zstandard.ZstdDecompressor().decompressobj()
        text = frame.decompress(content)
        if not frame.eof:
            break
        texts.append(text)
        content = frame.unused_data
    return texts


def _read(path: Path) -> Log:
    """Return the header, the rows after it, and the batches as written (one for a plain file)."""
    content = path.read_bytes()
    batches = _frames(content) if path.suffix == ".zstd" else [content]
    text = b"".join(batches)
    lines = text[: text.rindex(b"\n") + 1].split(b"\n")[:-1]
    rows = [cast("Row", json.loads(line)) for line in lines]
    return rows[0], rows[1:], batches


@pytest.fixture(scope="session")
def read_log() -> Callable[[Path], Log]:
    return _read


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int, bool], tuple[Path, Truth]]:
    """Return a writer of corpora that writes each one once."""
    written: dict[tuple[str, int, bool], tuple[Path, Truth]] = {}

    def write(recipe: str, version: int, plain: bool) -> tuple[Path, Truth]:
        key = (recipe, version, plain)
        if key not in written:
            out = tmp_path_factory.mktemp(f"{recipe}-{version}-{'plain' if plain else 'zstd'}")
            if recipe == "scale":
                truth = write_corpus(out, recipe, version=version, plain=plain, sessions=2, calls=90, result_bytes=300)
            else:
                truth = write_corpus(out, recipe, version=version, plain=plain)
            written[key] = out, truth
        return written[key]

    return write
