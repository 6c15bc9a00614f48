"""The commands inside a command: its pieces, and what is nested in them, each once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from breaker.ecmascript import WHITESPACE, trim
from breaker.shell import first_verb, tokenize
from breaker.shellhttp.rewrite import split_commands, strip_trivia

__all__ = ["Found", "collect", "program_of"]

_DEEPEST = 6
_WORK_FACTOR = 24
"""How many times its own length a command may be opened before the rest is left closed."""
_LEAST_WORK = 1 << 16

_SHELL_HOSTS = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "ssh", "xargs", "env", "sudo", "doas", "command", "exec", "timeout", "nice"}
    | {"nohup", "stdbuf", "watch", "eval", "parallel", "busybox"}
)
_LATER_SHELL_HOSTS = frozenset({"sshpass", "mosh"})
_LAST_OPTIONS = frozenset({"-c", "-e", "-r"})
_VALUE_OPTIONS = frozenset(
    {"-F", "-o", "-i", "-p", "-l", "-P", "-E", "-I", "-n", "-u", "-g", "-C", "-S", "-R", "-T", "--exec", "--max-args"}
    | {"--replace", "--delimiter", "--timeout", "--user", "--signal"}
)
_DURATION = re.compile(r"[0-9]+(?:\.[0-9]+)?[smhd]?\Z")
_EXEC = " -exec "
_EXEC_END = re.compile(r"\\?[;+]\Z")
_HAS_SPACE = re.compile(f"[{re.escape(WHITESPACE)}]")
_PARENTHESIS = re.compile(r"\$\(|[()]")
_BACKQUOTED = re.compile(r"`([^`]+)`")


class Found(NamedTuple):
    """One candidate: a command somewhere inside the text."""

    text: str
    how: str
    """How it was found, in words."""
    words: list[str]
    verb: str


def program_of(word: str) -> str:
    """Return the program a word names: what follows its last slash or backslash, in lower case."""
    return word[max(word.rfind("/"), word.rfind("\\")) + 1 :].lower()


def collect(
    text: str, *, quotes_respected: bool, is_closed: Callable[[Found], bool] | None
) -> tuple[list[Found], bool]:
    """Collect every candidate of a text, outermost first, and tell whether all of them were opened.

    Args:
        text: the command.
        quotes_respected: whether separators inside quotes separate nothing.
        is_closed: tells of a candidate that its inside is not to be opened (a remote client's payload); with it come
            the shell hosts of the later releases.

    Nesting is followed six levels deep. Opening stops once many times the text's length has been looked at, which
    only a text made for it reaches.
    """
    found: dict[str, Found] = {}
    hosts = _SHELL_HOSTS if is_closed is None else _SHELL_HOSTS | _LATER_SHELL_HOSTS
    room = max(_WORK_FACTOR * len(text), _LEAST_WORK)
    complete = True
    pending = [(text, "a command of the text", 0)]
    while pending:
        inner, how, depth = pending.pop()
        room -= len(inner)
        if room < 0:
            complete = False
            break
        opened: list[tuple[str, str, int]] = []
        for piece in split_commands(inner, quotes_respected=quotes_respected):
            candidate = strip_trivia(piece)
            if not candidate or candidate in found:
                continue
            words = tokenize(candidate)
            item = Found(candidate, how, words, first_verb(words))
            found[candidate] = item
            if depth < _DEEPEST and not (is_closed is not None and is_closed(item)):
                opened.extend((nested, told, depth + 1) for nested, told in _nested(item, hosts))
        pending.extend(reversed(opened))
    return list(found.values()), complete


def _nested(candidate: Found, hosts: frozenset[str]) -> Iterator[tuple[str, str]]:
    text, words = candidate.text, candidate.words
    for body in _substitutions(text):
        yield body, "inside `$(...)`"
    if "`" in text:
        for body in _BACKQUOTED.findall(text):
            yield body, "inside backquotes"
    if words and program_of(words[0]) in hosts:
        rest = _after_options(words)
        if rest:
            yield " ".join(rest), f"what `{program_of(words[0])}` runs"
    before, split, after = text.partition(_EXEC)
    if split and before:
        yield _EXEC_END.sub("", trim(after)), "after `-exec`"
    for word in words:
        if len(word) > 1 and _HAS_SPACE.search(word):
            yield word, "a quoted word"


def _substitutions(text: str) -> Iterator[str]:
    """Yield the body of every `$(...)` outside another; quotes are not respected, and an open one runs to the end."""
    if "$(" not in text:
        return
    start = depth = 0
    for found in _PARENTHESIS.finditer(text):
        if depth == 0:
            if found[0] == "$(":
                start, depth = found.end(), 1
        elif found[0] == ")":
            depth -= 1
            if depth == 0:
                yield text[start : found.start()]
        else:
            depth += 1
    if depth:
        yield text[start:]


def _after_options(words: list[str]) -> list[str]:
    position = 1
    while position < len(words) and words[position].startswith("-"):
        option = words[position]
        position += 1
        if option in _LAST_OPTIONS:
            break
        if option in _VALUE_OPTIONS:
            position += 1
    while position < len(words) and _DURATION.match(words[position]):
        position += 1
    return words[position:]
