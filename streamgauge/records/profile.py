"""The record of a profile, `profile.json`: how disordered a stream is, in whole ticks. docs/profile.md explains it."""

from __future__ import annotations

from typing import Literal

from streamgauge.base.units import Tick
from streamgauge.records.record import Part, Record

HintKind = Literal[
    "beyond_range",  # times that 64 bits do not hold, such as the year 9999
    "two_units",  # a column has times of two units
    "unit",  # the whole column has another unit
    "clock_at_1970",  # a clock that was not set, or zero for none
    "far_behind",  # few events, years before all others
    "far_ahead",  # few events, years after all others
    "ahead",  # a few events, after which many are late
    "files_joined",  # files are read one after the other, though they overlap in time
    "newest_first",  # the file begins with its latest event
    "hour_twice",  # local times of the hour that a zone has twice
    "hour_skipped",  # local times of the hour that a zone does not have
    "constant_time",  # all events at one instant
    "whole_days",  # dates without a time of day
    "part_ahead",  # a part of the stream whose times are ahead of all others'
    "part_idle",  # a part of the stream that stops while the others go on
    "merging",  # each part alone is in order, or nearly so
]
Ticks = int | float | None
#: what is said in place of the figures that depend on the order between partitions
UNMERGED = "unknown, as the topic has no append times: only the order within a partition is known"


class Hint(Part):
    """A peculiarity of some events' times."""

    kind: HintKind
    text: str
    lines: tuple[int, ...] = ()  # 1-based lines (rows of Parquet), or a topic's offsets, of the first events
    files: tuple[str, ...] = ()  # the file of each line, where the source has several
    events: int  # number of events that it is about
    without: int | None = None  # events out of order without these and those of hints before, or if all were in place
    enough_without: int | None = None  # the smallest watermark delay that loses none of those left then, in ticks
    part: str | None = None  # the part of the stream that it is about; none: all of it


class InFile(Part):
    """Disorder of the events as they are in their files, whatever order they are given afterwards."""

    events: int
    out_of_order: int | None  # None where nobody knows the order between a topic's partitions
    hints: tuple[Hint, ...] = ()

    def within_files(self) -> InFile:
        """Returns it without what depends on the order between the files."""
        return InFile(events=self.events, out_of_order=None, hints=tuple(h for h in self.hints if h.without is None))


class Delays(Part):
    """Summary of delays; all None without one."""

    min: Ticks
    p50: Ticks
    p90: Ticks
    p99: Ticks
    max: Ticks
    mean: float | None

    @property
    def values(self) -> tuple[Ticks, ...]:
        """The figures in the order of their names here."""
        return self.min, self.p50, self.p90, self.p99, self.max, self.mean


NO_DELAYS = Delays(min=None, p50=None, p90=None, p99=None, max=None, mean=None)


class BinnedDelays(Delays):
    """Summary of delays, and bins of them: low, high, number of events."""

    histogram: tuple[tuple[int, int, int], ...]

    @property
    def summary(self) -> Delays:
        return Delays(**self.model_dump(exclude={"histogram"}))


class RecordedDelays(Delays):
    """Summary of arrival − event time, with the numbers of negative ones, and of events without an arrival."""

    negative: int
    missing: int


class Frequency(Part):
    """Events per bin of event time."""

    bin_ticks: int
    start: int
    counts: tuple[int, ...]
    mean_per_s: float | None
    peak_per_s: float | None
    dispersion: float | None


class Span(Part):
    """Smallest and largest event time."""

    min: int
    max: int

    @property
    def ends(self) -> dict[str, int]:
        return {"first": self.min, "last": self.max}


class StreamPart(Part):
    """Disorder of a part of the stream, such as a partition or a device, in whole ticks."""

    part: str | None  # value of the column; None: the events without one
    events: int
    out_of_order: int  # events below an earlier one of the same part
    out_of_order_in_all: int | None  # events below an earlier one of any part
    delay: Delays  # of these events, behind the part's largest time; quantiles within 0.4 %
    watermark_curve: tuple[tuple[int, int], ...]
    event_time: Span
    behind: Delays  # how far the part's largest time lies behind the stream's, at its events; quantiles within 0.4 %
    longest_idle: int | None  # the most by which the stream's largest time moved on without an event of the part
    idle_spells: int | None
    overtaken: int | None  # events of other parts that lie below the largest time, which is this part's


def part_name(part: str | None) -> str:
    """The name of a part for people."""
    return "(none)" if part is None else part


class ByPart(Part):
    """Disorder of each part of the stream. What is out of order, but not within its part, comes from merging."""

    column: str
    idle: int  # ticks without an event that count as an idle spell
    out_of_order: int  # events below an earlier one of their part, in all parts
    bursts: Delays  # numbers of events in a row of a part that are out of order in the stream; quantiles within 0.4 %
    parts: tuple[StreamPart, ...]
    hints: tuple[Hint, ...]


class Profile(Record):
    """Disorder of a stream, in whole ticks.

    Where nobody knows the order between a topic's partitions, what depends on it is None or empty.
    """

    events: int
    tick: Tick
    out_of_order: int | None
    quarantined: int
    adjacent_descents: int | None
    runs: int | None
    inversions: int | None
    distance: int | None
    interleaved: int | None
    delay: Delays
    delay_histogram: tuple[tuple[int, int, int], ...]  # low, high, events
    watermark_curve: tuple[tuple[int, int], ...]  # a watermark's delay, events that are later
    enough_delay: dict[str, int]  # part of the events that may be lost -> the smallest watermark's delay
    frequency: Frequency
    event_time: Span
    in_file: InFile
    recorded_delay: RecordedDelays | None
    by_part: ByPart | None

    def within_parts(self) -> Profile:
        """Returns the profile without what depends on the order between its parts."""
        unknown = {"behind": NO_DELAYS, "longest_idle": None, "idle_spells": None, "overtaken": None}
        unknown["out_of_order_in_all"] = None
        parts = [part.model_copy(update=unknown) for part in self.by_part.parts] if self.by_part else ()
        by_part = {"parts": tuple(parts), "hints": (), "bursts": NO_DELAYS}
        return self.model_copy(
            update={
                **dict.fromkeys(("out_of_order", "adjacent_descents", "runs", "inversions", "distance", "interleaved")),
                "delay": NO_DELAYS,
                "delay_histogram": (),
                "watermark_curve": (),
                "enough_delay": {},
                "by_part": self.by_part and self.by_part.model_copy(update=by_part),
            }
        )

    @property
    def hints(self) -> tuple[Hint, ...]:
        """The hints about the times of all events, and those about its parts."""
        return self.in_file.hints + (self.by_part.hints if self.by_part else ())
