"""What became of a recorded call: the result a log keeps, turned back into what the guard saw.

The harness does not keep a tool's structured value, only its text. Its renderers' contracts let the value be rebuilt
from the marker lines at the very end; what a shell merely printed stays evidence of the kind `text`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import msgspec

from analysis.sessions.events import ResultEvent
from analysis.sessions.outcome_kinds import OutcomeKind
from breaker.ecmascript import is_number
from breaker.failure import Classification, Failure, classify, classify_text
from breaker.measures import Call, is_shell_tool, shell_command
from breaker.messages import ASK_OPENING, DENIAL_MARKER, SHELL_HTTP_MARKER
from breaker.rulesets import Ruleset

__all__ = [
    "OPEN",
    "CallSigns",
    "Outcome",
    "is_own_denial",
    "outcome_from_log",
    "outcome_of",
    "recorded_exit_code",
]


class Outcome(msgspec.Struct, frozen=True):
    """What became of one call, and what the engine makes of it."""

    kind: OutcomeKind
    commits: bool
    """The call met the guard."""
    settles: bool
    """Its success or failure reached the guard's streaks."""
    failure: Failure | None = None
    evidence: str = "none"
    rule: str = ""
    """Which sign decided."""
    words: str = ""
    """The words of the output that decided, for a text rule."""
    clipped: bool = False
    """The middle of the output is gone; the guard saw all of it."""
    truncated: bool = False
    """Only the notice of the cut is left."""
    exit_code: float | None = None
    """The body's exit code, where the log holds or shows one."""
    exit_code_rebuilt: bool = False
    """It was read off the end of the output."""


OPEN = Outcome(kind="open", commits=True, settles=False, rule="no result recorded")


class CallSigns(msgspec.Struct):
    """What stands around a call in the log and bears on its outcome."""

    hook_before: str = ""
    """The strictest decision of a hook before the call: `block`, `deny`, `ask`, else empty."""
    hook_after_blocks: bool = False
    asked: list[tuple[str, str]] = msgspec.field(default_factory=list[tuple[str, str]])
    """The approvals asked about the call: id and reason."""
    decided: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """The first decision of each approval."""

    @property
    def any(self) -> bool:
        """Tell whether anything stands there."""
        return bool(self.hook_before or self.hook_after_blocks or self.asked)


_OWN_DENIALS = (f"Error: {DENIAL_MARKER}", f"Error: {SHELL_HTTP_MARKER}")
_OWN_ASK_UNANSWERED = f"Error: {ASK_OPENING}"
_GRANTED = frozenset({"allowed-once", "approved"})
_WITHHELD_APPROVALS = frozenset({"rejected", "cancelled", "unavailable"})
_ESCALATION_REASON = "escalate sandbox to"
_ESCALATION_TEXT = "escalating this command to"
_ONLY_INSIDE_PROGRAMS = "callable directly"

_HEAD_STATUS = {
    "web_fetch": re.compile(r"Fetched [^\n]+ \(HTTP ([0-9]{3})\)(?:\n|\Z)"),
    "web_fetch_file": re.compile(r"Fetched \(HTTP ([0-9]{3})\) -> "),
}

_EXIT = re.compile(r"\[exit code: (-?[0-9]+)\]\Z")
_KILLED = re.compile(r"\[killed by signal: ([^\]\n]+)\]\Z")
_TIMED_OUT = re.compile(r"\[timed out after ([0-9]+)ms\]\Z")
_SANDBOX = re.compile(r"\[sandbox: file access denied under (.+) mode\]\Z")
_PASSED_OVER = re.compile(r"\[(?:sandbox: |stopped: ).*\]\Z")
_SHELL_ENDED = re.compile(r"\[shell (?:exited(?:: code -?[0-9]+)?|killed by signal: [^\]\n]+)\]\Z")
_BACKGROUND_START = "started background job"
_PROMOTED_WORDS = "[still running after "
_PROMOTED = re.compile(r"(?:\A|\n)\[still running after [0-9]+ms; moved to background job [^\]\n]*\]")
_SPILL_START = "(Omitted "
_SPILL = re.compile(r"\(Omitted [0-9]+ bytes\. Full formatted result stored at: .*\)\s*\Z", re.DOTALL)
_CLIP_START = "<response clipped><NOTE>"
_CLIP_END = "</NOTE>"
_SPILL_END = ")"
_ENDING = 64
_LONGEST_MARKER = 4096
"""Marker lines are short; a longer last line is output."""


class _Rebuilt(msgspec.Struct):
    value: dict[str, object] = msgspec.field(default_factory=dict[str, object])
    from_words: set[str] = msgspec.field(default_factory=set[str])
    text: str = ""
    clipped: bool = False
    truncated: bool = False


def outcome_of(call: Call, signs: CallSigns, result: ResultEvent, ruleset: Ruleset) -> Outcome:
    """Decide what became of a call from its result and the rows around it.

    Where several signs meet, in this order: the guard's own denial, a cancelled approval, not run, denied before the
    guard, a block after the body, the body's own result.
    """
    is_error = _is_error(result)
    if result.is_error is False and result.error is None and not signs.any:
        # By far the most: the body ran, and nobody had a say.
        if _is_plainly_fine(call.name, result, ruleset):
            return _FINE
        if is_shell_tool(call.name) and _is_bare_output(result):
            return _of_bare_output(call, result.text, ruleset)
        return _of_the_body(call, result, ruleset, is_error=False)
    text = result.text
    code = _error_code(result.error)
    if is_own_denial(result):
        return Outcome(kind="denied", commits=True, settles=False, evidence="structured", rule="this guard's denial")
    approvals = _withheld_approvals(signs, text, is_error=is_error)
    if "own" in approvals:
        return Outcome(kind="denied", commits=True, settles=False, evidence="structured", rule="this guard's ask")
    if "cancelled" in approvals:
        return _denied_before(result, code, "approval cancelled")
    if code == "TOOL_OUTCOME_UNKNOWN":
        return Outcome(kind="open", commits=True, settles=False, evidence="structured", rule="outcome unknown")
    if code == "ABORTED_BEFORE_DISPATCH" or (code == "UNKNOWN_TOOL" and _ONLY_INSIDE_PROGRAMS in text):
        return Outcome(kind="not-run", commits=False, settles=False, evidence="structured", rule=code)
    if is_error or result.is_error is None:
        if signs.hook_before in {"block", "deny"}:
            return _denied_before(result, code, "hook before the call")
        if signs.hook_before == "ask" and not signs.asked and is_error:
            return _denied_before(result, code, "hook asked, nobody to answer")
        if code == "AUTO_REVIEW_DENIED":
            return _denied_before(result, code, "auto review")
    if approvals:
        return _denied_before(result, code, f"approval {next(iter(approvals))}")
    if signs.hook_after_blocks:
        return Outcome(kind="undecidable", commits=True, settles=False, rule="hook after the call")
    return _of_the_body(call, result, ruleset, is_error=is_error)


_FINE = Outcome(kind="ok", commits=True, settles=True, evidence="structured", rule="no sign of failure")
_TELLING_META = frozenset({"statusCode", "exitCode", "opsShell"})


def _is_plainly_fine(name: str, result: ResultEvent, ruleset: Ruleset) -> bool:
    """Tell whether a result that is no error can be nothing but a success, whole: its words are not read."""
    return (
        ruleset.text_rules_for_shells_only
        and not is_shell_tool(name)
        and name not in _HEAD_STATUS
        and _TELLING_META.isdisjoint(result.meta)
        and not _ending(result.text).endswith((_SPILL_END, _CLIP_END))
    )


_RAN_TO_ITS_END = Outcome(
    kind="ok",
    commits=True,
    settles=True,
    evidence="rebuilt",
    rule="no sign of failure",
    exit_code=0,
    exit_code_rebuilt=True,
)


def _is_bare_output(result: ResultEvent) -> bool:
    """Tell whether a shell's result is output and nothing else: no marker, no notice, no recorded code."""
    text = result.text
    return (
        "[" not in text
        and not text.startswith(_BACKGROUND_START)
        and _TELLING_META.isdisjoint(result.meta)
        and not _ending(text).endswith((_SPILL_END, _CLIP_END))
    )


def _of_bare_output(call: Call, text: str, ruleset: Ruleset) -> Outcome:
    """Decide by a shell's bare output: without a marker it ended with exit code 0, and only its words can say more."""
    answer = classify_text(text, command=shell_command(call), ruleset=ruleset)
    if answer.failure is None:
        return _RAN_TO_ITS_END
    return msgspec.structs.replace(
        _RAN_TO_ITS_END,
        kind="failed",
        failure=answer.failure,
        evidence=answer.evidence,
        rule=answer.rule,
        words=answer.words,
    )


def _ending(text: str) -> str:
    """Return the end of a text without the white space after it: enough of it to tell a notice by."""
    ending = text[-_ENDING:].rstrip()
    return ending if len(ending) >= len(_CLIP_END) else text.rstrip()


def outcome_from_log(call: Call, result: ResultEvent, ruleset: Ruleset) -> Outcome:
    """Decide a call's outcome by what the published measurement scripts fed the classifier, and nothing more.

    An `error` member, even null, makes an error; the status comes from `meta`; there is no exit code; the texts are
    joined without a separator; denials count as results like any other.
    """
    text = "".join(result.texts)
    content = [{"type": "text", "text": text}]
    rebuilt: dict[str, object] = {"isError": result.has_error, "error": result.error, "content": content}
    status = result.meta.get("statusCode")
    if is_number(status):
        rebuilt["value"] = {"statusCode": status}
    return _classified(call, rebuilt, ruleset, _Rebuilt(), ok_evidence="structured")


def recorded_exit_code(result: ResultEvent) -> float | None:
    """Return the exit code a result's `meta` holds, None where it holds none."""
    codes = [result.meta.get("exitCode")]
    shell = result.meta.get("opsShell")
    if isinstance(shell, Mapping):
        codes.append(cast("Mapping[str, object]", shell).get("exitCode"))
    return next((cast("float", code) for code in codes if is_number(code)), None)


def is_own_denial(result: ResultEvent) -> bool:
    """Tell whether a result is this guard's refusal: its denial, or its ask that nobody was there to answer."""
    return _is_error(result) and result.text.startswith((*_OWN_DENIALS, _OWN_ASK_UNANSWERED))


def _is_error(result: ResultEvent) -> bool:
    return result.is_error is True or result.error is not None


def _error_code(error: object) -> str:
    code = cast("Mapping[str, object]", error).get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, str) else ""


def _withheld_approvals(signs: CallSigns, text: str, *, is_error: bool) -> dict[str, None]:
    """Return the ways approvals withheld the call: `own`, `cancelled`, `rejected`, `unavailable`, in order."""
    ways: dict[str, None] = {}
    for approval, reason in signs.asked:
        answer = signs.decided.get(approval)
        if reason.startswith(ASK_OPENING):
            # Without a decision in the log, only the result tells whether the call ran.
            if answer not in _GRANTED and (answer is not None or is_error):
                ways["own"] = None
        elif answer in _WITHHELD_APPROVALS and not (reason.startswith(_ESCALATION_REASON) or _ESCALATION_TEXT in text):
            ways[answer] = None
    return ways


def _denied_before(result: ResultEvent, code: str, rule: str) -> Outcome:
    failure = Failure("error", code or _error_name(result.error), "structured")
    return Outcome(kind="failed", commits=False, settles=True, failure=failure, evidence="structured", rule=rule)


def _error_name(error: object) -> str:
    name = cast("Mapping[str, object]", error).get("name") if isinstance(error, Mapping) else None
    return name if isinstance(name, str) else ""


def _of_the_body(call: Call, result: ResultEvent, ruleset: Ruleset, *, is_error: bool) -> Outcome:
    rebuilt = _rebuild(call.name, result)
    classified: dict[str, object] = {
        "isError": is_error,
        "error": result.error,
        "value": rebuilt.value,
        "content": [{"type": "text", "text": rebuilt.text}],
    }
    shell = is_shell_tool(call.name)
    if not shell:
        ok_evidence = "structured"
    elif rebuilt.value:
        ok_evidence = "rebuilt" if rebuilt.from_words else "structured"
    else:
        ok_evidence = "none" if rebuilt.truncated else "text"
    return _classified(call, classified, ruleset, rebuilt, ok_evidence=ok_evidence)


def _classified(
    call: Call,
    result: Mapping[str, object],
    ruleset: Ruleset,
    rebuilt: _Rebuilt,
    *,
    ok_evidence: str,
) -> Outcome:
    shell = is_shell_tool(call.name)
    command = shell_command(call) if shell else ""
    from_words = frozenset(rebuilt.from_words)
    answer: Classification = classify(result, shell=shell, command=command, ruleset=ruleset, rebuilt=from_words)
    exit_code = rebuilt.value.get("exitCode")
    return Outcome(
        kind="ok" if answer.failure is None else "failed",
        commits=True,
        settles=True,
        failure=answer.failure,
        evidence=ok_evidence if answer.evidence == "none" else answer.evidence,
        rule=answer.rule,
        words=answer.words,
        clipped=rebuilt.clipped,
        truncated=rebuilt.truncated,
        exit_code=exit_code if isinstance(exit_code, (int, float)) else None,
        exit_code_rebuilt="exitCode" in from_words,
    )


def _rebuild(name: str, result: ResultEvent) -> _Rebuilt:
    text = result.text
    rebuilt = _Rebuilt(text=text)
    _cut_notice(rebuilt)
    if is_shell_tool(name):
        _rebuild_shell(rebuilt)
    status = result.meta.get("statusCode")
    if is_number(status):
        rebuilt.value["statusCode"] = status
    elif name in _HEAD_STATUS:
        head = _HEAD_STATUS[name].match(rebuilt.text)
        if head:
            rebuilt.value["statusCode"] = int(head[1])
            rebuilt.from_words.add("statusCode")
    exit_code = recorded_exit_code(result)
    if exit_code is not None:
        rebuilt.value["exitCode"] = exit_code
        rebuilt.from_words.discard("exitCode")
    return rebuilt


def _cut_notice(rebuilt: _Rebuilt) -> None:
    """Take off the notice a spilled or clipped output ends in, and say what is left."""
    text = rebuilt.text
    ending = _ending(text)
    for opening, closing, end in ((_SPILL_START, _SPILL, _SPILL_END), (_CLIP_START, None, _CLIP_END)):
        # The end is looked at first: a search through every output is slow.
        if not ending.endswith(end):
            continue
        start = text.rfind(opening)
        if start < 0 or (start and text[start - 1] != "\n" and closing is not None):
            continue
        if closing is not None and not closing.match(text, start):
            continue
        rebuilt.text = text[:start].removesuffix("\n").removesuffix("\n")
        rebuilt.truncated = not rebuilt.text.strip()
        rebuilt.clipped = not rebuilt.truncated
        return


def _rebuild_shell(rebuilt: _Rebuilt) -> None:
    if rebuilt.truncated:
        return
    text = rebuilt.text
    last_paragraph = text[text.rfind("\n\n") + 1 :]
    if text.startswith(_BACKGROUND_START) or (_PROMOTED_WORDS in last_paragraph and _PROMOTED.search(last_paragraph)):
        rebuilt.value["kind"] = "background"
        rebuilt.from_words.add("kind")
        return
    markers = _end_markers(text)
    if markers is None:
        return
    rebuilt.value.update(markers)
    rebuilt.from_words.update(markers)


def _end_markers(text: str) -> dict[str, object] | None:
    """Read the marker lines at the end of a foreground shell's output; None for a persistent shell's."""
    facts: dict[str, object] = {}
    end = len(text)
    last = True
    while True:
        start = text.rfind("\n", 0, end)
        if start < 0 or end - start > _LONGEST_MARKER:
            break
        line = text[start + 1 : end]
        if not line.startswith("["):
            break
        if last and _SHELL_ENDED.match(line):
            return None
        if not _read_marker(line, facts, last=last):
            break
        last = False
        end = start
    if start < 0 and last and _SHELL_ENDED.match(text):
        return None
    if "signal" not in facts and "exitCode" not in facts and "timedOut" not in facts:
        facts["exitCode"] = 0
    return facts


def _read_marker(line: str, facts: dict[str, object], *, last: bool) -> bool:
    """Take one marker line into the facts; False where it is none. An exit or a signal stands last only."""
    found = _EXIT.match(line)
    if found:
        if last:
            facts["exitCode"] = float(found[1])
        return last
    found = _KILLED.match(line)
    if found:
        if last:
            facts["signal"] = found[1]
        return last
    found = _TIMED_OUT.match(line)
    if found:
        if "timedOut" in facts:
            return False
        facts["timedOut"] = True
        facts["timeoutMs"] = float(found[1])
        return True
    found = _SANDBOX.match(line)
    if found:
        if "sandbox" in facts:
            return False
        facts["sandbox"] = {"denied": True, "mode": found[1]}
        return True
    return _PASSED_OVER.match(line) is not None
