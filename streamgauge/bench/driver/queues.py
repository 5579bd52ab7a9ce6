"""Bounded queues of record batches with int64 row offsets. A read may start at any uncommitted row.

Batches are prepared ahead of time; each row becomes visible at its `offered_wall`. Nothing is dropped: queues that
together outgrow their capacity overflow, and the trial ends there.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streamgauge.bench.driver.queue import OffsetError, Queue
from streamgauge.bench.driver.schedule import NS, Ints
from streamgauge.records.driver import QueuesState

MAX_BATCHES = 16
MAX_SAMPLES = 20_000
NAP_S = 0.02
#: the most rows that a closed loop holds, whatever the queues can take
MOST_HELD_ROWS = 8_000_000
ROW_BYTES = 64  # computed columns of one queued row; the others are slices of the stream


def fitting_rows(max_memory_mb: int) -> int:
    """Rows that all queues together may keep, in half of the memory; the other half is the stream's."""
    return max_memory_mb * 2**20 // 2 // ROW_BYTES


def held_rows(max_memory_mb: int) -> int:
    """Rows that a closed loop may hold: the queues keep as many again, those that the system works on."""
    return min(MOST_HELD_ROWS, fitting_rows(max_memory_mb) // 2)


class Taken(NamedTuple):
    """A sample of the queues: when the system planned a batch, by the clock, or at the end.

    A sample at a plan has the figures just before it, so that `taken` counts finished batches only.
    """

    wall_ns: int
    age_s: float  # of the oldest row offered and not yet planned
    backlog: int  # offered − planned
    taken: int  # planned before


class Queues:
    """The queues of one driver process, thread-safe.

    capacity_rows: most rows offered and not planned, over all queues. memory_rows: most rows offered and not committed.
    Beyond either, an open loop ends by overflow. hold: a closed loop, to measure what a batch costs: at most so many
    rows wait, and the rest of the stream is held back. shares: the part of these rows that each partition has; by
    default they are equal.
    """

    def __init__(
        self, partitions: int, capacity_rows: int, *, memory_rows: int | None = None, hold: int | None = None,
        shares: Sequence[float] = (),
    ) -> None:  # fmt: skip
        self._shares = shares or [1 / partitions] * partitions
        self._queues = [Queue() for _ in range(partitions)]
        self._changed = threading.Condition()
        self.capacity_rows, self._hold = capacity_rows, hold
        self._memory_rows = 2 * capacity_rows if memory_rows is None else memory_rows
        self.overflow = False
        self.uncommitted = False  # what overflowed are rows that the system had taken, and not those that waited
        self.finished = False  # no row will follow
        self.from_ns = 0  # nothing is offered before it, not even a backlog
        self.until_ns: int | None = None  # rows due from here on are never offered
        self.samples: list[Taken] = []  # one per micro-batch
        self.clock: list[Taken] = []  # one for each `_each` ticks, of which it is the oldest age
        self._ticks, self._each = 0, 1
        self.final: Taken | None = None  # at the end of the offering

    def hold(self, rows: int) -> None:
        """Keeps `rows` rows waiting from now on, and forgets that the queues were full.

        Raises OffsetError if the queues were made without hold.
        """
        with self._changed:
            if self._hold is None:
                raise OffsetError("hold: this is an open-loop trial; open the trial with `hold`")
            self._hold = rows
            self.overflow = self.uncommitted = False  # of the window that begins
            self._changed.notify_all()

    def cut(self, now_ns: int) -> int:
        """Removes the rows that have not been offered yet; returns how many were offered, over all queues.

        A closed loop also takes back those that wait and that the system does not know yet; they would cost it a batch.
        Nothing is removed once the offering has ended.
        """
        with self._changed:
            if self.finished:
                return sum(queue.offered for queue in self._queues)
            self._reveal(now_ns)
            for queue in self._queues:
                if self._hold is not None:
                    queue.withdraw()
                queue.cut()
            return sum(queue.offered for queue in self._queues)

    def tick(self, now_ns: int) -> None:
        """Takes a sample by the clock."""
        with self._changed:
            if not self.finished:
                self._reveal(now_ns)
                self._watch(self._look(now_ns))

    def append(self, partition: int, batch: pa.RecordBatch, offered_wall: Ints) -> None:
        with self._changed:
            if not self.finished:
                self._queues[partition].append(batch, offered_wall)
                self._changed.notify_all()

    def offered(self, now_ns: int) -> list[int]:
        """Returns the rows offered by now, per partition; sets `overflow` when too many wait."""
        with self._changed:
            return self._reveal(now_ns)

    def latest(self, now_ns: int) -> list[int]:
        """Returns the rows offered by now, for the system, which may plan them from now on."""
        with self._changed:
            offered = self._reveal(now_ns)
            for queue in self._queues:
                queue.known = queue.offered
            return offered

    def roomy(self, slack: int) -> bool:
        """True if more rows may be prepared: rows that would overflow anyway need no memory."""
        with self._changed:
            appended = sum(queue.appended for queue in self._queues)
            kept = appended - sum(queue.committed for queue in self._queues)
            if self.finished or kept > self._memory_rows + slack:
                return False
            if self._hold is None:
                return True
            # twice the held rows: while the system works on one batch, the next one is prepared. What it took before
            # that batch is kept until it commits, and leaves no fewer rows to wait.
            ahead = appended - sum(queue.planned for queue in self._queues)
            return min(kept, ahead + self._hold) <= 2 * self._hold + slack

    def read(
        self, partition: int, start: int, end: int, now_ns: int, max_batches: int = MAX_BATCHES
    ) -> list[pa.RecordBatch]:
        with self._changed:
            self._reveal(now_ns)
            return self._queue(partition).read(start, end, max_batches)

    def read_offered(self, partition: int, start: int, rows: int, now_ns: int) -> list[pa.RecordBatch]:
        """Returns at most `rows` of the rows offered by now, from `start` on."""
        with self._changed:
            self._reveal(now_ns)
            queue = self._queue(partition)
            return queue.read(start, max(start, min(queue.offered, start + rows)), MAX_BATCHES)

    def wait(self, partition: int, start: int, now_ns: int, longest_s: float) -> float | None:
        """Seconds to sleep for a row at `start`; None if it is there, none will come, or longest_s is 0."""
        with self._changed:
            queue = self._queue(partition)
            if self._reveal(now_ns)[partition] > start or self.finished or longest_s <= 0:
                return None
            due = queue.next_due()
            # a row that is not prepared may be appended between this answer and the pause, and one that is held back
            # has been due for long: sleep only briefly, but sleep
            left_s = NAP_S if due is None else (max(due, self.from_ns) - now_ns) / NS
            return min(longest_s, left_s if left_s > 0 else NAP_S)

    def pause(self, seconds: float) -> None:
        """Sleeps for `seconds`, or until rows are appended or the offering ends."""
        with self._changed:
            if not self.finished:
                self._changed.wait(seconds)

    def plan(self, offsets: Mapping[int, int], now_ns: int) -> None:
        """Moves `planned` to these offsets. Raises OffsetError, and changes nothing, if one of them is out of range."""
        with self._changed:
            self._reveal(now_ns)
            self._check(offsets)
            self._sample(now_ns, offsets)
            for partition, offset in offsets.items():
                self._queue(partition).plan(offset)
            self._make_way()

    def commit(self, offsets: Mapping[int, int], now_ns: int) -> None:
        with self._changed:
            self._reveal(now_ns)
            self._check(offsets, commit=True)
            self._sample(now_ns, offsets)
            for partition, offset in offsets.items():
                self._queue(partition).commit(offset)
            self._make_way()

    def _make_way(self) -> None:
        """Wakes readers that wait for rows that were held back until now."""
        if self._hold is not None:
            self._changed.notify_all()

    def finish(self, wall_ns: int, sentinel: pa.RecordBatch | None) -> None:
        """Ends the offering, with the sentinel in every queue if one is given."""
        with self._changed:
            if self.finished:
                return
            self._reveal(wall_ns)
            self.final = self._look(wall_ns)
            for queue in self._queues:
                queue.cut()
                if sentinel is not None:
                    queue.append(sentinel, np.array([wall_ns]))
                    queue.offered = queue.appended
            self.finished = True
            self._changed.notify_all()

    def state(self, now_ns: int) -> QueuesState:
        with self._changed:
            offered = self._reveal(now_ns)
            return {
                "offered": offered,
                "planned": [queue.planned for queue in self._queues],
                "committed": [queue.committed for queue in self._queues],
                "again": sum(queue.again for queue in self._queues),
                "backlog": sum(offered) - sum(queue.planned for queue in self._queues),
                "age_s": self._age(now_ns),
                "overflow": self.overflow,
                "uncommitted": self.uncommitted,
                "finished": self.finished,
                "capacity_rows": self.capacity_rows,
                "batches": sum(queue.batches for queue in self._queues),
                "plans_after_end": sum(s.wall_ns > self.final.wall_ns for s in self.samples[-9:]) if self.final else 0,
            }

    def _queue(self, partition: int) -> Queue:
        if not 0 <= partition < len(self._queues):
            raise OffsetError(f"partition: found {partition}, allowed: 0 to {len(self._queues) - 1}")
        return self._queues[partition]

    def _reveal(self, now_ns: int) -> list[int]:
        if self.finished or now_ns < self.from_ns or (self.overflow and self._hold is None):
            return [queue.offered for queue in self._queues]
        now_ns = now_ns if self.until_ns is None else min(now_ns, self.until_ns - 1)
        offered = [queue.reveal(now_ns, room) for queue, room in zip(self._queues, self._rooms(), strict=True)]
        waiting = sum(offered) - sum(queue.planned for queue in self._queues)
        kept = sum(offered) - sum(queue.committed for queue in self._queues)
        full = waiting >= self.capacity_rows - len(self._queues)
        if full or kept >= self._memory_rows:
            self.overflow, self.uncommitted = True, not full and 2 * waiting < kept
        return offered

    def _rooms(self) -> list[int | None]:
        """Most rows that may wait in each queue."""
        hold = self._hold
        # rounded before it is rounded up, as 3 * (1 / 3) might be more than 1
        return [None if hold is None else math.ceil(round(hold * share, 6)) for share in self._shares]

    def _check(self, offsets: Mapping[int, int], *, commit: bool = False) -> None:
        for partition, offset in offsets.items():
            queue = self._queue(partition)
            lowest = queue.committed if commit else 0
            if not lowest <= offset <= queue.offered:
                raise OffsetError(
                    f"queue {partition}: found {offset}, allowed: from {lowest} to {queue.offered} (offered)"
                )

    def _age(self, now_ns: int) -> float:
        walls = [wall for queue in self._queues if (wall := queue.oldest_wall()) is not None]
        return max(0, now_ns - min(walls)) / NS if walls else 0.0

    def _look(self, now_ns: int) -> Taken:
        planned = sum(queue.planned for queue in self._queues)
        return Taken(now_ns, self._age(now_ns), sum(queue.offered for queue in self._queues) - planned, planned)

    def _sample(self, now_ns: int, offsets: Mapping[int, int]) -> None:
        """Takes a sample when the offsets plan new rows, hence one per micro-batch."""
        new = any(offset > self._queues[partition].planned for partition, offset in offsets.items())
        if not new:
            return
        self.samples = _kept(self.samples)
        self.samples.append(self._look(now_ns))

    def _watch(self, look: Taken) -> None:
        """Keeps samples that stand for equally many looks each, as a trend of theirs would else be that of peaks."""
        if self._ticks % self._each == 0 and len(self.clock) >= MAX_SAMPLES:
            self.clock, self._each = _kept(self.clock), 2 * self._each
        if self._ticks % self._each == 0:
            self.clock.append(look)
        else:
            self.clock[-1] = max(self.clock[-1], look, key=lambda sample: sample.age_s)
        self._ticks += 1


def _kept(samples: list[Taken]) -> list[Taken]:
    """Returns the samples; of too many, only the one with the larger age of every two, so that no peak is lost."""
    if len(samples) < MAX_SAMPLES:
        return samples
    pairs = zip(samples[::2], samples[1::2], strict=True)
    return [max(pair, key=lambda sample: sample.age_s) for pair in pairs]
