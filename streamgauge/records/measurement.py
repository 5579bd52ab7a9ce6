"""Windows and trials that a search measures, and verdicts that it reaches; frozen, and parts of a run's logs.

Wall times are int64 nanoseconds since the epoch; ages, times since a begin and costs are seconds here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["sustainable", "unsustainable", "inconclusive"]
Purpose = Literal["compile", "warm-up", "ladder", "pair", "below", "above"]


@dataclass(frozen=True)
class Sample:
    """The queues at one instant: when a micro-batch was planned, or every 100 ms by the clock."""

    at_s: float  # since the trial's start
    age_s: float  # age of the oldest event offered and not yet handed over
    backlog: int  # offered − handed over, in events
    taken: int  # handed over since the start, in events
    warm: bool = True  # False while the trial settles: left out of a verdict


@dataclass(frozen=True)
class TrialObservation:
    """Observation of an open-loop trial, from which a verdict is made.

    `samples` has one entry per micro-batch, `clock` one every 100 ms; an engine without micro-batches is judged by
    the clock. `behind_s` is the age of the backlog with which a proof trial began.
    """

    rate_events_per_s: float
    seconds: float
    samples: tuple[Sample, ...]
    offered: int
    taken: int
    overflow: bool = False  # a queue was full: the trial ended there
    invalid: str | None = None  # why it measures nothing: driver slipped, a process died, output wrong …
    clock: tuple[Sample, ...] = ()
    behind_s: float = 0.0
    batch_noise: float | None = None  # relative deviation of a batch's cost, as the ladder has seen it
    uncommitted: bool = False  # the queue was full of rows that the system had taken and not committed


@dataclass(frozen=True)
class Verdict:
    """Result of a verdict function; missing data is inconclusive, never a pass."""

    outcome: Outcome
    reason: str
    figures: dict[str, float] = field(default_factory=dict)  # slope, interval, age … by name with unit


@dataclass(frozen=True)
class Batch:
    """A micro-batch of a closed-loop window; for an engine without any, the rows of some tenths of a second."""

    at_s: float  # its end, since the process began to work
    rows: int
    seconds: float


@dataclass(frozen=True)
class Window:
    """A closed-loop window: the driver kept `held_rows` waiting, and the system took them as fast as it could."""

    process: int
    purpose: Purpose
    held_rows: int
    batches: tuple[Batch, ...]
    invalid: str | None = None
    life: int = 0  # which start of the system it belongs to: a process that is lost is measured again from the start
    yardstick: tuple[float, float] | None = None  # speed of the fixed kernel before and after it, 1/s
    steal: float | None = None  # share of stolen time meanwhile
    block: int = 0  # of a window of purpose pair: which block of the process it belongs to
    held_back: bool = False  # rows that the system had not committed filled the driver's queues, so fewer waited
    stuck: bool = False  # the system ran, and took too few events in all of the time that a window may last

    @property
    def seconds(self) -> float:
        return sum(batch.seconds for batch in self.batches)

    @property
    def rows(self) -> int:
        return sum(batch.rows for batch in self.batches)


@dataclass(frozen=True)
class TrialRecord:
    """A proof trial, as the search sees it."""

    process: int
    purpose: Purpose
    rate_events_per_s: float
    seconds: float
    verdict: Verdict
    valid: bool = True  # False: it measured nothing, whatever its verdict says
    correct: bool | None = None  # None: its output was not compared
    life: int = 0  # which start of the system it belongs to, as a window's; 0: not known


Measurement = Window | TrialRecord


@dataclass(frozen=True)
class Limits:
    """Limits that the driver sets: its own ceiling, and the rows that may wait: half of what its queues hold."""

    max_rate: float = math.inf
    most_rows: float = math.inf
    continuous: bool = False  # the engine has no micro-batches
    pinned: bool = False  # the system keeps to some CPUs once it has compiled
    lasts: bool = True  # a process goes on from a proof trial to the next window


@dataclass(frozen=True)
class Ceiling:
    """The driver's delivery to a consumer in the controller. A trial at a rate near it measures the driver."""

    events_per_s: float
    driver_cpu_us_per_event: float
    consumer_cpu_us_per_event: float
    seconds: float
    processes: int
