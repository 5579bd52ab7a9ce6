"""Measures a fresh process for a gate: its speed, and its CPU time per event, while events wait."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from functools import partial

from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.search.ladder import warm_up
from streamgauge.bench.search.steps import Hold
from streamgauge.config import Search
from streamgauge.records.measurement import Limits, Window

#: relative standard error of a speed's mean that is enough
_ENOUGH = 0.01
#: rows of a batch last for these parts of the allowed age and of a measurement, whichever is shorter
_OF_AGE, _OF_SECONDS = 0.5, 0.05


@dataclass(frozen=True)
class Speed:
    """Speed of a process that finds so many rows waiting. void: why it does not count."""

    events_per_s: float | None
    held_rows: int
    void: str | None = None
    cpu_us_per_event: float | None = None  # None where the adapter does not know it
    stuck: bool = False  # it ran, and took too few events in all of the time that a window may last


def speed_of(window: Window) -> Speed:
    if window.invalid or not window.seconds:
        return Speed(None, window.held_rows, window.invalid or "no batch ended", stuck=window.stuck)
    return Speed(window.rows / window.seconds, window.held_rows)


def measured_step(search: Search, limits: Limits, windows: list[Window], held: int, seconds: float) -> Hold:
    """The window that is measured. held: rows that wait, as for all other processes; 0: those that suit this one."""
    pace = max((window.rows / window.seconds for window in windows if window.seconds), default=0.0)
    least = max((window.held_rows for window in windows), default=1) if limits.continuous else 1
    batch_s = min(search.max_age.seconds * _OF_AGE, seconds * _OF_SECONDS)
    rows = held or int(min(limits.most_rows, max(least, pace * batch_s)))
    return Hold(1, "ladder", rows, "to measure its speed", seconds / 2, seconds, _ENOUGH)


def speed(bench: ReadyCell, search: Search, seconds: float, held: int, token: int) -> Speed:
    """Starts a fresh process, warms it up, and measures its speed in the same query. Raises UserError."""
    limits, window = bench.limits, partial(bench.window, token=token)
    bench.stop()
    try:
        windows = warm_up(search, limits, window)
        if windows and windows[-1].invalid:
            return speed_of(windows[-1])
        began, before = time.monotonic(), bench.cpu_seconds()
        one = speed_of(window(measured_step(search, limits, windows, held, seconds)))
        lasted, after = time.monotonic() - began, bench.cpu_seconds()
    finally:
        bench.end_loop()
    if one.events_per_s is None or before is None or after is None:
        return one
    return dataclasses.replace(one, cpu_us_per_event=1e6 * (after - before) / lasted / one.events_per_s)
