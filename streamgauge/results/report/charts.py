"""Builds figures as plain plotly data: axes labelled in s, min, h; the colours of Okabe and Ito."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from streamgauge.base.units import Tick, ticks_per_second

#: Okabe & Ito 2008, distinct for all common kinds of colour vision
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, INK, GREY = "#CC79A7", "#56B4E9", "#1b2430", "#8a94a3"
PALETTE = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, INK)
#: traces also differ by dash or symbol, since colour must not be the only sign
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "pentagon")

_SUB = [
    (power, f"{digit * 10 ** (power % 3)} {unit}", digit)
    for power, unit in zip(range(-12, 0), ["ps"] * 3 + ["ns"] * 3 + ["µs"] * 3 + ["ms"] * 3, strict=True)
    for digit in (1, 2, 5)
]
#: (seconds, label, coarse): ticks of a logarithmic time axis; only the coarse ones where there are many
_NICE: list[tuple[float, str, bool]] = [
    *((digit * 10.0**power, text, digit == 1) for power, text, digit in _SUB),
    *((n * size, f"{n} {unit}", n in coarse) for size, unit, steps_, coarse in (
        (1.0, "s", (1, 2, 5, 10, 30), (1, 10)),
        (60.0, "min", (1, 2, 5, 10, 30), (1, 10)),
        (3600.0, "h", (1, 2, 6, 12), (1, 6)),
        (86400.0, "d", (1, 2, 7, 30, 100, 365, 1000), (1, 10, 100, 1000)),
    ) for n in steps_),
]  # fmt: skip
#: an event time above this is taken for a date, below for a relative clock (1990-01-01)
_FIRST_DATE_S = 631_152_000

Axis = dict[str, Any]
Trace = dict[str, Any]


def figure(traces: Sequence[Trace], x: Axis, y: Axis, **layout: Any) -> dict[str, Any]:
    return {"data": list(traces), "layout": {"xaxis": x, "yaxis": y, "showlegend": len(traces) > 1, **layout}}


def axis(title: str, **more: Any) -> Axis:
    return {"title": {"text": html.escape(title)}, **more}


def delay_axis(title: str, values: Iterable[float], unit_s: float = 1.0) -> Axis:
    """Logarithmic axis with ticks at round durations such as 2 min; values are in units of `unit_s` seconds."""
    shown = [v for v in values if v is not None and v > 0]
    if not shown:
        return axis(title)
    low, high = min(shown) / 1.02, max(shown) * 1.02
    ticks = [(seconds / unit_s, text, coarse) for seconds, text, coarse in _NICE]
    within = [tick for tick in ticks if low <= tick[0] <= high]
    if len(within) > 10:
        within = [tick for tick in within if tick[2]]
    named = {"tickvals": [t[0] for t in within], "ticktext": [t[1] for t in within]} if len(within) > 1 else {}
    return axis(title, type="log", range=[math.log10(low), math.log10(high)], **named)


def line(name: str, x: Sequence[Any], y: Sequence[Any], nth: int = 0, **more: Any) -> Trace:
    colour = PALETTE[nth % len(PALETTE)]
    style = {"color": colour, "dash": DASHES[nth % len(DASHES)], "width": 2}
    style |= more.pop("line", {})
    if more.get("fill"):
        more.setdefault("fillcolor", translucent(colour))
    return {
        "type": "scatter",
        "mode": "lines",
        "name": html.escape(name),
        "x": list(x),
        "y": list(y),
        "line": style,
        "cliponaxis": False,
        **more,
    }


def error_bars(y: Sequence[float], intervals: Sequence[tuple[float, float] | None], **more: Any) -> dict[str, Any]:
    """Bars from each value to both ends of its interval; a value without one has none."""
    both = [(value, interval or (value, value)) for value, interval in zip(y, intervals, strict=True)]
    above, below = [high - value for value, (_, high) in both], [value - low for value, (low, _) in both]
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, **more}


def steps(name: str, bins: Sequence[Sequence[float]], per_second: float, nth: int = 0, scale: float = 1.0) -> Trace:
    """Trace of a histogram's outline; bins are [low, high, count] in ticks, and gaps are drawn as zero."""
    x: list[float] = []
    y: list[float] = []
    before: float | None = None
    for low, high, events in bins:
        if before is not None and low > before:
            x.append(before)
            y.append(0.0)
        # a logarithmic axis has no zero
        x.append(max(low, high / 10) if low <= 0 else low)
        y.append(events * scale)
        before = high
    if before is not None:
        x.append(before)
        y.append(0.0)
    return line(
        name, [v / per_second for v in x], y, nth,
        line={"shape": "hv"}, fill="tozeroy" if nth == 0 else "none",
    )  # fmt: skip


def edges(bins: Sequence[Sequence[float]], per_second: float) -> list[float]:
    """Bin edges in seconds, without the tail of small values that holds less than a thousandth of the events."""
    total, below, kept = sum(events for _, _, events in bins), 0.0, []
    for low, high, events in bins:
        below += events
        if below >= total / 1000:
            kept += [low if low > 0 else high / 10, high]
    return [edge / per_second for edge in kept]


def translucent(colour: str, alpha: float = 0.18) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def moment(ticks: int, tick: Tick) -> str | float:
    """Converts ticks to a UTC date and time for an epoch clock, to seconds for a relative one."""
    whole, part = divmod(ticks, ticks_per_second(tick))
    if whole < _FIRST_DATE_S:
        return whole + part / ticks_per_second(tick)
    micro = part * 1_000_000 // ticks_per_second(tick)
    return datetime.fromtimestamp(whole, UTC).replace(tzinfo=None, microsecond=micro).isoformat(" ")


def moment_axis(first: int, tick: Tick) -> Axis:
    dated = first // ticks_per_second(tick) >= _FIRST_DATE_S
    return axis("event time (UTC)" if dated else "event time (s)", **({"type": "date"} if dated else {}))
