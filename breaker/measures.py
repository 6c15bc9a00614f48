"""A call and its measures: the fingerprints by which the guard recognises that an agent repeats itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from breaker.ecmascript import LINE_TERMINATORS, canonical_json
from breaker.kinds import kind_of, measure_rank
from breaker.rulesets import DEFAULT_RULESET, Ruleset
from breaker.settings import Settings
from breaker.shell import first_verb, output_sink, stripped_command, tokenize
from breaker.urls import Address, extract_urls, normalise_url

__all__ = [
    "SHELL_TOOLS",
    "Call",
    "Enabled",
    "MeasuredCall",
    "Measurer",
    "is_shell_tool",
    "is_url_tool",
    "name_matcher",
    "shell_command",
]

SHELL_TOOLS = frozenset({"bash", "pwsh", "shell"})
"""The tools whose argument `command` is read as a shell command; names are case-sensitive."""

_URL_TOOL = re.compile("fetch|search|browse|web_", re.IGNORECASE | re.ASCII)
_FETCH_VERBS = frozenset({"curl", "wget", "http", "httpie"})
_FETCH_FAMILY = "family:http-fetch"


class Call(NamedTuple):
    """One tool call as a host offers it."""

    name: str
    arguments: object
    """The decoded arguments: usually a mapping; text where the argument JSON was malformed; None for none."""

    @classmethod
    def from_host(cls, record: Mapping[str, object]) -> Call:
        """Read a call out of a host's record: `name`, `toolName` or `tool.name`; `arguments` or `args`.

        Missing and null fall through to the next; a name that is not text is no name.
        """
        tool = record.get("tool")
        nested = cast("Mapping[str, object]", tool).get("name") if isinstance(tool, Mapping) else None
        name = _first_given(record.get("name"), record.get("toolName"), nested)
        arguments = _first_given(record.get("arguments"), record.get("args"))
        return cls(name=name if isinstance(name, str) else "", arguments={} if arguments is None else arguments)


class Enabled(NamedTuple):
    """The enabled measures of one call: the ones that have a cap."""

    capped: tuple[tuple[str, float], ...]
    """Each with its cap, in measure order."""
    ranked: tuple[str, ...]
    """The same by rank, in measure order among equal ones: of several at one count the first here is named."""


@dataclass(frozen=True, slots=True)
class MeasuredCall:
    """A call as the engine sees it: its name and its measures, in the order that breaks ties."""

    name: str
    measures: tuple[str, ...]
    tracked: bool
    local: bool
    """It names at least one URL and all of them are local (never so under `localHosts: allow`)."""
    command: str | None = field(default=None, compare=False, repr=False)
    """The command of a shell call, for the shell-HTTP policy; None for every other tool."""
    _known: tuple[Mapping[str, float | None], Enabled] | None = field(
        default=None, init=False, compare=False, repr=False
    )
    """The limits that were asked about last, and what they enable: a call is looked at many times under the same."""
    _ranked: tuple[str, ...] = field(default=(), init=False, compare=False, repr=False)
    """The measures by rank, whatever is enabled; once that has been asked about."""
    _kinds: tuple[tuple[str, str], ...] = field(default=(), init=False, compare=False, repr=False)
    """The measures with their kinds, likewise."""

    def enabled(self, settings: Settings) -> Enabled:
        """Return the measures that settings enable."""
        known = self._known
        if known is not None and known[0] is settings.limits:
            return known[1]
        if not self._kinds:
            object.__setattr__(self, "_kinds", tuple([(measure, kind_of(measure)) for measure in self.measures]))
            object.__setattr__(self, "_ranked", tuple(sorted(self.measures, key=measure_rank)))
        capped = settings.capped(self._kinds)
        ranked = self._ranked
        if len(capped) < len(ranked):
            names = dict(capped)
            ranked = tuple([measure for measure in ranked if measure in names])
        enabled = Enabled(capped, ranked)
        object.__setattr__(self, "_known", (settings.limits, enabled))
        return enabled


def _first_given(*values: object) -> object:
    return next((value for value in values if value is not None), None)


def is_shell_tool(name: str) -> bool:
    """Tell whether a tool is a shell, by its exact name."""
    return name in SHELL_TOOLS


def is_url_tool(name: str) -> bool:
    """Tell whether a tool that is not a shell fetches addresses, by words in its name."""
    return not is_shell_tool(name) and _URL_TOOL.search(name) is not None


def shell_command(call: Call) -> str:
    """Return the command of a shell call, empty where `arguments.command` is not text."""
    if isinstance(call.arguments, Mapping):
        command = cast("Mapping[str, object]", call.arguments).get("command")
        if isinstance(command, str):
            return command
    return ""


def name_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return what tells whether a whole name fits one of the patterns; `*` stands for any run within a line."""
    expressions = [_name_expression(pattern) for pattern in patterns]
    return lambda name: any(expression.match(name) for expression in expressions)


def _name_expression(pattern: str) -> re.Pattern[str]:
    """Compile a pattern; the earliest place for each literal is the best one, so none is ever tried again."""
    first, *others = map(re.escape, re.split(r"\*+", pattern))
    if not others:
        return re.compile(rf"{first}\Z")
    *middle, last = others
    run = f"[^{LINE_TERMINATORS}]*"
    steps = "".join(f"(?>{run}?{literal})" for literal in middle)
    return re.compile(rf"{first}{steps}{run}{last}\Z")


class Measurer:
    """Computes the measures of calls under one set of settings and one ruleset. Stateless and pure."""

    def __init__(self, settings: Settings, ruleset: Ruleset = DEFAULT_RULESET) -> None:
        self._settings = settings
        self._ruleset = ruleset
        self._relax_local = settings.local_hosts == "allow"
        everywhere = _ignored_keys(settings, "*")
        self._ignored_everywhere = everywhere
        self._ignored = {name: everywhere | _ignored_keys(settings, name) for name in settings.ignore_args}
        self._included = name_matcher(settings.include) if settings.include else None
        self._excluded = name_matcher(settings.exclude)

    def is_tracked(self, name: str) -> bool:
        """Tell whether the guard looks at a tool: included (or no list given) and not excluded."""
        return bool(name) and (self._included is None or self._included(name)) and not self._excluded(name)

    def measure(self, call: Call) -> MeasuredCall:
        """Compute the measures of a call, without duplicates, in order; of an untracked call too."""
        measures = [f"exact:{call.name}:{canonical_json(self._without_decoys(call))}"]
        local = False
        command = None
        if is_shell_tool(call.name):
            command = shell_command(call)
            local = self._add_shell(measures, command)
        elif is_url_tool(call.name):
            local = self._add_url_tool(measures, call.arguments)
        return MeasuredCall(
            name=call.name,
            measures=tuple(dict.fromkeys(measures)),
            tracked=self.is_tracked(call.name),
            local=local and not self._relax_local,
            command=command,
        )

    def _without_decoys(self, call: Call) -> dict[str, object]:
        arguments = call.arguments
        if arguments is None:
            return {}
        given = cast("Mapping[str, object]", arguments) if isinstance(arguments, Mapping) else {"value": arguments}
        ignored = self._ignored.get(call.name, self._ignored_everywhere)
        return {key: value for key, value in given.items() if key not in ignored}

    def _add_shell(self, measures: list[str], command: str) -> bool:
        tokens = tokenize(command)
        found = (self._address(text) for text in extract_urls(command, self._ruleset))
        addresses = [address for address in found if address is not None]
        local = bool(addresses) and all(address.is_local for address in addresses)
        relaxed = local and self._relax_local
        verb = first_verb(tokens)
        if verb and not relaxed:
            measures.append(f"verb:{verb}")
            if verb in _FETCH_VERBS:
                measures.append(_FETCH_FAMILY)
        if verb:
            stripped = stripped_command(tokens)
            if stripped:
                measures.append(f"cmd:{verb}:{stripped}")
        if not relaxed:
            self._add_addresses(measures, addresses)
            sink = output_sink(tokens)
            if sink is not None:
                measures.append(f"sink:{sink}")
        return local

    def _add_url_tool(self, measures: list[str], arguments: object) -> bool:
        if not isinstance(arguments, Mapping):
            return False
        given = cast("Mapping[str, object]", arguments)
        raw = _first_given(given.get("url"), given.get("href"), given.get("uri"))
        address = self._address(raw) if isinstance(raw, str) else None
        if address is None:
            return False
        if not (address.is_local and self._relax_local):
            self._add_addresses(measures, [address])
            measures.append(_FETCH_FAMILY)
        return address.is_local

    def _add_addresses(self, measures: list[str], addresses: Iterable[Address]) -> None:
        for address in addresses:
            measures.append(f"net:{address.href}")
            measures.append(f"site:{address.site}")
            if self._settings.include_local or not address.is_local:
                measures.append(f"host:{address.host}")

    def _address(self, text: str) -> Address | None:
        return normalise_url(text, self._settings.host_aliases, self._ruleset)


def _ignored_keys(settings: Settings, name: str) -> frozenset[str]:
    listed = settings.ignore_args.get(name)
    if isinstance(listed, str | list | tuple):
        return frozenset(key for key in cast("Iterable[object]", listed) if isinstance(key, str))
    return frozenset()
