"""Blocks of the page that show how a cell catches up: how long, how fast, what it used, and its age over time."""

from __future__ import annotations

from streamgauge.base.words import THIN, counted
from streamgauge.bench.measurements.catchup.record import CatchupRun, Repeat, minutes
from streamgauge.results.report.blocks import Block, Cell, Chart, Note, Table, Tiles
from streamgauge.results.report.formatting import between, count, number, percent, seconds
from streamgauge.results.report.measured import ANSWERS, ages, answers, blocks_of, load, unit_of, within
from streamgauge.results.report.run_records import CellRecord, Records


def blocks(records: Records, record: CellRecord) -> list[Block]:
    return blocks_of(records, record, CatchupRun, "catch-up", _tiles, _sentence, _table, _peaks, _chart)


def _tiles(run: CatchupRun) -> Tiles:
    begins = f"of {minutes(run.behind_s)}, at {load(run.fraction, 'the rate that the file names')}"
    live_s, taken = (None, None) if run.void else (run.live_s, run.taken_per_s)
    live = run.not_within if live_s is None else within(live_s, counted(live_s.samples, "fresh process"))
    dropped = "no count of the" if run.dropped is None else count(run.dropped[0])
    interval = "" if taken is None or taken.interval is None else f" ({between(taken.interval)})"
    while_come = f"events/s{interval} while {number(run.rate_events_per_s)} come"
    return Tiles(
        [
            ("live after", seconds(live_s.value if live_s else None), run.void or live),
            ("takes meanwhile", number(taken.value if taken else None), while_come),
            ("begins with", counted(run.backlog, "event", THIN), begins),
            ("answers", ANSWERS[run.correct], f"{dropped} events dropped as late"),
        ]
    )


def _sentence(run: CatchupRun) -> Note:
    text = run.void and f"No figure counts: {run.void}."
    text = text or f"{run.after_an_hour[:1].upper()}{run.after_an_hour[1:]}."
    text += f" {run.fewer}." if run.fewer else ""
    if run.dropped is not None and run.lost_at_own_speed is not None:
        dropped, of = run.dropped
        text += f" It dropped {percent(dropped, of)} of the events as late; {run.lost_at_own_speed.sentence}."
    return Note(text)


def _table(run: CatchupRun) -> Table:
    rows = [_row(number_, one) for number_, one in enumerate(run.repeats, 1)]
    columns = ["repeat", "live after", "events/s meanwhile", "events offered", "dropped as late", "answers", "remark"]
    return Table(columns, rows, "Repeats, each of a fresh process", cards=True)


def _row(nth: int, one: Repeat) -> list[Cell]:
    remark = one.reason if not one.valid else None if one.live_s is not None else "not live at its end"
    return [
        nth, seconds(one.live_s), number(one.taken_per_s), count(one.offered), count(one.dropped), answers(one.correct),
        remark,
    ]  # fmt: skip


def _peaks(run: CatchupRun) -> Table:
    rows: list[list[Cell]] = []
    for one in run.peaks:
        unit, per = unit_of(one.unit)
        rows.append(
            [one.name.replace("_", " "), number(one.most / per, unit), between((min(one.each) / per, one.most / per))]
        )
    return Table(["what", "largest", "least to largest, over repeats"], rows, "Peaks while it catches up")


def _chart(run: CatchupRun) -> Chart:
    lines = [(f"repeat {nth}", f"repeat {nth}", one.ages) for nth, one in enumerate(run.repeats, 1)]
    note = f"Live while none waits for longer than {run.max_age_s:g}\u00a0s."
    return ages("Age while it catches up", "start", "repeat", lines, note)
