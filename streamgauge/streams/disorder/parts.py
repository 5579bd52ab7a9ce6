"""Disorder by part: of each device, partition or other value of a column alone, and what merging the parts adds.

No footer knows the largest time of a part so far. So a first pass over shares of the stream notes what each share
leaves behind (`Left`), and a second one measures each share with what all shares before it left (`before`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from streamgauge.base.arrow import Ints, Mask
from streamgauge.streams.disorder.definitions import BEFORE_ALL, Times, running_maximum
from streamgauge.streams.disorder.profile import BUCKETS, Spread, bucket_of

#: a value of the column; None stands for events without one
Name = str | None


@dataclass(frozen=True)
class Block:
    """Consecutive events: codes[i] is the place, in `names`, of the part of event i. Each name has an event."""

    names: Sequence[Name]
    codes: Ints
    times: Times


@dataclass(frozen=True)
class Silence:
    """The end of the stream, from the last event of a part on."""

    events: int  # number of events that follow
    since: int  # the stream's largest time at the part's last event
    ticks: int  # by which the stream's largest time moved on afterwards


@dataclass(frozen=True)
class Seen:
    """Largest time of a part so far, the stream's largest time at the part's last event, and the row of that event."""

    largest: int
    at: int
    row: int


@dataclass
class Left:
    """State that events leave behind for those after them."""

    largest: int = BEFORE_ALL
    events: int = 0
    holder: Name = None  # the part whose event has the stream's largest time; the first such event counts
    parts: dict[Name, Seen] = field(default_factory=dict)

    def and_then(self, more: Left) -> Left:
        """Returns the state after these events and those of `more`, which was measured with `largest` before it."""
        parts = dict(self.parts)
        for name, seen in more.parts.items():
            largest = max(parts[name].largest, seen.largest) if name in parts else seen.largest
            parts[name] = Seen(largest, seen.at, self.events + seen.row)
        holder = more.holder if more.largest > self.largest else self.holder
        return Left(more.largest, self.events + more.events, holder, parts)

    def silence(self, name: Name) -> Silence:
        """Returns the silence of a part from its last event to here."""
        seen = self.parts[name]
        return Silence(self.events - seen.row - 1, seen.at, self.largest - seen.at)

    def largest_without(self, names: Sequence[Name]) -> int:
        return max((seen.largest for name, seen in self.parts.items() if name not in names), default=BEFORE_ALL)


def left(blocks: Iterable[Block], largest: int) -> Left:
    """Returns the state that a share of the stream leaves. largest: the stream's largest time before it."""
    whole = Left(largest)
    for block in blocks:
        maximum = running_maximum(block.times, whole.largest)
        tops = np.full(len(block.names), BEFORE_ALL)
        np.maximum.at(tops, block.codes, block.times)
        last = np.zeros(len(block.names), np.int64)
        last[block.codes] = np.arange(len(block.codes))  # of equal places, the last value stays
        seen = zip(tops.tolist(), maximum[last].tolist(), last.tolist(), strict=True)
        parts = {name: Seen(*three) for name, three in zip(block.names, seen, strict=True)}
        holder = block.names[int(block.codes[int(np.argmax(block.times))])]
        whole = whole.and_then(Left(int(maximum[-1]), len(block.times), holder, parts))
    return whole


@dataclass(frozen=True)
class Bursts:
    """Bursts of a part: events out of order in the stream, with no event of the part in order between them."""

    lead: int = 0  # events before the first one in order
    inner: Spread = field(default_factory=Spread)  # numbers of events of the bursts between two in order
    tail: int | None = None  # events after the last one in order; None if none is in order

    def and_then(self, more: Bursts) -> Bursts:
        if self.tail is None:
            return replace(more, lead=self.lead + more.lead)
        if more.tail is None:
            return replace(self, tail=self.tail + more.lead)
        between = self.tail + more.lead
        inner = self.inner + more.inner + (Spread.of(np.array([between])) if between else Spread())
        return Bursts(self.lead, inner, more.tail)

    def all(self) -> Spread:
        return self.inner + Spread.of(np.array([size for size in (self.lead, self.tail) if size], np.int64))


@dataclass
class Figures:
    """Figures of one part; mergeable over shares of the stream. Times in ticks."""

    events: int = 0
    low: int = 0
    high: int = 0
    delays: Spread = field(default_factory=Spread)  # of events that are out of order among those of the part
    late: Ints | None = None  # of these delays, those above each step of the grid
    behind: Spread = field(default_factory=Spread)
    """how far the part's largest time lies behind the stream's, at each of its events"""
    longest_idle: int = 0  # the most by which the stream's largest time moved on between two events of the part
    idle_spells: int = 0
    returns: int = 0  # times that the part comes again after events of others
    longest_absence: int = 0  # most events of others from one event of the part to the next
    overtaken: int = 0  # events of other parts that lie below the largest time, which is this part's
    bursts: Bursts = field(default_factory=Bursts)  # bursts of events that are out of order in the stream
    end: Silence | None = None  # from the part's last event to the stream's end, once it is known

    def and_then(self, more: Figures) -> Figures:
        if not (self.events and more.events):
            some = self if self.events else more
            return replace(some, overtaken=self.overtaken + more.overtaken)
        late = self.late if more.late is None else more.late if self.late is None else self.late + more.late
        return Figures(
            self.events + more.events,
            min(self.low, more.low),
            max(self.high, more.high),
            self.delays + more.delays,
            late,
            self.behind + more.behind,
            max(self.longest_idle, more.longest_idle),
            self.idle_spells + more.idle_spells,
            self.returns + more.returns,
            max(self.longest_absence, more.longest_absence),
            self.overtaken + more.overtaken,
            self.bursts.and_then(more.bursts),
        )

    def to_end(self, silence: Silence, idle: int) -> Figures:
        """Adds the silence from the part's last event to the end of the stream. idle: as for `measure`."""
        spells = self.idle_spells + (silence.ticks > idle)
        return replace(self, longest_idle=max(self.longest_idle, silence.ticks), idle_spells=spells, end=silence)


def measure(blocks: Iterable[Block], before: Left, grid: Sequence[int], idle: int) -> dict[Name, Figures]:
    """Measures the parts of a share of the stream. before: what the events before it left.

    idle: ticks of the stream's largest time; a part without an event for longer has an idle spell.
    """
    figures: dict[Name, Figures] = {}
    for block in blocks:
        for name, of_block in _of_block(block, before, grid, idle).items():
            figures[name] = figures.get(name, Figures()).and_then(of_block)
        before = before.and_then(left([block], before.largest))
    return figures


def _of_block(block: Block, before: Left, grid: Sequence[int], idle: int) -> dict[Name, Figures]:
    """Sorts the block by part, keeping the order within, and works on all parts at once."""
    count, times = len(block.names), block.times
    whole = running_maximum(times, before.largest)
    order = np.argsort(block.codes, kind="stable")
    codes, own = block.codes[order], times[order]
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    sizes = np.diff(np.r_[starts, len(codes)])
    seen = [before.parts.get(name) for name in block.names]

    maximum = _running_maximum_within(own, codes)
    earlier = np.array([BEFORE_ALL if one is None else one.largest for one in seen])
    maximum = np.maximum(maximum, np.repeat(earlier, sizes))
    delays = maximum - own
    is_late = delays > 0
    late_codes, late_delays = codes[is_late], delays[is_late]
    step = np.searchsorted(grid, late_delays, side="left")
    width = len(grid) + 1
    per_step = np.bincount(late_codes * width + step, minlength=count * width).reshape(count, width)
    late = per_step.sum(axis=1, keepdims=True) - np.cumsum(per_step, axis=1)[:, :-1]

    largest = whole[order]
    reached = np.r_[before.largest, whole[:-1]][order]  # before each event
    previous = np.r_[0, largest[:-1]]
    previous[starts] = [at if one is None else one.at for one, at in zip(seen, reached[starts].tolist(), strict=True)]
    gaps = reached - previous
    previous_rows = np.r_[0, order[:-1]]
    previous_rows[starts] = [
        row - 1 if one is None else one.row - before.events
        for one, row in zip(seen, order[starts].tolist(), strict=True)
    ]
    absences = order - previous_rows - 1
    returns, absent = (
        np.add.reduceat((absences > 0) + 0, starts).tolist(),
        np.maximum.reduceat(absences, starts).tolist(),
    )

    delays_of = _spreads(late_codes, late_delays, count)
    behind_of = _spreads(codes, largest - maximum, count)
    lows, highs = np.minimum.reduceat(own, starts).tolist(), np.maximum.reduceat(own, starts).tolist()
    longest, spells = np.maximum.reduceat(gaps, starts).tolist(), np.add.reduceat((gaps > idle) + 0, starts).tolist()
    bursts = _bursts(codes, largest > own, starts)
    figures = {
        name: Figures(size, lows[k], highs[k], delays_of[k], late[k], behind_of[k], longest[k], spells[k], returns[k],
                      absent[k], bursts=bursts[k])
        for k, (name, size) in enumerate(zip(block.names, sizes.tolist(), strict=True))
    }  # fmt: skip
    for name, events in _overtaken(block, before, whole).items():
        figures[name] = figures.get(name, Figures()).and_then(Figures(overtaken=events))
    return figures


def _bursts(codes: Ints, late: Mask, starts: npt.NDArray[np.intp]) -> list[Bursts]:
    """Returns the bursts of each code. Equal codes stand together, from 0 on; starts: where each begins."""
    ends = np.r_[starts[1:], len(codes)]
    in_order = np.flatnonzero(~late)
    gaps, same = np.diff(in_order) - 1, codes[in_order[1:]] == codes[in_order[:-1]]
    inner = (gaps > 0) & same
    spreads = _spreads(codes[in_order[1:]][inner], gaps[inner], len(starts))
    first, past = (np.searchsorted(in_order, places).tolist() for places in (starts, ends))
    bursts = []
    for k, spread in enumerate(spreads):
        if first[k] == past[k]:
            bursts.append(Bursts(int(ends[k] - starts[k])))
        else:
            tail = int(ends[k]) - 1 - int(in_order[past[k] - 1])
            bursts.append(Bursts(int(in_order[first[k]] - starts[k]), spread, tail))
    return bursts


def _running_maximum_within(times: Times, codes: Ints) -> Times:
    """Returns the running maximum that starts anew at each code. Equal codes stand together, and codes ascend."""
    values, ranks = np.unique(times, return_inverse=True)
    maximum: Times = values[np.maximum.accumulate(codes * len(values) + ranks) - codes * len(values)]
    return maximum


def _spreads(codes: Ints, values: Times, count: int) -> list[Spread]:
    """Returns the spread of the values of each code from 0 to count − 1. Equal codes stand together, ascending."""
    spreads = [Spread() for _ in range(count)]
    if not len(codes):
        return spreads
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    sums = (np.add.reduceat(values >> 20, starts), np.add.reduceat(values & 0xFFFFF, starts))  # as Spread.of does
    lows, highs = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    sizes = np.diff(np.r_[starts, len(codes)])
    filled, events = np.unique(codes * BUCKETS + bucket_of(values), return_counts=True)
    cuts = np.searchsorted(filled, codes[starts] * BUCKETS)
    for k, code in enumerate(codes[starts].tolist()):
        inside = slice(cuts[k], cuts[k + 1] if k + 1 < len(cuts) else None)
        buckets = dict(zip((filled[inside] - code * BUCKETS).tolist(), events[inside].tolist(), strict=True))
        total = (int(sums[0][k]) << 20) + int(sums[1][k])
        spreads[code] = Spread(int(sizes[k]), total, int(lows[k]), int(highs[k]), 0, buckets)
    return spreads


def _overtaken(block: Block, before: Left, whole: Times) -> dict[Name, int]:
    """Counts the events that lie below the largest time of another part, by that part."""
    names = [*block.names, before.holder]
    rises = block.times > np.r_[before.largest, whole[:-1]]
    at = np.maximum.accumulate(np.where(rises, np.arange(len(whole)), -1))
    try:
        holder_before = block.names.index(before.holder)
    except ValueError:
        holder_before = len(block.names)
    holders = np.where(at >= 0, block.codes[at], holder_before)
    counts = np.bincount(holders[(whole > block.times) & (holders != block.codes)], minlength=len(names))
    return {names[code]: events for code, events in enumerate(counts.tolist()) if events}


@dataclass(frozen=True)
class Without:
    """A share of the stream without some parts: delays of events out of order, and how far ahead each part runs."""

    delays: Spread
    ahead: tuple[Spread, ...]  # of each part left out: its times − the largest time of the others so far

    def and_then(self, more: Without) -> Without:
        ahead = tuple(one + other for one, other in zip(self.ahead, more.ahead, strict=True))
        return Without(self.delays + more.delays, ahead)


def without(blocks: Iterable[Block], largest: int, names: Sequence[Name]) -> Without:
    """Measures a share of the stream without these parts. largest: that of the other parts before it."""
    delays, ahead = Spread(), [Spread() for _ in names]
    place = {name: k for k, name in enumerate(names)}
    for block in blocks:
        left_out = np.array([place.get(name, -1) for name in block.names])[block.codes]
        others = running_maximum(np.where(left_out < 0, block.times, BEFORE_ALL), largest)
        late = (others > block.times) & (left_out < 0)
        delays += Spread.of(others[late] - block.times[late])
        for k in range(len(names)):
            which = (left_out == k) & (others > BEFORE_ALL)
            ahead[k] += Spread.of(block.times[which] - others[which])
        largest = int(others[-1])
    return Without(delays, tuple(ahead))
