"""Blocks of the page that show a cell's recovery: what each fault costs, each trial, and the age after the fault."""

from __future__ import annotations

from streamgauge.bench.measurements.recovery.record import RecoveryRun, Struck, Suffered
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
    seconds,
    share,
)
from streamgauge.results.report.charts import Trace, axis, figure, line
from streamgauge.results.report.run_records import CellRecord, Records

#: faults in words
NAMES = {"kill": "system killed", "restart": "worker killed", "cut": "link cut"}
_OUTPUTS: dict[bool | None, State] = {True: "good", False: "bad", None: "open"}
_ROWS = 20


def blocks(records: Records, record: CellRecord) -> list[Block]:
    run = records.of_cell(record.cell, "recovery", RecoveryRun)
    if run is None:
        return [Hole("No recovery", records.why(records.status("recovery", **record.cell.model_dump())))]
    return [attempt("Recovery", make, run) for make in (_tiles, _table, _not_measured, _trials, _chart)]


def _tiles(run: RecoveryRun) -> Tiles:
    load = f"{share(run.fraction)} of the sustainable rate" if run.fraction else "as the file names"
    measured = [one for one in run.faults if not one.unmeasurable]
    outputs = {one.correct for one in measured}
    answers = "wrong" if False in outputs else "not compared" if None in outputs or not outputs else "right"
    wrong = [f"{NAMES[one.fault]}: {one.answers}" for one in measured if one.wrong]
    tiles: list[tuple[str, str, str]] = [
        (f"{NAMES[one.fault]}: back after", seconds(one.back_s.value if one.back_s else None), _about(one, one.back_s))
        for one in measured
    ]
    offered = ("offered", number(run.rate_events_per_s), f"events/s, {load}")
    return Tiles([*tiles, offered, ("answers", answers, "; ".join(wrong) or "through all faults")])


def _about(one: Suffered, spread: Spread | None) -> str:
    if spread is None:
        return one.void or f"not back in {one.not_back} of {count(len(one.counted))} trials"
    interval = MISSING if spread.interval is None else between(spread.interval)
    return f"90\u202f% interval {interval} s, of {spread.samples} trials"


def _table(run: RecoveryRun) -> Table:
    rows: list[list[Cell]] = [
        [
            NAMES[one.fault], _spread(one.taken_again_s), _spread(one.back_s), seconds(one.peak_age_s),
            count(one.read_again), Text(one.answers, _OUTPUTS[one.correct]),
        ]
        for one in run.faults if not one.unmeasurable
    ]  # fmt: skip
    columns = ["fault", "taken again after", "back after", "peak age", "rows read again", "answers"]
    return Table(columns, rows, "What each fault costs", cards=True)


def _not_measured(run: RecoveryRun) -> Note:
    """Note on what has no figure, and why."""
    parts = [f"{NAMES[one.fault]}: {one.void}" for one in run.faults if one.void]
    return Note(f"No figure: {'; '.join(parts)}." if parts else "Each fault was measured.")


def _spread(one: Spread | None) -> str:
    if one is None:
        return MISSING
    return seconds(one.value) if one.interval is None else f"{seconds(one.value)} ({between(one.interval)})"


def _trials(run: RecoveryRun) -> Table:
    rows: list[list[Cell]] = [
        [
            f"{one.fault} {nth}", seconds(trial.struck_s), *_times(trial),
            count(trial.read_again), count(trial.lost), count(trial.doubled), trial.wrong or trial.reason,
        ]
        for one in run.faults
        for nth, trial in enumerate(one.trials, 1)
    ]  # fmt: skip
    columns = ["trial", "fault at", "taken again after", "back after", "peak age"]
    return Table([*columns, "rows read again", "answers lost", "doubled", "remark"], rows, "Trials with a fault")


def _times(trial: Struck) -> list[Cell]:
    """Times of a trial; where they do not count, its remark says why."""
    return [seconds(one if trial.valid else None) for one in (trial.taken_again_s, trial.back_s, trial.peak_age_s)]


def _chart(run: RecoveryRun) -> Chart:
    traces: list[Trace] = []
    rows: list[list[Cell]] = []
    for nth, one in enumerate(run.faults):
        for number_, trial in enumerate(one.trials, 1):
            name = f"{one.fault} {number_}"
            traces.append(line(name, [at for at, _ in trial.ages], [age for _, age in trial.ages], nth))
            rows += [[name, number(at), number(age)] for at, age in trial.ages[:: len(trial.ages) // _ROWS + 1]]
    return Chart(
        "Age around each fault",
        figure(
            traces, axis("seconds since the fault"), axis("age of the oldest event that waits (s)"), showlegend=True
        ),
        Table(["trial", "at (s)", "age (s)"], rows),
        f"Back while no event waits for longer than {run.max_age_s:g} s.",
    )
