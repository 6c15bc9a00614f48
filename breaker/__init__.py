"""The guard's engine: pure, deterministic, without I/O, importable by a live agent host.

```python
from breaker import Breaker, Call

guard = Breaker()
guard.turn()  # at every human message: what was counted starts anew
call = Call("bash", {"command": "curl -s https://api.example.com/items"})
measured = guard.measure(call)
question = guard.ask(measured)  # put it to an operator where there is one
decision = guard.guard(measured) if question is None else guard.decline(measured, question)
if not decision.withheld:
    guard.settle(measured, guard.classify(call, {"isError": False, "value": {"exitCode": 6}}).failure)
```
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from breaker.engine import (
        Advisory,
        Ask,
        Breaker,
        Decision,
        FailureAdvisory,
        Hit,
        Settlement,
    )
    from breaker.failure import Classification, Failure, classify, describe
    from breaker.kinds import kind_of, measure_rank
    from breaker.measures import Call, MeasuredCall, Measurer, is_shell_tool, is_url_tool
    from breaker.messages import Messages, Notice
    from breaker.rulesets import (
        DEFAULT_RULESET,
        RULESETS,
        Ruleset,
        ShellHttpRules,
        UnknownRulesetError,
        differences,
        predecessor,
        ruleset_named,
    )
    from breaker.settings import Settings, SettingsError
    from breaker.shellhttp import LOOPBACK, Candidate, ShellHttpPolicy, Verdict, this_machine
    from breaker.version import __version__

__all__ = [
    "DEFAULT_RULESET",
    "LOOPBACK",
    "RULESETS",
    "Advisory",
    "Ask",
    "Breaker",
    "Call",
    "Candidate",
    "Classification",
    "Decision",
    "Failure",
    "FailureAdvisory",
    "Hit",
    "MeasuredCall",
    "Measurer",
    "Messages",
    "Notice",
    "Ruleset",
    "Settings",
    "SettingsError",
    "Settlement",
    "ShellHttpPolicy",
    "ShellHttpRules",
    "UnknownRulesetError",
    "Verdict",
    "__version__",
    "classify",
    "describe",
    "differences",
    "is_shell_tool",
    "is_url_tool",
    "kind_of",
    "measure_rank",
    "predecessor",
    "ruleset_named",
    "this_machine",
]

_HOMES = {
    "breaker.engine": (
        "Advisory",
        "Ask",
        "Breaker",
        "Decision",
        "FailureAdvisory",
        "Hit",
        "Settlement",
    ),
    "breaker.failure": ("Classification", "Failure", "classify", "describe"),
    "breaker.measures": ("Call", "MeasuredCall", "Measurer", "is_shell_tool", "is_url_tool"),
    "breaker.kinds": ("kind_of", "measure_rank"),
    "breaker.messages": ("Messages", "Notice"),
    "breaker.rulesets": (
        "DEFAULT_RULESET",
        "RULESETS",
        "Ruleset",
        "ShellHttpRules",
        "UnknownRulesetError",
        "differences",
        "predecessor",
        "ruleset_named",
    ),
    "breaker.settings": ("Settings", "SettingsError"),
    "breaker.shellhttp": ("LOOPBACK", "Candidate", "ShellHttpPolicy", "Verdict", "this_machine"),
    "breaker.version": ("__version__",),
}
"""Where each name lives. It is imported when the name is first used, so that a host loads what it runs."""


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
