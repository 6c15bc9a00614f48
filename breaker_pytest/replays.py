"""What people's own tests call."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from analysis.corpus import CorpusReplay, replay_corpus
from analysis.replay import POLICIES, SHELL_HTTP_MODES, Policy, ReplayPlan, ShellHttpMode
from breaker.rulesets import DEFAULT_RULESET, ruleset_named
from breaker.settings import Settings, nearest_key, unknown_keys

__all__ = ["NothingReplayed", "Replayer", "replay"]

Replayer: TypeAlias = Callable[..., CorpusReplay]


class NothingReplayed(AssertionError):
    """No session could be replayed: a test of it must not pass for that."""


def replay(
    path: str | os.PathLike[str],
    *,
    ruleset: str = DEFAULT_RULESET.name,
    policy: Policy = "unattended",
    shell_http: ShellHttpMode = "auto",
    **settings: object,
) -> CorpusReplay:
    """Replay what a path holds, with every event.

    Args:
        path: a log, a session folder, an archive, or a folder of them.
        ruleset: which released behaviour of the guard to use.
        policy: what becomes of an ask.
        shell_http: where the shell-HTTP policy is engaged.
        settings: settings of the guard by its own names, over the defaults.

    Raises:
        PathMissing: the path does not exist.
        NothingReplayed: there is no session, or none that can be read.
        TypeError: a setting nobody knows.
        ValueError: a setting, ruleset, policy or mode that is refused.
    """
    rules = ruleset_named(ruleset)
    for value, known in ((policy, POLICIES), (shell_http, SHELL_HTTP_MODES)):
        if value not in known:
            message = f"{value!r} must be one of {', '.join(known)}"
            raise ValueError(message)
    for key in unknown_keys(settings, rules):
        near = nearest_key(key, rules)
        message = f"`{key}` is no setting of ruleset {rules.name}" + (f"; did you mean `{near}`?" if near else "")
        raise TypeError(message)
    plan = ReplayPlan(
        settings=Settings.from_config(settings, rules),
        ruleset=rules,
        policy=policy,
        shell_http=shell_http,
        keep_events=True,
    )
    corpus = replay_corpus([Path(path)], plan)
    if not corpus.sessions:
        states = ", ".join(f"{report.shown} is {report.state}" for report in corpus.reports)
        message = f"no session could be replayed in {os.fspath(path)}" + (f": {states}" if states else "")
        raise NothingReplayed(message)
    return corpus
