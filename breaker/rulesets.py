"""What each release of the guard does differently, as data: the code holds no copies.

The occurrence track is one and the same in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_RULESET", "RULESETS", "Ruleset", "UnknownRulesetError", "ruleset_named"]


@dataclass(frozen=True, slots=True)
class Ruleset:
    """One released behaviour of the guard."""

    name: str
    held_by: str
    """How the port is held to the release: `vectors` (its own recorded answers) or `text` (its documents only)."""
    text_rules_for_exceptions: bool
    """Text rules T6-T9: tracebacks, `XError: `, `HTTP Error`, `curl: (N)`."""
    text_rules_for_shells_only: bool
    low_status_is_final: bool
    """A status code below 400 is a success, whatever else the result says."""
    write_out_status: bool
    """The `-w` rule: a leading 4xx/5xx in the output of a curl that was asked for the status."""
    unescape_urls: bool
    """Backslashes before URL punctuation are dropped, and IPv6 hosts lose their brackets."""
    drop_bad_ports: bool
    """A port that is not all digits is cut off before the URL is parsed."""
    shell_http_settings: bool
    """The release knows `blockShellHttp` and its companions."""
    removed_keys: frozenset[str]
    note: str


class UnknownRulesetError(ValueError):
    """A ruleset name that is not known; the message names the known ones."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"unknown ruleset {name!r}; known: {', '.join(RULESETS)}")


_REMOVED_IN_0_2 = frozenset(
    {"denyAfter", "warnAfter", "registerAdvisory", "maxSamePath", "readTools", "matchReadBySubstring"}
)
_REMOVED_IN_0_7 = _REMOVED_IN_0_2 | {"shellHttpAllow"}

RULESETS: dict[str, Ruleset] = {
    ruleset.name: ruleset
    for ruleset in (
        Ruleset(
            name="0.5.2",
            held_by="vectors",
            text_rules_for_exceptions=True,
            text_rules_for_shells_only=True,
            low_status_is_final=True,
            write_out_status=False,
            unescape_urls=False,
            drop_bad_ports=False,
            shell_http_settings=False,
            removed_keys=_REMOVED_IN_0_2,
            note="as released",
        ),
        Ruleset(
            name="0.8.7",
            held_by="vectors",
            text_rules_for_exceptions=True,
            text_rules_for_shells_only=True,
            low_status_is_final=True,
            write_out_status=False,
            unescape_urls=True,
            drop_bad_ports=True,
            shell_http_settings=True,
            removed_keys=_REMOVED_IN_0_7,
            note="as released",
        ),
        Ruleset(
            name="0.8",
            held_by="text",
            text_rules_for_exceptions=True,
            text_rules_for_shells_only=True,
            low_status_is_final=True,
            write_out_status=True,
            unescape_urls=True,
            drop_bad_ports=True,
            shell_http_settings=True,
            removed_keys=_REMOVED_IN_0_7,
            note="what the 0.8 documentation promises; no released code has all of it (0.8.7 lacks the -w rule)",
        ),
    )
}
"""Every ruleset by name, oldest first."""

DEFAULT_RULESET = RULESETS["0.8"]


def ruleset_named(name: str) -> Ruleset:
    """Return the ruleset of that name.

    Raises:
        UnknownRulesetError: no such ruleset.
    """
    try:
        return RULESETS[name]
    except KeyError:
        raise UnknownRulesetError(name) from None
