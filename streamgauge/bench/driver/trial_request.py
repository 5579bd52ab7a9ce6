"""Says what is asked of a run of a started system, be it a trial or a loop, and how long it is waited for."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from streamgauge.bench.driver.marking import UNMARKED, Marking
from streamgauge.bench.driver.system import Endpoint
from streamgauge.bench.workloads import find
from streamgauge.config import Replay, Search, Workload
from streamgauge.records.driver import DriverFigures
from streamgauge.records.measurement import TrialObservation

#: events/s offered in a closed loop: more than any system takes, so that what it takes decides
OVERLOAD = 1e8
LONGEST_LADDER_S = 3600.0
#: watches the status of each driver process during a run
Watch = Callable[[Sequence[DriverFigures]], None]
#: a context that yields other endpoints for the same drivers
Through = Callable[[tuple[Endpoint, ...]], AbstractContextManager[tuple[Endpoint, ...]]]


@dataclass(frozen=True)
class Bounds:
    """Limits of a trial: how long it waits, and from when on the driver is held to be what limited it."""

    ready_s: float = 120.0
    drain_s: float = 60.0
    end_s: float = 60.0
    max_slip_s: float = 0.1
    max_clock_offset_s: float = 0.1
    settle_s: float = 0.0  # the first seconds of a trial that began with empty queues, which no verdict looks at

    @classmethod
    def of(cls, replay: Replay, search: Search, start_s: float, settle_s: float) -> Bounds:
        """The limits that settings ask for; start_s: how much longer than usual the system may take to start."""
        end_s, slip_s, clock_s = 2 * search.max_age.seconds, replay.max_slip.seconds, replay.max_clock_offset.seconds
        return cls(cls.ready_s + start_s, max(cls.drain_s, end_s), max(cls.end_s, end_s), slip_s, clock_s, settle_s)


@dataclass(frozen=True)
class TrialRequest:
    """Request for a run. Without rate and seconds it is one for a closed loop."""

    workload: Workload
    work: Path  # an empty directory for the system
    rate: float = OVERLOAD  # events/s
    seconds: float = LONGEST_LADDER_S
    bounds: Bounds = Bounds()
    behind_s: float = 0.0  # age of the backlog at the start
    batch_noise: float | None = None  # relative deviation of a batch's cost, as the ladder has seen it
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    marking: Marking = UNMARKED  # the columns that are ids, which have values of their own in each round
    stream: int = 0  # which one of the fleet's a trial has; a loop is told by its windows
    over: Callable[[TrialObservation], bool] | None = None  # ends a trial early, once it is true of what was seen
    progress: Watch | None = None  # called several times a second
    through: Through = nullcontext  # yields the endpoints that the system is given instead of the fleet's own

    @property
    def by_watermark(self) -> bool:
        """True if an answer waits for the watermark, so that the sentinel may let it out."""
        return find(self.workload.query).late != "never"

    @property
    def settling_s(self) -> float:
        """Seconds to leave out at the begin: 0 for a trial that begins behind, at most a quarter of a short one."""
        return 0.0 if self.behind_s else min(self.bounds.settle_s, self.seconds / 4)
