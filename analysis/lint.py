"""Settings that do not do what they seem to: stages that cannot speak, caps beyond reach, aliases that never match."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from analysis.replay import Policy, StageName
from breaker.ecmascript import string_text
from breaker.kinds import KINDS
from breaker.rulesets import DEFAULT_RULESET, RULESETS, Ruleset
from breaker.settings import Settings, nearest_key, unknown_keys
from breaker.urls import normalise_url

__all__ = ["SEVERITIES", "DeadStages", "Finding", "Severity", "dead_stages", "lint_settings"]

Severity = Literal["note", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = ("note", "warning", "error")
"""From least to worst: worth knowing; part of a setting has no effect; a setting has no effect, or another one."""

_STAGE_KEYS: tuple[tuple[StageName, str], ...] = (("warn", "warnAt"), ("summarize", "summarizeAt"))
_NULLED = ("warnAt", "summarizeAt", "failWarnAt", "failLimit")
_DEFAULTS: Mapping[str, object] = Settings.from_config({}).as_config


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about the settings a person should know."""

    severity: Severity
    code: str
    """A stable name of the rule."""
    key: str
    """The setting it is about."""
    kinds: tuple[str, ...]
    """The measure kinds it holds for; empty where kinds play no part."""
    message: str
    """What is so, and why."""
    remedy: str
    """What to do about it."""
    reached: int | None = None
    """How often a corpus reaches the stage or cap; None where none was looked at, or it is no matter of reaching."""


@dataclass(frozen=True, slots=True)
class DeadStages:
    """The stages that are set and cannot speak."""

    by_kind: Mapping[StageName, tuple[str, ...]]
    """For each stage the capped kinds (and measures with a cap of their own) it cannot speak for."""
    wholly: list[StageName]
    """The stages that cannot speak for any."""


def _capped(settings: Settings) -> dict[str, int]:
    """Return the count at which each kind, and each measure with a cap of its own, is stopped."""
    caps = {entry: math.ceil(cap) for entry, cap in settings.limits.items() if cap is not None}
    kinds = [kind for kind in KINDS if kind in caps]
    return {entry: caps[entry] for entry in [*kinds, *(entry for entry in caps if ":" in entry)]}


def _highest_count(settings: Settings) -> int:
    """Return the largest count an allowed call can reach: every record of the window, and the call itself."""
    return settings.window + 1


def _silenced(threshold: int, cap: int, settings: Settings, policy: Policy) -> bool:
    """Tell whether an advisory at a threshold cannot be given for a measure of a cap.

    A call is stopped at its cap and so is not spoken to; only an approval at the very cap lets it speak there, and an
    observed session has no caps.
    """
    if threshold > _highest_count(settings):
        return True
    if policy == "observe":
        return False
    approved = policy == "approve" and settings.on_limit == "ask"
    return threshold > cap if approved else threshold >= cap


def dead_stages(settings: Settings, policy: Policy = "unattended") -> DeadStages:
    """Find the stages that are on and cannot speak, per kind.

    A stage at or above a kind's cap is dead for it, and for all above window + 1; so is a cap above window + 1. `warn`
    at the very count of `summarize` is overruled by it; above it, it still speaks.
    """
    capped = _capped(settings)
    highest = _highest_count(settings)
    dead: dict[StageName, tuple[str, ...]] = {}
    thresholds: dict[StageName, int | None] = {"warn": settings.warn_at, "summarize": settings.summarize_at}
    for stage, threshold in thresholds.items():
        if threshold is None:
            continue
        overruled = stage == "warn" and threshold == settings.summarize_at
        silent = tuple(
            entry for entry, cap in capped.items() if overruled or _silenced(threshold, cap, settings, policy)
        )
        if silent:
            dead[stage] = silent
    unreachable = tuple(entry for entry, cap in capped.items() if cap > highest)
    if unreachable:
        dead["gate"] = unreachable
    wholly: list[StageName] = [stage for stage, silent in dead.items() if len(silent) == len(capped)]
    if not capped:
        on: dict[StageName, float | None] = {
            **thresholds,
            "fail-warn": settings.fail_warn_at,
            "fail-gate": settings.fail_limit,
        }
        wholly = [stage for stage, threshold in on.items() if threshold is not None]
    return DeadStages(by_kind=dead, wholly=wholly)


def lint_settings(
    given: Mapping[str, object],
    ruleset: Ruleset = DEFAULT_RULESET,
    *,
    policy: Policy = "unattended",
    reached: Mapping[StageName, Mapping[str, int]] | None = None,
) -> list[Finding]:
    """Look through a configuration for what has no effect, or another one than it seems.

    Args:
        given: the configuration as given, so that what a person wrote can be told from what is default.
        ruleset: the release.
        policy: what becomes of a gate.
        reached: for each stage and kind how often a corpus reaches it, where one was replayed.

    Raises:
        SettingsError: the guard refuses the configuration.
    """
    settings = Settings.from_config(given, ruleset)
    findings = [
        *_unknown(given, ruleset),
        *_stage_findings(settings, policy),
        *_order_findings(settings),
        *_cap_findings(settings),
        *_failure_findings(settings),
        *_uncapped(settings),
        *_aliases(settings, ruleset),
        *_nulls(given, ruleset),
    ]
    if reached is not None:
        findings.extend(_unreached(settings, reached, policy))
    return sorted(findings, key=lambda finding: -SEVERITIES.index(finding.severity))


def _listed(kinds: Sequence[str]) -> str:
    return ", ".join(kinds)


def _unknown(given: Mapping[str, object], ruleset: Ruleset) -> list[Finding]:
    found: list[Finding] = []
    for key in unknown_keys(given, ruleset):
        near = nearest_key(key, ruleset)
        remedy = f"did you mean `{near}`?" if near is not None else "take it out"
        message = f"`{key}` is no setting of ruleset {ruleset.name}, and is ignored"
        found.append(Finding("error", "unknown-key", key, (), message, remedy))
    limits = given.get("limits")
    for entry in cast("Mapping[object, object]", limits) if isinstance(limits, Mapping) else ():
        name = string_text(entry)
        if name.partition(":")[0] in KINDS:
            continue
        message = f"no call has a measure of the kind `{name}`, so this cap is never looked at"
        found.append(
            Finding("error", "unknown-kind", f"limits.{name}", (), message, f"the kinds are {', '.join(KINDS)}")
        )
    return found


def _stage_findings(settings: Settings, policy: Policy) -> list[Finding]:
    dead = dead_stages(settings, policy)
    capped = _capped(settings)
    highest = _highest_count(settings)
    found: list[Finding] = []
    for stage, key in _STAGE_KEYS:
        threshold = settings.warn_at if stage == "warn" else settings.summarize_at
        if threshold is None:
            continue
        if threshold > highest:
            message = (
                f"no count is above {highest} (window {settings.window}, and the call itself): {threshold} never comes"
            )
            remedy = f"set it to {highest} or less, or widen `window`"
            found.append(Finding("error", "stage-above-window", key, tuple(capped), message, remedy))
            continue
        if stage == "warn" and threshold == settings.summarize_at:
            continue
        silent = dead.by_kind.get(stage, ())
        if not silent:
            continue
        alive = [entry for entry in capped if entry not in silent]
        caps = _listed([f"{entry} {capped[entry]}" for entry in silent])
        message = f"{threshold} is at or above the cap ({caps}): those calls are stopped before the stage can speak"
        message += f"; it still speaks for {_listed(alive)}" if alive else "; it speaks for nothing"
        if (
            policy == "unattended"
            and settings.on_limit == "ask"
            and any(capped[entry] == threshold for entry in silent)
        ):
            message += f" (with an operator who approves, also at the cap of {threshold})"
        lowest = min(capped[entry] for entry in silent)
        remedy = f"set it below {lowest}, or raise the caps above {threshold}"
        severity: Severity = "warning" if alive else "error"
        found.append(Finding(severity, "stage-at-cap", key, silent, message, remedy))
    return found


def _order_findings(settings: Settings) -> list[Finding]:
    warn_at, summarize_at = settings.warn_at, settings.summarize_at
    if warn_at is None or summarize_at is None or warn_at < summarize_at:
        return []
    if warn_at == summarize_at:
        message = f"`summarizeAt` is {summarize_at} too, and of two stages at one count the higher one speaks"
        return [Finding("error", "warn-at-summarize", "warnAt", (), message, f"set it below {summarize_at}, or to 0")]
    message = f"the light advisory comes at {warn_at}, after the strong one at {summarize_at}"
    return [Finding("warning", "stages-inverted", "warnAt", (), message, f"set it below {summarize_at}, or to 0")]


def _cap_findings(settings: Settings) -> list[Finding]:
    highest = _highest_count(settings)
    found: list[Finding] = []
    for entry, cap in _capped(settings).items():
        if cap > highest:
            message = (
                f"no count is above {highest} (window {settings.window}, and the call itself): {cap} is never reached"
            )
            remedy = f"set it to {highest} or less, widen `window` to {cap - 1}, or write null to mean no cap"
            found.append(Finding("error", "cap-beyond-window", f"limits.{entry}", (entry,), message, remedy))
    return found


def _failure_findings(settings: Settings) -> list[Finding]:
    warn_at, limit = settings.fail_warn_at, settings.fail_limit
    if warn_at is None or limit is None or warn_at <= math.ceil(limit):
        return []
    message = (
        f"at {math.ceil(limit)} failures the next call is stopped, so a streak of {warn_at} is only reached by calls "
        "that started side by side"
    )
    remedy = f"set it to {math.ceil(limit)} or less"
    return [Finding("warning", "fail-warn-above-limit", "failWarnAt", (), message, remedy)]


def _uncapped(settings: Settings) -> list[Finding]:
    found: list[Finding] = []
    on = [
        key
        for key, threshold in (
            ("warnAt", settings.warn_at),
            ("summarizeAt", settings.summarize_at),
            ("failWarnAt", settings.fail_warn_at),
            ("failLimit", settings.fail_limit),
        )
        if threshold is not None
    ]
    if not _capped(settings):
        for key in on:
            message = "no kind has a cap, and a kind without one is on neither track: nothing is ever said"
            found.append(Finding("error", "no-kind-enabled", key, (), message, "give a kind a cap in `limits`"))
        return found
    uncapped = tuple(kind for kind in KINDS if settings.limits.get(kind) is None)
    if uncapped and on:
        message = f"no stage speaks for {_listed(uncapped)}: a kind without a cap is on neither track"
        remedy = "as released for site, family and verb; give another kind a cap it never reaches to hear of it only"
        severity: Severity = "warning" if set(uncapped) - {"site", "family", "verb"} else "note"
        found.append(Finding(severity, "kind-without-cap", "limits", uncapped, message, remedy))
    return found


def _aliases(settings: Settings, ruleset: Ruleset) -> list[Finding]:
    defaults = cast("Mapping[str, object]", _DEFAULTS["hostAliases"])
    found: list[Finding] = []
    for alias, target in settings.host_aliases.items():
        released = defaults.get(alias) == target
        severity: Severity = "note" if released else "warning"
        key = f"hostAliases.{alias}"
        if not isinstance(target, str) or not target:
            message = "the name it stands for is no text, so it is ignored"
            found.append(Finding(severity, "alias-without-target", key, (), message, "name a host, or take it out"))
            continue
        address = normalise_url(f"https://{alias}/", {}, ruleset)
        if address is not None and address.host == alias:
            continue
        seen = "no URL has that host" if address is None else f"such a host is looked up as `{address.host}`"
        remedy = "take it out" if address is None or address.host == target else f"write `{address.host}`"
        if released:
            remedy += " (a released default: harmless)"
        found.append(Finding(severity, "alias-never-matches", key, (), f"it never matches: {seen}", remedy))
    return found


def _nulls(given: Mapping[str, object], ruleset: Ruleset) -> list[Finding]:
    releases = (
        [ruleset] if ruleset.null_becomes_default else [one for one in RULESETS.values() if one.null_becomes_default]
    )
    if not releases:
        return []
    told = ruleset.name if ruleset.null_becomes_default else f"from {releases[0].name} on"
    severity: Severity = "warning" if ruleset.null_becomes_default else "note"
    found: list[Finding] = []
    for key in _NULLED:
        if key not in given or given[key] is not None:
            continue
        default = string_text(_DEFAULTS[key])
        message = (
            f"off here, as documented; the released settings form ({told}) turns this null into the default {default}"
        )
        remedy = "write 0, which every release takes as off"
        if key == "failLimit":
            remedy = "the form has no off-switch for it: write a limit no streak reaches, such as 1000000"
        found.append(Finding(severity, "null-becomes-default", key, (), message, remedy))
    return found


def _unreached(settings: Settings, reached: Mapping[StageName, Mapping[str, int]], policy: Policy) -> list[Finding]:
    """Tell of stages that could speak and that the corpus never reaches, per kind."""
    capped = [kind for kind in _capped(settings) if ":" not in kind]
    dead = dead_stages(settings, policy)
    stages: tuple[tuple[StageName, str, float | None], ...] = (
        ("warn", "warnAt", settings.warn_at),
        ("summarize", "summarizeAt", settings.summarize_at),
        ("gate", "limits", 0),
        ("fail-warn", "failWarnAt", settings.fail_warn_at),
        ("fail-gate", "failLimit", settings.fail_limit),
    )
    found: list[Finding] = []
    for stage, key, threshold in stages:
        if threshold is None:
            continue
        counts = Counter(reached.get(stage, {}))
        silent = tuple(kind for kind in capped if not counts[kind] and kind not in dead.by_kind.get(stage, ()))
        if silent:
            message = f"reached: 0 times in this corpus for {_listed(silent)}"
            remedy = "nothing is wrong with it; this corpus cannot tell what another value would do"
            found.append(Finding("note", "never-reached", key, silent, message, remedy, reached=0))
    return found
