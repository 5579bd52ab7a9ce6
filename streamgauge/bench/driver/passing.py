"""Finds when a replayed stream first reaches an event's time. Pure."""

from __future__ import annotations

import numpy as np

from streamgauge.bench.driver.schedule import Ints


class Passing:
    """Finds the event that first brought the running maximum to an event's time, through all loops."""

    def __init__(self, event_time: Ints, shift: int) -> None:
        self._event_time, self._shift = event_time, shift
        self._maximum = np.maximum.accumulate(event_time)
        top = int(self._maximum[-1])
        self._back = -((event_time - top) // -shift)  # ceil((event_time − top) / shift): ≤ 0, loops earlier
        self._at = np.searchsorted(self._maximum, event_time - self._back * shift)

    def first(self, loop: Ints, at: Ints) -> Ints:
        """Index of the first event f with event_time(f) ≥ that of event `at` of loop `loop`."""
        count = len(self._event_time)
        where = (loop + self._back[at]) * count + self._at[at]
        early = np.flatnonzero(loop + self._back[at] < 0)  # there is nothing before loop 0
        if len(early):
            times = self._event_time[at[early]] + loop[early] * self._shift
            where[early] = np.searchsorted(self._maximum, times)
        first: Ints = where
        return first
