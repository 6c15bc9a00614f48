"""How sessions are replayed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from breaker.rulesets import DEFAULT_RULESET, Ruleset
from breaker.settings import Settings
from breaker.shellhttp import LOOPBACK

if TYPE_CHECKING:
    from analysis.detect import DetectorSpec
    from analysis.sessions.session_facts import ResultSource, SessionFacts

__all__ = ["POLICIES", "SHELL_HTTP_MODES", "Policy", "ReplayPlan", "ShellHttpMode"]

Policy = Literal["unattended", "approve", "deny", "observe"]
POLICIES: tuple[Policy, ...] = ("unattended", "approve", "deny", "observe")
"""What becomes of an ask: nobody answers, everybody approves, every gate denies, or nothing is withheld."""

ShellHttpMode = Literal["auto", "on", "off"]
SHELL_HTTP_MODES: tuple[ShellHttpMode, ...] = ("auto", "on", "off")


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """How sessions are replayed: everything that decides what the engine says."""

    settings: Settings = field(default_factory=Settings.from_config)
    ruleset: Ruleset = DEFAULT_RULESET
    policy: Policy = "unattended"
    result_source: ResultSource = "rebuilt"
    keep_events: bool = False
    """Keep every event, not only their counts."""
    keep_messages: bool = False
    """Keep with every event what the guard would have said."""
    shell_http: ShellHttpMode = "auto"
    """Whether the shell-HTTP policy is engaged: `auto` only in sessions that were offered its replacement tool."""
    machine: frozenset[str] = LOOPBACK
    """Names and addresses of the machine the sessions ran on, for that policy."""
    detectors: tuple[DetectorSpec, ...] = ()
    """Other rules that look at the same sessions, beside the guard."""

    def engine_settings(self) -> Settings:
        """Return the settings the engine runs under: the policy `deny` is `onLimit: deny`."""
        return replace(self.settings, on_limit="deny") if self.policy == "deny" else self.settings

    @property
    def has_shell_http(self) -> bool:
        """Tell whether the ruleset and the settings know a shell-HTTP policy at all."""
        return self.ruleset.shell_http is not None and self.settings.block_shell_http is True

    def engages_shell_http(self, session: SessionFacts) -> bool:
        """Tell whether that policy is engaged in a session that has been read to its end."""
        wanted = self.shell_http == "on" or (self.shell_http == "auto" and session.offers_fetch_file)
        return wanted and self.has_shell_http
