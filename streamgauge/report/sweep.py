"""Throughput and latency against disorder: one line per workload and system, one point per experiment."""

from __future__ import annotations

from collections.abc import Callable

from streamgauge.report.blocks import Block, Cell, Chart, Hole, Note, Section, Table, between, number, share
from streamgauge.report.charts import SYMBOLS, axis, figure, line
from streamgauge.report.degrees import factor
from streamgauge.report.run_records import CellRecord, Json, Records, is_sound

#: the page of what disorder costs, beside this one
PAGE = "disorder.html"
#: returns further columns of a cell's row in a chart's table
More = Callable[[CellRecord], list[Cell]]


def section(records: Records) -> Section:
    lead = (
        "Throughput and latency against disorder: "
        "the same workload and system on streams of different out-of-order factors."
    )
    factors = {stream.experiment.name: factor(stream) for stream in records.streams}
    fraction = common_fraction(records.cells)
    more = "What disorder costs each engine and state store, and what it does with late events: a page of its own."
    blocks: list[Block] = [_rates(records.cells, factors)]
    if fraction is None:
        blocks.append(
            Hole("No latency against disorder", "no fraction of the rate has a valid run in every measured cell")
        )
    else:
        title = f"p99 event-time latency against disorder, at {share(fraction)} of each cell's rate"
        blocks.append(_chart(records.cells, factors, title, "p99 (ms)", lambda c: _p99(c, fraction)))
    blocks.append(Note(more, href=PAGE))
    return Section("disorder", "What disorder costs", lead, blocks)


def _rates(cells: list[CellRecord], factors: dict[str, float]) -> Block:
    """Charts the rates with their intervals."""
    note = "The bars are 90\u202f% intervals."
    columns = ("90\u202f% interval", "claim")

    def more(cell: CellRecord) -> list[Cell]:
        return [between(cell.interval), cell.claim.kind]

    title = "Sustainable rate against disorder"
    return _chart(cells, factors, title, "events/s", _sound_rate, bars=True, columns=columns, more=more, note=note)


def _sound_rate(cell: CellRecord) -> float | None:
    return cell.rate


def _line_of(cell: CellRecord) -> tuple[str, str]:
    return cell.cell.workload, cell.cell.system


def common_fraction(cells: list[CellRecord]) -> float | None:
    """Largest fraction of the rate at which every measured cell has a sound latency run; None if there is none."""
    sound = [{run["fraction"] for run in cell.latency if is_sound(run)} for cell in cells if cell.rate]
    shared = set.intersection(*sound) if sound else set()
    return max(shared, default=None)


def _p99(cell: CellRecord, fraction: float) -> float | None:
    found = [run for run in cell.latency if is_sound(run) and run["fraction"] == fraction]
    return (found[-1].get("event_latency") or {}).get("p99_ms") if found else None


def _chart(
    cells: list[CellRecord],
    factors: dict[str, float],
    title: str,
    label: str,
    value: Callable[[CellRecord], float | None],
    *,
    bars: bool = False,
    columns: tuple[str, ...] = (),
    more: More = lambda _: [],
    note: str = "",
) -> Block:
    """Charts one line per workload and system.

    bars: draws the interval of each cell. columns, more: headings and contents of further columns of the table.
    """
    groups: dict[tuple[str, str], list[tuple[float, float, CellRecord]]] = {}
    for record in cells:
        figure_ = value(record)
        if figure_ is not None:
            groups.setdefault(_line_of(record), []).append((factors[record.cell.experiment], figure_, record))
    if not groups:
        return Hole(title, "no cell has this figure")
    traces, rows = [], list[list[Cell]]()
    for nth, (name, points) in enumerate(groups.items()):
        points.sort(key=lambda point: point[0])
        x, y = [p[0] for p in points], [p[1] for p in points]
        marker = {"symbol": SYMBOLS[nth % len(SYMBOLS)], "size": 9}
        error = _error_bars(points) if bars else {"visible": False}
        traces.append(line(", ".join(name), x, y, nth, mode="lines+markers", marker=marker, error_y=error))
        rows += [
            [record.cell.experiment, f"{percent:.4g}\u202f%", *name, number(v), *more(record)]
            for percent, v, record in points
        ]
    return Chart(
        title,
        figure(
            traces,
            axis("out-of-order events (%)", rangemode="tozero"),
            axis(label, rangemode="tozero", tickformat=",~r"),
            showlegend=True,
        ),
        Table(["experiment", "out of order", "workload", "system", label, *columns], rows),
        note,
    )


def _error_bars(points: list[tuple[float, float, CellRecord]]) -> Json:
    """Error bars from each rate to the ends of its interval; a rate without an interval has none."""
    up = [(record.interval[1] or v) - v for _, v, record in points]
    down = [v - (record.interval[0] or v) for _, v, record in points]
    return {"type": "data", "array": up, "arrayminus": down, "thickness": 1.2, "width": 5}
