"""The shell-HTTP policy: which shell commands the guard refuses because its own fetch tool should do them.

Its rules are loaded when it is engaged: most guards never are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from breaker.shellhttp.machine import LOOPBACK, this_machine

if TYPE_CHECKING:
    from breaker.shellhttp.policy import Candidate, ShellHttpPolicy, Verdict

__all__ = ["LOOPBACK", "Candidate", "ShellHttpPolicy", "Verdict", "this_machine"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    from breaker.shellhttp import policy

    return getattr(policy, name)
