"""The steps of a search: hold a backlog, recover from one, or done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from streamgauge.bench.measurements.search.record import Constraint, Doubt, Estimate, SearchOutcome
from streamgauge.bench.search.estimate import relative_error
from streamgauge.records.measurement import Batch, Purpose

#: batches of a window at least
LEAST_BATCHES = 4


@dataclass(frozen=True)
class Hold:
    """A closed-loop window: the driver keeps so many rows waiting until `enough` is true."""

    process: int
    purpose: Purpose
    rows: int
    reason: str
    least_s: float
    most_s: float
    error: float = 0.0  # relative standard error of its mean that is enough
    least_batches: int = LEAST_BATCHES
    block: int = 0  # which block of the process a window of purpose pair belongs to

    def enough(self, batches: Sequence[Batch]) -> bool:
        """True once least_s have passed and the error of the mean is small enough, or once most_s have passed."""
        seconds = sum(batch.seconds for batch in batches)
        if len(batches) < self.least_batches or seconds < self.least_s:
            return False
        return seconds >= self.most_s or relative_error(batches) <= self.error


@dataclass(frozen=True)
class Recover:
    """A proof trial: the driver offers at this rate, from a backlog of that age on, until the sign is clear."""

    process: int
    purpose: Purpose
    rate_events_per_s: float
    behind_s: float
    longest_s: float
    noise: float  # relative deviation of a batch, for the error of the sign
    reason: str


@dataclass(frozen=True)
class Done:
    """The end of a search: the answer, the figures behind it, and the remaining doubts."""

    rate_events_per_s: float
    interval: tuple[float, float] | None
    interval_of: Literal["processes", "fit"]
    proven: tuple[float | None, float | None]  # the highest rate that recovered, the lowest that did not
    outcome: SearchOutcome
    reason: str
    constraint: Constraint | None
    processes: tuple[Estimate, ...]
    doubts: tuple[Doubt, ...] = ()


Step = Hold | Recover | Done
