"""Chooses exactly the events to delay, without a shuffle, chunk by chunk (docs/generation.md has the proof).

Terms of this module. The *base* of an event is the running maximum including itself; base times never
fall along the source. A *record* is an event in order, so records' event times never fall either. A
record is *pinned* when the event after it is out of order: delaying it would put that event in order.
Every event has a *selection draw* u; at *threshold* p all records with u < p that are not pinned are
delayed. A delayed record is *effective*, that is out of order, iff a later record with a larger event
time comes before it. A *chunk* is a range of base time, and of ingestion time in the output (chunks.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from streamgauge.base.arrow import Ints, Mask
from streamgauge.base.errors import Infeasible, UserError
from streamgauge.records.manifests import Selection
from streamgauge.streams.disorder.arrays import at_index, next_larger, range_maximum
from streamgauge.streams.disorder.chunks import Chunk, Piece, Window
from streamgauge.streams.disorder.definitions import Times
from streamgauge.streams.disorder.delays import NEVER, Draws
from streamgauge.streams.disorder.outages import Delays
from streamgauge.streams.disorder.row_groups import LARGEST, RowGroup

BINS = NEVER


@dataclass(frozen=True)
class ChunkCounts:
    """A chunk's contribution to the number of effective records at every threshold, or that of some chunks together."""

    events: int
    source_out_of_order: int
    gained: Ints  # per bin: records that become effective when the threshold passes it
    lost: Ints  # per bin: records whose last overtaker is delayed when the threshold passes it

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


@dataclass(frozen=True)
class Records:
    """The records of a piece, with what is drawn for each."""

    place: npt.NDArray[np.intp] | None  # index in the piece; None: all its rows are records
    seq: Ints
    time: Times
    free: Mask
    select: Draws
    drawn: Times  # delays, ticks

    @staticmethod
    def of(piece: Piece, delay: Delays, seed: int) -> Records:
        place = piece.records()
        seq, time, free = (at_index(one, place) for one in (piece.seq, piece.time, piece.free))
        select, drawn = _draw(piece, delay, seed, place)
        return Records(place, seq, time, free & (select < NEVER), select, drawn)

    def draws(self) -> Draws:
        """Selection draws; for pinned records, which are never delayed, more than any threshold."""
        return np.where(self.free, self.select, BINS).astype(np.uint16)

    def ingestion(self, chosen: Mask) -> Times:
        """Ingestion times if these records are delayed."""
        ingestion: Times = self.time + np.where(chosen, self.drawn, 0)
        return ingestion


def _draw(piece: Piece, delay: Delays, seed: int, rows: npt.NDArray[np.intp] | None) -> tuple[Draws, Times]:
    """(selection draw, delay) of these rows; None: all of them."""
    parts = None if piece.parts is None else at_index(piece.parts, rows)
    return delay.draw(seed, at_index(piece.seq, rows), at_index(piece.time, rows), parts)


@dataclass(frozen=True)
class Rest:
    """Three numbers in place of all records after a piece."""

    time: int  # the smallest event time among them
    at: int  # the earliest ingestion of those at that time
    after: int  # the earliest ingestion of those with a larger time


def count_chunk(groups: Sequence[RowGroup], chunk: Chunk, delay: Delays, seed: int) -> ChunkCounts:
    """Counts which of the chunk's records are effective, for every threshold at once.

    Record i is effective exactly for thresholds in (u, v]: v is unbounded if it is overtaken even when
    everything is delayed, else the largest draw among the records that would overtake it.
    """
    gained, lost = np.zeros(BINS, np.int64), np.zeros(BINS, np.int64)
    window = Window.of(groups, chunk, delay, back=False)
    near = window.piece(0)
    if near is None:
        return ChunkCounts(0, 0, gained, lost)
    events = near.index(chunk.high)
    records = Records.of(near, delay, seed)
    own = events if records.place is None else int(np.searchsorted(records.place, events))
    latest = records.ingestion(records.free)
    rest: Rest | None = None
    last = np.zeros(own, np.uint16)  # the largest draw of a record that would overtake
    for piece in window.backwards(1):
        later = Records.of(piece, delay, seed)
        _raise_to_draws(last, later, records.time[:own], latest[:own])
        rest = _rest(later.time, later.ingestion(later.free), rest)

    following = next_larger(records.time)
    always = (latest > _earliest_after(records.time, latest, following, rest))[:own]
    free, select = records.free[:own], records.select[:own]
    gained += np.bincount(select[always & free], minlength=BINS)

    # the others may be overtaken only by records that are not delayed themselves
    candidate = np.flatnonzero(free & ~always & (records.drawn[:own] > 0))
    begin = candidate + 1 if following is None else following[candidate]
    end = np.searchsorted(records.time, latest[candidate], side="left")
    some = end > begin
    if some.any():
        here = candidate[some]
        last[here] = np.maximum(last[here], range_maximum(records.draws(), begin[some], end[some]))
    own_draw, last = select[candidate], last[candidate]
    helped = last > own_draw
    gained += np.bincount(own_draw[helped], minlength=BINS)
    lost += np.bincount(last[helped], minlength=BINS + 1)[:BINS]
    return ChunkCounts(events, int(near.source_late[:events].sum()), gained, lost)


def _raise_to_draws(least: Draws, later: Records, time: Times, latest: Times) -> None:
    """Raises least to the largest draw among the later records with an event time between time and latest."""
    if not len(later.time):
        return
    first, draws = later.time[0], later.draws()
    reaching = np.flatnonzero(latest > first)
    end = np.searchsorted(later.time, latest[reaching], side="left")
    tied = int(np.searchsorted(later.time, first, side="right"))  # these overtake no record of their own time
    before = time[reaching] < first
    for start, some in ((0, before), (tied, ~before & (end > tied))):
        if some.any():
            row = reaching[some]
            least[row] = np.maximum(least[row], np.maximum.accumulate(draws[start:])[end[some] - 1 - start])


def _rest(time: Times, ingestion: Times, rest: Rest | None) -> Rest | None:
    """Returns the rest as seen from before these records."""
    if not len(time):
        return rest
    first = int(np.searchsorted(time, time[0], side="right"))
    at, after = int(ingestion[:first].min()), int(ingestion[first:].min(initial=LARGEST))
    if rest is not None and rest.time == time[0]:
        at, after = min(at, rest.at), min(after, rest.after)
    elif rest is not None:
        after = min(after, rest.at, rest.after)
    return Rest(int(time[0]), at, after)


def solve(
    groups: Sequence[RowGroup],
    parts: Sequence[tuple[Sequence[Chunk], ChunkCounts]],
    delay: Delays,
    seed: int,
    target: Fraction | None,
    *,
    closest: bool = False,
) -> Solution:
    """Finds the selection that makes exactly round(target · events) events out of order; None: as many as there are.

    parts: all chunks, in order, some at a time with their counts. closest: takes the nearest reachable count.
    Otherwise raises Infeasible with the bounds if the target is out of reach. Raises UserError if the events changed
    meanwhile.
    """
    events = sum(part.events for _, part in parts)
    source = sum(part.source_out_of_order for _, part in parts)
    change = sum((part.gained - part.lost for _, part in parts), np.zeros(BINS, np.int64))
    effective = np.r_[0, np.cumsum(change)]  # [p]: at threshold p
    maximum = source + int(effective.max())
    wanted = source if target is None else round(target * events)
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


def delayed_rows(
    piece: Piece, delay: Delays, seed: int, selection: Selection, rest: Rest | None
) -> tuple[npt.NDArray[np.intp], Times, Rest | None]:
    """(indices, delays) of the selected records that are effective at the boundary's threshold, and the new rest."""
    if selection.bin < 0:
        return np.zeros(0, np.intp), np.zeros(0, np.int64), None
    records = Records.of(piece, delay, seed)
    chosen = records.free & (records.select <= selection.bin)
    ingestion = records.ingestion(chosen)
    chosen &= ingestion > _earliest_after(records.time, ingestion, next_larger(records.time), rest)
    # taking a delay back only makes that record earlier, so the others stay effective (fact 3 of docs/generation.md)
    chosen &= (records.select < selection.bin) | (records.seq <= selection.last_seq)
    late = np.flatnonzero(chosen)
    rows = late if records.place is None else records.place[late]
    return rows, records.drawn[late], _rest(records.time, ingestion, rest)


def _effective_in_bin(groups: Sequence[RowGroup], chunk: Chunk, delay: Delays, seed: int, bin_: int) -> Ints:
    """seq of the chunk's records that the boundary bin makes effective at threshold bin + 1."""
    rest: Rest | None = None
    seqs = np.zeros(0, np.int64)
    for piece in Window.of(groups, chunk, delay, back=False).backwards():
        late, _, rest = delayed_rows(piece, delay, seed, Selection(bin_, LARGEST), rest)
        select, _ = _draw(piece, delay, seed, late)
        own = late < piece.index(chunk.high)
        seqs = np.concatenate([seqs, piece.seq[late[own & (select == bin_)]]])
    return seqs


def _earliest_after(time: Times, ingestion: Times, following: npt.NDArray[np.intp] | None, rest: Rest | None) -> Times:
    """Smallest ingestion time among later records with a larger event time (fact 1 of docs/generation.md).

    following: next_larger(time).
    """
    if rest is not None:  # two records in place of all those after these
        time, ingestion = np.r_[time, rest.time, rest.time + 1], np.r_[ingestion, rest.at, rest.after]
        return _earliest_after(time, ingestion, next_larger(time), None)[:-2]
    earliest: Times = np.minimum.accumulate(ingestion[::-1])[::-1]
    suffix: Times = np.append(earliest, np.int64(LARGEST))
    return suffix[1:] if following is None else suffix[following]


def require_room(groups: Sequence[RowGroup], delay: Delays, longest: object) -> None:
    """Raises UserError if times, differences or delayed times do not fit into 64 bits. longest: as it was written."""
    if not groups:
        return
    first, last = min(group.time_min for group in groups), max(group.time_max for group in groups)
    if last - first > LARGEST:
        raise UserError("event times are further apart than 64 bits hold; check source.time")
    if max(0, last) + delay.maximum > LARGEST:
        raise UserError(
            f"delay.max: found {longest}, which can delay the last event beyond the largest 64-bit time; lower it"
        )


def too_low(target: Fraction, source: int, events: int) -> None:
    """Raises Infeasible if that many events of the source are more than the target allows."""
    if round(target * events) < source:
        raise _infeasible(round(target * events), source, events, events)


def _infeasible(wanted: int, source: int, maximum: int, events: int) -> Infeasible:
    low, high = (100 * n / events for n in (source, maximum)) if events else (0.0, 0.0)
    bound = f" and this seed's bound is {maximum} ({high:.4f} %)" if maximum < events else ""
    way = "a target between them, a larger delay, or on_infeasible: closest"
    if wanted < source:
        way = "order: event_time to begin with events in order, target: source to take them as they came, or a target "
        way += "between them"
    return Infeasible(
        f"target {wanted} of {events} events out of order cannot be reached: the source has {source} "
        f"({low:.4f} %) already{bound}; choose {way}"
    )
