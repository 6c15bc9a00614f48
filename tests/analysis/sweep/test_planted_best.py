"""With 20 good and 5 stuck sessions the planted best thresholds are found; with too few it is said."""

from __future__ import annotations

import random
from pathlib import Path
from typing import cast

import pytest

from analysis.sweep import Sweep
from analysis.synth import SessionTruth, Truth, write_corpus
from tests.analysis.sweep.corpora import swept

SESSIONS = 50
"""30 good and 20 stuck ones, of which each seed draws."""
SEEDS = 200
CORPORA = 20
"""Corpora written; each is drawn from ten times."""
LEAST_FOUND = 0.9
GOOD, STUCK = 20, 5


def drawn(truth: Truth, seed: int, good: int, stuck: int) -> list[SessionTruth]:
    chance = random.Random(seed)
    return [
        one
        for label, count in (("good", good), ("stuck", stuck))
        for one in chance.sample([each for each in truth.sessions if each.label == label], count)
    ]


def is_planted_best(sweep: Sweep, truth: Truth) -> bool:
    if sweep.front.recommended is None:
        return False
    settings = sweep.plan.configs[sweep.front.recommended].settings
    touch = cast("dict[str, list[int]]", truth.best["touch"])
    (least_warn, most_warn), (least_fail, most_fail) = touch["warnAt"], touch["failWarnAt"]
    warn, fail = settings.warn_at or 0, settings.fail_warn_at or 0
    return least_warn <= warn <= most_warn and least_fail <= fail <= most_fail


def share_found(folder: Path, corpora: int, seeds: int) -> float:
    found = 0
    for number in range(corpora):
        truth = write_corpus(folder / str(number), "labelled", sessions=SESSIONS, seed=number)
        for seed in range(number, seeds, corpora):
            sweep = swept(folder / str(number), drawn(truth, seed, GOOD, STUCK))
            found += is_planted_best(sweep, truth)
    return found / seeds


def test_the_planted_best_is_recommended_for_a_few_seeds(tmp_path: Path) -> None:
    assert share_found(tmp_path, 1, 4) >= LEAST_FOUND


@pytest.mark.slow
def test_the_planted_best_is_recommended_for_nearly_every_seed(tmp_path: Path) -> None:
    assert share_found(tmp_path, CORPORA, SEEDS) >= LEAST_FOUND


@pytest.mark.parametrize(
    ("good", "stuck", "told"),
    [(18, 5, "1 more sessions labelled good"), (20, 3, "1 more labelled stuck"), (2, 1, "17 more sessions")],
)
def test_too_few_are_said_to_be_too_few(tmp_path: Path, good: int, stuck: int, told: str) -> None:
    truth = write_corpus(tmp_path, "labelled", sessions=SESSIONS)
    front = swept(tmp_path, drawn(truth, 1, good, stuck)).front
    assert front.recommended is None
    assert told in front.why
