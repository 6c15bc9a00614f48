"""A fault of the program itself is no outcome of a check."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """\

import sys
from types import SimpleNamespace
from cli import app, main

def broken() -> None:
    raise ZeroDivisionError("planted")

app.VERBS["planted"] = "Break."
sys.modules["cli.planted"] = SimpleNamespace(planted=broken)
sys.argv = ["breaker", "planted"]
main.run()
"""


def test_an_unexpected_fault_ends_with_a_code_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert done.stderr.endswith("ZeroDivisionError: planted\n")
