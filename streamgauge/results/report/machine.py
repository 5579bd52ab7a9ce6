"""The page's sections on the environment of a run and on its stages in time."""

from __future__ import annotations

from datetime import datetime

from streamgauge.base.words import counted
from streamgauge.bench.measurements import MEASUREMENTS
from streamgauge.catalog.run_log import StageRecord
from streamgauge.catalog.stages import BY_NAME
from streamgauge.results.report.blocks import Block, Cell, Chart, Hole, Section, State, Table, Text
from streamgauge.results.report.charts import BLUE, GREY, ORANGE, RED, SKY, Axis, Trace, axis, figure
from streamgauge.results.report.formatting import seconds
from streamgauge.results.report.run_records import Records, one_line

_NAMES = {
    "cpu": "CPU",
    "memory_gib": "memory (GiB)",
    "os": "operating system",
    "great_expectations": "Great Expectations",
}
_STATE: dict[str, State] = {"done": "good", "failed": "bad"}
_COLOURS = {"built": BLUE, "measured": SKY, "reused": ORANGE, "failed": RED}


def section(records: Records) -> Section:
    blocks: list[Block] = []
    for nth, environment in enumerate(records.environments, 1):
        rows: list[list[Cell]] = [
            [_NAMES.get(key, key), str(value)]
            for part in (environment.machine, environment.software)
            for key, value in part.items()
            if value is not None
        ]
        blocks.append(Table(["what", "value"], rows, f"Environment {nth}" if len(records.environments) > 1 else ""))
    return Section(
        "environment",
        "Environment",
        "The machine and the software that made these figures.",
        blocks or [Hole("No environment", "no stage has succeeded")],
    )


def timings(records: Records) -> Section:
    """Charts every attempt at a stage, in the order of its start."""
    if not records.stages:
        return Section("timings", "Timings", blocks=[Hole("No stages", "nothing was recorded in this run")])
    begin = min(_at(s) for s in records.stages)
    rows: list[list[Cell]] = []
    bars: dict[str, Trace] = {}
    for s in records.stages:
        start, kind, error = _at(s) - begin, _kind(s), one_line(s.error)
        state = Text("unfinished" if s.state == "started" else s.state, _STATE.get(s.state, "open"), hint=error)
        remark = error or ("reused, not built again" if s.reused else "")
        rows.append([s.what, state, f"+{seconds(start)}", seconds(s.seconds), remark, _spark_log(s)])
        marker = {"color": _COLOURS.get(kind, GREY), "pattern": {"shape": "/" if kind == "failed" else ""}}
        empty: Trace = {"type": "bar", "orientation": "h", "name": kind, "x": [], "y": [], "base": [], "marker": marker}
        bar = bars.setdefault(kind, empty)
        bar["x"].append(max(s.seconds or 0.0, 0.05))
        bar["y"].append(s.what)
        bar["base"].append(start)
    names = list(dict.fromkeys(s.what for s in records.stages))
    y: Axis = {
        "categoryorder": "array", "categoryarray": names[::-1], "automargin": True, "ticksuffix": "  ",
        "showgrid": False,
    }  # fmt: skip
    chart = Chart(
        "Stages in time",
        figure(
            list(bars.values()),
            axis("seconds since the run began", rangemode="tozero"),
            y,
            height=110 + 26 * len(names),
            barmode="overlay",
        ),
        Table(["stage", "state", "start", "took", "remark", "Spark's log"], rows),
        f"{counted(len(rows), 'attempt')}.",
    )
    return Section("timings", "Timings", blocks=[chart])


def _spark_log(s: StageRecord) -> Cell:
    """Link to the stage's page in the history server or, where none is known, the folder of the event log.

    For a measurement, it is the log of the measured Spark. None without a log.
    """
    spark = s.outcome.get("system") or s.outcome.get("spark") or {}
    if "events" not in spark:
        return None
    text = spark["id"] if spark.get("history") else f"{spark['id']} in {spark['events']}"
    return Text(text, href=spark.get("history"), code=True)


def _kind(s: StageRecord) -> str:
    if s.state not in ("done", "partly"):
        return "unfinished" if s.state == "started" else s.state
    if s.reused:
        return "reused"
    known = BY_NAME.get(s.stage)
    return "measured" if (known.measures if known else s.stage in MEASUREMENTS.names()) else "built"


def _at(s: StageRecord) -> float:
    return datetime.fromisoformat(s.started_at).timestamp()
