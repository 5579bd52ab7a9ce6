"""Blocks of the page that show how a cell catches up: how long, how fast, what it used, and its age over time."""

from __future__ import annotations

from streamgauge.base.words import THIN, counted
from streamgauge.bench.measurements.catchup.record import CatchupRun, Repeat, minutes
from streamgauge.records.spread import Spread
from streamgauge.results.report.blocks import (
    MISSING,
    Block,
    Cell,
    Chart,
    Hole,
    Note,
    State,
    Table,
    Text,
    Tiles,
    attempt,
    between,
    count,
    number,
    percent,
    seconds,
    share,
)
from streamgauge.results.report.charts import Trace, axis, figure, line
from streamgauge.results.report.run_records import CellRecord, Records

_OUTPUTS: dict[bool | None, tuple[str, State]] = {
    True: ("right", "good"),
    False: ("wrong", "bad"),
    None: ("not compared", "open"),
}
_SHOWN = {"bytes": ("MiB", 2.0**20)}
_ROWS = 20


def blocks(records: Records, record: CellRecord) -> list[Block]:
    run = records.of_cell(record.cell, "catchup", CatchupRun)
    if run is None:
        return [Hole("No catch-up", records.why(records.status("catchup", **record.cell.model_dump())))]
    return [attempt("Catch-up", make, run) for make in (_tiles, _sentence, _table, _peaks, _chart)]


def _tiles(run: CatchupRun) -> Tiles:
    load = f"{share(run.fraction)} of the sustainable rate" if run.fraction else "the rate that the file names"
    live = run.not_within if run.live_s is None else _within(run.live_s)
    dropped = "not known" if run.dropped is None else count(run.dropped[0])
    return Tiles(
        [
            ("live after", seconds(run.live_s.value if run.live_s else None), live),
            ("takes meanwhile", number(run.taken_per_s.value if run.taken_per_s else None), _events(run)),
            ("begins with", counted(run.backlog, "event", THIN), f"of {minutes(run.behind_s)}, at {load}"),
            ("answers", _OUTPUTS[run.correct][0], f"{dropped} events dropped as late"),
        ]
    )


def _within(one: Spread) -> str:
    interval = MISSING if one.interval is None else between(one.interval)
    return f"90\u202f% interval {interval} s, of {counted(one.samples, 'fresh process')}"


def _events(run: CatchupRun) -> str:
    interval = "" if run.taken_per_s is None or run.taken_per_s.interval is None else between(run.taken_per_s.interval)
    return f"events/s ({interval}) while {number(run.rate_events_per_s)} come"


def _sentence(run: CatchupRun) -> Note:
    text = run.void and f"No figure counts: {run.void}."
    text = text or f"{run.after_an_hour[:1].upper()}{run.after_an_hour[1:]}."
    if run.dropped is not None and run.lost_at_own_speed is not None:
        dropped, of = run.dropped
        text += f" It dropped {percent(dropped, of)} of the events as late; {run.lost_at_own_speed.sentence}."
    return Note(text)


def _table(run: CatchupRun) -> Table:
    rows = [_row(number_, one) for number_, one in enumerate(run.repeats, 1)]
    columns = ["repeat", "live after", "events/s meanwhile", "events offered", "dropped as late", "answers", "remark"]
    return Table(columns, rows, "Repeats, each of a fresh process", cards=True)


def _row(nth: int, one: Repeat) -> list[Cell]:
    answers, state = _OUTPUTS[one.correct]
    remark = one.reason if not one.valid else None if one.live_s is not None else "not live at its end"
    return [
        nth, seconds(one.live_s), number(one.taken_per_s), count(one.offered), count(one.dropped), Text(answers, state),
        remark,
    ]  # fmt: skip


def _peaks(run: CatchupRun) -> Table:
    rows: list[list[Cell]] = []
    for one in run.peaks:
        unit, per = _SHOWN.get(one.unit, (one.unit, 1.0))
        rows.append(
            [one.name.replace("_", " "), number(one.most / per, unit), between((min(one.each) / per, one.most / per))]
        )
    return Table(["what", "largest", "least to largest, over repeats"], rows, "Peaks while it catches up")


def _chart(run: CatchupRun) -> Chart:
    traces: list[Trace] = []
    rows: list[list[Cell]] = []
    for nth, one in enumerate(run.repeats, 1):
        name = f"repeat {nth}"
        traces.append(line(name, [at for at, _ in one.ages], [age for _, age in one.ages], nth - 1))
        rows += [[name, number(at), number(age)] for at, age in one.ages[:: len(one.ages) // _ROWS + 1]]
    return Chart(
        "Age while it catches up",
        figure(traces, axis("seconds since the begin"), axis("age of the oldest event that waits (s)")),
        Table(["repeat", "at (s)", "age (s)"], rows),
        f"Live while no event waits for longer than {run.max_age_s:g} s.",
    )
