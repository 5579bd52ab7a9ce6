"""A series of the index with its points, and with what was judged of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from streamgauge.bench.answers import functional
from streamgauge.records.judgement import Judgement, SelfTest
from streamgauge.results.index import Index

Row = dict[str, Any]


@dataclass(frozen=True)
class History:
    """A series: what it measures and where, its points oldest first, the judgements on it."""

    row: Row
    points: list[Row]
    judged: list[Judgement]

    @classmethod
    def of(cls, index: Index, row: Row) -> Self:
        """The series of that row of the index."""
        return cls(row, index.history(row["key"]), index.judged(row["key"]))

    @property
    def metric(self) -> str:
        return str(self.row["metric"])

    @property
    def sound(self) -> list[Row]:
        return [point for point in self.points if functional.is_sound(point)]

    @property
    def places(self) -> dict[str, int]:
        """Index of each sound point by its time."""
        return {str(point["at"]): place for place, point in enumerate(self.sound)}

    @property
    def self_test(self) -> SelfTest | None:
        """The latest A/A comparison; None if there was none."""
        tests = [(one.changed_at, one.evidence) for one in self.judged if isinstance(one.evidence, SelfTest)]
        return max(tests, key=lambda test: test[0])[1] if tests else None


def moment_of(point: Row) -> float:
    return datetime.fromisoformat(str(point["at"])).timestamp()
