"""Exact generation without a shuffle, chunk by chunk, on numpy arrays (docs/generation.md has the proof).

Terms of this module. The *base* of an event is the running maximum including itself; base times never
fall along the source. A *record* is an event in order, so records' event times never fall either. A
record is *pinned* when the event after it is out of order: delaying it would put that event in order.
Every event has a *selection draw* u; at *threshold* p all records with u < p that are not pinned are
delayed. A delayed record is *effective*, that is out of order, iff a later record with a larger event
time comes before it. A *chunk* is a range [low, high) of base time, and of ingestion time in the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from streamgauge.base.errors import Infeasible, UserError
from streamgauge.disorder.arrays import at_index, next_larger, range_maximum, stable_order
from streamgauge.disorder.definitions import BEFORE_ALL, Times, running_maximum
from streamgauge.disorder.delays import SELECT_BITS, DelayTable, draw
from streamgauge.disorder.row_groups import LARGEST, RowGroup, column_array, read, total_rows

BINS = 1 << SELECT_BITS
Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Chunk:
    """A half-open range of base time; the first chunk has no lower end, the last no upper end."""

    low: int
    high: int

    @property
    def first(self) -> bool:
        return self.low == BEFORE_ALL

    @property
    def last(self) -> bool:
        return self.high == LARGEST


@dataclass(frozen=True)
class Selection:
    """The delayed records: those effective at threshold bin + 1 with (draw, seq) <= (bin, last_seq)."""

    bin: int  # −1: none
    last_seq: int


@dataclass(frozen=True)
class ChunkCounts:
    """A chunk's contribution to the number of effective records at every threshold, or that of some chunks together."""

    events: int
    source_out_of_order: int
    gained: Counts  # per bin: records that become effective when the threshold passes it
    lost: Counts  # per bin: records whose last overtaker is delayed when the threshold passes it

    def __add__(self, other: ChunkCounts) -> ChunkCounts:
        return ChunkCounts(
            self.events + other.events,
            self.source_out_of_order + other.source_out_of_order,
            self.gained + other.gained,
            self.lost + other.lost,
        )


@dataclass(frozen=True)
class Solution:
    """The selection that meets the target, and what this seed allows."""

    selection: Selection
    events: int
    source_out_of_order: int
    target: int  # wanted out-of-order events
    aimed: int  # what the selection gives: the target, or the closest that can be reached
    maximum: int  # the most that this seed and rule can give, called this seed's bound


def chunks(groups: Sequence[RowGroup], count: int) -> list[Chunk]:
    """Cuts base time into at most `count` chunks of about equally many rows.

    Any borders are correct; a border at the start of a row group saves reading that group twice.
    """
    rows, borders, seen, k = total_rows(groups), [BEFORE_ALL], 0, 1
    for group in groups:
        while k < count and seen + group.rows > rows * k // count:
            small = group.rows * count * 2 <= rows  # a larger group is cut inside, by interpolation
            within = 0.0 if small else (rows * k // count - seen) / group.rows
            border = group.base_min + int((group.base_max - group.base_min) * within)
            if border > borders[-1]:
                borders.append(border)
            k += 1
        seen += group.rows
    borders.append(LARGEST)
    return [Chunk(low, high) for low, high in pairwise(borders)]


@dataclass(frozen=True)
class Window:
    """The rows that window() reads for a chunk: those with base in its range and in the halo around it."""

    groups: list[RowGroup]  # the row groups that hold them, in order (not one that was read only to pin)
    skipped: int  # rows at the front of them that lie before the window
    seq: Counts
    time: Times
    base: Times
    source_late: Mask
    free: Mask  # may be delayed: in order and not pinned
    base_before: int  # running maximum before the window's first row


def window(groups: Sequence[RowGroup], chunk: Chunk, reach: int, *, back: bool) -> Window | None:
    """Reads the rows with base in [chunk.low, chunk.high + reach); None without any.

    back: begins `reach` earlier. reach: the largest delay, in ticks.
    """
    start = chunk.low - reach if back and not chunk.first else chunk.low
    end = LARGEST if chunk.last else min(LARGEST, chunk.high + reach)
    start = max(start, BEFORE_ALL)
    first = next((i for i, g in enumerate(groups) if g.base_max >= start), len(groups))
    past = first
    while past < len(groups) and (groups[past].base_min < end or chunk.last):
        past += 1
    if first == past:
        return None
    # the event after the last row may be out of order: it pins that row
    needed = past + 1 if past < len(groups) and groups[past].time_min < groups[past].before else past
    table = read(groups[first:needed], ["seq", "event_time"])
    seq, time = column_array(table, "seq"), column_array(table, "event_time")
    base = running_maximum(time, groups[first].before)
    source_late = base > time
    free = ~source_late
    free[:-1] &= ~source_late[1:]
    i = int(np.searchsorted(base, start))
    j = len(base) if chunk.last else int(np.searchsorted(base, end))
    before = int(base[i - 1]) if i else groups[first].before
    part = slice(i, j)
    return Window(
        list(groups[first:past]), i, seq[part], time[part], base[part], source_late[part], free[part], before
    )  # fmt: skip


def count_chunk(groups: Sequence[RowGroup], chunk: Chunk, delay: DelayTable, seed: int) -> ChunkCounts:
    """Counts which of the chunk's records are effective, for every threshold at once.

    Record i is effective exactly for thresholds in (u, v]: v is unbounded if it is overtaken even when
    everything is delayed, else the largest draw among the records that would overtake it.
    """
    gained, lost = np.zeros(BINS, np.int64), np.zeros(BINS, np.int64)
    seen = window(groups, chunk, delay.maximum, back=False)
    if seen is None:
        return ChunkCounts(0, 0, gained, lost)
    events = len(seen.base) if chunk.last else int(np.searchsorted(seen.base, chunk.high))
    source_late = int(seen.source_late[:events].sum())
    select, drawn = draw(seed, seen.seq, delay)
    record = None if not seen.source_late.any() else np.flatnonzero(~seen.source_late)
    own = events if record is None else int(np.searchsorted(record, events))
    time, free, select, drawn = (at_index(a, record) for a in (seen.time, seen.free, select, drawn))

    following = next_larger(time)
    latest = time + np.where(free, drawn, 0)  # when everything is delayed
    always = latest > _earliest_after(latest, following)
    sure = always[:own] & free[:own]
    gained += np.bincount(select[:own][sure], minlength=BINS)

    # the others may be overtaken only by records that are not delayed themselves
    candidate = np.flatnonzero(free[:own] & ~always[:own] & (drawn[:own] > 0))
    begin = candidate + 1 if following is None else following[candidate]
    end = np.searchsorted(time, latest[candidate], side="left")
    some = end > begin
    candidate, begin, end = candidate[some], begin[some], end[some]
    if len(candidate):
        draws = np.where(free, select, BINS).astype(np.uint16)  # pinned records are never delayed
        last = range_maximum(draws, begin, end)
        own_draw = select[candidate]
        helped = last > own_draw
        gained += np.bincount(own_draw[helped], minlength=BINS)
        lost += np.bincount(last[helped], minlength=BINS + 1)[:BINS]
    return ChunkCounts(events, source_late, gained, lost)


def solve(
    groups: Sequence[RowGroup],
    parts: Sequence[tuple[Sequence[Chunk], ChunkCounts]],
    delay: DelayTable,
    seed: int,
    target: Fraction,
    *,
    closest: bool = False,
) -> Solution:
    """Finds the selection that makes exactly round(target · events) events out of order.

    parts: all chunks, in order, some at a time with their counts. closest: takes the nearest reachable count.
    Otherwise raises Infeasible with the bounds if the target is out of reach. Raises UserError if the events changed
    meanwhile.
    """
    events = sum(part.events for _, part in parts)
    source = sum(part.source_out_of_order for _, part in parts)
    change = sum((part.gained - part.lost for _, part in parts), np.zeros(BINS, np.int64))
    effective = np.r_[0, np.cumsum(change)]  # [p]: at threshold p
    maximum = source + int(effective.max())
    wanted = round(target * events)
    aimed = min(max(wanted, source), maximum)
    if aimed != wanted and not closest:
        raise _infeasible(wanted, source, maximum, events)
    extra = aimed - source
    if extra == 0:
        return Solution(Selection(-1, -1), events, source, wanted, aimed, maximum)
    boundary = int(np.argmax(effective >= extra)) - 1
    per_part = [int(part.gained[boundary]) for _, part in parts]
    needed = extra - (int(effective[boundary + 1]) - sum(per_part))
    for (some, _), here in zip(parts, per_part, strict=True):
        if needed > here:
            needed -= here
            continue
        for chunk in some:
            candidates = _effective_in_bin(groups, chunk, delay, seed, boundary)
            if needed <= len(candidates):
                last = int(np.sort(candidates)[needed - 1])
                return Solution(Selection(boundary, last), events, source, wanted, aimed, maximum)
            needed -= len(candidates)
        raise UserError("the events changed while they were read; run again")
    raise AssertionError("the curve of effective events contradicts itself")


@dataclass(frozen=True)
class Output:
    """The rows of one chunk of the stream, in (ingestion time, seq) order."""

    ingestion: Times
    seq: Counts
    time: Times
    rows: npt.NDArray[np.intp]  # sorted positions in the row groups below, for fetching further columns
    order: npt.NDArray[np.intp]  # rows[order] are the positions in stream order
    groups: list[RowGroup]
    running_before: int  # largest event time of all earlier chunks' rows
    delayed: Counts  # delays of newly delayed rows, ticks


def generate_chunk(
    groups: Sequence[RowGroup], chunk: Chunk, delay: DelayTable, seed: int, selection: Selection
) -> Output | None:
    """Returns the stream's rows with ingestion time in the chunk; None when there are none."""
    seen = window(groups, chunk, delay.maximum, back=True)
    if seen is None:
        return None
    events = len(seen.base) if chunk.last else int(np.searchsorted(seen.base, chunk.high))
    ingestion = seen.base[:events].copy()
    drawn_delays = np.zeros(0, np.int64)
    if selection.bin >= 0:
        late, drawn = _delayed_rows(seen, delay, seed, selection)
        own = late < events
        late, drawn_delays = late[own], drawn[own]
        ingestion[late] += drawn_delays
    here = np.ones(events, np.bool_) if chunk.last else ingestion < chunk.high
    running_before = seen.base_before
    if not chunk.first:
        earlier = ingestion < chunk.low
        running_before = max(running_before, int(seen.time[:events][earlier].max(initial=BEFORE_ALL)))
        here &= ~earlier
    rows = np.flatnonzero(here)
    if not len(rows):
        return None
    order = stable_order(ingestion[rows])
    ordered = rows[order]
    counted = here[late] if selection.bin >= 0 else np.zeros(0, np.bool_)
    return Output(
        ingestion[ordered],
        seen.seq[ordered],
        seen.time[ordered],
        rows + seen.skipped,
        order,
        seen.groups,
        running_before,
        drawn_delays[counted],
    )


def _delayed_rows(seen: Window, delay: DelayTable, seed: int, selection: Selection) -> tuple[Counts, Counts]:
    """(positions, delays) of the selected records that are effective at the boundary's threshold."""
    select, drawn = draw(seed, seen.seq, delay)
    record = None if not seen.source_late.any() else np.flatnonzero(~seen.source_late)
    time, free, select, drawn, seq = (at_index(a, record) for a in (seen.time, seen.free, select, drawn, seen.seq))
    chosen = free & (select <= selection.bin)
    ingestion = time + np.where(chosen, drawn, 0)
    chosen &= ingestion > _earliest_after(ingestion, next_larger(time))
    # taking a delay back only makes that record earlier, so the others stay effective (fact 3 of docs/generation.md)
    chosen &= (select < selection.bin) | (seq <= selection.last_seq)
    late = np.flatnonzero(chosen)
    return (late if record is None else record[late]), drawn[late]


def _effective_in_bin(groups: Sequence[RowGroup], chunk: Chunk, delay: DelayTable, seed: int, bin_: int) -> Counts:
    """seq of the chunk's records that the boundary bin makes effective at threshold bin + 1."""
    seen = window(groups, chunk, delay.maximum, back=False)
    if seen is None:
        return np.zeros(0, np.int64)
    events = len(seen.base) if chunk.last else int(np.searchsorted(seen.base, chunk.high))
    late, _ = _delayed_rows(seen, delay, seed, Selection(bin_, LARGEST))
    select, _ = draw(seed, seen.seq[late], delay)
    found: Counts = seen.seq[late[(late < events) & (select == bin_)]]
    return found


def _earliest_after(ingestion: Times, following: npt.NDArray[np.intp] | None) -> Times:
    """Smallest ingestion time among later records with a larger event time (fact 1 of docs/generation.md)."""
    earliest: Times = np.minimum.accumulate(ingestion[::-1])[::-1]
    suffix: Times = np.append(earliest, np.int64(LARGEST))
    return suffix[1:] if following is None else suffix[following]


def _infeasible(wanted: int, source: int, maximum: int, events: int) -> Infeasible:
    low, high = (100 * n / events for n in (source, maximum)) if events else (0.0, 0.0)
    return Infeasible(
        f"target {wanted} of {events} events out of order cannot be reached: the source has {source} "
        f"({low:.4f} %) already and this seed's bound is {maximum} ({high:.4f} %); choose a target between, "
        "a larger delay, or on_infeasible: closest",
        minimum_percent=low,
        maximum_percent=high,
    )
