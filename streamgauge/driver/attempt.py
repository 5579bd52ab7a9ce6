"""The state of a trial within a driver process."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from streamgauge.driver.queues import Queues
from streamgauge.driver.replay import DAY_PS, Feed
from streamgauge.driver.schedule import Schedule
from streamgauge.search.histogram import Histogram


@dataclass
class Attempt:
    """A trial as a driver process sees it."""

    name: str
    rate: float  # of this process, events/s
    seconds: float
    schedule: Schedule
    queues: Queues
    hold: bool = False  # a closed loop: a number of rows is kept waiting, whatever the rate
    behind_s: float = 0.0  # age of the backlog at the start
    state: str = "open"  # open, started, stopped, overflow, failed
    failure: str | None = None
    horizon_ps: int = DAY_PS  # how far after the last event the sentinel is
    ready: bool = False
    start_wall_ns: int = 0
    slip: Histogram = field(default_factory=Histogram)
    reports: dict[int, dict[str, Any]] = field(default_factory=dict)
    cpu_begin_s: float = 0.0
    cpu_end_s: float | None = None
    feeds: list[Feed] = field(default_factory=list)

    def events(self) -> list[int]:
        """Offered events per partition, without sentinels."""
        return [rows - (self.state == "stopped") for rows in self.queues.offered(time.time_ns())]
