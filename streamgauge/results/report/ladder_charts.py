"""Charts of a search's windows: the cost of a batch over its rows, and how that cost fell in the warm-up."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

from streamgauge.bench.measurements.search.record import Estimate
from streamgauge.bench.search.estimate import CONFIDENCE
from streamgauge.records.measurement import Window
from streamgauge.results.report.blocks import Cell, Chart, Row, State, Table, Text
from streamgauge.results.report.charts import DASHES, GREY, INK, PALETTE, SYMBOLS, Trace, axis, figure, line
from streamgauge.results.report.formatting import MISSING, between, count, number, share
from streamgauge.results.report.model import estimates
from streamgauge.results.report.run_records import CellRecord

_FAINT = 0.4
#: straight pieces by which a bent fit is drawn
_PIECES = 24


@dataclass(frozen=True)
class _Shown:
    """A window with the numbers that the page shows."""

    number: int
    window: Window
    left_out: str  # why the fit leaves it out; empty: it counts

    @property
    def drawn(self) -> bool:
        return self.window.rows > 0 and self.window.seconds > 0

    @property
    def count(self) -> int:
        return len(self.window.batches)

    @property
    def rows(self) -> float:
        return self.window.rows / self.count

    @property
    def seconds(self) -> float:
        return self.window.seconds / self.count

    @property
    def half_width(self) -> float | None:
        """Half width in seconds of the 90 % interval of the mean batch time (Student's t); None for one batch."""
        if self.count < 2:
            return None
        error = statistics.stdev(batch.seconds for batch in self.window.batches) / math.sqrt(self.count)
        return float(stdtrit(self.count - 1, (1 + CONFIDENCE) / 2)) * error

    @property
    def at_s(self) -> float:
        return statistics.fmean(batch.at_s for batch in self.window.batches)

    @property
    def state(self) -> Text:
        state: State = "open" if self.left_out else "good"
        return Text("left out" if self.left_out else "counts", state, hint=self.left_out)


def is_continuous(record: CellRecord) -> bool:
    """True if the search treated the engine as one without micro-batches."""
    return any(line.limits.continuous for line in record.windows)


def costs(record: CellRecord) -> Chart:
    """Charts the seconds of a batch over its rows: one point per window, and the fitted line of each process."""
    return Chart(
        "What a batch costs",
        figure(
            _by_process(record, lambda one: (one.rows, one.seconds, one.half_width), _fitted_costs),
            axis("rows of a batch", rangemode="tozero", tickformat=",~r"),
            axis("seconds of a batch", rangemode="tozero", tickformat=",~r"),
            showlegend=True,
        ),
        _table(_shown(record)),
        "One point per window: the mean of its batches with a 90 % interval; fainter points are the warm-up. "
        "The line is the fitted cost: batch cost a, row cost b for each row, and what rows cost more in large batches, "
        "if anything; the star marks the batch at which the limit lies.",
    )


def carried(record: CellRecord) -> Chart:
    """Charts events/s over the rows that waited, for an engine without micro-batches."""
    return Chart(
        "What the engine carries",
        figure(
            _by_process(
                record, lambda one: (one.window.held_rows, one.window.rows / one.window.seconds, None), _fitted_rate
            ),
            axis("rows waiting", rangemode="tozero", tickformat=",~r"),
            axis("events/s", rangemode="tozero", tickformat=",~r"),
            showlegend=True,
        ),
        _table(_shown(record)),
        "One point per window; fainter points are the warm-up. The line is the fitted rate of a warm process.",
    )


def over_time(record: CellRecord) -> Chart:
    """Charts the cost of each window over the time since its process began: relative to the fit, else in µs per row."""
    windows = [one for one in _shown(record) if one.drawn]
    fits = estimates(record.search)
    processes = _processes(windows)
    relative = bool(processes) and all(process in fits for process in processes)
    points = [(one, _relative(one, fits) if relative else 1e6 * one.seconds / one.rows) for one in windows]
    label = "cost relative to the fit (%)" if relative else "µs per row"
    traces: list[Trace] = []
    for nth, process in enumerate(processes):
        own = [(one, cost) for one, cost in points if one.window.process == process and not one.left_out]
        symbols = [SYMBOLS[nth % len(SYMBOLS)] + ("-open" if one.window.purpose != "ladder" else "") for one, _ in own]
        traces.append(
            line(
                f"process {process}", [one.at_s for one, _ in own], [cost for _, cost in own], nth,
                mode="lines+markers", line={"width": 1}, marker={"symbol": symbols, "size": 8},
                text=[_named(one) for one, _ in own], hovertemplate="%{text}<br>at %{x:.0f} s: %{y:.4r}<extra></extra>",
            )
        )  # fmt: skip
    lost = [(one, cost) for one, cost in points if one.left_out]
    traces += [_left_out([one.at_s for one, _ in lost], [cost for _, cost in lost])] if lost else []
    rows: list[list[Cell]] = [
        [one.window.process, one.number, one.window.purpose, number(one.at_s), number(cost), one.state]
        for one, cost in points
    ]
    note = "Hollow marks are the warm-up, filled ones the ladder."
    if relative:
        note += " At 100 % a window costs as much as the fit says for a warm process."
    return Chart(
        "Warm-up and ladder over time",
        figure(traces, axis("seconds since the process began"), axis(label, tickformat=",~r"), showlegend=True),
        Table(["process", "window", "purpose", "at (s)", label, "state"], rows),
        note,
    )


def processes(record: CellRecord) -> Table:
    """Table of each process's estimate and of the quantities from which it follows."""
    rows: list[Row] = [
        {
            "process": process,
            "events/s": number(one.rate_events_per_s),
            "90\u202f% interval of the fit": between((one.low, one.high)),
            "batch cost (ms)": number(None if one.batch_cost_s is None else 1000 * one.batch_cost_s),
            "row cost (µs)": number(1e6 * one.row_cost_s),
            "of the last row (µs)": number(1e6 * one.cost.last_row_s(one.backlog_rows)),
            "batch cap (rows)": count(one.cap_rows),
            "noise of a batch": share(round(one.noise, 3)),
            "remaining warm-up (share)": share(round(one.drift, 3)),
            "time added by hiccups (share)": share(round(one.hiccups, 3)),
            "misfit (errors)": number(one.misfit),
        }
        for process, one in estimates(record.search).items()
    ]
    return Table.of(rows, folded="Estimates of each process: costs, noise, drift")


def _shown(record: CellRecord) -> list[_Shown]:
    """Windows in the order in which they were measured; those of a lost process are marked as left out of the fit."""
    lives = {line.window.process: line.window.life for line in record.windows}  # the last life of each process
    return [_Shown(line.number, line.window, _why_left_out(line.window, lives)) for line in record.windows]


def _why_left_out(window: Window, lives: Mapping[int, int]) -> str:
    if window.invalid:
        return window.invalid
    if window.life != lives[window.process]:
        return "the process was lost and measured again from its warm-up"
    return "" if window.rows else "no batch ended"


def _processes(windows: Sequence[_Shown]) -> list[int]:
    return sorted({one.window.process for one in windows})


def _by_process(
    record: CellRecord,
    place: Callable[[_Shown], tuple[float, float, float | None]],
    fitted: Callable[[Estimate, Sequence[_Shown], int], list[Trace]],
) -> list[Trace]:
    """Traces of each process: its windows by x, y and half an interval of y, and what its estimate says of them."""
    windows, fits = _shown(record), estimates(record.search)
    traces: list[Trace] = []
    for nth, process in enumerate(_processes(windows)):
        own = [one for one in windows if one.window.process == process and one.drawn and not one.left_out]
        drawn: list[Trace] = []
        for purpose in ("warm-up", "ladder"):
            places = [place(one) for one in own if one.window.purpose == purpose]
            drawn += [_points(f"process {process}", nth, places, purpose == "warm-up")] if places else []
        if estimate := fits.get(process):
            drawn += fitted(estimate, own, nth)
        traces += [trace | {"legendgroup": f"{process}"} for trace in drawn]
    lost = [place(one) for one in windows if one.drawn and one.left_out]
    traces += [_left_out([x for x, _, _ in lost], [y for _, y, _ in lost])] if lost else []
    return traces


def _points(name: str, nth: int, places: Sequence[tuple[float, float, float | None]], faint: bool) -> Trace:
    """Trace with the marks of one process; only the ladder's marks are in the legend."""
    marker = {"symbol": SYMBOLS[nth % len(SYMBOLS)], "size": 9, "color": PALETTE[nth % len(PALETTE)]}
    bars = [half_width or 0.0 for _, _, half_width in places]
    return line(
        name, [x for x, _, _ in places], [y for _, y, _ in places], nth, mode="markers", marker=marker,
        opacity=_FAINT if faint else 1, showlegend=not faint,
        hovertemplate=f"{name}{', warm-up' if faint else ''}: %{{x:,.0f}} rows, %{{y:,.4r}}<extra></extra>",
        **({"error_y": {"type": "data", "array": bars, "thickness": 1.2, "width": 4}} if any(bars) else {}),
    )  # fmt: skip


def _fitted_costs(estimate: Estimate, windows: Sequence[_Shown], nth: int) -> list[Trace]:
    """Traces of the fitted cost of a process, and of its limit."""
    cost, most = estimate.cost, max([estimate.backlog_rows, *(one.rows for one in windows)])
    rows = [most * part / _PIECES for part in range(_PIECES + 1)] if cost.growth_s else [0, most]
    style = {"width": 1.5, "dash": DASHES[nth % len(DASHES)]}
    fit = line("fit", rows, [cost.seconds(n) for n in rows], nth, line=style, showlegend=False, hoverinfo="skip")
    limit = line(
        "limit", [estimate.backlog_rows], [cost.seconds(estimate.backlog_rows)], nth, mode="markers",
        marker={"symbol": "star", "size": 15, "color": PALETTE[nth % len(PALETTE)], "line": {"width": 1, "color": INK}},
        showlegend=False, hovertemplate="the limit: %{x:,.0f} rows in %{y:.4r} s<extra></extra>",
    )  # fmt: skip
    return [fit, limit]


def _fitted_rate(estimate: Estimate, windows: Sequence[_Shown], nth: int) -> list[Trace]:
    """Trace of the rate of a process, up to the most rows that waited."""
    span = [0, max((one.window.held_rows for one in windows), default=0)]
    return [line("fit", span, [estimate.rate_events_per_s] * 2, nth, showlegend=False, hoverinfo="skip")]


def _left_out(x: Sequence[float], y: Sequence[float | None]) -> Trace:
    """Trace with the marks of windows that the fit leaves out."""
    marker = {"symbol": "x-thin-open", "size": 9, "color": GREY, "line": {"width": 2, "color": GREY}}
    return line("left out of the fit", x, y, mode="markers", marker=marker)


def _relative(one: _Shown, fits: Mapping[int, Estimate]) -> float | None:
    """A window's cost in percent of what the fit expects for its rows; None if the fit expects no cost."""
    expected = fits[one.window.process].cost.seconds(one.rows)
    return 100 * one.seconds / expected if expected > 0 else None


def _named(one: _Shown) -> str:
    return f"window {one.number}, {one.window.purpose}, {count(one.window.held_rows)} rows waiting"


def _table(windows: Sequence[_Shown]) -> Table:
    rows: list[Row] = [
        {
            "process": one.window.process,
            "window": one.number,
            "purpose": one.window.purpose,
            "rows waiting": count(one.window.held_rows),
            "batches": one.count,
            "rows a batch": count(one.rows) if one.drawn else MISSING,
            "seconds a batch": number(one.seconds) if one.drawn else MISSING,
            "± (s)": number(one.half_width) if one.drawn else MISSING,
            "at (s)": number(one.at_s) if one.drawn else MISSING,
            "state": one.state,
            "why left out": one.left_out,
        }
        for one in windows
    ]
    return Table.of(rows)
