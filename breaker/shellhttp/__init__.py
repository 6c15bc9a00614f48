"""The shell-HTTP policy: which shell commands the guard refuses because its own fetch tool should do them."""

from __future__ import annotations

from breaker.shellhttp.policy import LOOPBACK, Candidate, ShellHttpPolicy, Verdict, this_machine

__all__ = ["LOOPBACK", "Candidate", "ShellHttpPolicy", "Verdict", "this_machine"]
