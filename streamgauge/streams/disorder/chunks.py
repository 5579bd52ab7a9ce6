"""Chunks of a stream: their borders, and the rows that a task reads for one, some at a time.

The *base* of an event is the running maximum including itself; base times never fall along the source. A *record* is
an event in order. A *row* is the number of an event in the order of the source, from 0, counted over the row groups.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from streamgauge.base.arrow import Ints, Mask
from streamgauge.streams.disorder.definitions import BEFORE_ALL, Times, running_maximum
from streamgauge.streams.disorder.outages import Delays
from streamgauge.streams.disorder.row_groups import LARGEST, RowGroup, column_array, read, read_times, total_rows

#: a task's arrays hold about so many rows at a time, however far a delay reaches
PIECE_ROWS = 500_000


@dataclass(frozen=True, order=True)
class Border:
    """A place between two rows: rows of a smaller base are before it, and of this base those before `row`."""

    base: int
    row: int = 0


FIRST, LAST = Border(BEFORE_ALL), Border(LARGEST)


@dataclass(frozen=True)
class Chunk:
    """Rows from one border to another, and rows of the output by ingestion time in the same way."""

    low: Border
    high: Border


def chunks(groups: Sequence[RowGroup], count: int) -> list[Chunk]:
    """Cuts the rows into at most `count` chunks of about equally many.

    Any borders are correct; a border at the start of a row group saves reading that group twice.
    """
    rows, borders, seen, k = total_rows(groups), [FIRST], 0, 1
    for group in groups:
        while k < count and seen + group.rows > rows * k // count:
            small = group.rows * count * 2 <= rows  # a larger group is cut inside, by interpolation
            within = 0.0 if small else (rows * k // count - seen) / group.rows
            base = group.base_min + int((group.base_max - group.base_min) * within)
            border = Border(base, seen if base == group.base_min else 0)
            if border > borders[-1]:
                borders.append(border)
            k += 1
        seen += group.rows
    borders.append(LAST)
    return [Chunk(low, high) for low, high in pairwise(borders)]


@dataclass(frozen=True)
class Piece:
    """Consecutive rows of the source, in their order."""

    first: int  # row of the first
    seq: Ints
    time: Times
    base: Times
    source_late: Mask
    free: Mask  # may be delayed: in order and not pinned
    base_before: int  # running maximum before the first row
    parts: Times | None  # hashes of the column that delays depend on

    def index(self, border: Border) -> int:
        """Number of rows before the border."""
        if border == LAST:
            return len(self.base)
        index = int(np.searchsorted(self.base, border.base))
        if border.row:
            past = int(np.searchsorted(self.base, border.base, side="right"))
            index = min(max(index, border.row - self.first), past)
        return index

    def part(self, start: int, end: int) -> Piece:
        here = slice(start, end)
        before = int(self.base[start - 1]) if start else self.base_before
        late, free = self.source_late[here], self.free[here]
        parts = None if self.parts is None else self.parts[here]
        return Piece(self.first + start, self.seq[here], self.time[here], self.base[here], late, free, before, parts)

    def records(self) -> npt.NDArray[np.intp] | None:
        """Indices of the records; None if all rows are."""
        return np.flatnonzero(~self.source_late) if self.source_late.any() else None


@dataclass(frozen=True)
class Window:
    """The rows that a chunk needs: its own, those up to the largest delay ahead, and as far back if wanted.

    They are read in pieces, numbered from 0 in the order of the source.
    """

    begin: Border
    end: Border
    groups: list[RowGroup]  # row groups that hold them
    first: int  # row of the first row of the first group
    cuts: list[int]  # numbers of the groups that begin a piece
    following: RowGroup | None  # row group after the last one
    delay: Delays

    @staticmethod
    def of(groups: Sequence[RowGroup], chunk: Chunk, delay: Delays, *, back: bool) -> Window:
        """The window of a chunk.

        back: the window also begins the largest delay earlier; otherwise the chunk's own rows are all in the first
        piece.
        """
        begin, end, reach = chunk.low, chunk.high, delay.maximum
        if back and begin != FIRST:
            begin = Border(max(begin.base - reach, BEFORE_ALL))
        if end != LAST and reach:
            end = Border(min(LARGEST, end.base + reach))
        rows = list(accumulate((group.rows for group in groups), initial=0))
        numbers = range(len(groups))

        def past(border: Border) -> int:
            """Number of row groups that may have a row before the border."""
            if border == LAST:
                return len(groups)
            return bisect_left(numbers, border, key=lambda number: Border(groups[number].base_min, rows[number]))

        first = bisect_right(numbers, begin, key=lambda number: Border(groups[number].base_max, rows[number + 1]))
        own, over = max(first, past(chunk.high)), max(first, past(end))
        cuts, start = [0], rows[first]
        for number in range(first + 1 if back else own, over):
            if rows[number + 1] - start > PIECE_ROWS and number > first:
                cuts.append(number - first)
                start = rows[number]
        following = groups[over] if over < len(groups) else None
        return Window(begin, end, list(groups[first:over]), rows[first], cuts, following, delay)

    def piece(self, number: int) -> Piece | None:
        """Reads a piece; None if it has no row of the window."""
        ends = [*self.cuts[1:], len(self.groups)]
        groups = self.groups[self.cuts[number] : ends[number]]
        if not groups:
            return None
        following = self.groups[ends[number]] if ends[number] < len(self.groups) else self.following
        # the event after the last row may be out of order: it pins that row
        pinned = following is not None and following.time_min < following.before
        if following is not None and pinned:
            pinned = bool(read_times([following])[0] < following.before)
        first = self.first + total_rows(self.groups[: self.cuts[number]])
        whole = _read(groups, first, self.delay, pinned=pinned)
        part = whole.part(whole.index(self.begin), whole.index(self.end))
        return part if len(part.base) else None

    def backwards(self, last: int = 0) -> Iterator[Piece]:
        """Yields the pieces from the end of the window to that number."""
        for number in range(len(self.cuts) - 1, last - 1, -1):
            if (piece := self.piece(number)) is not None:
                yield piece


def _read(groups: list[RowGroup], first: int, delay: Delays, *, pinned: bool) -> Piece:
    table = read(groups, ["seq", "event_time", *([delay.column] if delay.column else [])])
    seq, time = column_array(table, "seq"), column_array(table, "event_time")
    base = running_maximum(time, groups[0].before)
    source_late = base > time
    free = ~source_late
    free[:-1] &= ~source_late[1:]
    free[-1] &= not pinned
    parts = delay.parts(table.column(delay.column), seq) if delay.column else None
    return Piece(first, seq, time, base, source_late, free, groups[0].before, parts)
