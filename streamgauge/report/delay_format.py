"""Formats delays for tables and sentences: bins and quantiles are given in ticks and shown in readable units."""

from __future__ import annotations

from streamgauge.base.units import Tick, show_ticks
from streamgauge.report.blocks import MISSING, Cell, count, percent
from streamgauge.report.run_records import Json

QUANTILES = ("min", "p50", "p90", "p99", "max", "mean")


def tick_of(record: Json) -> Tick:
    return "ps" if record.get("tick") == "ps" else "ns"


def ticks(value: float | None, tick: Tick) -> str:
    return MISSING if value is None else show_ticks(value, tick)


def quantile_cells(delay: Json | None, tick: Tick) -> list[Cell]:
    return [ticks((delay or {}).get(name), tick) for name in QUANTILES]


def sentence(delay: Json | None, tick: Tick) -> str:
    if not delay or delay.get("max") is None:
        return ""
    return (
        f"Median {ticks(delay.get('p50'), tick)}, p90 {ticks(delay.get('p90'), tick)}, "
        f"p99 {ticks(delay.get('p99'), tick)}, largest {ticks(delay['max'], tick)}; "
        f"mean {ticks(delay.get('mean'), tick)}."
    )


def bin_rows(bins: list[list[int]], tick: Tick, whole: int) -> list[list[Cell]]:
    """Turns bins [low, high, count] into table rows: from, to, events, share of `whole`."""
    return [
        [show_ticks(low, tick), show_ticks(high, tick), count(events), percent(events, whole)]
        for low, high, events in bins
    ]
