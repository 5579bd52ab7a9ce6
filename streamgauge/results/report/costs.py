"""The cells of a run sorted by their disorder, and charts with one curve per workload and system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from streamgauge.records.comparison import RATE, Comparison
from streamgauge.results.report import semantics
from streamgauge.results.report.blocks import Block, Cell, Chart, Hole, Table
from streamgauge.results.report.charts import SYMBOLS, Axis, Trace, axis, delay_axis, error_bars, figure, line
from streamgauge.results.report.degrees import axes, by_line, comparisons, line_of
from streamgauge.results.report.formatting import number
from streamgauge.results.report.run_records import CellRecord, Records

Value = Callable[[CellRecord], float | None]
Ends = Callable[[CellRecord], tuple[float, float] | None]
#: returns further columns of a cell's row in a chart's table
More = Callable[[CellRecord], list[Cell]]
#: workload and system -> cells
Groups = Mapping[tuple[str, str], Sequence[CellRecord]]
_X = "out-of-order events (%)"


class Costs:
    """The cells of a run with what the blocks of the page share."""

    def __init__(self, records: Records) -> None:
        self.records, self.axes = records, axes(records)
        self.cells = [cell for cell in records.cells if cell.cell.workload not in semantics.ceilings(records)]
        least = self.axes.factors[self.axes.base]
        #: what figures are compared with
        self.order = f"at {least:.4g}\u202f% out of order" if least else "in order"
        self.base = {line_of(cell): cell for cell in self.cells if cell.cell.experiment == self.axes.base}
        self._kept = {(one.name, one.metric): one for one in comparisons(records) if one.against == self.axes.base}
        common = (run.rate_events_per_s for cell in self.cells for run in cell.latency if run.common)
        self.common = min(common, default=None)  # the lowest rate at which cells were measured alike

    def kept(self, record: CellRecord, metric: str = RATE) -> Comparison | None:
        """The comparison with the least disordered stream; None if no process measured both in turns."""
        return self._kept.get((record.cell.name, metric))

    def part(self, record: CellRecord, metric: str = RATE) -> float | None:
        """A figure over that of the base; 1 for the base itself, if another cell is compared with it."""
        if self.base.get(line_of(record)) is record:
            others = (one for one in self.cells if line_of(one) == line_of(record))
            return 1.0 if any(compared.ratio for one in others if (compared := self.kept(one, metric))) else None
        compared = self.kept(record, metric)
        return compared.ratio if compared else None

    def part_ends(self, record: CellRecord, metric: str = RATE) -> tuple[float, float] | None:
        compared = self.kept(record, metric)
        return compared.interval if compared else None

    def factor(self, record: CellRecord) -> float:
        return self.axes.factors[record.cell.experiment]

    def times_watermark(self, record: CellRecord) -> float | None:
        """The longest delay over the watermark's delay; None without a watermark's delay."""
        benchmark = self.records.benchmark
        longest = benchmark.experiment(record.cell.experiment).delay.max.seconds
        watermark = benchmark.workload(record.cell.workload).watermark.seconds
        return longest / watermark if watermark else None


def chart(
    costs: Costs,
    title: str,
    label: str,
    value: Value,
    *,
    names: Sequence[str] = (),
    x: str = _X,
    at: Value | None = None,
    ends: Ends | None = None,
    columns: tuple[str, ...] = (),
    more: More = lambda _: [],
    groups: Groups | None = None,
    of_time: bool = False,
    note: str = "",
) -> Block:
    """Charts one curve per workload and system over the experiments of one axis; the table has the same numbers.

    at: where a cell lies on the axis, by default its out-of-order percent. ends: both ends of an interval. groups: the
    cells of each curve, by default those of the axis. of_time: the values are ms, on a logarithmic axis.
    """
    at = at or costs.factor
    groups = by_line(costs.cells, names or costs.axes.degrees) if groups is None else groups
    traces: list[Trace] = []
    rows: list[list[Cell]] = []
    for nth, (name, records) in enumerate(groups.items()):
        points = [(place, y, r) for r in records if (y := value(r)) is not None and (place := at(r)) is not None]
        for place, y, record in points:
            rows.append([record.cell.experiment, f"{place:.4g}", *name, number(y), *more(record)])
        if points:
            traces.append(_curve(", ".join(name), nth, points, ends))
    if not traces:
        return Hole(title, "no cell has this figure")
    y_axis: Axis = axis(label, rangemode="tozero", tickformat=",~r")
    if of_time:
        y_axis = delay_axis(label, [v for trace in traces for v in trace["y"]], 1e-3)
    return Chart(
        title,
        figure(traces, axis(x, rangemode="tozero"), y_axis, showlegend=True),
        Table(["experiment", x, "workload", "system", label, *columns], rows),
        note,
    )


def _curve(name: str, nth: int, points: Sequence[tuple[float, float, CellRecord]], ends: Ends | None) -> Trace:
    x, y = [place for place, _, _ in points], [value for _, value, _ in points]
    bars: Trace = {"visible": False}
    if ends is not None:
        bars = error_bars(y, [ends(record) for _, _, record in points], thickness=1.2, width=5)
    return line(
        name, x, y, nth, mode="lines+markers",
        marker={"symbol": SYMBOLS[nth % len(SYMBOLS)], "size": 9}, error_y=bars,
    )  # fmt: skip
