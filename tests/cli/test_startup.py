"""What the command imports before it does anything: not the heavy libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.logs import LogWriter
from tests.cli.commands import COMMAND, PATIENCE

HEAVY = {"polars", "pyarrow", "matplotlib", "numpy", "scipy", "jinja2"}

STARTS = [
    ["--help"],
    ["replay", "--help"],
    ["guard"],
    ["measure", "curl -s https://api.example.com"],
    ["classify", "--jsonl"],
    ["schema", "replay"],
]


def imported(script: Path, *arguments: str, folder: Path | None = None) -> set[str]:
    """Return the top-level packages a script imports when it is run, as the interpreter itself reports them."""
    given = [sys.executable, "-X", "importtime", str(script), *arguments]
    env = {"PYTHONPATH": str(folder)} if folder is not None else None
    done = subprocess.run(
        given, stdin=subprocess.DEVNULL, capture_output=True, env=env, timeout=PATIENCE, text=True, check=True
    )
    names = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("arguments", STARTS, ids=" ".join)
def test_a_start_imports_no_heavy_library(arguments: list[str]) -> None:
    names = imported(COMMAND, *arguments)
    assert "cli" in names
    assert names & HEAVY == set()
    if "--help" in arguments:
        assert names & {"ada_url", "msgspec", "yaml", "zstandard", "analysis"} == set()


def small_corpus(folder: Path) -> tuple[Path, str]:
    """Write one session of a command that fails again and again; return the folder and the session's id."""
    log = LogWriter("session-small")
    log.user()
    for _ in range(6):
        log.bash("make", "[exit code: 1]")
    log.write(folder / "corpus")
    return folder / "corpus", "session-small"


@pytest.mark.parametrize("verb", ["replay", "histogram", "lint", "check", "explain", "sweep"])
def test_a_command_that_makes_no_table_and_no_picture_loads_nothing_that_does(tmp_path: Path, verb: str) -> None:
    corpus, session = small_corpus(tmp_path)
    given = [str(corpus)]
    if verb == "explain":
        given = [session, str(corpus)]
    elif verb == "check":
        config = tmp_path / "breaker.toml"
        config.write_text('[check]\nsessions = ["corpus"]\n[check.limits]\nsessions_min = 1\n', encoding="utf-8")
        given = ["--config", str(config)]
    elif verb == "sweep":
        given = [str(corpus), "--grid", "warnAt=2,3"]
    names = imported(COMMAND, verb, *given)
    assert "analysis" in names
    assert names & HEAVY == set()


def test_the_probe_sees_the_heavy_libraries_a_script_imports_late(tmp_path: Path) -> None:
    for library in HEAVY:
        (tmp_path / f"{library}.py").write_text("", encoding="utf-8")
    script = tmp_path / "script.py"
    lines = "".join(f"    import {library}\n" for library in sorted(HEAVY - {"scipy"}))
    script.write_text(f"def late():\n{lines}\nlate()\n", encoding="utf-8")
    assert imported(script, folder=tmp_path) & HEAVY == HEAVY - {"scipy"}
