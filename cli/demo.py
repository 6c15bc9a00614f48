"""`breaker demo`: see the tool at work on a corpus it writes itself."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.exits import USAGE, Failed
from cli.output_options import output_faults
from cli.settings import DEFAULT_RULESET_NAME, ConfigOption, RulesetOption, SetOption, load_settings

if TYPE_CHECKING:
    from analysis.labels import LabelRules
    from analysis.synth import Truth

__all__ = ["demo"]

_EVERY_SESSION = 0


def demo(
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep", metavar="DIR", help="Write the sessions here and leave them.", show_default="a temporary folder"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Use a --keep folder that is not empty.")] = False,
    config: ConfigOption = None,
    sets: SetOption = None,
    ruleset: RulesetOption = DEFAULT_RULESET_NAME,
) -> None:
    """Write a small corpus of every behaviour, replay it, and say what each session is."""
    import tempfile

    from analysis.corpus import replay_corpus
    from analysis.replay import ReplayPlan
    from analysis.synth import SynthError, write_corpus
    from cli.replay_table import print_replay

    settings, rules = load_settings(config, sets, ruleset)
    with ExitStack() as stack:
        folder = keep
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="breaker-demo-")))
        try:
            with output_faults(folder):
                truth = write_corpus(folder, "demo", force=force)
        except SynthError as error:
            raise Failed(USAGE, str(error)) from None
        corpus = replay_corpus([folder], ReplayPlan(settings=settings, ruleset=rules), labels=_labels(truth))
        print_replay(corpus, events=False, top=_EVERY_SESSION)
    _print_sessions(truth)
    if keep is not None:
        print(f"\nThe sessions are in {keep}; try: breaker replay {keep} --events")


def _labels(truth: Truth) -> LabelRules:
    from analysis.labels import LabelRule, LabelRules

    return LabelRules(LabelRule(session.label, session.id, session.summary, "planted") for session in truth.sessions)


def _print_sessions(truth: Truth) -> None:
    print("\nWhat each session is")
    for session in truth.sessions:
        print(f"  {session.id[:16]}  {session.label:<7}  {session.summary}")
