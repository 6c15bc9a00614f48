"""A fault of the program itself is no outcome of a check."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """\

from cli import main

def broken() -> None:
    raise ZeroDivisionError("planted")

main.app.command("planted")(broken)
import sys
sys.argv = ["breaker", "planted"]
main.run()
"""


def test_an_unexpected_fault_ends_with_a_code_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert done.stderr.endswith("ZeroDivisionError: planted\n")
