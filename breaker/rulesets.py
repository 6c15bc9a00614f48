"""What each release of the guard does differently, as data: the code holds no copies.

The occurrence track is one and the same in all of them. A ruleset reproduces its release's oddities too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

__all__ = [
    "DEFAULT_RULESET",
    "RULESETS",
    "Ruleset",
    "ShellHttpRules",
    "UnknownRulesetError",
    "differences",
    "predecessor",
    "ruleset_named",
]


class ShellHttpRules(NamedTuple):
    """How a release decides that a shell command fetches over HTTP, and which settings steer that."""

    by_destination: bool
    """Refuse by the addresses in the text (0.6); later releases look for commands that fetch."""
    list_key: Literal["shellHttpAllow", "shellHttpBlock"]
    """The setting that lists programs."""
    listed: tuple[str, ...]
    """The default of that list."""
    quotes_respected: bool = False
    """Separators inside quotes and behind backslashes do not separate."""
    api_calls_only: bool = False
    """A request API counts where it is called; before, its bare name did."""
    spared_when_local: Literal["nothing", "text", "candidates"] = "nothing"
    """Where every address must be local for the whole command to pass: in its text, in its stripped candidates."""
    heredocs_blanked: bool = False
    """What a heredoc feeds to a program that does not run it is no command."""
    argument_needed: bool = False
    """A listed program without any argument, and a look-up such as `which curl`, fetch nothing."""
    remote_clients_skipped: bool = False
    """What ssh and its kin run elsewhere is not this machine's."""
    variables_substituted: bool = False
    data_values_dropped: bool = False
    """The values of data flags (`-d`, `-H`, ...) hold no addresses."""


class Ruleset(NamedTuple):
    """One released behaviour of the guard."""

    name: str
    held_by: Literal["vectors", "text"]
    """How the port is held to the release: `vectors` (its own recorded answers) or `text` (its documents only)."""
    text_rules_for_exceptions: bool
    """Text rules T6-T9: tracebacks, `XError: `, `HTTP Error`, `curl: (N)`."""
    text_rules_for_shells_only: bool
    low_status_is_final: bool
    """A status code below 400 is a success, whatever else the result says."""
    write_out_status: bool
    """The `-w` rule: a leading 4xx/5xx in the output of a curl that was asked for the status."""
    descriptions_padded: bool
    """Descriptions double a space before their detail, and leave out the words that stand for a missing one."""
    undescribed_reasons: frozenset[str]
    """Reasons of failure the release has no words for."""
    unescape_urls: bool
    """Backslashes before URL punctuation are dropped, and IPv6 hosts lose their brackets."""
    drop_bad_ports: bool
    """A port that is not all digits is cut off before the URL is parsed."""
    shell_http: ShellHttpRules | None
    """The shell-HTTP policy; None before there was one."""
    removed_keys: frozenset[str]
    """Settings whose presence fails the load."""
    kind_names_plugin: bool
    """The source of a notice names the plugin in its kind; before, in a member of its own."""
    null_becomes_default: bool = False
    """The release's own settings form turns an explicit `null` of a threshold into its default. The engine does not:
    it honours the documented off-switch."""
    note: str = "as released"


class UnknownRulesetError(ValueError):
    """A ruleset name that is not known; the message names the known ones."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"unknown ruleset {name!r}; known: {', '.join(RULESETS)}")


_REMOVED_IN_0_2 = frozenset(
    {"denyAfter", "warnAfter", "registerAdvisory", "maxSamePath", "readTools", "matchReadBySubstring"}
)
_REMOVED_IN_0_7 = _REMOVED_IN_0_2 | {"shellHttpAllow"}

_BY_DESTINATION = ShellHttpRules(by_destination=True, list_key="shellHttpAllow", listed=("git", "docker"))
_BY_COMMAND = ShellHttpRules(
    by_destination=False,
    list_key="shellHttpBlock",
    listed=("curl", "wget", "http", "httpie", "aria2c", "rclone", "yt-dlp", "youtube-dl"),
)
_BY_CALL = _BY_COMMAND._replace(
    listed=tuple(verb for verb in _BY_COMMAND.listed if verb != "http"),
    api_calls_only=True,
    spared_when_local="text",
)
_BY_QUOTED_CALL = _BY_CALL._replace(
    quotes_respected=True, heredocs_blanked=True, argument_needed=True, remote_clients_skipped=True
)
_BY_STRIPPED_CALL = _BY_QUOTED_CALL._replace(
    variables_substituted=True, data_values_dropped=True, spared_when_local="candidates"
)

_FIRST = Ruleset(
    name="0.5.0",
    held_by="vectors",
    text_rules_for_exceptions=False,
    text_rules_for_shells_only=False,
    low_status_is_final=False,
    write_out_status=False,
    descriptions_padded=True,
    undescribed_reasons=frozenset({"exception", "curl"}),
    unescape_urls=False,
    drop_bad_ports=False,
    shell_http=None,
    removed_keys=_REMOVED_IN_0_2,
    kind_names_plugin=False,
)
_0_5_1 = _FIRST._replace(
    name="0.5.1",
    held_by="text",
    text_rules_for_exceptions=True,
    text_rules_for_shells_only=True,
    low_status_is_final=True,
    undescribed_reasons=frozenset[str](),
)
_0_5_2 = _0_5_1._replace(name="0.5.2", held_by="vectors", descriptions_padded=False)
_0_5_3 = _0_5_2._replace(name="0.5.3", held_by="text", write_out_status=True)
_0_6_1 = _0_5_3._replace(
    name="0.6.1",
    write_out_status=False,
    undescribed_reasons=frozenset({"curl"}),
    unescape_urls=True,
    shell_http=_BY_DESTINATION,
)
_0_7_0 = _0_6_1._replace(name="0.7.0", drop_bad_ports=True, shell_http=_BY_COMMAND, removed_keys=_REMOVED_IN_0_7)
_0_8_2 = _0_7_0._replace(name="0.8.2", shell_http=_BY_CALL, kind_names_plugin=True, null_becomes_default=True)
_0_8_3 = _0_8_2._replace(name="0.8.3", shell_http=_BY_QUOTED_CALL)
_0_8_7 = _0_8_3._replace(name="0.8.7", held_by="vectors", shell_http=_BY_STRIPPED_CALL)
_0_8 = _0_8_7._replace(
    name="0.8",
    held_by="text",
    write_out_status=True,
    note="what the 0.8 documentation promises; no released code has all of it (0.8.7 lacks the -w rule)",
)

RULESETS: dict[str, Ruleset] = {
    ruleset.name: ruleset for ruleset in (_FIRST, _0_5_1, _0_5_2, _0_5_3, _0_6_1, _0_7_0, _0_8_2, _0_8_3, _0_8_7, _0_8)
}
"""Every ruleset by name, oldest first; each states only what it changes of the one before."""

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


def predecessor(ruleset: Ruleset) -> Ruleset | None:
    """Return the ruleset that stands before this one in the table; None for the first."""
    names = list(RULESETS)
    position = names.index(ruleset.name)
    return RULESETS[names[position - 1]] if position else None


_WORDS: tuple[tuple[Callable[[Ruleset], bool], str, str], ...] = (
    (
        lambda rules: rules.text_rules_for_exceptions,
        "tracebacks, exception lines, `HTTP Error` and `curl: (N)` in a shell's output are failures",
        "a shell's words about exceptions, `HTTP Error` and `curl: (N)` are not read",
    ),
    (
        lambda rules: rules.text_rules_for_shells_only,
        "only the output of shells is read for signs of failure",
        "the output of every tool is read for signs of failure",
    ),
    (
        lambda rules: rules.low_status_is_final,
        "a status code below 400 is a success, whatever else the result says",
        "a status code below 400 settles nothing: the other rules go on",
    ),
    (
        lambda rules: rules.write_out_status,
        "a 4xx or 5xx that leads the output of a curl asked for its status (`-w`) is a failure",
        "the status curl writes to its output (`-w`) is not read",
    ),
    (
        lambda rules: rules.descriptions_padded,
        "descriptions of failures carry a doubled space, and no words for a missing detail",
        "descriptions of failures have single spaces, and words for a missing detail",
    ),
    (
        lambda rules: "exception" not in rules.undescribed_reasons,
        "exceptions are described in messages",
        "exceptions are not described in messages",
    ),
    (
        lambda rules: "curl" not in rules.undescribed_reasons,
        "curl's own failures are described in messages",
        "curl's own failures are described as `the call failed` only",
    ),
    (
        lambda rules: rules.unescape_urls,
        "escaped URL punctuation is unescaped, and IPv6 hosts lose their brackets, so they can be local",
        "backslashes end a URL, and no IPv6 host is ever local",
    ),
    (
        lambda rules: rules.drop_bad_ports,
        "a port that is not a number (`:$PORT`) is cut off the URL",
        "a URL whose port is not a number is no URL",
    ),
    (
        lambda rules: "shellHttpAllow" not in rules.removed_keys,
        "`shellHttpAllow` is accepted",
        "`shellHttpAllow` fails the load: it was removed",
    ),
    (
        lambda rules: rules.kind_names_plugin,
        "the source of a notice is of kind `plugin:dsh-repeat-tool-breaker`",
        "the source of a notice is of kind `plugin` and names the plugin beside it",
    ),
)

_BY_DESTINATION_WORDS = (
    "shell HTTP is refused by destination: any address that is not local, or a fetching program without one"
)
_BY_COMMAND_WORDS = (
    "shell HTTP is refused by command: a listed program, or a request API, anywhere in the nested commands"
)
_POLICY_WORDS: tuple[tuple[Callable[[ShellHttpRules], bool], str, str], ...] = (
    (
        lambda rules: rules.api_calls_only,
        "a request API counts only where it is called",
        "the bare name of a request API counts",
    ),
    (
        lambda rules: rules.quotes_respected,
        "shell separators inside quotes do not separate commands",
        "shell separators separate commands inside quotes too",
    ),
    (
        lambda rules: rules.spared_when_local == "text",
        "a command whose text names only local addresses passes whole",
        "",
    ),
    (
        lambda rules: rules.spared_when_local == "candidates",
        "a command whose parts, without their data, name only local addresses passes whole",
        "",
    ),
    (
        lambda rules: rules.heredocs_blanked,
        "heredocs fed to programs that do not run them are not read",
        "heredocs are read as commands",
    ),
    (
        lambda rules: rules.argument_needed,
        "a listed program needs an argument, and look-ups such as `which curl` fetch nothing",
        "a listed program fetches even without an argument",
    ),
    (
        lambda rules: rules.remote_clients_skipped,
        "what ssh and its kin run on another machine is not looked at",
        "what ssh and its kin run on another machine counts as run here",
    ),
    (
        lambda rules: rules.variables_substituted,
        "variables assigned in the same text are filled in",
        "variables are not filled in",
    ),
    (
        lambda rules: rules.data_values_dropped,
        "the values of data flags (`-d`, `-H`, ...) are not looked at",
        "the values of data flags are looked at",
    ),
)


def _policy_differences(rules: ShellHttpRules | None, base: ShellHttpRules | None) -> list[str]:
    if rules is None:
        return [] if base is None else ["there is no shell-HTTP policy"]
    words: list[str] = []
    if base is None or rules.by_destination != base.by_destination:
        words.append(_BY_DESTINATION_WORDS if rules.by_destination else _BY_COMMAND_WORDS)
    for holds, yes, no in _POLICY_WORDS:
        now = holds(rules)
        if base is None:
            words += [yes] if now else []
        elif now != holds(base):
            words += [yes if now else no]
    if base is None or (rules.list_key, rules.listed) != (base.list_key, base.listed):
        words.append(f"`{rules.list_key}` is {', '.join(rules.listed)} by default")
    return [word for word in words if word]


def differences(ruleset: Ruleset, base: Ruleset) -> list[str]:
    """Say in words what a ruleset does that another does not, one difference an item; empty where there is none."""
    words: list[str] = []
    for holds, yes, no in _WORDS:
        now = holds(ruleset)
        if now != holds(base):
            words.append(yes if now else no)
    return words + _policy_differences(ruleset.shell_http, base.shell_http)
