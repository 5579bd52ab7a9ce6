"""Figures that a driver process tells of a trial over the wire (docs/protocol.md); plain dicts at run time."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict  # before Python 3.12, pydantic reads no other

from streamgauge.base.histogram import Counts

#: (wall clock in ns, age in s, backlog, rows taken before), as `queues.Taken` on the wire
QueueSample = tuple[int, float, int, int]


class Slip(TypedDict):
    """Quantiles of what the driver's schedule slipped, ns."""

    p50: int | None
    p99: int | None
    max: int | None


class QueuesState(TypedDict):
    """State of the queues; lists have a figure for each queue, sentinels included."""

    offered: list[int]
    planned: list[int]
    committed: list[int]
    again: NotRequired[int]  # rows that were read once more
    backlog: int
    age_s: float
    overflow: bool
    uncommitted: bool
    finished: bool
    capacity_rows: int
    batches: int
    plans_after_end: int


class DriverStatus(QueuesState):
    """Status of a driver process."""

    attempt: str
    state: str  # open, started, stopped, overflow, failed
    hold: bool
    behind_s: float
    failure: str | None
    ready: bool
    start_wall_ns: int
    stream: int
    latest: int  # the latest time of all loops that were begun, in ticks
    soon: int
    clock_step_ns: int
    slip_ns: Slip
    memory_rows: int
    wall_ns: int
    partitions: int
    loops: int
    lap_rows: list[int]  # of each queue, in a loop of the stream
    out_of_order: int  # events of the first loop
    ids: dict[str, int]
    round: int
    stream_seconds_per_second: float
    cpu_seconds: float
    memory_bytes: int
    peak_memory_bytes: int


class DriverFigures(DriverStatus):
    """Status of a driver process, as a trial's record keeps it."""

    final: NotRequired[QueueSample | None]  # at the end of the offering
    refused: NotRequired[str | None]  # what was wrong with the first report that was refused


class DriverSamples(DriverFigures):
    """Status with samples of the queues: one for each hand-over, and one every 100 ms."""

    samples: list[QueueSample]
    clock: list[QueueSample]


class OwnFigures(TypedDict, total=False):
    """An engine's own figures of an epoch; it may tell more than is asked for."""

    late: int  # events that it has dropped


class ReportBody(TypedDict):
    """The report of one epoch, as the driver has checked it."""

    rows: int
    event_latency: Counts
    processing_latency: Counts
    negative: NotRequired[int]
    least_ns: NotRequired[int | None]
    checksum: NotRequired[int | None]
    emitted_wall_ns: NotRequired[list[int] | None]
    emitted_mean_wall_ns: NotRequired[int | None]
    clock_offset_ns: NotRequired[list[int] | None]
    batch: NotRequired[OwnFigures | None]
    split: NotRequired[bool]


class EpochReport(TypedDict):
    """A report and its epoch."""

    epoch: int
    body: ReportBody


class Observed(DriverSamples):
    """Observation of a trial that has ended, by a driver process."""

    reports: list[EpochReport]
    more: bool  # further reports are on another page
    slip: Counts
