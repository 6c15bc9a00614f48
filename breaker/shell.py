"""What the guard reads out of one shell command: its words, its verb, its stripped form and its output file.

The rules are deliberately simple and verb-blind: operators are not recognised, and the same flags are dropped whatever
the program is. They are reproduced as they are.
"""

from __future__ import annotations

import re

from breaker.ecmascript import WHITESPACE, join_surrogates, trim

__all__ = ["first_verb", "output_sink", "stripped_command", "tokenize"]

_SPACE = f"[{re.escape(WHITESPACE)}]"
_PART = re.compile(
    rf"(?P<space>{_SPACE}+)"
    r"|'(?P<single>[^']*)'?"
    r'|"(?P<double>(?:[^"\\]+|\\.|\\\Z)*)"?'
    r"|\\(?P<escaped>.)"
    rf"|(?P<plain>[^{re.escape(WHITESPACE)}'\"\\]+|\\)",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_DURATION = re.compile(r"[0-9]+(?:\.[0-9]+)?[smhd]?\Z")
_WRAPPERS = frozenset({"sudo", "doas", "command", "env", "time", "nice", "nohup", "exec"})
_WRAPPER_VALUE_OPTIONS = frozenset({"-u", "-g", "-p", "-C", "-h", "-r", "-t", "-U", "-R", "-T", "-S", "-n", "-D"})

_DROPPED_WITH_VALUE = frozenset(
    {
        "--max-time",
        "--connect-timeout",
        "--retry",
        "--retry-delay",
        "--retry-max-time",
        "--speed-time",
        "--speed-limit",
        "--max-redirs",
        "--user-agent",
        "-m",
        "-A",
    }
)
_DROPPED = frozenset(
    {"--silent", "--show-error", "--fail", "--location", "--insecure", "--compressed", "--no-progress-meter"}
)
_QUIET_CLUSTER = re.compile(r"-[sSfLk]+\Z")
_LONG_WITH_VALUE = re.compile(r"(--[a-z-]+)=")
_SHORT_WITH_NUMBER = re.compile(r"-[mA][0-9]")

_OUTPUT_FLAGS = frozenset({"-o", "--output", "--output-document"})
_OUTPUT_PREFIX = "--output="
_OPERATORS = frozenset({"|", "||", ";", "&&", "&", ">", ">>", "<"})
_GENERIC_SINKS = frozenset({"", "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/zero", "/dev/tty", "-"})
_LEADING_HERE = re.compile(r"\A(?:\./)+")
_HTTP_START = re.compile(r"https?://", re.IGNORECASE | re.ASCII)
_QUOTES = "'\""


def tokenize(command: str) -> list[str]:
    """Split a command into words: quotes joined and dropped, backslashes resolved, operators left in the words.

    An unclosed quote runs to the end; a trailing backslash is an ordinary character; an empty quoted string is an
    empty word. Linear in the text.
    """
    tokens: list[str] = []
    current: list[str] = []
    started = False
    for part in _PART.finditer(command):
        kind = part.lastgroup
        if kind == "space":
            if started:
                tokens.append(join_surrogates("".join(current)))
                current = []
                started = False
            continue
        started = True
        text = part[kind] if kind is not None else ""
        current.append(_ESCAPE.sub(r"\1", text) if kind == "double" else text)
    if started:
        tokens.append(join_surrogates("".join(current)))
    return tokens


def _skip_assignments_and_timeouts(tokens: list[str], position: int) -> int:
    while position < len(tokens):
        token = tokens[position]
        if _ASSIGNMENT.match(token):
            position += 1
        elif token == "timeout":
            position += 1
            while position < len(tokens) and tokens[position].startswith("--"):
                position += 1
            if position < len(tokens) and _DURATION.match(tokens[position]):
                position += 1
        else:
            break
    return position


def first_verb(tokens: list[str]) -> str:
    """Return the program a command starts: past assignments, `timeout` and wrappers, base name, lower case.

    Empty where there is none, or where the word is empty or ends in a slash.
    """
    position = 0
    while True:
        position = _skip_assignments_and_timeouts(tokens, position)
        if position >= len(tokens) or tokens[position] not in _WRAPPERS:
            break
        position += 1
        while position < len(tokens) and tokens[position] in _WRAPPER_VALUE_OPTIONS:
            position += 2
        while position < len(tokens) and tokens[position].startswith("-"):
            position += 1
    if position >= len(tokens):
        return ""
    token = tokens[position]
    return token[max(token.rfind("/"), token.rfind("\\")) + 1 :].lower()


def stripped_command(tokens: list[str]) -> str:
    """Return the command without what changes nothing about its target: time limits, retries, quiet flags.

    Verb-blind: `git commit -m …` loses its message too.
    """
    kept: list[str] = []
    position = _skip_assignments_and_timeouts(tokens, 0)
    while position < len(tokens):
        token = tokens[position]
        position += 1
        if token in _DROPPED_WITH_VALUE:
            position += 1
            continue
        if token in _DROPPED or _QUIET_CLUSTER.match(token) or _SHORT_WITH_NUMBER.match(token):
            continue
        long_option = _LONG_WITH_VALUE.match(token)
        if long_option and long_option[1] in _DROPPED_WITH_VALUE:
            continue
        kept.append(token)
    return trim(" ".join(kept))


def _clean_sink(raw: str) -> str:
    sink = trim(raw)
    if sink[:1] and sink[0] in _QUOTES:
        sink = sink[1:]
    if sink[-1:] and sink[-1] in _QUOTES:
        sink = sink[:-1]
    return _LEADING_HERE.sub("", sink, count=1)


def _last_tee_target(tokens: list[str], position: int) -> str | None:
    last: str | None = None
    while position < len(tokens) and tokens[position] not in _OPERATORS:
        if not tokens[position].startswith("-"):
            last = tokens[position]
        position += 1
    return last


def _raw_sink(tokens: list[str]) -> str | None:
    for position, token in enumerate(tokens):
        following = tokens[position + 1] if position + 1 < len(tokens) else None
        if token in _OUTPUT_FLAGS:
            if following is not None and not following.startswith("-"):
                return following
        elif token == "-O":
            if following is not None and not following.startswith("-") and not _HTTP_START.match(following):
                return following
        elif token.startswith(_OUTPUT_PREFIX):
            return token[len(_OUTPUT_PREFIX) :]
        elif token.startswith(">"):
            rest = token[2:] if token.startswith(">>") else token[1:]
            if rest:
                return rest
            if following is not None and following not in _OPERATORS:
                return following
        elif token == "tee":
            target = _last_tee_target(tokens, position + 1)
            if target is not None:
                return target
    return None


def output_sink(tokens: list[str]) -> str | None:
    """Return the file the first output flag, redirection or `tee` writes to; None for none and for generic ones.

    The first word that settles it ends the search, also when what it names is generic (`/dev/null`, `-`).
    """
    raw = _raw_sink(tokens)
    if raw is None:
        return None
    sink = _clean_sink(raw)
    return None if sink in _GENERIC_SINKS else sink
