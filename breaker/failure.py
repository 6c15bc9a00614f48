"""What became of a call: a settled result turned into a failure, or none, and what that rests on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from breaker.ecmascript import LINE_TERMINATORS, WHITESPACE, is_number, number_text, string_text, trim
from breaker.rulesets import DEFAULT_RULESET, Ruleset
from breaker.shell import tokenize

__all__ = [
    "Classification",
    "Failure",
    "asks_for_status",
    "classify",
    "classify_text",
    "describe",
    "rendered_text",
    "result_text",
]

_FIRST_ERROR_STATUS = 400

_EXIT_CODE = re.compile(r"\[exit code: (-?[0-9]+)\]")
_HTTP_STATUS = re.compile(r"\(HTTP ([0-9]{3})\)")
_TIMED_OUT = re.compile(r"\[timed out after ([0-9]+)ms\]")
_KILLED = re.compile(r"\[killed by signal: (?=[^\]])")
"""Its end is looked for once: where one start finds no bracket behind it, no later start does."""
_SANDBOX_DENIED = "[sandbox: file access denied"
_TRACEBACK = "Traceback (most recent call last)"
_HTTP_ERROR = re.compile(r"HTTP Error ([0-9]{3})")
_CURL_CODE = re.compile(r"curl: \(([0-9]+)\)")

_INLINE_SPACE = re.escape("".join(character for character in WHITESPACE if character not in LINE_TERMINATORS))
_RAISED = re.compile(
    rf"(?:\A|[{LINE_TERMINATORS}])[{_INLINE_SPACE}]*"
    r"((?:[A-Za-z_][A-Za-z0-9_.]*\.)?([A-Za-z_][A-Za-z0-9_]*(?:Error|Exception)): )"
)
"""A line that begins with an exception's name. One line at a time, so runs of blank lines cost their length once."""

_LEADING_STATUS = re.compile(rf"[{re.escape(WHITESPACE)}]*([45][0-9]{{2}})(?![0-9])")
_WRITE_OUT_VARIABLES = ("%{http_code}", "%{response_code}")
_COMMAND_WORD_PREFIX = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*=|\$\(|\(|`)+")
_CLUSTER_ENDING_IN_W = re.compile(r"-[A-Za-z0-9#:]*w\Z")
_WRITE_OUT_LONG = "--write-out"


class Failure(NamedTuple):
    """Why a call counts as failed."""

    reason: str
    """`error`, `exit`, `timeout`, `signal`, `http`, `sandbox`, `exception` or `curl`."""
    detail: str
    evidence: str = "structured"


class Classification(NamedTuple):
    """The classifier's answer with the rule that gave it."""

    failure: Failure | None
    evidence: str
    rule: str
    """Which rule decided, such as `isError`, `exitCode`, `T1 exit code`; `no sign of failure` where none did."""
    words: str = ""
    """The words of the output that decided, for a text rule."""


_NO_FAILURE = Classification(failure=None, evidence="none", rule="no sign of failure")


def result_text(result: Mapping[str, object]) -> str:
    """Return the text of a result's content blocks, joined with newlines; blocks without text count as empty."""
    content = result.get("content")
    if not isinstance(content, list | tuple):
        return ""
    texts: list[str] = []
    for block in cast("Sequence[object]", content):
        text = cast("Mapping[str, object]", block).get("text") if isinstance(block, Mapping) else None
        texts.append(text if isinstance(text, str) else "")
    return "\n".join(texts)


def rendered_text(result: Mapping[str, object]) -> str:
    """Return a result as the guard quotes it later: the texts of its blocks, empty ones dropped, one a line."""
    content = result.get("content")
    blocks = cast("Sequence[object]", content) if isinstance(content, list | tuple) else ()
    return "\n".join(text for block in blocks if (text := result_text({"content": [block]})))


def classify(
    result: Mapping[str, object],
    *,
    shell: bool,
    command: str = "",
    ruleset: Ruleset = DEFAULT_RULESET,
    rebuilt: frozenset[str] = frozenset(),
) -> Classification:
    """Classify a settled result; the first rule that matches wins.

    Args:
        result: `isError`, `error`, `value` and `content` as the host gives them; anything may be missing or odd.
        shell: whether the tool is a shell, whose words may be read.
        command: the shell's command, for the `-w` rule.
        ruleset: the release whose rules apply.
        rebuilt: the members of `value` that were rebuilt from a log's words; live there are none.
    """
    if result.get("isError") is True:
        return _structured("error", _error_detail(result.get("error")), "isError", "structured")
    value = result.get("value")
    if isinstance(value, Mapping):
        from_value = _classify_value(cast("Mapping[str, object]", value), ruleset, rebuilt)
        if from_value is not None:
            return from_value
    if ruleset.text_rules_for_shells_only and not shell:
        return _NO_FAILURE
    text = result_text(result)
    return classify_text(text, command=command, ruleset=ruleset) if text else _NO_FAILURE


def _structured(reason: str, detail: str, rule: str, evidence: str) -> Classification:
    return Classification(failure=Failure(reason, detail, evidence), evidence=evidence, rule=rule)


def _error_detail(error: object) -> str:
    if isinstance(error, Mapping):
        members = cast("Mapping[str, object]", error)
        code = members.get("code")
        detail = members.get("name") if code is None else code
        if isinstance(detail, str):
            return detail
    return ""


def _classify_value(value: Mapping[str, object], ruleset: Ruleset, rebuilt: frozenset[str]) -> Classification | None:
    def failed(reason: str, detail: str, member: str) -> Classification:
        return _structured(reason, detail, member, evidence_of(member))

    def evidence_of(member: str) -> str:
        return "rebuilt" if member in rebuilt else "structured"

    if value.get("kind") == "background":
        return Classification(failure=None, evidence=evidence_of("kind"), rule="background")
    exit_code = value.get("exitCode")
    if is_number(exit_code) and exit_code != 0:
        return failed("exit", number_text(cast("float", exit_code)), "exitCode")
    if value.get("timedOut") is True:
        after = value.get("timeoutMs")
        return failed("timeout", f"{string_text(after)}ms" if _is_truthy(after) else "", "timedOut")
    signal = value.get("signal")
    if isinstance(signal, str) and signal:
        return failed("signal", signal, "signal")
    status = value.get("statusCode")
    if is_number(status):
        if cast("float", status) >= _FIRST_ERROR_STATUS:
            return failed("http", number_text(cast("float", status)), "statusCode")
        if ruleset.low_status_is_final:
            return Classification(failure=None, evidence=evidence_of("statusCode"), rule="statusCode")
    sandbox = value.get("sandbox")
    if isinstance(sandbox, Mapping):
        facts = cast("Mapping[str, object]", sandbox)
        if facts.get("denied") is True:
            mode = facts.get("mode")
            return failed("sandbox", "" if mode is None else string_text(mode), "sandbox")
    return None


def _is_truthy(value: object) -> bool:
    """Tell what `if (value)` tells: empty lists and objects are true."""
    return bool(value) or (value is not None and not isinstance(value, str | int | float))


def _from_text(reason: str, detail: str, rule: str, words: str) -> Classification:
    return Classification(failure=Failure(reason, detail, "text"), evidence="text", rule=rule, words=words)


def classify_text(text: str, *, command: str, ruleset: Ruleset) -> Classification:
    """Classify by the words of a result alone. Each rule looks at the first occurrence of its pattern only.

    Linear in the text.
    """
    # A plain search for the opening words first: nearly no text holds them, and it is far quicker than a pattern. Their
    # first character alone is found ten times as fast again.
    bracket = "[" in text
    found = _EXIT_CODE.search(text) if bracket and "[exit code: " in text else None
    if found and found[1].strip("-0"):
        return _from_text("exit", found[1], "T1 exit code", found[0])
    found = _HTTP_STATUS.search(text) if "(" in text and "(HTTP " in text else None
    if found and int(found[1]) >= _FIRST_ERROR_STATUS:
        return _from_text("http", found[1], "T2 HTTP status", found[0])
    found = _TIMED_OUT.search(text) if bracket and "[timed out after " in text else None
    if found:
        return _from_text("timeout", f"{found[1]}ms", "T3 timed out", found[0])
    found = _KILLED.search(text) if bracket and "[killed by signal: " in text else None
    end = text.find("]", found.end()) if found else -1
    if found and end >= 0:
        return _from_text("signal", text[found.end() : end], "T4 signal", text[found.start() : end + 1])
    if bracket and _SANDBOX_DENIED in text:
        return _from_text("sandbox", "", "T5 sandbox", _SANDBOX_DENIED)
    if ruleset.text_rules_for_exceptions:
        raised = _classify_exceptions(text)
        if raised is not None:
            return raised
    if ruleset.write_out_status:
        found = _LEADING_STATUS.match(text)
        if found and asks_for_status(command):
            return _from_text("http", found[1], "-w leading status", found[1])
    return _NO_FAILURE


def _classify_exceptions(text: str) -> Classification | None:
    colon = ":" in text
    names_exception = colon and ("Error: " in text or "Exception: " in text)
    if "(" in text and _TRACEBACK in text:
        last = None
        for found in _RAISED.finditer(text) if names_exception else ():
            last = found
        detail = trim(last[1]).partition(":")[0] if last else ""
        return _from_text("exception", detail, "T6 traceback", last[1].rstrip() if last else _TRACEBACK)
    if names_exception:
        found = _RAISED.search(text)
        if found:
            return _from_text("exception", found[2], "T7 exception line", found[1].rstrip())
    found = _HTTP_ERROR.search(text) if "H" in text and "HTTP Error " in text else None
    if found:
        return _from_text("http", found[1], "T8 HTTP Error", found[0])
    found = _CURL_CODE.search(text) if colon and "curl: (" in text else None
    if found:
        return _from_text("curl", found[1], "T9 curl", found[0])
    return None


def asks_for_status(command: str) -> bool:
    """Tell whether a command has curl write the HTTP status to its output (`-w '%{http_code}'` and its spellings)."""
    if not any(variable in command for variable in _WRITE_OUT_VARIABLES) or "curl" not in command:
        return False
    tokens = tokenize(command)
    return any(map(_is_curl_word, tokens)) and any(
        variable in value for value in _write_out_values(tokens) for variable in _WRITE_OUT_VARIABLES
    )


def _is_curl_word(token: str) -> bool:
    word = _COMMAND_WORD_PREFIX.sub("", token, count=1) if _COMMAND_WORD_PREFIX.match(token) else token
    return re.split(r"[/\\]", word)[-1] == "curl"


def _write_out_values(tokens: Sequence[str]) -> list[str]:
    values: list[str] = []
    for position, token in enumerate(tokens):
        if token == _WRITE_OUT_LONG or _CLUSTER_ENDING_IN_W.match(token):
            values.extend(tokens[position + 1 : position + 2])
        elif token.startswith(f"{_WRITE_OUT_LONG}="):
            values.append(token.partition("=")[2])
        elif token.startswith("-w"):
            values.append(token[2:])
    return values


_DESCRIPTIONS = {
    "exit": ("command exited {}", "command exited non-zero"),
    "http": ("request returned HTTP {}", "request returned an error status"),
    "timeout": ("call timed out ({})", "call timed out"),
    "signal": ("command killed by signal {}", "command killed"),
    "sandbox": ("sandbox denied the operation ({})", "sandbox denied the operation"),
    "error": ("call raised an error ({})", "call raised an error"),
    "exception": ("script raised {}", "script raised an uncaught exception"),
    "curl": ("curl failed (code {})", "curl failed"),
}
"""What the guard says of a failure, by reason: with a detail, and without one."""
_PADDED_DESCRIPTIONS = {
    **_DESCRIPTIONS,
    "exit": ("command exited {}", "command exited"),
    "http": ("request returned HTTP {}", "request returned"),
    "timeout": ("call timed out ( {})", "call timed out"),
    "sandbox": ("sandbox denied the operation ( {})", "sandbox denied the operation"),
    "error": ("call raised an error ( {})", "call raised an error"),
    "exception": ("script raised  {}", "script raised an uncaught exception"),
    "curl": ("curl failed (code  {})", "curl failed"),
}
_UNDESCRIBED = "the call failed"


def describe(failure: Failure | None, ruleset: Ruleset = DEFAULT_RULESET) -> str:
    """Say in a few words why a call failed, as the guard's messages do; empty for no failure.

    Releases differ: 0.5.0 and 0.5.1 double a space before the detail, and from 0.6 on a failure of curl has no words
    of its own.
    """
    if failure is None:
        return ""
    descriptions = _PADDED_DESCRIPTIONS if ruleset.descriptions_padded else _DESCRIPTIONS
    if failure.reason in ruleset.undescribed_reasons or failure.reason not in descriptions:
        return _UNDESCRIBED
    with_detail, without = descriptions[failure.reason]
    return with_detail.format(failure.detail) if failure.detail else without
