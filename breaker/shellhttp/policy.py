"""The verdict on one shell command: does it fetch over HTTP where the guard's own fetch tool should?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from breaker.ecmascript import LINE_TERMINATORS, WHITESPACE
from breaker.rulesets import DEFAULT_RULESET, Ruleset, ShellHttpRules
from breaker.settings import Settings
from breaker.shell import first_verb, tokenize
from breaker.shellhttp.candidates import Found, collect, program_of
from breaker.shellhttp.machine import LOOPBACK
from breaker.shellhttp.rewrite import (
    drop_data_values,
    is_code_verb,
    split_commands,
    substitute_variables,
    without_inert_heredocs,
)
from breaker.urls import Address, extract_urls, normalise_url

__all__ = ["Candidate", "ShellHttpPolicy", "Verdict"]

_LOOPBACK_NETWORK = "127."

_SPACE = f"[{re.escape(WHITESPACE)}]"
_SPACES = re.compile(f"{_SPACE}+")
_VERBS = "get|post|put|patch|delete|head|options|request"
_API_NAMES = re.compile(
    r"(?<![A-Za-z0-9_])"
    r"(?:(?:urllib|httpx|aiohttp|axios|Invoke-WebRequest|iwr)(?![A-Za-z0-9_])|requests\.|http\.client(?![A-Za-z0-9_])"
    r"|fetch\(|got\()"
)
_API_CALLS = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    rf"(?:urlopen|fetch|got|requests\.(?:{_VERBS}|Session)|httpx\.(?:{_VERBS}|Client|stream)|axios){_SPACE}*\("
    r"|aiohttp\.|http\.client\.|axios\.|(?:Invoke-WebRequest|iwr)(?![A-Za-z0-9_])"
    r")"
    rf"|[\"'](?:axios|node-fetch|got|superagent|undici)[\"'][^{LINE_TERMINATORS}]{{0,60}}?\.(?:{_VERBS}){_SPACE}*\("
)

_LOOK_UPS = frozenset({"which", "type"})
_COMMAND_LOOK_UPS = frozenset({"-v", "-V"})
_REMOTE_CLIENTS = frozenset({"ssh", "scp", "sftp", "mosh", "sshpass", "rsync", "ssh-copy-id"})
_CARRIED_CLIENTS = frozenset({"ssh", "mosh"})
"""Words that stand between a client and its target: `sshpass ... ssh host`, `rsync -e ssh host`."""
_CLIENT_VALUE_OPTIONS = frozenset(
    {"-b", "-B", "-c", "-D", "-E", "-e", "-F", "-f", "-i", "-I", "-J", "-L", "-l", "-m", "-O", "-o", "-p", "-P"}
    | {"-Q", "-R", "-S", "-W", "-w", "--rsh", "--ssh", "--port"}
)
_VALUELESS_FOR_SSH = frozenset({"-f"})
"""Takes a file for sshpass, and nothing for the others."""

_FETCH_VERBS = frozenset({"curl", "wget", "http", "httpie"})
_COMMAND_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*\Z")
_VERDICTS_KEPT = 256


@dataclass(frozen=True, slots=True)
class Candidate:
    """One command that was looked at."""

    text: str
    found: str
    """How it was found: a command of the text, inside `$(...)`, a quoted word, ..."""
    what: str
    """What it was taken for, in words."""
    decides: bool = False
    """It is the reason for the refusal."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The policy's answer to one command, with what it rests on."""

    refused: bool
    why: str
    candidates: tuple[Candidate, ...] = ()
    complete: bool = True
    """False where the command was nested so heavily that not everything in it was opened."""


class ShellHttpPolicy:
    """The shell-HTTP rules of one release under one set of settings: commands in, verdicts out.

    Args:
        settings: `blockLocalHttp`, the release's list of programs, `localHosts` and `hostAliases` steer it.
            `blockShellHttp` does not: whether the policy is asked at all is up to the caller.
        ruleset: the release. Without a policy of its own it refuses nothing.
        machine: the names and addresses that mean this machine to ssh and its kin.
    """

    def __init__(
        self, settings: Settings, ruleset: Ruleset = DEFAULT_RULESET, machine: frozenset[str] = LOOPBACK
    ) -> None:
        self._settings = settings
        self._ruleset = ruleset
        self._machine = machine
        self._blocks_local = settings.block_local_http is True
        self._blocked = frozenset(settings.shell_http_block or ())
        self._allowed = frozenset(settings.shell_http_allow or ())
        self._known: dict[str, bool] = {}

    def verdict(self, command: str) -> Verdict:
        """Judge a command and say why.

        Linear in the command but for nesting, which is followed six levels deep.
        """
        rules = self._ruleset.shell_http
        if rules is None:
            return Verdict(refused=False, why=f"ruleset {self._ruleset.name} has no shell-HTTP policy")
        return self._by_destination(command) if rules.by_destination else self._by_command(command, rules)

    def refuses(self, command: str) -> bool:
        """Tell whether a command is refused; the latest answers are kept, for agents that repeat themselves."""
        known = self._known.get(command)
        if known is None:
            if len(self._known) >= _VERDICTS_KEPT:
                self._known.clear()
            known = self._known[command] = self.verdict(command).refused
        return known

    # -- by destination (0.6) --------------------------------------------------------------------------------------

    def _by_destination(self, command: str) -> Verdict:
        addresses = self._addresses(command)
        local = _all_local(addresses)
        if local and self._settings.local_hosts == "allow":
            return Verdict(refused=False, why="every address is local, and `localHosts` is allow")
        if local and not self._blocks_local:
            return Verdict(refused=False, why="every address is local")
        verb = first_verb(tokenize(command))
        remote = next((address for address in addresses if not address.is_local), None)
        if not local and remote is None and verb not in _FETCH_VERBS:
            return Verdict(refused=False, why="no address, and no fetching program")
        candidates = self._remote_segments(command)
        verbs = [found for found in (first_verb(tokenize(candidate.text)) for candidate in candidates) if found]
        named = [found for found in verbs if _COMMAND_NAME.match(found)] or [verb]
        if all(name in self._allowed for name in named):
            return Verdict(
                refused=False,
                why=f"only {_listing(named)} and `shellHttpAllow` has all of it",
                candidates=tuple(candidates),
            )
        if local:
            why = "a local address, and `blockLocalHttp` is on"
        elif remote is not None:
            why = f"the address {remote.host} is not local"
        else:
            why = f"`{verb}` fetches, and no address proves it local"
        return Verdict(refused=True, why=why, candidates=tuple(candidates))

    def _remote_segments(self, command: str) -> list[Candidate]:
        segments: list[Candidate] = []
        for piece in split_commands(command, quotes_respected=False):
            remote = next((address for address in self._addresses(piece) if not address.is_local), None)
            if remote is not None:
                verb = first_verb(tokenize(piece)) or "nothing"
                segments.append(
                    Candidate(piece.strip(WHITESPACE), "a command of the text", f"`{verb}` with address {remote.host}")
                )
        return segments

    # -- by command (0.7 on) ---------------------------------------------------------------------------------------

    def _by_command(self, command: str, rules: ShellHttpRules) -> Verdict:
        text = without_inert_heredocs(command) if rules.heredocs_blanked else command
        if rules.variables_substituted:
            text = substitute_variables(text)
        closed = self._goes_elsewhere if rules.remote_clients_skipped else None
        found, complete = collect(text, quotes_respected=rules.quotes_respected, is_closed=closed)
        stripped = [_without_data(item) if rules.data_values_dropped else item.text for item in found]
        judged = [self._judge(item, bare, rules) for item, bare in zip(found, stripped, strict=True)]
        if not any(fetches for fetches, _ in judged):
            looked_at = tuple(
                Candidate(item.text, item.how, what) for item, (_, what) in zip(found, judged, strict=True)
            )
            why = "nothing in it fetches" if complete else "nothing that was opened in it fetches"
            return Verdict(refused=False, why=why, candidates=looked_at, complete=complete)
        passes = None if self._blocks_local else self._passes_whole(text, stripped, rules)
        decided: str | None = None
        candidates: list[Candidate] = []
        for item, bare, (fetches, what) in zip(found, stripped, judged, strict=True):
            told, decides = what, False
            if fetches and passes is None:
                if not self._blocks_local and _all_local(self._addresses(bare)):
                    told = f"{what}, spared: every address is local"
                else:
                    decides = decided is None
                    decided = decided or f"{what}: {_shortened(item.text)}"
            candidates.append(Candidate(item.text, item.how, told, decides))
        why = decided or passes or "every fetch in it has local addresses only"
        return Verdict(refused=decided is not None, why=why, candidates=tuple(candidates), complete=complete)

    def _passes_whole(self, text: str, stripped: Sequence[str], rules: ShellHttpRules) -> str | None:
        if rules.spared_when_local == "text" and _all_local(self._addresses(text)):
            return "every address in the text is local"
        if rules.spared_when_local == "candidates" and _all_local(
            [address for bare in stripped for address in self._addresses(bare)]
        ):
            return "every address in it is local"
        return None

    def _judge(self, item: Found, bare: str, rules: ShellHttpRules) -> tuple[bool, str]:
        """Tell whether a candidate fetches, and what it is taken for."""
        verb = item.verb
        if rules.remote_clients_skipped and self._goes_elsewhere(item):
            return False, f"`{verb}` to another machine"
        if rules.argument_needed and _is_look_up(item.words):
            return False, "a look-up"
        if verb in self._blocked:
            if not rules.argument_needed or _SPACES.search(item.text.strip(WHITESPACE)):
                return True, f"`{verb}` is on `shellHttpBlock`"
            return False, f"`{verb}` without an argument"
        called = (_API_CALLS if rules.api_calls_only else _API_NAMES).search(bare)
        if called:
            return True, f"a request API, `{_shortened(called[0])}`"
        return False, f"`{verb}`, no fetch" if verb else "no fetch"

    def _goes_elsewhere(self, item: Found) -> bool:
        """Tell whether a candidate is a remote client whose target is not this machine."""
        if item.verb not in _REMOTE_CLIENTS:
            return False
        target = _target(item.words, item.verb)
        return not (target in self._machine or target.startswith(_LOOPBACK_NETWORK))

    def _addresses(self, text: str) -> list[Address]:
        aliases = self._settings.host_aliases
        found = (normalise_url(url, aliases, self._ruleset) for url in extract_urls(text, self._ruleset))
        return [address for address in found if address is not None]


def _all_local(addresses: Sequence[Address]) -> bool:
    return bool(addresses) and all(address.is_local for address in addresses)


def _without_data(item: Found) -> str:
    return item.text if is_code_verb(item.verb) else drop_data_values(item.text)


def _is_look_up(words: Sequence[str]) -> bool:
    if not words:
        return False
    if words[0] in _LOOK_UPS:
        return True
    return words[0] == "command" and len(words) > 1 and words[1] in _COMMAND_LOOK_UPS


def _target(words: Sequence[str], client: str) -> str:
    """Return the host a remote client is told, without user, in lower case; empty where it is told none."""
    position = next(index for index, word in enumerate(words) if program_of(word) == client) + 1
    takes_value = _CLIENT_VALUE_OPTIONS if client == "sshpass" else _CLIENT_VALUE_OPTIONS - _VALUELESS_FOR_SSH
    while position < len(words):
        word = words[position]
        position += 1
        if word.startswith("-"):
            position += word in takes_value
        elif word not in _CARRIED_CLIENTS:
            return word.rpartition("@")[2].lower()
    return ""


_SHOWN = 80


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _listing(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names))
