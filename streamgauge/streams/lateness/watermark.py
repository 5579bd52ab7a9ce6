"""Computes an engine's watermark while a stream comes at its own speed, from rules that the engine declares."""

from __future__ import annotations

import numpy as np

from streamgauge.base.arrow import Ints
from streamgauge.records.rules import Pace, Rules

#: an event time before all others: nothing has come yet
NOTHING = np.int64(-(2**62))


class Watermark:
    """The watermark that judges each event of a stream, piece by piece: the largest event time known, minus a delay."""

    def __init__(self, rules: Rules, queues: int = 1) -> None:
        """queues: their number; event i comes by queue i mod queues, unless it is given with the events."""
        self._rules = rules
        parts = queues if rules.clock in ("least queue", "own queue") else 1
        self._queues = [_Queue(rules.pace) for _ in range(parts)]
        self._count = 0

    def next(self, event_us: Ints, arrival_us: Ints, keys: Ints | None = None, queue: Ints | None = None) -> Ints:
        """Returns the watermark that judges each of the next events, µs; they are in order of arrival.

        keys: a number for each key; where each has a watermark of its own, they want the whole stream at once. queue:
        that of each event.
        """
        if self._rules.clock == "own key":
            assert keys is not None
            known = largest_of_key(keys, event_us)
        else:
            known = self._known(event_us, arrival_us, queue)
        step_us = self._rules.pace.step_us
        moved = (known if step_us == 1 else known - np.mod(known, step_us)) - self._rules.delay_us
        watermarks: Ints = np.maximum(np.where(known == NOTHING, NOTHING, moved), self._rules.begins_ms * 1000)
        return watermarks

    def _known(self, event_us: Ints, arrival_us: Ints, queue: Ints | None) -> Ints:
        """The largest event time that is known when each event is judged, by the clock of the rules."""
        known = np.full(len(event_us), np.iinfo(np.int64).max)
        turns = (np.arange(len(event_us)) + self._count) % len(self._queues)
        place = turns if queue is None else queue % len(self._queues)
        self._count += len(event_us)
        for number, one in enumerate(self._queues):
            own = event_us if len(self._queues) == 1 else np.where(place == number, event_us, NOTHING)
            largest = one.next(own, arrival_us)
            if self._rules.clock == "own queue":
                known[place == number] = largest[place == number]
            else:
                known = np.minimum(known, largest)
        return known


def largest_of_key(keys: Ints, event_us: Ints) -> Ints:
    """Returns the largest event time of each event's key so far, that of the event included."""
    order = np.argsort(keys, kind="stable")
    times, ranks = np.unique(event_us, return_inverse=True)
    # keys lie one above the other, so that one running maximum serves them all
    highest = np.maximum.accumulate(keys[order] * np.int64(len(times)) + ranks[order]) % max(1, len(times))
    largest = np.empty(len(event_us), np.int64)
    largest[order] = times[highest]
    return largest


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
