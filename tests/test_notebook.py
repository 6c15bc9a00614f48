"""The tuning notebook runs from top to bottom, and what is stored in it is what it shows."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "notebooks" / "tuning.ipynb"
PATIENCE = 300
"""Seconds a cell may take."""


def shown(notebook: Any) -> list[list[str]]:
    """Return for each code cell the texts it shows; of a picture that there is one."""
    return [[text_of(output) for output in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]


def text_of(output: Any) -> str:
    if output.output_type == "stream":
        return output.text
    if "image/png" in output.data:
        return "a picture"
    return output.data["text/markdown"]


def read() -> Any:
    return import_module("nbformat").read(NOTEBOOK, as_version=4)


def test_the_stored_notebook_tells_the_whole_story() -> None:
    notebook = read()
    import_module("nbformat").validate(notebook)
    told = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert [heading for heading in told.split("\n") if heading.startswith("## ")] == [
        "## Load",
        "## Look",
        "## Sweep",
        "## Choose",
        "## Check",
    ]
    outputs = [text for texts in shown(notebook) for text in texts]
    assert outputs.count("a picture") == 2
    assert any("recommended: warnAt=9, failWarnAt=3" in text for text in outputs)
    assert not any(cell.get("outputs") and cell.execution_count is None for cell in notebook.cells)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_run_anew_it_shows_what_is_stored() -> None:
    """The kernel's own libraries may warn of each other; the code of the notebook runs in another process."""
    fresh = read()
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = import_module("nbclient").NotebookClient(
        fresh, timeout=PATIENCE, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}
    )
    client.execute()
    assert shown(fresh) == shown(read())
