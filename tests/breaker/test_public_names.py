"""What `from breaker import ...` gives: every public name, each loaded when it is first used."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import cast

import pytest

import breaker
from breaker import shellhttp

HOMES = cast("dict[str, tuple[str, ...]]", vars(breaker)["_HOMES"])


def test_every_public_name_is_that_of_its_module() -> None:
    assert sorted(name for names in HOMES.values() for name in names) == sorted(breaker.__all__)
    for home, names in HOMES.items():
        module = import_module(home)
        assert [name for name in names if getattr(breaker, name) is not getattr(module, name)] == []


def test_the_policy_is_loaded_by_its_names() -> None:
    module = import_module("breaker.shellhttp.policy")
    for name in ("Candidate", "ShellHttpPolicy", "Verdict"):
        assert getattr(shellhttp, name) is getattr(module, name)


@pytest.mark.parametrize(("module", "name"), [(breaker, "nothing"), (shellhttp, "nothing")])
def test_another_name_is_none_of_theirs(module: object, name: str) -> None:
    with pytest.raises(AttributeError, match=r"module 'breaker.*' has no attribute 'nothing'"):
        _ = getattr(module, name)


def test_importing_the_package_loads_none_of_it() -> None:
    program = "import breaker, sys; print(sorted(name for name in sys.modules if name.startswith('breaker.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_star_import_gives_all_of_them() -> None:
    program = (
        "from breaker import *; import breaker; print([name for name in breaker.__all__ if name not in globals()])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
