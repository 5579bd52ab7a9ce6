"""A series of the index with its points, and with what was judged of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from streamgauge.records.judgement import Judgement, SelfTest
from streamgauge.records.series import Point, SeriesHead
from streamgauge.results.index import Index


@dataclass(frozen=True)
class History:
    """A series: its head, its points oldest first, the judgements on it."""

    head: SeriesHead
    points: list[Point]
    judged: list[Judgement]

    @classmethod
    def of(cls, index: Index, head: SeriesHead) -> Self:
        return cls(head, index.history(head.key), index.judged(head.key))

    @property
    def sound(self) -> list[Point]:
        return [point for point in self.points if point.is_sound]

    @property
    def places(self) -> dict[str, int]:
        """Index of each sound point by its time."""
        return {point.at: place for place, point in enumerate(self.sound)}

    @property
    def self_test(self) -> SelfTest | None:
        """The latest A/A comparison; None if there was none."""
        tests = [(one.changed_at, one.evidence) for one in self.judged if isinstance(one.evidence, SelfTest)]
        return max(tests, key=lambda test: test[0])[1] if tests else None
