"""Formats the numbers of a page."""

from __future__ import annotations

from collections.abc import Iterable

from streamgauge.base.units import Tick, show_ticks
from streamgauge.records.claim import mark_of
from streamgauge.records.profile import Delays

MISSING = "—"
QUANTILES = ("min", "p50", "p90", "p99", "max", "mean")


def count(value: float | None) -> str:
    """Formats as 1 234 567, with narrow no-break spaces."""
    return MISSING if value is None else f"{value:,.0f}".replace(",", "\u202f")


def number(value: float | None, unit: str = "") -> str:
    """Formats with four significant digits; from 1000 on like a count."""
    if value is None:
        return MISSING
    text = count(value) if abs(value) >= 1000 else f"{value:.4g}"
    return f"{text}\u00a0{unit}" if unit else text


def marked(value: float | None, claim: str, unit: str = "") -> str:
    """The figure with its unit, and the mark of one in doubt before it."""
    return f"{mark_of(claim)} {number(value, unit)}".lstrip()


def between(interval: tuple[float | None, float | None] | None) -> str:
    """Formats both ends of an interval so that they stay on one line."""
    low, high = interval or (None, None)
    return MISSING if low is None or high is None else f"{number(low)}\u00a0–\u2060\u00a0{number(high)}"


def percent(part: float | None, whole: float | None) -> str:
    """Formats part ÷ whole in percent, with up to four decimals."""
    if part is None or not whole:
        return MISSING
    return f"{100 * part / whole:.4f}".rstrip("0").rstrip(".") + "\u202f%"


def share(fraction: float | None) -> str:
    return MISSING if fraction is None else f"{100 * fraction:g}\u202f%"


def seconds(value: float | None) -> str:
    if value is None:
        return MISSING
    if value < 120:
        return f"{value:.1f}\u00a0s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}\u00a0h {minutes:02d}\u00a0min" if hours else f"{minutes}\u00a0min {rest:02d}\u00a0s"


def quantile_cells(delay: Delays, tick: Tick) -> list[str]:
    return [MISSING if value is None else show_ticks(value, tick) for value in delay.values]


def sentence(delay: Delays, tick: Tick) -> str:
    if delay.max is None:
        return ""
    _, p50, p90, p99, largest, mean = quantile_cells(delay, tick)
    return f"Median {p50}, p90 {p90}, p99 {p99}, largest {largest}; mean {mean}."


def bin_rows(bins: Iterable[tuple[int, int, int]], tick: Tick, whole: int) -> list[list[str]]:
    """Turns bins [low, high, count] into table rows: from, to, events, share of `whole`."""
    return [
        [show_ticks(low, tick), show_ticks(high, tick), count(events), percent(events, whole)]
        for low, high, events in bins
    ]
