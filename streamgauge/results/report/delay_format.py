"""Formats delays for tables and sentences: bins and quantiles are given in ticks and shown in readable units."""

from __future__ import annotations

from collections.abc import Iterable

from streamgauge.base.units import Tick, show_ticks
from streamgauge.records.profile import Delays
from streamgauge.results.report.blocks import MISSING, Cell, count, percent

QUANTILES = ("min", "p50", "p90", "p99", "max", "mean")


def ticks(value: float | None, tick: Tick) -> str:
    return MISSING if value is None else show_ticks(value, tick)


def quantile_cells(delay: Delays, tick: Tick) -> list[Cell]:
    return [ticks(value, tick) for value in delay.values]


def sentence(delay: Delays, tick: Tick) -> str:
    if delay.max is None:
        return ""
    _, p50, p90, p99, largest, mean = quantile_cells(delay, tick)
    return f"Median {p50}, p90 {p90}, p99 {p99}, largest {largest}; mean {mean}."


def bin_rows(bins: Iterable[tuple[int, int, int]], tick: Tick, whole: int) -> list[list[Cell]]:
    """Turns bins [low, high, count] into table rows: from, to, events, share of `whole`."""
    return [
        [show_ticks(low, tick), show_ticks(high, tick), count(events), percent(events, whole)]
        for low, high, events in bins
    ]
