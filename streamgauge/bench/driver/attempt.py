"""The state of a trial within a driver process."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from streamgauge import config
from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.clock import Clock
from streamgauge.bench.driver.ids import Ids
from streamgauge.bench.driver.marking import UNMARKED, Marking
from streamgauge.bench.driver.queues import Queues
from streamgauge.bench.driver.replay import DAY_PS, Before, Feed, Replay
from streamgauge.bench.driver.schedule import Schedule, schedule
from streamgauge.records.driver import DriverStatus

#: rows that a driver process offers in a second at most, whatever the rate of a closed loop
_MOST_PER_S = 1e6
#: reports of an answer, which is one line of at most protocol.MAX_ANSWER bytes; a report of many latencies has 8 KiB
PAGE = 5_000


@dataclass
class Attempt:
    """A trial as a driver process sees it."""

    name: str
    rate: float  # of this process, events/s
    seconds: float
    schedule: Schedule
    queues: Queues
    replay: Replay
    partitions: range  # those of this process
    all_partitions: int
    share: float = 1.0  # of the events, that this process has
    stream: int = 0  # which of the driver's streams it replays
    hold: bool = False  # a closed loop: a number of rows is kept waiting, whatever the rate
    behind_s: float = 0.0  # age of the backlog at the start
    state: str = "open"  # open, started, stopped, overflow, failed
    failure: str | None = None
    marking: Marking = UNMARKED
    ids: Ids = field(default_factory=Ids)
    lap_rows: tuple[int, ...] = ()  # of each queue, in a loop of the stream
    horizon_ps: int = DAY_PS  # how far after the last event the sentinel is
    clock: Clock = field(default_factory=Clock)
    ready: bool = False
    start_wall_ns: int = 0
    slip: Histogram = field(default_factory=Histogram)
    reports: dict[int, dict[str, Any]] = field(default_factory=dict)
    refused: str | None = None  # what was wrong with the first report that was refused
    cpu_begin_s: float = 0.0
    cpu_end_s: float | None = None
    feeds: list[Feed] = field(default_factory=list)
    filling: threading.Lock = field(default_factory=threading.Lock)  # held while rows are made, or the stream changes
    stream_from: int = 0  # the row, over all queues, from which on rows are of the stream

    def __post_init__(self) -> None:
        self._stepped_before_ns = self.clock.stepped_ns()

    def feed(self, first_wall_ns: int, before: Before | None = None) -> None:
        """Begins the stream in each partition; its first event is due at that instant."""
        self.feeds = [
            Feed(self.replay, self.schedule, first_wall_ns, partition, self.all_partitions, self.marking, before)
            for partition in self.partitions
        ]

    def turn_to(self, replay: Replay, stream: int, settings: config.Offered, first: int) -> None:
        """Goes on with another stream at the same rate; no time of it is below `first`, in ticks."""
        rate = self.rate / self.share
        with self.filling:
            before = Before.of([feed.before(replay, first) for feed in self.feeds])
            self.stream_from = self.queues.cut(self.clock.wall())
            self.replay, self.stream = replay, stream
            self.schedule = schedule_of(settings, replay, rate, self.seconds, self.behind_s)
            self.feed(max(feed.last_wall for feed in self.feeds if feed.rows), before)

    @property
    def latest(self) -> int:
        """The latest time of all loops that were begun, in ticks."""
        return max((feed.latest() for feed in self.feeds), default=self.replay.latest)

    @property
    def soon(self) -> int:
        """A time that is not reached within a second, in ticks: loops go on while the controller changes the stream."""
        loops = 1 + min(self.rate, _MOST_PER_S) // max(1, sum(self.lap_rows))
        return self.latest + int(loops) * self.replay.loop.shift

    def status(self, memory_rows: int, memory_bytes: int, peak_memory_bytes: int) -> DriverStatus:
        """State of the trial, its queues and its process. memory_rows: that the queues may keep."""
        now, slip = self.clock.wall(), self.slip
        queues = self.queues.state(now)
        offered = list(zip(self.feeds, self.events(), strict=False))
        cpu_s = time.process_time() if self.cpu_end_s is None else self.cpu_end_s
        return {
            "attempt": self.name,
            "state": self.state,
            "hold": self.hold,
            "behind_s": self.behind_s,
            "failure": self.failure,
            "ready": self.ready,
            "start_wall_ns": self.start_wall_ns,
            "stream": self.stream,
            "latest": self.latest,
            "soon": self.soon,
            "clock_step_ns": self.clock.stepped_ns() - self._stepped_before_ns,
            "slip_ns": {"p50": slip.quantile(0.5), "p99": slip.quantile(0.99), "max": slip.max},
            "memory_rows": memory_rows,
            "wall_ns": now,
            "partitions": len(self.partitions),
            **queues,
            "loops": max((feed.loops(rows) for feed, rows in offered), default=0),
            "lap_rows": list(self.lap_rows),
            "out_of_order": sum(feed.out_of_order(rows) for feed, rows in offered),
            "ids": dict(self.ids.steps),
            "round": self.marking.round,
            "stream_seconds_per_second": self.replay.speed(self.rate / self.share),
            "cpu_seconds": cpu_s - self.cpu_begin_s,
            "memory_bytes": memory_bytes,
            "peak_memory_bytes": peak_memory_bytes,
        }

    def observed(self, first: int = 0) -> dict[str, object]:
        """Samples and slips of the whole trial, and a page of its reports. first: number of those before it."""
        queues, reports = self.queues, sorted(self.reports.copy().items())
        return {
            "samples": [*queues.samples],
            "clock": [*queues.clock],
            "final": queues.final,
            "reports": [{"epoch": epoch, "body": body} for epoch, body in reports[first : first + PAGE]],
            "more": len(reports) > first + PAGE,
            "refused": self.refused,
            "slip": self.slip.to_dict(),
        }

    def events(self) -> list[int]:
        """Offered events per partition, without sentinels."""
        return [rows - (self.state == "stopped") for rows in self.queues.offered(self.clock.wall())]


def schedule_of(settings: config.Offered, replay: Replay, rate: float, seconds: float, behind_s: float) -> Schedule:
    """The schedule of a stream; with a backlog it is constant, as only then the age's drift tells of the rate."""
    settings = config.Offered() if behind_s else settings  # its defaults are constant
    return schedule(rate, seconds, replay.loop, mode=settings.mode, profile=settings.profile)
