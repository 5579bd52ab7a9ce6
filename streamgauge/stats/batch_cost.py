"""Gives the time of a micro-batch over its rows, and the rows of a batch that lasts a given time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class BatchCost:
    """A batch of n rows takes a + b·n + q·n² seconds.

    q is what large batches cost beyond a line: memory that is collected, sorts, caches that no longer hold the rows.
    """

    batch_s: float  # a
    row_s: float  # b
    growth_s: float = 0.0  # q

    def seconds(self, rows: float) -> float:
        return self.batch_s + (self.row_s + self.growth_s * rows) * rows

    def rows(self, seconds: float) -> float:
        """Rows of a batch that lasts so long: 0 if none does, infinite if rows cost nothing."""
        left = seconds - self.batch_s
        if left <= 0:
            return 0.0
        slope = self.row_s + math.sqrt(self.row_s**2 + 4 * self.growth_s * left)
        return 2 * left / slope if slope > 0 else math.inf

    def last_row_s(self, rows: float) -> float:
        """Seconds that one more row takes in a batch of so many."""
        return self.row_s + 2 * self.growth_s * rows

    def times(self, factor: float) -> BatchCost:
        """The cost where all takes so many times as long."""
        return BatchCost(factor * self.batch_s, factor * self.row_s, factor * self.growth_s)

    def through(self, seconds: float, rows: float) -> BatchCost:
        """The cost of the same batch cost and shape by which a batch of so many rows takes so long."""
        factor = max(1e-9, seconds - self.batch_s) / max(1e-12, self.seconds(rows) - self.batch_s)
        return BatchCost(self.batch_s, factor * self.row_s, factor * self.growth_s)

    def settles_at(self, rate: float) -> float | None:
        """Seconds T of the batches at which events at this rate settle: rate·T rows take T. None if they never do."""
        left = 1 - self.row_s * rate
        inside = left**2 - 4 * self.growth_s * rate**2 * self.batch_s
        return 2 * self.batch_s / (left + math.sqrt(inside)) if left > 0 and inside >= 0 else None


def mean_cost(costs: Iterable[tuple[float, BatchCost]]) -> BatchCost:
    """The mean of costs, each with its weight; the weights sum up to 1."""
    parts = [(weight * one.batch_s, weight * one.row_s, weight * one.growth_s) for weight, one in costs]
    return BatchCost(*map(sum, zip(*parts, strict=True)))
