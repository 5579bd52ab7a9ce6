"""Blocks of the page that show a cell's soak: what grows, what is level, and every series over time."""

from __future__ import annotations

from streamgauge.base.words import THIN, counted
from streamgauge.bench.measurements.soak.record import Followed, SoakRun
from streamgauge.results.report.blocks import Block, Cell, Chart, Spark, State, Table, Text, Tiles
from streamgauge.results.report.charts import Trace, axis, figure, line
from streamgauge.results.report.formatting import MISSING, between, number
from streamgauge.results.report.measured import ANSWERS, blocks_of, load, unit_of
from streamgauge.results.report.run_records import CellRecord, Records

_STATES: dict[str, State] = {"level": "good", "growing": "bad", "falling": "plain", "not clear": "open"}
_SPARKS = 40


def blocks(records: Records, record: CellRecord) -> list[Block]:
    return blocks_of(records, record, SoakRun, "soak", _tiles, _table, _chart)


def _tiles(run: SoakRun) -> Tiles:
    of = f"of {counted(run.offered, 'event', THIN)}" if run.valid else run.reason
    names = ", ".join(named(one) for one in run.growing)
    judged = [one for one in run.series if one.kind != "not clear"]
    verdict, which = f"{len(run.growing)} of {len(judged)}", names or "series that could be judged"
    if not (run.valid and judged):
        verdict, which = MISSING, "no series could be judged" if run.valid else run.reason
    return Tiles(
        [
            ("grows in a long run", verdict, which),
            ("soaked for", number(run.seconds / 60, "min"), "after the warm-up"),
            ("offered", number(run.rate_events_per_s), f"events/s, {load(run.fraction)}"),
            ("answers", ANSWERS[run.correct], of),
        ]
    )


def _table(run: SoakRun) -> Table:
    rows: list[list[Cell]] = []
    void = "" if run.valid else "void"
    for one in _worst_first(run):
        unit, per = unit_of(one.unit)
        interval = one.interval and (one.interval[0] / per, one.interval[1] / per)
        points = one.points[:: max(1, len(one.points) // _SPARKS)]
        rows.append(
            [
                named(one),
                Spark(tuple(value for _, value in points)),
                number(_part(one.level, per), unit),
                Text(void or one.kind, _STATES[one.kind], hint=one.reason),
                number(_part(one.per_hour, per), f"{unit}/h"),
                between(interval),
                _full(one),
            ]
        )
    columns = ["series", "over time", "at the end", "judged", "per hour", "95\u202f% interval of it", "full after"]
    return Table(columns, rows, "Level or growing: each series of the soak", cards=True)


def _full(one: Followed) -> str:
    if one.full is None:
        return MISSING
    high = "never" if one.full.high is None else number(one.full.high)
    return f"{number(one.full.hours)} h ({number(one.full.low)} to {high})"


def _chart(run: SoakRun) -> Chart:
    """Chart of each series over time, relative to its largest value."""
    traces: list[Trace] = []
    rows: list[list[Cell]] = []
    for nth, one in enumerate(_worst_first(run)):
        top = max((abs(value) for _, value in one.points), default=0.0) or 1.0
        moments, parts = [at for at, _ in one.points], [value / top for _, value in one.points]
        traces.append(line(named(one), moments, parts, nth))
        shown = one.points[:: len(one.points) // 20 + 1]
        rows += [[named(one), number(at), number(value), one.unit] for at, value in shown]
    return Chart(
        "Series of the soak",
        figure(traces, axis("seconds since the soak began"), axis("part of its largest value"), showlegend=True),
        Table(["series", "at (s)", "value", "unit"], rows),
        "Each series relative to its largest value.",
    )


def _worst_first(run: SoakRun) -> list[Followed]:
    return sorted(run.series, key=lambda one: one.kind != "growing")


def named(one: Followed) -> str:
    """Name of a series for people."""
    return one.name.replace("_", " ")


def _part(value: float | None, per: float) -> float | None:
    return None if value is None else value / per
