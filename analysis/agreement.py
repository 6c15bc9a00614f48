"""How far two detectors agree beyond chance: Cohen's kappa with its large-sample interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from analysis.shares import NORMAL_QUANTILE

__all__ = ["Agreement"]


@dataclass(frozen=True, slots=True)
class Agreement:
    """In how many sessions two detectors fire together, alone, or not at all."""

    both: int
    only_first: int
    only_second: int
    neither: int

    @property
    def sessions(self) -> int:
        """All sessions."""
        return self.both + self.only_first + self.only_second + self.neither

    @property
    def agreed(self) -> int:
        """Sessions of which both say the same."""
        return self.both + self.neither

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa: 1 for full agreement, 0 for what chance alone would give.

        None without sessions, and where both detectors always fire or both never do: then chance explains everything.
        """
        number = self.sessions
        if not number:
            return None
        chance = self._chance()
        return None if chance == 1 else (self.agreed / number - chance) / (1 - chance)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of kappa by its large-sample standard error (Fleiss, Cohen and Everitt, 1969).

        None where kappa is, and where the standard error is 0 (no session at all of which they disagree, or none of
        which they agree): the formula would claim certainty there, however few the sessions.
        """
        kappa = self.kappa
        if kappa is None:
            return None
        number = self.sessions
        first = ((self.both + self.only_first) / number, (self.only_second + self.neither) / number)
        second = ((self.both + self.only_second) / number, (self.only_first + self.neither) / number)
        share = 1 - kappa
        agreeing = sum(
            count / number * (1 - (first[at] + second[at]) * share) ** 2
            for at, count in enumerate((self.both, self.neither))
        )
        apart = self.only_first / number * (second[0] + first[1]) ** 2
        apart += self.only_second / number * (second[1] + first[0]) ** 2
        chance = self._chance()
        variance = agreeing + share**2 * apart - (kappa - chance * share) ** 2
        if self.agreed in {0, number} or variance <= 0:
            return None
        error = NORMAL_QUANTILE * sqrt(variance / number) / (1 - chance)
        return max(kappa - error, -1.0), min(kappa + error, 1.0)

    def _chance(self) -> float:
        """Return the share of sessions two unrelated detectors of these habits would agree on."""
        number = self.sessions
        first, second = self.both + self.only_first, self.both + self.only_second
        return (first * second + (number - first) * (number - second)) / number**2
