"""Reads the wall clock, by which rows are offered, and tells by a clock that nobody can set how far it was set."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

#: how exactly two clocks are read together; smaller differences are no steps
LEAST_NS = 5_000_000
_SURE_NS = 100_000
_READINGS = 5


class Clock:
    """Both clocks of this host. NTP's slow adjustments move both of them alike; a step moves the wall clock alone."""

    def __init__(self, wall: Callable[[], int] = time.time_ns, steady: Callable[[], int] = time.monotonic_ns) -> None:
        self.wall, self._steady = wall, steady
        self._lock = threading.Lock()
        self._lead_ns, self._stepped_ns = self._lead(), 0

    def stepped_ns(self) -> int:
        """Sum of all steps up to now, forth and back: those that cancel out were steps too."""
        with self._lock:
            step = self._lead() - self._lead_ns
            if abs(step) >= LEAST_NS:
                self._lead_ns += step
                self._stepped_ns += abs(step)
            return self._stepped_ns

    def _lead(self) -> int:
        """Lead of the wall clock, ns, by the reading between whose halves least time passed."""
        readings: list[tuple[int, int]] = []
        while len(readings) < _READINGS and (not readings or readings[-1][0] > _SURE_NS):
            before, wall, after = self._steady(), self.wall(), self._steady()
            readings.append((after - before, wall - (before + after) // 2))
        return min(readings)[1]


def worst_clock(offsets: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    """The pair (offset, error bound) that may be furthest from 0; None without any."""
    return max(offsets, key=lambda clock: abs(clock[0]) + clock[1], default=None)
