"""Disorder profiles from mergeable parts: each task measures its row groups, and the parts are merged.

Quantiles are exact without a sort. The first pass counts values in buckets that keep their order (exponent and
leading bits of the mantissa); further passes fetch only the values around a wanted rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from streamgauge.base.arrow import Ints
from streamgauge.base.units import Tick, ticks_per_second
from streamgauge.records.profile import BinnedDelays, Delays, Frequency
from streamgauge.streams.disorder.definitions import Times, adjacent_descents, delays, rank_of

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_MANTISSA_BITS = 8
_SHIFT = 52 - _MANTISSA_BITS
_ONE = 1023 << _MANTISSA_BITS  # bucket of 1
_ZERO = 1 << 14  # index of the value 0; positive values above, negative below
BUCKETS = 2 * _ZERO + (1 << 9)
R = TypeVar("R")


class Walk(Protocol):
    """Reads the data and returns f(values) of each of its parts; these results should be small."""

    def __call__(self, f: Callable[[Times], R], /) -> list[R]: ...


def bucket_of(values: Times) -> Ints:
    """Bucket number of each value: ascending with the value, of relative width 2^-8; 0 has its own bucket."""
    magnitude = np.abs(values)
    bucket = (magnitude.astype(np.float64).view(np.int64) >> _SHIFT) - _ONE + 1
    bucket[magnitude == 0] = 0
    return np.where(values < 0, -bucket, bucket) + _ZERO


def bucket_edges(bucket: int) -> tuple[int, int]:
    """Range [low, high), in ticks, of a bucket."""
    if bucket < _ZERO:
        low, high = bucket_edges(2 * _ZERO - bucket)
        return 1 - high, 1 - low
    place = bucket - _ZERO - 1
    if place < 0:
        return 0, 1
    low, high = (np.array([(place + i + _ONE) << _SHIFT], np.int64).view(np.float64)[0].item() for i in (0, 1))
    return round(low), max(round(high), round(low) + 1)


@dataclass
class Spread:
    """Count, sum, extremes and bucket counts of some values; mergeable."""

    count: int = 0
    total: int = 0
    smallest: int = 0
    largest: int = 0
    negative: int = 0
    buckets: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Times) -> Spread:
        if not len(values):
            return cls()
        counts = np.bincount(bucket_of(values), minlength=BUCKETS)
        filled = np.flatnonzero(counts)
        # a sum of times may overflow int64: add the high and the low bits apart
        total = (int((values >> 20).sum()) << 20) + int((values & 0xFFFFF).sum())
        return cls(
            len(values), total, int(values.min()), int(values.max()), int((values < 0).sum()),
            dict(zip(filled.tolist(), counts[filled].tolist(), strict=True)),
        )  # fmt: skip

    def __add__(self, other: Spread) -> Spread:
        if not (self.count and other.count):
            return self if self.count else other
        buckets = dict(self.buckets)
        for bucket, count in other.buckets.items():
            buckets[bucket] = buckets.get(bucket, 0) + count
        return Spread(
            self.count + other.count, self.total + other.total, min(self.smallest, other.smallest),
            max(self.largest, other.largest), self.negative + other.negative, buckets,
        )  # fmt: skip

    def places(self) -> dict[str, int]:
        """Maps each quantile to its 0-based rank; empty without a value."""
        return {name: rank_of(quantile, self.count) - 1 for name, quantile in QUANTILES.items() if self.count}

    def ranks(self, places: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        """Maps each name to the bucket that holds its rank, and its 0-based rank among that bucket's values."""
        placed = {}
        for name, place in places.items():
            for bucket in sorted(self.buckets):
                if place < self.buckets[bucket]:
                    placed[name] = (bucket, place)
                    break
                place -= self.buckets[bucket]
        return placed

    def summary(self, quantiles: Mapping[str, int]) -> Delays:
        """Returns min, p50, p90, p99, max and mean in ticks; all None without a value."""
        if not self.count:
            return Delays(min=None, p50=None, p90=None, p99=None, max=None, mean=None)
        return Delays(min=self.smallest, **quantiles, max=self.largest, mean=self.total / self.count)

    def approximate(self) -> BinnedDelays:
        """The summary and its bins, without a second pass; its quantiles have a relative error of at most 2^-8."""
        quantiles: dict[str, int] = {}
        for name, (bucket, _) in self.ranks(self.places()).items():
            low, high = bucket_edges(bucket)
            quantiles[name] = min(max((low + high - 1) // 2, self.smallest), self.largest)
        return BinnedDelays(**dict(self.summary(quantiles)), histogram=self.histogram())

    def histogram(self, bins_per_octave: int = 4) -> tuple[tuple[int, int, int], ...]:
        """(low, high, count) of each bin of the values ≥ 0, in ticks; empty bins are left out."""
        merged: dict[int, int] = {}
        step = (1 << _MANTISSA_BITS) // bins_per_octave
        for bucket, count in self.buckets.items():
            if bucket >= _ZERO:
                start = _ZERO if bucket == _ZERO else (bucket - _ZERO - 1) // step * step + _ZERO + 1
                merged[start] = merged.get(start, 0) + count
        return tuple(
            (bucket_edges(start)[0], bucket_edges(start + (step - 1 if start > _ZERO else 0))[1], count)
            for start, count in sorted(merged.items())
        )


#: most values that are fetched for a quantile; a range that holds more is cut first
FETCHED = 1_000_000
_CUTS = 1024


@dataclass(frozen=True)
class _Range:
    """A range [low, high] that holds `count` values, with a wanted one at 0-based rank `place` among them."""

    low: int
    high: int
    place: int
    count: int

    @property
    def width(self) -> int:
        return (self.high - self.low) // _CUTS + 1

    def cut(self, counts: Ints) -> _Range:
        """The part of this range that holds the wanted value; counts: number of values in each of _CUTS parts."""
        before = np.cumsum(counts) - counts
        part = int(np.searchsorted(before, self.place, side="right")) - 1
        low = self.low + part * self.width
        high = min(self.high, low + self.width - 1)
        return _Range(low, high, self.place - int(before[part]), int(counts[part]))


def exact_quantiles(
    spread: Spread,
    walk: Walk,
    *,
    fetched: int = FETCHED,
    places: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Exact quantiles of the values that spread summarises; at most `fetched` values are fetched for each.

    places: other 0-based ranks, by name, whose values are wanted.
    """
    ranks = spread.ranks(spread.places() if places is None else places)
    edges = _edges(walk, sorted({bucket for bucket, _ in ranks.values()})) if ranks else {}
    wanted = {name: _Range(*edges[bucket], place, spread.buckets[bucket]) for name, (bucket, place) in ranks.items()}
    while wide := sorted({(r.low, r.high) for r in wanted.values() if r.count > fetched and r.high > r.low}):
        parts = walk(partial(_counts_in, wide))
        counts = dict(zip(wide, np.sum(parts, axis=0), strict=True))
        wanted = {name: r.cut(counts[r.low, r.high]) if (r.low, r.high) in counts else r for name, r in wanted.items()}
    open_ = sorted({(r.low, r.high) for r in wanted.values() if r.high > r.low})
    inside = walk(lambda values: [values[(values >= low) & (values <= high)] for low, high in open_]) if open_ else []
    values = {span: np.concatenate([part[k] for part in inside]) for k, span in enumerate(open_)}
    return {
        name: r.low if r.high == r.low else int(np.partition(values[r.low, r.high], r.place)[r.place])
        for name, r in wanted.items()
    }


def _edges(walk: Walk, buckets: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Maps each bucket to its smallest and largest value; all values between these are in the same bucket."""

    def extremes(values: Times) -> list[tuple[int, int] | None]:
        place = bucket_of(values)
        members = (values[place == bucket] for bucket in buckets)
        return [(int(some.min()), int(some.max())) if len(some) else None for some in members]

    parts = walk(extremes)
    ends = {bucket: [pair for part in parts if (pair := part[k]) is not None] for k, bucket in enumerate(buckets)}
    return {bucket: (min(low for low, _ in some), max(high for _, high in some)) for bucket, some in ends.items()}


def _counts_in(spans: Sequence[tuple[int, int]], values: Times) -> list[Ints]:
    """Number of values in each of _CUTS equal parts of each span [low, high]."""
    counts: list[Ints] = []
    for low, high in spans:
        inside = values[(values >= low) & (values <= high)]
        counts.append(np.bincount((inside - low) // ((high - low) // _CUTS + 1), minlength=_CUTS))
    return counts


#: shares of the events that may be late, each as one event in so many; a profile has the smallest delay for each
LATE_OF = {"1 %": 100, "0.1 %": 1000}


def enough_places(events: int, out_of_order: int) -> dict[str, int]:
    """0-based rank, among the delays, of the smallest watermark delay that loses at most such a share of the events."""
    places = {name: out_of_order - events // of - 1 for name, of in LATE_OF.items()}
    return {name: place for name, place in places.items() if place >= 0}


def watermark_grid(tick: Tick) -> list[int]:
    """Watermark delays for the curve, in ticks: 0, then 1-2-5 up to 5 s, then clock-like steps to 10 years."""
    second = ticks_per_second(tick)
    grid = {0}
    for power in range(13):
        grid |= {digit * 10**power for digit in (1, 2, 5) if digit * 10**power <= 5 * second}
    for unit, steps in (
        (1, (10, 15, 30)),
        (60, (1, 2, 5, 10, 15, 30)),
        (3600, (1, 2, 3, 6, 12)),
        (86400, (1, 2, 7, 30, 365, 3650)),
    ):
        grid |= {step * unit * second for step in steps}
    return sorted(step for step in grid if step < 2**63)


def watermark_curve(grid: Sequence[int], late: Ints | None, spread: Spread) -> tuple[tuple[int, int], ...]:
    """(delay, late events) of each step of the grid until none is late, as at the longest of the delays in `spread`."""
    counts: list[int] = [] if late is None else late[late > 0].tolist()
    return tuple(zip([*grid, spread.largest], [*counts, 0], strict=False))


@dataclass
class Part:
    """The contribution of consecutive events to a profile."""

    events: int
    out_of_order: int
    descents: int  # within the part; merge() adds those between parts
    first: int
    last: int
    delays: Spread
    late: Ints  # per grid step: delays above it
    frequency: Ints

    @classmethod
    def of(cls, times: Times, before: int, grid: Sequence[int], start: int, bin_ticks: int, bins: int) -> Part:
        """Measures a part. before: running maximum before it; start, bin_ticks, bins: see frequency_bins."""
        behind = delays(times, before)
        above = np.bincount(np.searchsorted(grid, behind, side="left"), minlength=len(grid) + 1)
        return cls(
            events=len(times),
            out_of_order=len(behind),
            descents=adjacent_descents(times),
            first=int(times[0]),
            last=int(times[-1]),
            delays=Spread.of(behind),
            late=len(behind) - np.cumsum(above)[:-1],
            frequency=np.bincount((times - start) // bin_ticks, minlength=bins),
        )


def merge(parts: Sequence[Part]) -> Part:
    """Merges parts, given in stream order, into one."""
    merged = parts[0]
    for part in parts[1:]:
        merged = Part(
            events=merged.events + part.events,
            out_of_order=merged.out_of_order + part.out_of_order,
            descents=merged.descents + part.descents + (part.first < merged.last),
            first=merged.first,
            last=part.last,
            delays=merged.delays + part.delays,
            late=merged.late + part.late,
            frequency=merged.frequency + part.frequency,
        )
    return merged


def frequency_bins(time_min: int, time_max: int, tick: Tick, wanted: int = 200) -> tuple[int, int, int]:
    """(start, bin width in ticks, number of bins): round widths, at most `wanted` bins."""
    span = time_max - time_min + 1
    second = ticks_per_second(tick)
    below_a_minute = {digit * 10**power for power in range(15) for digit in (1, 2, 5)} | {15 * second, 30 * second}
    widths = {width for width in below_a_minute if width < 60 * second}
    widths |= {60 * second * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)}
    widths |= {86400 * second * days for days in (1, 2, 7, 30, 90, 365, 3650)}
    width = next((w for w in sorted(widths) if span / w <= wanted - 1), span)
    start = max(time_min // width * width, time_max - (2**63 - 1), -(2**63))
    return start, width, (time_max - start) // width + 1


def frequency_summary(counts: Ints, start: int, bin_ticks: int, tick: Tick) -> Frequency:
    """Mean and peak events per second, and the index of dispersion (variance / mean) of the bins' counts."""
    seconds = bin_ticks / ticks_per_second(tick)
    mean = float(counts.mean())
    return Frequency(
        bin_ticks=bin_ticks,
        start=start,
        counts=tuple(counts.tolist()),
        mean_per_s=mean / seconds,
        peak_per_s=float(counts.max()) / seconds,
        dispersion=float(counts.var()) / mean if mean else None,
    )
