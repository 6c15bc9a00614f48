"""Text in, text out: what is taken off or filled into a command before it is looked at for fetches.

Deliberately shallow, as released: lines and words, no shell grammar. Everything is linear in the text.
"""

from __future__ import annotations

import re

from breaker.ecmascript import WHITESPACE, trim
from breaker.shell import first_verb, tokenize

__all__ = [
    "drop_data_values",
    "is_code_verb",
    "join_continued_lines",
    "split_commands",
    "strip_trivia",
    "substitute_variables",
    "without_inert_heredocs",
]

_SPACE_CLASS = re.escape(WHITESPACE)
_SINGLE_QUOTED = r"'[^']*'?"
_DOUBLE_QUOTED = r'"(?:[^"\\]+|\\.)*\\?"?'

# -- heredocs ----------------------------------------------------------------------------------------------------------

_HEREDOC = re.compile(rf"<<-?[{_SPACE_CLASS}]*(?P<quote>['\"]?)(?P<marker>[A-Za-z_][A-Za-z0-9_]*)(?P=quote)")
_EXECUTORS = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "python", "python3", "python3.11", "python3.12", "node", "deno", "bun"}
    | {"ruby", "perl", "php", "pwsh", "powershell", "osascript", "awk", "sed"}
)


def without_inert_heredocs(text: str) -> str:
    """Blank the body of every heredoc that is fed to a program which does not run it, and drop its last line.

    Read line by line: `<<NAME` anywhere in a line opens one (a here-string and a shift too), the text before it names
    the program, and a missing end swallows the rest.
    """
    if "<<" not in text:
        return text
    lines = text.split("\n")
    kept: list[str] = []
    position = 0
    while position < len(lines):
        line = lines[position]
        position += 1
        kept.append(line)
        opened = _HEREDOC.search(line)
        if opened is None:
            continue
        runs = first_verb(tokenize(line[: opened.start()])) in _EXECUTORS
        while position < len(lines) and trim(lines[position]) != opened["marker"]:
            kept.append(lines[position] if runs else "")
            position += 1
        position += 1
    return "\n".join(kept)


# -- variables ---------------------------------------------------------------------------------------------------------

_ASSIGNED = re.compile(
    rf"(?:(?<=[{_SPACE_CLASS};&|(])|\A)(?P<name>[A-Za-z_][A-Za-z0-9_]*)="
    rf"(?P<value>\"[^\"]*\"|'[^']*'|[^{_SPACE_CLASS};&|)'\"][^{_SPACE_CLASS};&|)]*)"
)
_USED = re.compile(r"\$(?:\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)\}|(?P<bare>[A-Za-z_][A-Za-z0-9_]*))")
_LARGEST_GROWTH = 1 << 20
"""By how many characters variables may lengthen a command; later ones then stay as they are."""


def substitute_variables(text: str) -> str:
    """Fill in `$NAME` and `${NAME}` from plain assignments anywhere in the same text, once.

    The first plain assignment of a name holds, also for uses before it. A value with `(` or `$` is not plain.
    """
    if "$" not in text or "=" not in text:
        return text
    values: dict[str, str] = {}
    for found in _ASSIGNED.finditer(text):
        value = found["value"]
        if "(" in value or "$" in value:
            continue
        if value[0] in "'\"":
            value = value[1:-1]
        values.setdefault(found["name"], value)
    if not values:
        return text
    room = _LARGEST_GROWTH

    def fill(found: re.Match[str]) -> str:
        nonlocal room
        value = values.get(found["braced"] or found["bare"])
        if value is None or len(value) > room:
            return found[0]
        room -= len(value)
        return value

    return _USED.sub(fill, text)


# -- splitting ---------------------------------------------------------------------------------------------------------

_CONTINUED = "\\\n"
_SEPARATOR = re.compile(r"\n|;|&&|\|\||\||&")
_QUOTED_PIECE = re.compile(
    rf"(?P<separator>\n|;|&&|\|\||\||&)|{_SINGLE_QUOTED}|{_DOUBLE_QUOTED}|\\.|[^\n;&|'\"\\]+|\\", re.DOTALL
)
_TRIVIA = re.compile(
    rf"(?:(?:do|then|else|elif|if|while|until|for)(?![A-Za-z0-9_])|[A-Za-z_][A-Za-z0-9_]*=\$?\(|\$\(|[{{}}()!`])"
    rf"[{_SPACE_CLASS}]*"
)
_MOST_TRIVIA = 8


def join_continued_lines(text: str) -> str:
    """Put a space in the place of every backslash that ends a line."""
    return text.replace(_CONTINUED, " ")


def split_commands(text: str, *, quotes_respected: bool) -> list[str]:
    """Split a text into commands at newlines, `;`, `&&`, `||`, `|` and `&`; continued lines are joined first."""
    joined = join_continued_lines(text)
    if not quotes_respected:
        return _SEPARATOR.split(joined)
    pieces: list[str] = []
    start = 0
    for found in _QUOTED_PIECE.finditer(joined):
        if found["separator"]:
            pieces.append(joined[start : found.start()])
            start = found.end()
    pieces.append(joined[start:])
    return pieces


def strip_trivia(piece: str) -> str:
    """Trim a command and take shell words and brackets off its front, such as `do`, `(`, `$(`, `NAME=$(`."""
    text = trim(piece)
    for _ in range(_MOST_TRIVIA):
        found = _TRIVIA.match(text)
        if found is None:
            break
        text = text[found.end() :]
    return text


# -- data flags --------------------------------------------------------------------------------------------------------

_DATA_FLAGS = frozenset(
    {"-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--data-urlencode", "--json", "-H", "--header"}
    | {"-w", "--write-out", "-F", "--form", "--form-string", "-A", "--user-agent", "-e", "--referer", "-u", "--user"}
    | {"-b", "--cookie", "-c", "--cookie-jar"}
)
_RAW_WORD = re.compile(rf"(?:[^{_SPACE_CLASS}'\"\\]+|{_SINGLE_QUOTED}|{_DOUBLE_QUOTED}|\\.|\\)+", re.DOTALL)
_CODE_VERBS = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "fish", "csh", "tcsh", "python", "python2", "python3", "node", "nodejs"}
    | {"deno", "bun", "ruby", "perl", "php", "lua", "pwsh", "powershell", "osascript", "awk", "gawk", "sed"}
)


def is_code_verb(verb: str) -> bool:
    """Tell whether a program runs code given in its arguments, so that none of them is mere data."""
    return verb in _CODE_VERBS


def drop_data_values(candidate: str) -> str:
    """Take away the values of data flags (`-d VALUE`, `--header=VALUE`, ...), keeping the flags."""
    if "-" not in candidate:
        return candidate
    kept: list[str] = []
    end = 0
    value_follows = False
    for found in _RAW_WORD.finditer(candidate):
        word = found[0]
        if value_follows:
            kept.append(candidate[end : found.start()])
            value_follows = False
        elif word in _DATA_FLAGS:
            kept.append(candidate[end : found.end()])
            value_follows = True
        else:
            flag, equals, _ = word.partition("=")
            kept.append(candidate[end : found.start()])
            kept.append(flag if equals and flag in _DATA_FLAGS else word)
        end = found.end()
    kept.append(candidate[end:])
    return "".join(kept)
