"""Start the processes a run asks for by number before its arguments are parsed: loading what parses them takes as long.

What is misread here costs time only. The processes wait for work, which the parsed options decide, and are ended where
none comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from cli.cache_names import CACHE_VARIABLE, is_off

__all__ = ["VERBS_THAT_READ", "jobs_number", "processes_asked_for", "started_early"]

VERBS_THAT_READ = frozenset({"replay", "sweep", "export", "histogram", "report", "compare"})
"""Those that are sure to read sessions, in several processes and with a cache where they are not told otherwise."""
_MOST_DIGITS = 3
_HELP = {"-h", "--help"}


def processes_asked_for(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Return how many processes will read for certain; 0 where a cache may make them needless, or that is open."""
    verb = next((argument for argument in arguments if not argument.startswith("-")), None)
    jobs = _last("--jobs", arguments)
    if verb not in VERBS_THAT_READ or jobs is None or not _HELP.isdisjoint(arguments):
        return 0
    count = jobs_number(jobs) or 0
    return count if count > 1 and is_off(_last("--cache", arguments) or environ.get(CACHE_VARIABLE)) else 0


def jobs_number(text: str) -> int | None:
    """Return the number of processes a text asks for, None where it is none from 1 to 999."""
    number = text.isascii() and text.isdigit() and 0 < len(text.lstrip("0")) <= _MOST_DIGITS
    return int(text) if number else None


def _last(option: str, arguments: Sequence[str]) -> str | None:
    """Return what an option is given, the last time it is."""
    given = None
    for number, argument in enumerate(arguments):
        if argument == option:
            given = next(iter(arguments[number + 1 :]), None)
        elif argument.startswith(f"{option}="):
            given = argument.removeprefix(f"{option}=")
    return given


def started_early(arguments: Sequence[str], environ: Mapping[str, str]) -> AbstractContextManager[None]:
    """Start them, as long as the context lasts."""
    count = processes_asked_for(arguments, environ)
    if not count:
        return nullcontext()
    from analysis.processes.ahead import started_for_reading

    return started_for_reading(count)
