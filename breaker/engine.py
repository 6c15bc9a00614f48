"""The guard itself, for one agent: ask, guard, settle.

A live host drives it as the plugin's hooks do:

1. `turn()` at a human message;
2. `ask(call)` before a call: an `Ask` is put to the operator, who approves or declines it;
3. `guard(call, approved)` where the call may still run, or `decline(call, ask)` where the ask was refused;
4. `settle(call, failure)` once the body has run. A call that was denied or declined is not settled.

Pure and synchronous; a call costs the number of its measures, not of the window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from breaker.ecmascript import units_prefix
from breaker.failure import Classification, Failure, classify
from breaker.measures import Call, MeasuredCall, Measurer, is_shell_tool, shell_command
from breaker.rulesets import DEFAULT_RULESET, Ruleset
from breaker.settings import Settings
from breaker.shellhttp import LOOPBACK
from breaker.window import AgentState

if TYPE_CHECKING:
    from breaker.shellhttp import ShellHttpPolicy

__all__ = [
    "Advisory",
    "Ask",
    "Breaker",
    "Decision",
    "FailureAdvisory",
    "Hit",
    "Settlement",
    "Stage",
    "Track",
]

Track = Literal["occurrence", "failure"]
Stage = Literal["warn", "summarize", "gate", "fail-warn", "fail-gate", "shell-http"]
Action = Literal["allow", "ask-approved", "ask-declined", "deny", "deny-shell-http", "observed"]


@dataclass(frozen=True, slots=True)
class Hit:
    """A measure of a call that has reached its cap, or whose streak has reached the failure limit."""

    measure: str
    count: int
    """The next count on the occurrence track, the streak on the failure track."""
    cap: float
    track: Track
    failure: Failure | None = None
    """The last failure of the streak, on the failure track."""


@dataclass(frozen=True, slots=True)
class Advisory:
    """The message on the occurrence track that one allowed call earns."""

    stage: Literal["warn", "summarize"]
    measure: str
    count: int


class FailureAdvisory(NamedTuple):
    """The message on the failure track that one settled call earns."""

    measure: str
    streak: int
    failure: Failure


class Ask(NamedTuple):
    """A question for the operator: may this call run although these measures hit?"""

    hits: tuple[Hit, ...]
    blocking: tuple[Hit, ...]


class Decision(NamedTuple):
    """What the guard answers to one call."""

    action: Action
    hits: tuple[Hit, ...] = ()
    """Every hit, failure hits first, each group in measure order; exempt measures too."""
    blocking: tuple[Hit, ...] = ()
    """The hits that are not exempt."""
    refused: bool = False
    """Denied, and every blocking measure had been refused by the operator before."""
    advisory: Advisory | None = None
    shell_http: bool = False
    """The shell-HTTP policy refuses the command, or would have under observation."""

    @property
    def withheld(self) -> bool:
        """Tell whether the call does not run."""
        return self.action in {"deny", "ask-declined", "deny-shell-http"}


@dataclass(frozen=True, slots=True)
class Settlement:
    """What settling one call changed."""

    failure: Failure | None
    advisory: FailureAdvisory | None
    reached: Mapping[int, str] = field(default_factory=dict[int, str], compare=False, repr=False)
    """For every length a streak grew to, the measure that a failure advisory at that length would name."""


_ALLOWED = Decision(action="allow")
_SHELL_HTTP_REFUSED = Decision(action="deny-shell-http", shell_http=True)
_NOTHING_SETTLED = Settlement(failure=None, advisory=None)


class Breaker:
    """The guard of one agent, under one set of settings and one ruleset.

    Args:
        settings: the effective settings; the ruleset's defaults where none are given.
        ruleset: the release to be.
        shell_http: whether the guard's own fetch tool is there, so that the shell-HTTP policy is engaged (if the
            ruleset has one and `blockShellHttp` is on).
        machine: the names and addresses that mean this machine to ssh and its kin.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        ruleset: Ruleset = DEFAULT_RULESET,
        *,
        shell_http: bool = False,
        machine: frozenset[str] = LOOPBACK,
    ) -> None:
        self.settings = Settings.from_config({}, ruleset) if settings is None else settings
        self.ruleset = ruleset
        self.measurer = Measurer(self.settings, ruleset)
        self._state = AgentState(self.settings.window)
        self._shell_http: ShellHttpPolicy | None = None
        if shell_http:
            self.engage_shell_http(machine)

    def engage_shell_http(self, machine: frozenset[str] = LOOPBACK) -> None:
        """Engage the shell-HTTP policy, as when its replacement tool appears; without one in the ruleset, nothing."""
        if self.ruleset.shell_http is not None and self.settings.block_shell_http is True:
            from breaker.shellhttp import ShellHttpPolicy

            self._shell_http = ShellHttpPolicy(self.settings, self.ruleset, machine)

    def disengage_shell_http(self) -> None:
        """Disengage the shell-HTTP policy, as when its replacement tool is not there."""
        self._shell_http = None

    # -- the steps of a call -------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Forget everything about the agent, as at a human message."""
        self._state = AgentState(self.settings.window)

    def measure(self, call: Call) -> MeasuredCall:
        """Compute a call's measures under this guard's settings."""
        return self.measurer.measure(call)

    def ask(self, call: MeasuredCall) -> Ask | None:
        """Return the question the operator must answer before the call, or None where there is none.

        There is none under `onLimit: deny`, without a blocking hit, and where one of the blocking measures has been
        refused already: then the guard denies by itself.
        """
        if self.settings.on_limit != "ask" or not call.tracked:
            return None
        hits = self._hits(call)
        blocking = self._blocking(hits)
        return Ask(hits=hits, blocking=blocking) if self._is_to_ask(blocking) else None

    def ask_or_guard(self, call: MeasuredCall) -> Ask | Decision:
        """Return the question the operator must answer before the call; where there is none, decide and record it.

        As `ask` and then `guard` do, in one step.
        """
        if not call.tracked:
            return _ALLOWED
        hits = self._hits(call)
        blocking = self._blocking(hits)
        if self._is_to_ask(blocking):
            return Ask(hits=hits, blocking=blocking)
        if self.refuses_shell_http(call):
            return _SHELL_HTTP_REFUSED
        return self._decide(call, hits, blocking)

    def decline(self, call: MeasuredCall, ask: Ask) -> Decision:
        """Take a declined ask (rejected, cancelled, nobody there): its measures stay refused until the next turn."""
        self._state.refused.update(hit.measure for hit in ask.blocking)
        self._commit(call, ask.blocking)
        return Decision(action="ask-declined", hits=ask.hits, blocking=ask.blocking)

    def guard(self, call: MeasuredCall, approved: Ask | None = None) -> Decision:
        """Decide a call and record it. An approved ask frees its measures for the rest of the turn.

        A shell fetch is refused before anything is counted. As released, an approval that such a refusal overtakes is
        lost: its measures are refused and recorded as if the operator had declined.
        """
        if not call.tracked:
            return _ALLOWED
        if self.refuses_shell_http(call):
            if approved is None:
                return _SHELL_HTTP_REFUSED
            self.decline(call, approved)
            return _SHELL_HTTP_REFUSED._replace(hits=approved.hits, blocking=approved.blocking)
        if approved is not None:
            self._state.exempt.update(hit.measure for hit in approved.blocking)
        hits = self._hits(call)
        return self._decide(call, hits, self._blocking(hits), approved)

    def _is_to_ask(self, blocking: tuple[Hit, ...]) -> bool:
        if not blocking or self.settings.on_limit != "ask":
            return False
        return not any(hit.measure in self._state.refused for hit in blocking)

    def _decide(
        self, call: MeasuredCall, hits: tuple[Hit, ...], blocking: tuple[Hit, ...], approved: Ask | None = None
    ) -> Decision:
        if blocking:
            refused = all(hit.measure in self._state.refused for hit in blocking)
            self._commit(call, blocking)
            return Decision(action="deny", hits=hits, blocking=blocking, refused=refused)
        advisory = self._advisory(call)
        self._commit(call, ())
        if approved is not None:
            return Decision(action="ask-approved", hits=hits, blocking=approved.blocking, advisory=advisory)
        if not hits and advisory is None:
            return _ALLOWED
        return Decision(action="allow", hits=hits, advisory=advisory)

    def observe(self, call: MeasuredCall) -> Decision:
        """Say what the guard would have stopped, and record the call as if it had let it pass."""
        if not call.tracked:
            return _ALLOWED
        hits = self._hits(call)
        blocking = self._blocking(hits)
        advisory = self._advisory(call)
        self._commit(call, ())
        shell_http = self.refuses_shell_http(call)
        action: Action = "observed" if blocking or shell_http else "allow"
        return Decision(action=action, hits=hits, blocking=blocking, advisory=advisory, shell_http=shell_http)

    def settle(self, call: MeasuredCall, failure: Failure | None, text: str = "") -> Settlement:
        """Take a call's outcome into the streaks of its measures and return the advisory it earns, if any.

        Args:
            call: the call as it was guarded.
            failure: why it failed, None for a success.
            text: the result's text, kept for the guard's later messages.
        """
        if not call.tracked:
            return _NOTHING_SETTLED
        state = self._state
        if text:
            state.last_result = units_prefix(text, self.settings.result_preview_chars)
        if failure is None:
            if state.streaks:
                self._end_streaks(call)
            return _NOTHING_SETTLED
        reached: dict[int, str] = {}
        for measure in call.enabled(self.settings).ranked:
            if measure not in state.exempt:
                reached.setdefault(state.fail(measure, failure), measure)
        advisory = None
        threshold = self.settings.fail_warn_at
        if threshold in reached:
            advisory = FailureAdvisory(measure=reached[threshold], streak=threshold, failure=failure)
        return Settlement(failure=failure, advisory=advisory, reached=reached)

    def classify(self, call: Call, result: Mapping[str, object]) -> Classification:
        """Classify a live result of a call under this guard's ruleset."""
        shell = is_shell_tool(call.name)
        command = shell_command(call) if shell else ""
        return classify(result, shell=shell, command=command, ruleset=self.ruleset)

    def refuses_shell_http(self, call: MeasuredCall) -> bool:
        """Tell whether the shell-HTTP policy, where it is engaged, refuses a tracked call. Changes nothing."""
        policy = self._shell_http
        return policy is not None and call.command is not None and call.tracked and policy.refuses(call.command)

    # -- what a caller may look at -------------------------------------------------------------------------------

    @property
    def window_records(self) -> int:
        """The number of records in the window."""
        return self._state.records

    @property
    def window_contents(self) -> tuple[tuple[str, ...], ...]:
        """The records in the window, oldest first: for each the measures it holds."""
        return self._state.recent

    @property
    def commits(self) -> int:
        """The number of records committed since the state was last cleared."""
        return self._state.commits

    @property
    def last_result(self) -> str:
        """The text of the last settled result, cut to `resultPreviewChars`."""
        return self._state.last_result

    @property
    def counts(self) -> Mapping[str, int]:
        """The occurrences of each measure in the window, as they are now; one without any is absent."""
        return self._state.counts

    @property
    def running_streaks(self) -> Mapping[str, int]:
        """The consecutive failures of each measure, as they are now; one without any is absent."""
        return self._state.streaks

    def next_count(self, measure: str) -> int:
        """Return the count the next call with this measure reaches."""
        return self._state.next_count(measure)

    def next_counts(self, call: MeasuredCall) -> dict[str, int]:
        """Return the counts a call reaches for its enabled measures, in measure order."""
        counts = self._state.counts
        return {measure: counts.get(measure, 0) + 1 for measure, _ in call.enabled(self.settings).capped}

    def streak(self, measure: str) -> int:
        """Return the measure's current streak of consecutive failures."""
        return self._state.streaks.get(measure, 0)

    def streaks(self, call: MeasuredCall) -> dict[str, int]:
        """Return the streaks above 0 of a call's measures, in measure order."""
        return {measure: self._state.streaks[measure] for measure in call.measures if measure in self._state.streaks}

    def is_exempt(self, measure: str) -> bool:
        """Tell whether an approval has freed the measure for the rest of the turn."""
        return measure in self._state.exempt

    def is_refused(self, measure: str) -> bool:
        """Tell whether an ask about the measure was declined in this turn."""
        return measure in self._state.refused

    def named_at_counts(self, call: MeasuredCall) -> dict[int, str]:
        """Return, for every count an enabled measure of the next call reaches, the measure an advisory there names.

        Of several at one count it is the one of lowest rank, the first of equal ones. So one run tells what every
        value of `warnAt` and `summarizeAt` would say: nothing else about a call depends on them.
        """
        counts = self._state.counts
        named: dict[int, str] = {}
        for measure in call.enabled(self.settings).ranked:
            named.setdefault(counts.get(measure, 0) + 1, measure)
        return named

    def cap(self, measure: str) -> float | None:
        """Return the cap of a measure, None where it is not enabled."""
        return self.settings.cap(measure)

    def enabled(self, call: MeasuredCall) -> tuple[tuple[str, float], ...]:
        """Return the enabled measures of a call with their caps, in measure order."""
        return call.enabled(self.settings).capped

    # -- the rules -----------------------------------------------------------------------------------------------

    def _hits(self, call: MeasuredCall) -> tuple[Hit, ...]:
        counts, streaks = self._state.counts, self._state.streaks
        limit = self.settings.fail_limit
        failures: list[Hit] = []
        repeats: list[Hit] = []
        for measure, cap in call.enabled(self.settings).capped:
            if limit is not None and measure in streaks and streaks[measure] >= limit:
                failures.append(Hit(measure, streaks[measure], limit, "failure", self._state.streak_failures[measure]))
            count = counts.get(measure, 0) + 1
            if count >= cap:
                repeats.append(Hit(measure, count, cap, "occurrence"))
        return (*failures, *repeats)

    def _end_streaks(self, call: MeasuredCall) -> None:
        state = self._state
        for measure, _ in call.enabled(self.settings).capped:
            if measure in state.streaks and measure not in state.exempt:
                state.succeed(measure)

    def _blocking(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        exempt = self._state.exempt
        return tuple(hit for hit in hits if hit.measure not in exempt) if exempt else hits

    def _commit(self, call: MeasuredCall, hits: tuple[Hit, ...]) -> None:
        self._state.commit([hit.measure for hit in hits] if hits else call.measures)

    def _advisory(self, call: MeasuredCall) -> Advisory | None:
        """Choose the message of an allowed call: the higher stage first; within one, the lower rank, then the first."""
        counts = self._state.counts
        summarize_at, warn_at = self.settings.summarize_at, self.settings.warn_at
        warned: Advisory | None = None
        for measure in call.enabled(self.settings).ranked:
            count = counts.get(measure, 0) + 1
            if count == summarize_at:
                return Advisory(stage="summarize", measure=measure, count=count)
            if count == warn_at and warned is None:
                warned = Advisory(stage="warn", measure=measure, count=count)
        return warned
