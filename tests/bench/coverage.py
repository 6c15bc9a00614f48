"""Measure by simulation how often the intervals and the floor hold; `--record` writes the numbers that outputs quote.

Sessions are drawn whose truth is known, thousands of times: what an interval should hold, it holds or not.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import nbinom

from analysis.shares import session_share
from analysis.sweep.conformal import floor_of
from analysis.sweep.evidence import FloatArray
from analysis.sweep.intervals import bootstrap_totals, effective_sessions

RECORD = Path(__file__).parents[2] / "analysis" / "sweep" / "coverage.json"
SIZES = (30, 107, 1000)
TRIALS = 4000
AT_ONCE = 100
"""Trials that share the draws of the bootstrap."""
SEED = 20
LEAST_RATE, MOST_RATE = 0.05, 0.95
"""Rates of sessions are drawn evenly between them."""
ALPHAS = (0.05, 0.1, 0.2)
GOOD_RUNS = (19, 20, 50, 200)
PEAKS = 12
"""The mean of a good run's highest count in the simulation of the floor."""

Shape = Callable[[np.random.Generator, tuple[int, int]], FloatArray]
"""Draws the counts of sessions."""


def _lognormal(chance: float, centre: float, width: float) -> tuple[Shape, float]:
    """Return counts of which a share is above 0, and those log-normal; and their mean."""

    def draw(generator: np.random.Generator, size: tuple[int, int]) -> FloatArray:
        present = generator.random(size) < chance
        return np.where(present, np.exp(generator.normal(centre, width, size)), 0.0)

    return draw, chance * float(np.exp(centre + width * width / 2))


def _few(generator: np.random.Generator, size: tuple[int, int]) -> FloatArray:
    """Draw counts of which most sessions have a few."""
    return generator.poisson(2.0, size).astype(np.float64)


SHAPES: dict[str, tuple[Shape, float]] = {
    "even": (_few, 2.0),
    "skewed": _lognormal(0.24, 1.2, 1.0),
    "heavy": _lognormal(0.24, 1.2, 1.6),
    "extreme": _lognormal(0.09, 4.0, 1.6),
}
"""`skewed` and `heavy` are advisories in a quarter of the sessions, as recorded corpora have; `extreme` gated calls."""


def count_cell(sessions: int, name: str, trials: int) -> dict[str, object]:
    """Return how often the bootstrap's interval of a sum holds the expected sum."""
    shape, mean = SHAPES[name]
    generator = np.random.default_rng([SEED, sessions, list(SHAPES).index(name)])
    held = 0
    effective: list[float] = []
    for turn in range(0, trials, AT_ONCE):
        values = shape(generator, (sessions, AT_ONCE))
        low, high = bootstrap_totals(values, seed=turn)
        held += int(((low <= mean * sessions) & (mean * sessions <= high)).sum())
        effective += effective_sessions(values).tolist()
    return {
        "sessions": sessions,
        "shape": name,
        "effective": round(float(np.median(effective)), 1),
        "coverage": round(held / trials, 3),
        "trials": trials,
    }


def rate_cell(sessions: int, trials: int) -> dict[str, object]:
    """Return how often Wilson's interval holds a rate drawn evenly, and the worst of fixed rates."""
    generator = np.random.default_rng([SEED, sessions])

    def share_held(rates: FloatArray) -> float:
        parts = generator.binomial(sessions, rates)
        held = 0
        for part, rate in zip(parts.tolist(), rates.tolist(), strict=True):
            share = session_share(part, sessions)
            held += share.low is not None and share.high is not None and share.low <= rate <= share.high
        return held / rates.size

    drawn = share_held(generator.uniform(LEAST_RATE, MOST_RATE, trials * 5))
    fixed = [share_held(np.full(trials, rate)) for rate in (0.05, 0.1, 0.25, 0.5)]
    return {
        "sessions": sessions,
        "coverage": round(drawn, 3),
        "lowest": round(min(fixed), 3),
        "highest": round(max(fixed), 3),
        "trials": trials,
    }


def floor_cell(good: int, alpha: float, trials: int) -> dict[str, object]:
    """Return the chance that one more good run is touched by the floor that the others give."""
    generator = np.random.default_rng([SEED, good, round(alpha * 1000)])
    chance = 2 / (2 + PEAKS)
    errors: list[float] = []
    for peaks in generator.negative_binomial(2, chance, (trials, good)).tolist():
        threshold = floor_of(peaks, alpha).threshold
        if threshold is not None:
            errors.append(float(nbinom.sf(threshold - 1, 2, chance)))
    error = round(float(np.mean(errors)), 4) if errors else None
    return {"good": good, "alpha": alpha, "error": error, "missing": floor_of([0] * good, alpha).missing}


def measure(trials: int) -> dict[str, object]:
    """Return all the numbers."""
    return {
        "seed": SEED,
        "rates": [rate_cell(sessions, trials) for sessions in SIZES],
        "counts": [count_cell(sessions, name, trials) for sessions in SIZES for name in SHAPES],
        "floor": [floor_cell(good, alpha, trials * 5) for good in GOOD_RUNS for alpha in ALPHAS],
    }


def main() -> None:
    """Print the numbers, and record them where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--record", action="store_true", help="replace the recorded numbers")
    given = parser.parse_args()
    text = json.dumps(measure(given.trials), indent=1)
    if given.record:
        RECORD.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
