"""Computes an engine's watermark while a stream comes at its own speed, from parameters that the engine declares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamgauge.config.pace import Pace as Pace

Ints = NDArray[np.int64]
#: an event time before all others: nothing has come yet
NOTHING = np.int64(-(2**62))


#: what no engine loses less than, except by chance: its watermark follows each event at once
IDEAL = Pace()


class Watermark:
    """The watermark that judges each event of a stream, piece by piece: the largest event time known, minus a delay."""

    def __init__(self, delay_us: int, pace: Pace, queues: int = 1) -> None:
        """queues: event i comes by queue i mod queues."""
        self._delay_us, self._pace = delay_us, pace
        self._queues = [_Queue(pace) for _ in range(queues if pace.each_queue else 1)]
        self._count = 0

    def next(self, event_us: Ints, arrival_us: Ints) -> Ints:
        """Returns the watermark that judges each of the next events, µs; they are in order of arrival."""
        known = np.full(len(event_us), np.iinfo(np.int64).max)
        place = (np.arange(len(event_us)) + self._count) % len(self._queues)
        for number, queue in enumerate(self._queues):
            own = event_us if len(self._queues) == 1 else np.where(place == number, event_us, NOTHING)
            known = np.minimum(known, queue.next(own, arrival_us))
        self._count += len(event_us)
        step = self._pace.step_us
        moved = (known if step == 1 else known - np.mod(known, step)) - self._delay_us
        watermarks: Ints = np.where(known == NOTHING, NOTHING, moved)
        return watermarks if self._pace.least_us is None else np.maximum(watermarks, self._pace.least_us)


class _Queue:
    """The largest event time of a queue as an engine knows it, through all pieces."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._largest = NOTHING
        self._intervals = np.zeros(0, np.int64)  # the last ones with events, ascending
        self._at_end = np.zeros(0, np.int64)  # the largest event time at the end of each

    def next(self, own_us: Ints, arrival_us: Ints) -> Ints:
        """The largest event time known when each event of all queues is judged; own_us: NOTHING for those of others."""
        if not len(own_us):
            return np.zeros(0, np.int64)
        largest = np.maximum(np.maximum.accumulate(own_us), self._largest)
        before, self._largest = self._largest, largest[-1]
        if self._pace.interval_us == 0:
            return np.concatenate([[before], largest[:-1]])
        interval = arrival_us // self._pace.interval_us
        last = np.append(np.flatnonzero(np.diff(interval)), len(interval) - 1)
        ends = np.concatenate([self._intervals, interval[last]])
        at_end = np.concatenate([[NOTHING], self._at_end, largest[last]])
        starts = np.append(0, last[:-1] + 1)
        judged = np.searchsorted(ends, interval[starts] - self._pace.behind, side="right")
        latest: Ints = np.repeat(at_end[judged], np.diff(np.append(starts, len(interval))))
        keep = max(0, int(np.searchsorted(ends, ends[-1] - self._pace.behind, side="right")) - 1)
        self._intervals, self._at_end = ends[keep:], at_end[1:][keep:]
        return latest
