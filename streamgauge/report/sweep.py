"""Throughput and latency against disorder: one line per workload and system, one point per experiment."""

from __future__ import annotations

from collections.abc import Callable

from streamgauge.report.blocks import Block, Cell, Chart, Hole, Section, Table, number, share
from streamgauge.report.charts import SYMBOLS, axis, figure, line
from streamgauge.report.records import CellRecord, Json, Records, is_sound


def section(records: Records) -> Section:
    lead = "Throughput and latency against disorder: the same workload and system on streams of different out-of-order factors."
    factors = {
        stream.experiment.name: _factor(stream.manifest, stream.experiment.target_percent) for stream in records.streams
    }
    fraction = common_fraction(records.cells)
    blocks: list[Block] = [
        _chart(records.cells, factors, "Sustainable rate against disorder", "events/s", lambda c: c.rate or None)
    ]
    if fraction is None:
        blocks.append(
            Hole("No latency against disorder", "no fraction of the rate has a valid run in every measured cell")
        )
    else:
        title = f"p99 event-time latency against disorder, at {share(fraction)} of each cell's rate"
        blocks.append(_chart(records.cells, factors, title, "p99 (ms)", lambda c: _p99(c, fraction)))
    return Section("disorder", "What disorder costs", lead, blocks)


def common_fraction(cells: list[CellRecord]) -> float | None:
    """The largest fraction of the rate at which every measured cell has a sound latency, so that like meets like."""
    sound = [{run["fraction"] for run in cell.latency if is_sound(run)} for cell in cells if cell.rate]
    shared = set.intersection(*sound) if sound else set()
    return max(shared, default=None)


def _p99(cell: CellRecord, fraction: float) -> float | None:
    found = [run for run in cell.latency if is_sound(run) and run["fraction"] == fraction]
    return (found[-1].get("event_latency") or {}).get("p99_ms") if found else None


def _factor(manifest: Json | None, target_percent: float) -> float:
    """What was achieved, else what was wanted, in percent."""
    m = manifest or {}
    achieved, events = m.get("achieved_out_of_order"), m.get("events")
    return 100 * achieved / events if achieved is not None and events else target_percent


def _chart(
    cells: list[CellRecord],
    factors: dict[str, float],
    title: str,
    label: str,
    value: Callable[[CellRecord], float | None],
) -> Block:
    groups: dict[str, list[tuple[float, float, CellRecord]]] = {}
    for record in cells:
        figure_ = value(record)
        if figure_ is not None:
            name = f"{record.cell.workload}, {record.cell.system}"
            groups.setdefault(name, []).append((factors[record.cell.experiment], figure_, record))
    if not groups:
        return Hole(title, "no cell has this figure")
    traces, rows = [], list[list[Cell]]()
    for nth, (name, points) in enumerate(groups.items()):
        points.sort(key=lambda point: point[0])
        x, y = [p[0] for p in points], [p[1] for p in points]
        # an open end of an interval has no length to draw
        spans = [
            ((v if low is None else low), (v if high is None else high))
            for v, (low, high) in ((v, r.interval) for _, v, r in points)
        ]
        bars = (
            {"type": "data", "array": [high - v for (_, high), v in zip(spans, y, strict=True)],
             "arrayminus": [v - low for (low, _), v in zip(spans, y, strict=True)], "thickness": 1.2, "width": 5}
            if label == "events/s" else {"visible": False}
        )  # fmt: skip
        marker = {"symbol": SYMBOLS[nth % len(SYMBOLS)], "size": 9}
        traces.append(line(name, x, y, nth, mode="lines+markers", marker=marker, error_y=bars))
        rows += [
            [record.cell.experiment, f"{factor:.4g}\u202f%", record.cell.workload, record.cell.system, number(v)]
            for factor, v, record in points
        ]
    return Chart(
        title,
        figure(
            traces,
            axis("out-of-order events (%)", rangemode="tozero"),
            axis(label, rangemode="tozero", tickformat=",~r"),
            showlegend=True,
        ),
        Table(["experiment", "out of order", "workload", "system", label], rows),
        "The bars are intervals: from a sustained rate to one that was not." if label == "events/s" else "",
    )
