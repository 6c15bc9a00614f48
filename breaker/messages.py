"""The words the guard says to the model and to the operator.

The engine itself only names what happened; these renderers turn that into text when somebody wants to read it. They
are pure: the same decision, settings and ruleset give the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breaker.ecmascript import number_text, preview
from breaker.engine import Advisory, Ask, Decision, FailureAdvisory, Hit, Settlement
from breaker.failure import describe
from breaker.rulesets import DEFAULT_RULESET, Ruleset
from breaker.settings import Settings

__all__ = [
    "ADVISORY_MARKER",
    "ASK_OPENING",
    "DENIAL_MARKER",
    "KIND_NAMING_PLUGIN",
    "PLUGIN",
    "SHELL_HTTP_MARKER",
    "Messages",
    "Notice",
    "summary",
]

ADVISORY_MARKER = "CONVERGENCE_CHECK"
DENIAL_MARKER = "REPEAT_TOOL_BLOCKED"
SHELL_HTTP_MARKER = "SHELL_HTTP_BLOCKED"
ASK_OPENING = "repeat-tool-breaker: this call is about to be blocked"
"""How every question to the operator begins; recorded sessions are recognised by it."""
PLUGIN = "repeat-tool-breaker"
KIND_NAMING_PLUGIN = "plugin:dsh-repeat-tool-breaker"

_FETCH_TOOL = "web_fetch_file"


@dataclass(frozen=True, slots=True)
class Notice:
    """An advisory as a host shows it: the text for the model, a summary for people, and the label of its source."""

    text: str
    summary: str
    """The measure in full with its count: `host:a.com × 7`, or `host:a.com failed x3`."""
    source: dict[str, str]
    """Kind, form and summary of the source; up to 0.7 the plugin's name too."""


def summary(advisory: Advisory | FailureAdvisory) -> str:
    """Return an advisory's one-line summary, the measure in full length."""
    if isinstance(advisory, FailureAdvisory):
        return f"{advisory.measure} failed x{advisory.streak}"
    return f"{advisory.measure} × {advisory.count}"


class Messages:
    """Renders what one guard says, under its settings and ruleset. Measures are cut to `previewChars` in texts."""

    def __init__(self, settings: Settings, ruleset: Ruleset = DEFAULT_RULESET) -> None:
        self._settings = settings
        self._ruleset = ruleset

    # -- whole answers ---------------------------------------------------------------------------------------------

    def decision(self, decision: Decision, tool: str, last_result: str = "") -> str | None:
        """Return what a decision has to say, None where it is silent.

        A call that is let through carries its advisory at most. A withheld one carries its reason: the denial, the
        refusal of shell HTTP, or the question nobody granted.

        Args:
            decision: the guard's answer.
            tool: the name of the called tool.
            last_result: the last settled result at that time, `Breaker.last_result`.
        """
        if decision.action == "deny":
            return self.denial(decision, tool, last_result)
        if decision.action == "deny-shell-http":
            return self.shell_http(tool)
        if decision.action == "ask-declined":
            return self.ask(decision)
        return None if decision.advisory is None else self.advisory(decision.advisory)

    def settlement(self, settlement: Settlement) -> str | None:
        """Return what settling a call has to say, None where it is silent."""
        return None if settlement.advisory is None else self.advisory(settlement.advisory)

    def notice(self, advisory: Advisory | FailureAdvisory) -> Notice:
        """Return an advisory with summary and source, as a host appends it to the conversation."""
        shown = summary(advisory)
        if self._ruleset.kind_names_plugin:
            source = {"kind": KIND_NAMING_PLUGIN, "form": "notice", "summary": shown}
        else:
            source = {"kind": "plugin", "plugin": PLUGIN, "form": "notice", "summary": shown}
        return Notice(text=self.advisory(advisory), summary=shown, source=source)

    # -- to the model: advisories ----------------------------------------------------------------------------------

    def advisory(self, advisory: Advisory | FailureAdvisory) -> str:
        """Render an advisory of either track."""
        if isinstance(advisory, FailureAdvisory):
            return self._failure_warning(advisory)
        return self._warning(advisory) if advisory.stage == "warn" else self._summary_demand(advisory)

    def _warning(self, advisory: Advisory) -> str:
        return (
            f"{ADVISORY_MARKER}: this call repeats itself. {self._shown(advisory.measure)} has now come up "
            f"{advisory.count} times among the latest calls. Before going on, ask yourself whether this route still "
            "leads anywhere, or whether another one would."
        )

    def _summary_demand(self, advisory: Advisory) -> str:
        return "\n".join(
            (
                f"{ADVISORY_MARKER}: {self._shown(advisory.measure)} has now come up {advisory.count} times among the "
                "latest calls, and no result has come of it. Stop and sum up, in four points:",
                "1. what is established, and how you know it;",
                "2. what you have only assumed;",
                "3. what you tried that failed, and why it failed;",
                "4. at least two approaches you have not tried, and which of them comes next.",
                "Do not repeat anything you list as failed. If you are working through a batch, take larger batches.",
            )
        )

    def _failure_warning(self, advisory: FailureAdvisory) -> str:
        return "\n".join(
            (
                f"{ADVISORY_MARKER}: {self._shown(advisory.measure)} has failed {advisory.streak} times in a row; "
                f"the last time: {describe(advisory.failure, self._ruleset)}.",
                "1. Read the error itself.",
                "2. Check that what the call names (file, address, command) exists.",
                "3. Mend the cause the error names before you call again.",
            )
        )

    # -- to the operator -------------------------------------------------------------------------------------------

    def ask(self, asked: Ask | Decision) -> str:
        """Render the question put to the operator before a call."""
        failures, repeats = _by_track(asked.blocking)
        lines: list[str] = []
        if failures:
            lines.append(f"{ASK_OPENING}, because its target keeps failing:")
            lines += [f"- {self._shown(hit.measure)}: {hit.count} failures in a row" for hit in failures]
        if repeats:
            lines.append(f"{ASK_OPENING} as a repeat:")
            lines += [f"- {self._shown(hit.measure)}: {_ratio(hit)}" for hit in repeats]
        lines.append("Approve: these are no longer counted for the rest of the turn.")
        lines.append("Decline: they stay blocked until your next message.")
        return "\n".join(lines)

    # -- to the model: refusals ------------------------------------------------------------------------------------

    def denial(self, decision: Decision, tool: str, last_result: str = "") -> str:
        """Render the reason of a denial: what failed or repeats, whether it was refused, the last result, advice."""
        name = tool or "tool call"
        failures, repeats = _by_track(decision.blocking)
        paragraphs: list[str] = []
        if failures:
            paragraphs.append(
                "\n".join(
                    (
                        f"{DENIAL_MARKER}: {name}, consecutive failures. The call was not executed.",
                        *(self._failure_line(hit) for hit in failures),
                        "Calls that carry none of these are not blocked.",
                    )
                )
            )
        if repeats:
            paragraphs.append(
                "\n".join(
                    (
                        f"{DENIAL_MARKER}: {name}, semantic match. The call was not executed.",
                        *(f"- {self._shown(hit.measure)}: {_ratio(hit)}" for hit in repeats),
                        "Another description, timeoutMs, --max-time or spelling of the host makes no new call of it.",
                    )
                )
            )
        if decision.refused:
            paragraphs.append(
                "An exemption was asked for and not granted (it was declined, or there was nobody to ask): this stays "
                "blocked until the next message of a human."
            )
        paragraphs.append(
            f"The previous tool result was:\n{preview(last_result, self._settings.result_preview_chars)}"
            if last_result
            else "The previous result is in the history above."
        )
        paragraphs.append(
            "Work with what you have got, or take a route that differs in substance; if there is none, say so and stop."
            if repeats
            else "Find out why the target fails before you go near it again; if you cannot, say so and go on without."
        )
        return "\n\n".join(paragraphs)

    def shell_http(self, tool: str) -> str:
        """Render the refusal of a shell fetch."""
        lines = [
            f"{SHELL_HTTP_MARKER}: {tool or 'shell'}. The command was not executed.",
            "A shell hides what became of a request: status, redirects and errors get lost in its output.",
            f"Use {_FETCH_TOOL} instead:",
            f"1. fetch the address with {_FETCH_TOOL}, which stores the answer in a file and reports the status;",
            "2. read or process that file, with the shell if you like.",
            "Everything else the shell does still works, version control and package managers included.",
        ]
        if not self._settings.block_local_http:
            lines.append("Local addresses can be reached from the shell as before.")
        lines.append("Do not look for another way to send the request from the shell.")
        return "\n".join(lines)

    # -- pieces ----------------------------------------------------------------------------------------------------

    def _shown(self, measure: str) -> str:
        return preview(measure, self._settings.preview_chars)

    def _failure_line(self, hit: Hit) -> str:
        told = describe(hit.failure, self._ruleset)
        return f"- {self._shown(hit.measure)}: {hit.count} failures in a row{f', {told}' if told else ''}"


def _by_track(hits: Sequence[Hit]) -> tuple[list[Hit], list[Hit]]:
    return [hit for hit in hits if hit.track == "failure"], [hit for hit in hits if hit.track == "occurrence"]


def _ratio(hit: Hit) -> str:
    return f"{hit.count}/{number_text(hit.cap)}"
