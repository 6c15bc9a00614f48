"""Known-good sessions in a folder of their own, and checks over them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from analysis.regress import Checker, Verdict, load_check
from analysis.synth import write_corpus

TODAY = date(2026, 3, 1)
WHOLE = """
[check]
sessions = ["good"]
baseline = false

[check.limits]
sessions_gated = 0
"""


def write_good(folder: Path, *, sessions: int = 40, plain: bool = True) -> list[str]:
    """Write the labelled corpus, keep its good sessions under `folder`/good, and return their ids."""
    truth = write_corpus(folder / "all", "labelled", sessions=sessions, plain=plain)
    kept: list[str] = []
    for session in truth.sessions:
        if session.label == "good":
            kept.append(session.id)
            log = folder / "all" / session.files[0].path
            shutil.move(log.parent, folder / "good" / session.id)
    shutil.rmtree(folder / "all")
    return kept


def log_of(folder: Path, session: str) -> Path:
    """Return a session's log."""
    return next((folder / "good" / session).iterdir())


def configure(folder: Path, text: str) -> Path:
    """Write a configuration."""
    path = folder / "breaker.toml"
    path.write_text(text, encoding="utf-8")
    return path


def checker(folder: Path, text: str, *, today: date = TODAY, paths: Sequence[str] | None = None) -> Checker:
    """Return a check over a folder."""
    config = load_check(configure(folder, text))
    return Checker(config, config.plan(), today, paths)


def verdict(folder: Path, text: str, *, today: date = TODAY) -> Verdict:
    """Run a check over a folder."""
    return checker(folder, text, today=today).run()


def found(result: Verdict) -> list[tuple[str, str]]:
    """Return rule and subject of what fails."""
    return [(finding.rule, finding.subject) for finding in result.failures]
