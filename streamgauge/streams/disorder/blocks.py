"""Event times in the order of their files, a block at a time, and counts of them with some events left out.

A block is a row group, or an array in memory. Extremes of a block are known beforehand, so that most passes read few.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from streamgauge.base.arrow import Mask
from streamgauge.streams.disorder.definitions import BEFORE_ALL, Times, out_of_order, running_maximum
from streamgauge.streams.disorder.row_groups import LARGEST, RowGroup

T = TypeVar("T")


class Walk(Protocol):
    """Runs a function on blocks, some at the same time; returns the results in the order of the blocks."""

    def __call__(self, work: Callable[[int], T], numbers: Sequence[int]) -> list[T]: ...


@dataclass(frozen=True)
class Blocks:
    """The events of a source. A row is the place of an event among them, from 0."""

    extents: Sequence[RowGroup]
    times: Callable[[int], Times]
    seqs: Callable[[int], Times]
    walk: Walk

    @classmethod
    def of(cls, times: Times, seqs: Times) -> Blocks:
        """The events of two arrays, as one block."""
        extents = [RowGroup("", 0, len(times), int(times.min()), int(times.max()), BEFORE_ALL)] if len(times) else []
        return cls(extents, lambda _: times, lambda _: seqs, lambda work, numbers: [work(k) for k in numbers])

    @cached_property
    def starts(self) -> list[int]:
        """Row of the first event of each block, then the number of events."""
        return list(accumulate((extent.rows for extent in self.extents), initial=0))

    @property
    def events(self) -> int:
        return self.starts[-1]

    @property
    def span(self) -> tuple[int, int]:
        """The least and the largest time; there must be an event."""
        return min(one.time_min for one in self.extents), max(one.time_max for one in self.extents)

    def within(self, region: Region) -> list[int]:
        """Numbers of the blocks that may hold an event of the region."""
        return [k for k, one in enumerate(self.extents) if one.time_max >= region.low and one.time_min <= region.high]

    def rows(self, region: Region, most: int, before: int = LARGEST) -> list[int]:
        """The first `most` rows of the region, of those below `before`."""
        rows: list[int] = []
        for k in self.within(region):
            if self.starts[k] >= before or len(rows) >= most:
                break
            here = np.flatnonzero(region.holds(self.times(k))) + self.starts[k]
            rows += here[here < before][: most - len(rows)].tolist()
        return rows

    def after(self, row: int, count: int, kept: Kept) -> Times:
        """Times of the next `count` events after a row that are kept, or of as many as there are."""
        got: list[Times] = []
        for k in range(bisect_right(self.starts, row + 1) - 1, len(self.extents)):
            mask = kept.mask(self.times(k), self.starts[k])
            mask[: max(0, row + 1 - self.starts[k])] = False
            got.append(self.times(k)[mask][:count])
            count -= len(got[-1])
            if count <= 0:
                break
        return np.concatenate([np.zeros(0, np.int64), *got])

    def at(self, rows: Sequence[int], values: Callable[[int], Times]) -> list[int]:
        """Value of each of those rows, which ascend. values: `times` or `seqs`."""
        got: list[int] = []
        for k in range(len(self.extents)):
            if inside := [row - self.starts[k] for row in rows if self.starts[k] <= row < self.starts[k + 1]]:
                got += values(k)[inside].tolist()
        return got

    def number(self, region: Region) -> int:
        return sum(self.walk(lambda k: int(region.holds(self.times(k)).sum()), self.within(region)))

    def count(self, kept: Kept, held: int) -> Count:
        """Counts the kept events and those out of order among them. held: least number of late events to tell of."""
        numbers = range(len(self.extents))

        def largest(k: int) -> int:
            times = self.times(k)[kept.mask(self.times(k), self.starts[k])]
            return int(times.max()) if len(times) else BEFORE_ALL

        cut = [k for k in numbers if kept.cuts(self.extents[k], self.starts[k])]
        maxima = [one.time_max for one in self.extents]
        for k, maximum in zip(cut, self.walk(largest, cut), strict=True):
            maxima[k] = maximum
        before = list(accumulate(maxima, max, initial=BEFORE_ALL))

        def part(k: int) -> Count:
            times, start = self.times(k), self.starts[k]
            if k not in cut:
                return Count.of(times, before[k], start, None, held)
            mask = kept.mask(times, start)
            return Count.of(times[mask], before[k], start, np.flatnonzero(mask), held)

        return Count.merged(self.walk(part, numbers), held)

    def out_of_order_within(self, groups: Sequence[int]) -> int:
        """Number of events out of order within their group alone. groups: that of each block, ascending."""
        before, largest = [], dict[int, int]()
        for group, extent in zip(groups, self.extents, strict=True):
            before.append(largest.get(group, BEFORE_ALL))
            largest[group] = max(before[-1], extent.time_max)
        return sum(self.walk(lambda k: int(out_of_order(self.times(k), before[k]).sum()), range(len(before))))

    def backwards(self) -> int:
        """Number of events out of order if all were read from the last to the first."""
        maxima = list(accumulate((one.time_max for one in reversed(self.extents)), max, initial=BEFORE_ALL))[::-1]

        def part(k: int) -> int:
            times = self.times(k)[::-1]
            return int((running_maximum(times, maxima[k + 1]) > times).sum())

        return sum(self.walk(part, range(len(self.extents))))


@dataclass(frozen=True)
class Region:
    """Times in [low, high], but those of the regions taken out."""

    low: int
    high: int
    out: tuple[Region, ...] = ()

    def holds(self, times: Times) -> Mask:
        mask: Mask = (times >= self.low) & (times <= self.high)
        for region in self.out:
            mask &= ~region.holds(times)
        return mask


@dataclass(frozen=True)
class Kept:
    """The events that are kept: those whose times no region holds, without these rows."""

    regions: tuple[Region, ...] = ()
    rows: tuple[int, ...] = ()

    def mask(self, times: Times, start: int) -> Mask:
        """True for each kept event of a block whose first row is `start`."""
        mask: Mask = np.ones(len(times), bool)
        for region in self.regions:
            mask &= ~region.holds(times)
        mask[[row - start for row in self.rows if 0 <= row - start < len(times)]] = False
        return mask

    def cuts(self, extent: RowGroup, start: int) -> bool:
        """True if the block may have an event that is not kept."""
        return any(extent.time_max >= one.low and extent.time_min <= one.high for one in self.regions) or any(
            start <= row < start + extent.rows for row in self.rows
        )


@dataclass(frozen=True)
class Count:
    """Counts of consecutive events; a record is an event in order."""

    events: int
    out_of_order: int
    delays: int  # sum of the delays of those out of order
    longest: int  # the longest of these delays, which may not fit into int64; 0 without any
    falls: int  # adjacent pairs whose second time is earlier
    rises: int  # adjacent pairs whose second time is later
    ends: tuple[int, int] | None  # the first and the last time
    holders: tuple[tuple[int, int], ...]
    """(row of a record, number of late events before the next record) where they are many"""
    lead: int  # number of events before the first record; all events, where no one is a record
    last: int | None  # row of the last record
    tail: int  # number of events after the last record

    @classmethod
    def of(cls, times: Times, before: int, start: int, places: npt.NDArray[np.intp] | None, held: int) -> Count:
        """Counts the events of a block. places: of these events among the rows of the block; None: all of it."""
        if not len(times):
            return cls(0, 0, 0, 0, 0, 0, None, (), 0, None, 0)
        maximum = running_maximum(times, before)
        records = np.flatnonzero(maximum == times)
        falls, rises = int((times[1:] < times[:-1]).sum()), int((times[1:] > times[:-1]).sum())
        late = len(times) - len(records)
        behind = maximum.view(np.uint64) - times.view(np.uint64)
        # a sum of times may overflow: add the high and the low bits apart
        delays, longest = (int((behind >> 20).sum()) << 20) + int((behind & 0xFFFFF).sum()), int(behind.max())
        ends = int(times[0]), int(times[-1])
        if not len(records):
            return cls(len(times), late, delays, longest, falls, rises, ends, (), len(times), None, 0)

        def row(place: int) -> int:
            return start + int(place if places is None else places[place])

        holders: list[tuple[int, int]] = []
        if late >= held:
            gaps = np.diff(records) - 1
            holders = [(row(records[n]), int(gaps[n])) for n in np.flatnonzero(gaps >= held)]
        tail = len(times) - 1 - int(records[-1])
        lead, last = int(records[0]), row(records[-1])
        return cls(len(times), late, delays, longest, falls, rises, ends, tuple(holders), lead, last, tail)

    @classmethod
    def merged(cls, parts: Sequence[Count], held: int) -> Count:
        """Merges the counts of consecutive blocks into those of all their events."""
        events = late = delays = longest = falls = rises = tail = 0
        holders: list[tuple[int, int]] = []
        last = ends = None
        for part in parts:
            events, late = events + part.events, late + part.out_of_order
            delays, longest = delays + part.delays, max(longest, part.longest)
            falls, rises = falls + part.falls, rises + part.rises
            if ends is not None and part.ends is not None:
                falls, rises = falls + (part.ends[0] < ends[1]), rises + (part.ends[0] > ends[1])
            ends = (ends[0] if ends else part.ends[0], part.ends[1]) if part.ends else ends
            tail += part.lead
            if part.last is None:
                continue
            if last is not None and tail >= held:
                holders.append((last, tail))
            holders += part.holders
            last, tail = part.last, part.tail
        if last is not None and tail >= held:
            holders.append((last, tail))
        return cls(events, late, delays, longest, falls, rises, ends, tuple(holders), 0, last, tail)
