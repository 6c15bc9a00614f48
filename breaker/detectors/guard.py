"""The breaker itself as one detector among the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from breaker.detectors.protocol import NOTHING, Finding, SeenCall, SeenOutcome, SeenTurn
from breaker.detectors.settings import DetectorSettingsError
from breaker.engine import Breaker, Decision, Stage
from breaker.measures import MeasuredCall
from breaker.rulesets import DEFAULT_RULESET, Ruleset, UnknownRulesetError, ruleset_named
from breaker.settings import Settings, SettingsError, known_keys, nearest_key, unknown_keys
from breaker.shellhttp import LOOPBACK

__all__ = ["BREAKER_STAGES", "BreakerDetector", "breaker_from_config"]

Policy: TypeAlias = Literal["unattended", "approve", "deny", "observe"]
_POLICIES: Final[tuple[Policy, ...]] = ("unattended", "approve", "deny", "observe")
BREAKER_STAGES: Final[tuple[Stage, ...]] = ("warn", "summarize", "gate", "fail-warn", "fail-gate", "shell-http")

_NAME: Final = "breaker"


class BreakerDetector:
    """Puts the guard behind the protocol: at a gate the policy answers, and every stage reached is a finding.

    Args:
        settings: the effective settings; the ruleset's defaults where none are given.
        ruleset: the release to be.
        policy: what becomes of an ask: nobody answers, everybody approves, every gate denies, nothing is withheld.
        shell_http: whether the shell-HTTP policy is engaged.
        machine: the names and addresses that mean this machine.
    """

    RULE: Final = "repeats in a window and failure streaks, by measure; this tool's own engine"

    def __init__(
        self,
        settings: Settings | None = None,
        ruleset: Ruleset = DEFAULT_RULESET,
        *,
        policy: Policy = "unattended",
        shell_http: bool = False,
        machine: frozenset[str] = LOOPBACK,
    ) -> None:
        given = Settings.from_config({}, ruleset) if settings is None else settings
        self.settings: Mapping[str, object] = {**given.as_config, "ruleset": ruleset.name, "policy": policy}
        engine_settings = replace(given, on_limit="deny") if policy == "deny" else given
        self._guard = Breaker(engine_settings, ruleset, shell_http=shell_http, machine=machine)
        self._policy = policy
        self._decided: dict[int, tuple[MeasuredCall, Decision | None]] = {}

    def on_turn(self, turn: SeenTurn) -> None:
        """Forget everything."""
        del turn
        self._guard.turn()

    def on_call(self, call: SeenCall) -> Sequence[Finding]:
        """Decide a call and say which stage it reached; a call refused before the guard is only remembered."""
        measured = self._guard.measure(call.call)
        if not measured.tracked:
            return NOTHING
        decision = self._decide(measured) if call.met_guard else None
        self._decided[call.index] = (measured, decision)
        return NOTHING if decision is None else self._found(decision)

    def on_outcome(self, call: SeenCall, outcome: SeenOutcome) -> Sequence[Finding]:
        """Settle a call that was not withheld and say whether its failures are long enough to speak of."""
        decided = self._decided.pop(call.index, None)
        if decided is None or not outcome.settles:
            return NOTHING
        measured, decision = decided
        if decision is not None and decision.withheld:
            return NOTHING
        advisory = self._guard.settle(measured, outcome.failure).advisory
        if advisory is None:
            return NOTHING
        threshold = self._guard.settings.fail_warn_at or 0
        answer = "allow" if decision is None else decision.action
        return (
            Finding(
                "fail-warn", advisory.measure, advisory.streak, threshold, "failure", answer, failure=advisory.failure
            ),
        )

    def _decide(self, measured: MeasuredCall) -> Decision:
        guard = self._guard
        if self._policy == "observe":
            return guard.observe(measured)
        ask = guard.ask(measured)
        if ask is None:
            return guard.guard(measured)
        return guard.guard(measured, ask) if self._policy == "approve" else guard.decline(measured, ask)

    def _found(self, decision: Decision) -> Sequence[Finding]:
        found: list[Finding] = []
        if decision.shell_http:
            found.append(Finding("shell-http", "", 0, 0, "shell-http", decision.action))
        elif decision.blocking:
            first = decision.blocking[0]
            stage = "fail-gate" if first.track == "failure" else "gate"
            found.append(
                Finding(
                    stage, first.measure, first.count, first.cap, first.track, decision.action, failure=first.failure
                )
            )
        advisory = decision.advisory
        if advisory is not None:
            settings = self._guard.settings
            threshold = settings.summarize_at if advisory.stage == "summarize" else settings.warn_at
            found.append(
                Finding(advisory.stage, advisory.measure, advisory.count, threshold or 0, "occurrence", decision.action)
            )
        return found


def breaker_from_config(config: Mapping[str, object]) -> BreakerDetector:
    """Build the breaker from its own settings, with `ruleset` and `policy` beside them.

    Raises:
        DetectorSettingsError: naming key, rule and value.
    """
    given = dict(config)
    name, policy = given.pop("ruleset", DEFAULT_RULESET.name), given.pop("policy", "unattended")
    if policy not in _POLICIES:
        raise DetectorSettingsError(_NAME, "policy", f"must be one of {', '.join(_POLICIES)}", policy)
    try:
        ruleset = ruleset_named(name if isinstance(name, str) else f"{name}")
    except UnknownRulesetError as error:
        raise DetectorSettingsError(_NAME, "ruleset", str(error), name) from None
    for key in unknown_keys(given, ruleset):
        near = nearest_key(key, ruleset)
        hint = f"did you mean `{near}`?" if near else f"known: {', '.join(known_keys(ruleset))}"
        raise DetectorSettingsError(_NAME, key, f"is no setting of ruleset {ruleset.name}; {hint}", given[key])
    try:
        settings = Settings.from_config(given, ruleset)
    except SettingsError as error:
        raise DetectorSettingsError(_NAME, error.key or "settings", error.rule, error.value) from None
    return BreakerDetector(settings, ruleset, policy=policy)
