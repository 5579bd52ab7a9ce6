"""The measured trade of an advice: loss, rate, latency and state by watermark delay, on one picture."""

from __future__ import annotations

from streamgauge.base.units import Tick
from streamgauge.records.advice import Advice, MeasuredDelay, MeasuredTrade
from streamgauge.results.report.advice_charts import table
from streamgauge.results.report.blocks import Chart, Section
from streamgauge.results.report.charts import Axis, Trace, axis, error_bars, figure, line
from streamgauge.streams.advice import words

_HEADER = ("delay", "lost", "wrong", "events/s", "90 % interval", "p50", "p99", "state (KiB)", "open", "output")


def heading(measured: MeasuredTrade) -> str:
    speed = measured.stream_seconds_per_second
    passing = "" if speed is None else f", where {speed:,.0f} s of the stream pass in a second"
    return (
        f"{measured.system} measured at each delay (run {measured.run}); latency at "
        f"{measured.latency_at_events_per_s:,.0f} events/s{passing}"
    )


def comparing(measured: MeasuredTrade) -> str:
    """Says which differences may be claimed."""
    if measured.processes == 1:
        return "Each delay has one process of its own, so that no difference between rates may be claimed."
    return (
        f"Each delay has {measured.processes} fresh processes of its own, in turns with the others. "
        "Claim a difference between rates only where their intervals do not overlap. "
        "Latency and state are of one run each."
    )


def rows(measured: MeasuredTrade, tick: Tick) -> list[words.Row]:
    """Returns the table of the delays, its header first."""
    return [_HEADER, *(_row(one, tick) for one in measured.delays)]


def _row(one: MeasuredDelay, tick: Tick) -> words.Row:
    trade = one.trade
    return (
        words.show_exact(trade.delay, tick),
        f"{trade.lost:,}",
        f"{trade.windows_wrong:,} of {trade.windows:,}" if trade.windows else "",
        "" if one.rate_events_per_s is None else f"{one.rate_events_per_s:,.0f}",
        "" if one.interval is None else "{:,.0f} to {:,.0f}".format(*one.interval),
        *("" if ms is None else f"{ms:,.0f} ms" for ms in (one.p50_ms, one.p99_ms)),
        "" if one.state_bytes is None else f"{one.state_bytes / 1024:,.0f}",
        "" if trade.open_windows is None else f"{trade.open_windows:,}",
        one.output,
    )


def section(measured: MeasuredTrade, advice: Advice) -> Section:
    shown = table(rows(measured, advice.tick))
    title = "Loss, rate, latency and state by watermark delay"
    chart = Chart(title, _picture(measured, advice), shown, comparing(measured))
    return Section("measured", "The trade, measured", f"{heading(measured)}.", [chart])


def _picture(measured: MeasuredTrade, advice: Advice) -> dict[str, object]:
    """Panels above each other, of which each has one figure over the same delays."""
    events = max(1, advice.events)
    panels: list[tuple[str, list[float | None]]] = [
        ("events lost (%)", [100 * one.trade.lost / events for one in measured.delays]),
        ("rate (events/s)", [one.rate_events_per_s for one in measured.delays]),
        ("p99 (ms)", [one.p99_ms for one in measured.delays]),
        ("state (KiB)", [None if one.state_bytes is None else one.state_bytes / 1024 for one in measured.delays]),
    ]
    panels = [(title, values) for title, values in panels if any(value is not None for value in values)]
    names = [words.show_exact(one.trade.delay, advice.tick) for one in measured.delays]  # equal ones would be one
    traces: list[Trace] = []
    axes: dict[str, Axis] = {}
    for nth, (title, values) in enumerate(panels):
        number, top = str(nth + 1) if nth else "", 1 - nth / len(panels)
        trace = line(title, names, values, nth, mode="lines+markers", yaxis=f"y{number}")
        if title.startswith("rate"):
            trace["error_y"] = error_bars([rate or 0 for rate in values], [one.interval for one in measured.delays])
        traces.append(trace)
        axes[f"yaxis{number}"] = axis(title, rangemode="tozero", domain=[top - 0.8 / len(panels), top]) | {
            "title": {"text": title, "font": {"size": 11}}
        }
    lowest = f"y{len(panels)}" if len(panels) > 1 else "y"
    first = axes.pop("yaxis")
    delays = axis("watermark delay", type="category", anchor=lowest)
    return figure(traces, delays, first, height=170 * len(panels), **axes)
