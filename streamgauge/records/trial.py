"""The records of trials and windows: the lines of a run's logs, and what driver and system counted in a trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict, Field, PlainSerializer, PlainValidator, WithJsonSchema, with_config
from typing_extensions import TypedDict

from streamgauge.base.histogram import Histogram
from streamgauge.bench.measurements.latency.record import Dropped
from streamgauge.records.driver import DriverFigures, OwnFigures, ReportBody
from streamgauge.records.loss import Loss
from streamgauge.records.measurement import (
    Ceiling,
    Limits,
    Measurement,
    Outcome,
    Purpose,
    TrialObservation,
    TrialRecord,
    Window,
)
from streamgauge.records.record import Line
from streamgauge.records.rules import Rules

#: logs in a cell's directory; `MeasuredWindow.read_log` and the like read them
WINDOWS, TRIALS = "windows.jsonl", "trials.jsonl"
LATENCY_TRIALS, LATENCY_TURNS = "latency-trials.jsonl", "latency-turns.jsonl"
#: why a trial is invalid whose rows were not all answered when patience ended
UNENDED = "the system did not end its work in time"
#: int64 on the wire, and in an adapter's figures
Whole = Annotated[int, Field(ge=0, lt=2**63)]
#: rows by partition
Offsets = Annotated[dict[str, Whole], Field(max_length=10_000)]
#: up to three centuries of CPU
Seconds = Annotated[float, Field(ge=0, le=1e10, allow_inf_nan=False)]
WatermarkMs = Annotated[int, Field(gt=-(2**62) // 1000, lt=2**62 // 1000)]


def _histogram(given: Any) -> Histogram:
    """Returns the histogram itself, or the one of its JSON. Raises ValueError."""
    return given if isinstance(given, Histogram) else Histogram.from_dict(given)


StoredHistogram = Annotated[
    Histogram,
    PlainValidator(_histogram),
    PlainSerializer(Histogram.to_dict, return_type=dict),
    WithJsonSchema({"type": "object"}),
]
#: an adapter may tell more than is asked for
_OPEN = ConfigDict(strict=True, extra="allow")

#: count and quantiles of a latency or of a slip, ns
Summary = TypedDict(
    "Summary",
    {
        "count": int,
        "mean": float | None,
        "p50": int | None,
        "p90": int | None,
        "p95": int | None,
        "p99": int | None,
        "p99.9": int | None,
        "max": int | None,
    },
)
#: part of the latency -> its mean, ns
Split = dict[str, float | None]


@with_config(_OPEN)
class Stretch(TypedDict):
    """Rows that an engine took under one watermark: where each frame of the query stood at its end."""

    ends: list[Offsets]
    watermark_ms: WatermarkMs | None


@with_config(_OPEN)
class EngineBatch(Stretch):
    """A micro-batch by the engine's own account."""

    batch_id: Whole
    dropped: NotRequired[Whole]
    at: NotRequired[Seconds]
    rows: NotRequired[Whole]
    duration_ms: NotRequired[Seconds]
    state_rows: NotRequired[Whole]
    state_bytes: NotRequired[Whole]


@with_config(_OPEN)
class Differing(TypedDict):
    """Number of answers that differ in one way: missing, in excess, or with other values."""

    kind: str
    answers: Whole


@with_config(_OPEN)
class ByKey(TypedDict):
    """Differences that were found by looking for each answer."""

    each: Sequence[Differing]


@with_config(_OPEN)
class Compared(TypedDict):
    """Comparison of the output with the right answer; only `wrong` is known of an adapter that compares by itself."""

    wrong: str | None
    expected_rows: NotRequired[int | None]
    reported_rows: NotRequired[int | None]
    duplicates: NotRequired[int | None]
    delivery: NotRequired[str | None]  # None: copies of an answer could not be seen
    differences: NotRequired[ByKey]
    expected_late: NotRequired[int | None]
    reported_late: NotRequired[int | None]
    late_counted: NotRequired[str | None]
    late_events: NotRequired[int | None]
    early_events: NotRequired[int | None]


@with_config(_OPEN)
class SystemFigures(TypedDict):
    """Figures of the system, as its adapter tells them at the end of a trial."""

    drained: NotRequired[bool | None]
    failure: NotRequired[str | None]
    invalid: NotRequired[str | None]
    unchecked: NotRequired[str | None]
    cpu_seconds: NotRequired[Seconds | None]
    gc_seconds: NotRequired[Seconds | None]
    rss_bytes: NotRequired[Whole | None]
    memory_bytes: NotRequired[Whole | None]
    state_bytes: NotRequired[Whole | None]
    epochs: NotRequired[Whole | None]
    late_dropped: NotRequired[Whole | None]
    batches: NotRequired[list[EngineBatch] | None]
    stretches: NotRequired[list[Stretch] | None]
    link_slip_ns: NotRequired[Summary | None]  # by how much a link handed rows on late
    check: NotRequired[Compared | None]
    software: NotRequired[dict[str, str]]
    application: NotRequired[dict[str, str]]


@with_config(_OPEN)
class OwnBatch(OwnFigures):
    """An engine's own figures of an epoch, as a record keeps them."""


class Epoch(TypedDict):
    """A point of the latency over time."""

    epoch: int
    at_s: float | None  # its last emission, since the trial's start
    rows: int
    steady: bool
    negative: int
    least_ns: int | None
    checksum: int | None
    clock_offset_ns: tuple[int, int] | None
    event_latency_ns: Summary
    processing_latency_ns: Summary
    latency_split_ns: Split | None
    batch: OwnBatch | None


#: reports of all epochs, as they came or as a trial's record keeps them
Reports = Sequence[Epoch] | Sequence[ReportBody]


class StreamSize(TypedDict):
    """Events of a whole stream with its copies, and those out of order, if its manifest tells."""

    events: int
    out_of_order: int | None


class Details(TypedDict, total=False):
    """Figures of a trial, as driver and system counted them; those that it did not come to are left out."""

    attempt: str
    clock_offset_ns: list[tuple[int, int]]  # of each driver's clock to the controller's, and its error bound
    cpu_marks: dict[str, float]
    cpu_track: list[tuple[float, float]]  # seconds since the start, CPU seconds
    drained: bool
    unchecked: str
    stream: StreamSize
    rules: Rules  # for late events, as the adapter declares them
    system: SystemFigures
    drivers: list[DriverFigures]
    system_clock_offset_ns: tuple[int, int] | None
    slip_ns: Summary
    emitted: int
    negative_latencies: int
    epochs: list[Epoch]
    event_latency_ns: Summary
    processing_latency_ns: Summary
    outside_event_latency_ns: Summary
    latency_split_ns: Split


class TrialResult(Line):
    """A trial with its verdict."""

    rate_events_per_s: float
    seconds: float
    outcome: Outcome
    reason: str
    figures: dict[str, float]
    observation: TrialObservation
    correct: bool | None  # None: the output was not compared
    check: Compared | None
    dropped: Dropped | None
    lost_at_own_speed: Loss
    details: Details

    @property
    def failure(self) -> str:
        """Reason why it is invalid if its system failed; empty if something else did, such as its driver or link."""
        invalid, system = self.observation.invalid or "", self.details["system"]
        failure = None if system.get("invalid") else system.get("failure")
        return invalid if invalid == UNENDED or (failure and failure in invalid) else ""

    @property
    def is_unended(self) -> bool:
        """True if nothing is wrong but that the system had not answered all rows when patience ended."""
        seen = self.observation
        return self.details.get("drained") is False and not seen.overflow and seen.invalid is None


class LatencyTrial(TrialResult):
    """A line of latency-trials.jsonl: a run at a fraction of the rate, or at a rate that all cells share."""

    fraction: float
    common: bool


class TurnLatencies(Line):
    """A line of latency-turns.jsonl: histograms of a cell's latencies, one for each of its turns."""

    rate_events_per_s: float
    invalid: str | None
    event_latency: list[StoredHistogram]


class SearchLine(Line):
    """A line about a measurement of a search. plan: identifies the settings and the stream."""

    number: int  # counts all measurements of the process's cells
    plan: str
    process: int
    limits: Limits
    ceiling: Ceiling | None = None  # in the first line of a search
    asked: str  # why it was measured


class MeasuredWindow(SearchLine):
    """A line of windows.jsonl."""

    window: Window

    @property
    def measurement(self) -> Measurement:
        return self.window


class MeasuredTrial(SearchLine, TrialResult):
    """A line of trials.jsonl: a proof trial."""

    trial: TrialRecord
    purpose: Purpose
    behind_s: float
    yardstick: float | None  # units/s after it

    @property
    def measurement(self) -> Measurement:
        return self.trial
