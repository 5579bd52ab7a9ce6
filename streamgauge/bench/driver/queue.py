"""The queue of one partition: record batches, whose rows become visible at their `offered_wall`."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import pyarrow as pa

from streamgauge.bench.driver.schedule import Ints


class OffsetError(ValueError):
    """A range that is not in the queue, or an offset that goes back or beyond the offered rows."""


class Queue:
    """The queue of one partition. `Queues` holds the lock, and has checked each offset that is planned or committed."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._batches: list[tuple[pa.RecordBatch, Ints]] = []
        self.appended = 0  # rows, including those not yet due
        self.offered = 0
        self.known = 0  # rows of which the system has heard, or which it has read
        self.planned = 0
        self.committed = 0
        self.again = 0  # rows that were read once more
        self._read = 0  # rows that were read

    def append(self, batch: pa.RecordBatch, offered_wall: Ints) -> None:
        self._firsts.append(self.appended)
        self._batches.append((batch, offered_wall))
        self.appended += batch.num_rows

    def reveal(self, now_ns: int, room: int | None = None) -> int:
        """Moves `offered` up to the rows that are due, at most `room` beyond the planned ones; returns it.

        `room` counts from the planned rows, not from the committed ones. Otherwise an engine that plans its next batch
        before it commits the last one would find nothing, and Spark would run a batch without data to move its
        watermark.
        """
        before = self.offered
        while self.offered < self.appended:
            first, (_, walls) = self._find(self.offered)
            self.offered = max(self.offered, first + int(np.searchsorted(walls, now_ns, side="right")))
            if self.offered < first + len(walls):
                break
        if room is not None:
            self.offered = max(before, min(self.offered, self.planned + room))
        return self.offered

    def next_due(self) -> int | None:
        """Instant at which the next row is due, ns; None if it is not prepared yet."""
        return None if self.offered >= self.appended else self._wall(self.offered)

    def withdraw(self) -> None:
        """Takes back the rows of which the system has not heard."""
        self.offered = max(self.planned, self.known)

    def cut(self) -> None:
        """Removes the rows that have not been offered."""
        while self._firsts and self._firsts[-1] >= self.offered:
            self._firsts.pop()
            self._batches.pop()
        if self._firsts:
            keep = self.offered - self._firsts[-1]
            batch, walls = self._batches[-1]
            self._batches[-1] = batch.slice(0, keep), walls[:keep]
        self.appended = self.offered

    def read(self, start: int, end: int, max_batches: int) -> list[pa.RecordBatch]:
        """Returns rows [start, end), or fewer when they span more than max_batches. Raises OffsetError."""
        if not self.committed <= start <= end <= self.offered:
            raise OffsetError(
                f"found rows {start} to {end}, allowed: from {self.committed} (committed) to {self.offered} (offered)"
            )
        begin, pieces = start, list[pa.RecordBatch]()
        while start < end and len(pieces) < max_batches:
            first, (batch, _) = self._find(start)
            rows = min(end - start, first + batch.num_rows - start)
            pieces.append(batch.slice(start - first, rows))
            start += rows
        self.known = max(self.known, start)
        self.again += max(0, min(start, self._read) - begin)
        self._read = max(self._read, start)
        return pieces

    def plan(self, offset: int) -> None:
        self.planned = max(self.planned, offset)  # a system that restarts plans its last batch again

    def commit(self, offset: int) -> None:
        self.committed = offset
        self.planned = max(self.planned, offset)
        free = 0
        while free < len(self._firsts) and self._firsts[free] + self._batches[free][0].num_rows <= offset:
            free += 1
        del self._firsts[:free], self._batches[:free]

    def oldest_wall(self) -> int | None:
        """offered_wall of the first row that is offered and not planned; None if there is none."""
        return self._wall(self.planned) if self.planned < self.offered else None

    @property
    def batches(self) -> int:
        return len(self._batches)

    def _find(self, row: int) -> tuple[int, tuple[pa.RecordBatch, Ints]]:
        index = bisect_right(self._firsts, row) - 1
        return self._firsts[index], self._batches[index]

    def _wall(self, row: int) -> int:
        first, (_, walls) = self._find(row)
        return int(walls[row - first])
