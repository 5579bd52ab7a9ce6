"""The record of a cell's latency runs, `latency.json`: a list with one object for each run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import Field

from streamgauge.records.loss import Loss
from streamgauge.records.measurement import Outcome
from streamgauge.records.record import Part, Record

DropKind = Literal["late", "before the first watermark", "by its own count"]


class Quantiles(Part):
    """Quantiles of a latency in ms, and the number of rows; None without a row."""

    count: int = 0
    p50_ms: float | None = None
    p90_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None
    max_ms: float | None = None

    def by_name(self, names: Iterable[str]) -> list[tuple[str, float | None]]:
        """Pairs of these names, such as p50, with their quantiles."""
        values = self.model_dump()
        return [(name, values[f"{name}_ms"]) for name in names]


class Dropped(Part):
    """Events that are in no answer; kind: who says so, and the reason where it is the engine's first watermark."""

    kind: DropKind
    sentence: str
    count: int
    offered: int
    early: int = 0  # of them, those before the engine's first watermark
    counted_in: str = "events"


class LatencyRun(Record):
    """A run at a fraction of the sustainable rate, or at a rate that all cells share."""

    in_list: ClassVar[bool] = True
    fraction: float
    common: bool = False  # True: all cells were offered this rate
    rate_events_per_s: float
    valid: bool
    outcome: Outcome
    reason: str = ""
    event_latency: Quantiles = Quantiles()
    processing_latency: Quantiles = Quantiles()
    link_share: Quantiles | None = None  # only where a broker is between
    latency_split: dict[str, float | None] = Field(default_factory=dict)  # part_ms -> mean
    over_time: tuple[tuple[float, float | None, float | None], ...] = ()  # seconds, p50 and p99 in ms
    correct: bool | None = None  # None: the output was not compared
    late_drops_expected: int | None = None
    late_drops_reported: int | None = None
    late_drops_counted_in: str | None = None
    late_events: int | None = None
    dropped: Dropped | None = None
    lost_at_own_speed: Loss | None = None
    stream_seconds_per_second: float | None = None
    offered: int | None = None
    taken: int | None = None
    emitted: int | None = None
    emitted_outside: int | None = None
    system_cpu_us_per_event: float | None = None
    system_cpu_drain_s: float | None = None
    system_cpu_start_s: float | None = None
    software: dict[str, str] = Field(default_factory=dict)
    application: dict[str, str] = Field(default_factory=dict)

    @property
    def doubt(self) -> str:
        """Says in two words why it did not settle, so that its latency depends on how long it ran; empty if it did."""
        return {"unsustainable": "not sustained", "inconclusive": "not settled"}.get(self.outcome, "")

    @property
    def is_sound(self) -> bool:
        """True if it is valid, measured a latency, sustained its rate, and had no wrong output."""
        return self.event_latency.p99_ms is not None and self.valid and self.correct is not False and not self.doubt
