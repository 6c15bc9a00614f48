"""`breaker approve`: write down what known-good sessions show today, for `breaker check` to hold them to."""

from __future__ import annotations

from cli.cache_options import CacheOption, cache_opener
from cli.check_options import (
    BaselineOption,
    CheckConfigOption,
    CheckPaths,
    CheckRulesetOption,
    SettingsOption,
    StrictOption,
    load,
)
from cli.exits import FINE, NOT_ENOUGH, UNREADABLE, USAGE, Failed, warn
from cli.settings import SetOption

__all__ = ["approve"]


def approve(
    paths: CheckPaths = None,
    config: CheckConfigOption = None,
    settings: SettingsOption = None,
    sets: SetOption = None,
    ruleset: CheckRulesetOption = None,
    baseline: BaselineOption = None,
    strict: StrictOption = False,
    cache: CacheOption = None,
) -> int:
    """Approve what the sessions show now: write the baseline that `breaker check` compares with.

    The file holds no measure and no word of a session, one session a line: read its diff before committing it.
    """
    from analysis.regress import Approval, CheckError
    from cli.progress import byte_progress
    from cli.text import counted, plain

    try:
        loaded, plan = load(config, settings=settings, sets=sets, ruleset=ruleset, baseline=baseline, strict=strict)
        with cache_opener(cache) as open_cache, byte_progress("reading sessions") as progress:
            approval = Approval.of(loaded, plan, paths, progress, open_cache)
    except CheckError as error:
        raise Failed(USAGE, str(error)) from None
    for note in approval.notes:
        warn(note)
    for shortage in approval.shortages:
        raise Failed(UNREADABLE if shortage.kind == "unreadable" else NOT_ENOUGH, shortage.message)
    try:
        approval.write()
    except OSError as error:
        raise Failed(USAGE, f"{approval.name}: cannot write the baseline: {error.strerror or error}") from None
    for line in approval.changes:
        print(plain(line))
    print(plain(f"{counted(len(approval.baseline.sessions), 'session')} approved in {approval.name}"))
    return FINE
