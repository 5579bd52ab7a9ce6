"""A series of the index with its points, its judgements and its change points."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from streamgauge.bench.answers import functional
from streamgauge.results.index import Index
from streamgauge.stats.changes import ALPHA, Found, find
from streamgauge.stats.suspects import SELF

Row = dict[str, Any]
_DAY_S = 86_400


@dataclass(frozen=True)
class History:
    """A series: what it measures and where, its points oldest first, the judgements on it."""

    row: Row
    points: list[Row]
    judged: list[Row]

    @classmethod
    def of(cls, index: Index, row: Row) -> Self:
        """The series of that row of the index."""
        return cls(row, index.history(row["key"]), index.judgements(row["key"]))

    @property
    def metric(self) -> str:
        return str(self.row["metric"])

    @property
    def sound(self) -> list[Row]:
        return [point for point in self.points if functional.is_sound(point)]

    @property
    def self_test(self) -> Row | None:
        """Evidence of the latest A/A comparison; None if there was none."""
        tests = [j for j in self.judged if j["outcome"] == SELF]
        return max(tests, key=lambda j: str(j["changed_at"]))["evidence"] if tests else None

    def changes(self, together: int, alpha: float = ALPHA) -> Found:
        """Change points of the sound values; together: number of series that are searched."""
        values = [float(point["value"]) for point in self.sound]
        if not all(value > 0 for value in values):
            return Found([], None, None, False, len(values), "a value is zero or below: no ratio can be formed")
        days = [moment_of(point) / _DAY_S for point in self.sound]
        return find(values, days, alpha=alpha, series=max(together, 1))


def moment_of(point: Row) -> float:
    return datetime.fromisoformat(str(point["at"])).timestamp()
