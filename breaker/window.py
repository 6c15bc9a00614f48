"""The state the guard keeps of one agent: recent calls, streaks, exemptions and refusals."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from breaker.failure import Failure

__all__ = ["AgentState"]


class AgentState:
    """The window of recent records as running counts, and the failure streaks of one agent.

    A record is the list of measures one call committed; it may hold a measure twice, and then counts it twice.
    """

    __slots__ = (
        "_records",
        "_size",
        "commits",
        "counts",
        "exempt",
        "last_result",
        "refused",
        "streak_failures",
        "streaks",
    )

    def __init__(self, size: int) -> None:
        self._size = size
        self._records: deque[tuple[str, ...]] = deque()
        self.counts: dict[str, int] = {}
        """Occurrences of each measure in the window; a measure without any is absent."""
        self.commits = 0
        """Records committed so far, those that have left the window too."""
        self.exempt: set[str] = set()
        """Measures an approval has freed for the rest of the turn."""
        self.refused: set[str] = set()
        """Measures whose ask was declined in this turn."""
        self.streaks: dict[str, int] = {}
        """Consecutive failures per measure; a measure without any is absent."""
        self.streak_failures: dict[str, Failure] = {}
        """The last failure of each streak."""
        self.last_result = ""
        """The text of the last settled result, cut to the configured length."""

    @property
    def records(self) -> int:
        """The number of records in the window."""
        return len(self._records)

    @property
    def recent(self) -> tuple[tuple[str, ...], ...]:
        """The records in the window, oldest first."""
        return tuple(self._records)

    def next_count(self, measure: str) -> int:
        """Return the count a call reaches for a measure: its occurrences in the window, plus this one."""
        return self.counts.get(measure, 0) + 1

    def commit(self, measures: Iterable[str]) -> None:
        """Record one call's measures, without the exempt ones; nothing left, nothing recorded."""
        exempt = self.exempt
        record = tuple(measure for measure in measures if measure not in exempt) if exempt else tuple(measures)
        if not record:
            return
        records, counts = self._records, self.counts
        records.append(record)
        self.commits += 1
        for measure in record:
            counts[measure] = counts.get(measure, 0) + 1
        while len(records) > self._size:
            for measure in records.popleft():
                left = counts[measure] - 1
                if left:
                    counts[measure] = left
                else:
                    del counts[measure]

    def fail(self, measure: str, failure: Failure) -> int:
        """Lengthen a measure's streak and return its new length."""
        streak = self.streaks.get(measure, 0) + 1
        self.streaks[measure] = streak
        self.streak_failures[measure] = failure
        return streak

    def succeed(self, measure: str) -> None:
        """Forget a measure's streak."""
        if self.streaks.pop(measure, None) is not None:
            del self.streak_failures[measure]
