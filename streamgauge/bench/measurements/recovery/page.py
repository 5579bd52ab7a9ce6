"""Blocks of the page that show a cell's recovery: what each fault costs, each trial, and the age after the fault."""

from __future__ import annotations

from collections.abc import Callable

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
NAMES = {"kill": "system killed", "restart": "worker killed", "cut": "link cut", "rescale": "parallelism doubled"}
_OUTPUTS: dict[bool | None, State] = {True: "good", False: "bad", None: "open"}
_ROWS = 20


def blocks(records: Records, record: CellRecord) -> list[Block]:
    run = records.of_cell(record.cell, "recovery", RecoveryRun)
    if run is None:
        return [Hole("No recovery", records.why(records.status("recovery", **record.cell.model_dump())))]
    makers: list[Callable[[RecoveryRun], Block]] = [_tiles, _table, _not_measured, _trials, _chart]
    if any(one.interval for one in run.faults):
        makers.insert(2, _intervals)
    return [attempt("Recovery", make, run) for make in makers]


def _name(one: Suffered) -> str:
    return f"{NAMES[one.fault]}, checkpoints every {one.interval}" if one.interval else NAMES[one.fault]


def _tiles(run: RecoveryRun) -> Tiles:
    load = f"{share(run.fraction)} of the sustainable rate" if run.fraction else "as the file names"
    measured = [one for one in run.faults if not one.unmeasurable]
    outputs = {one.correct for one in measured}
    answers = "wrong" if False in outputs else "not compared" if None in outputs or not outputs else "right"
    wrong = [f"{_name(one)}: {one.answers}" for one in measured if one.wrong]
    tiles: list[tuple[str, str, str]] = [
        (f"{_name(one)}: back after", seconds(one.back_s.value if one.back_s else None), _about(one, one.back_s))
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
            _name(one), _spread(one.taken_again_s), _spread(one.back_s), seconds(one.peak_age_s),
            count(one.read_again), Text(one.answers, _OUTPUTS[one.correct]),
        ]
        for one in run.faults if not one.unmeasurable
    ]  # fmt: skip
    columns = ["fault", "taken again after", "back after", "peak age", "rows read again", "answers"]
    return Table(columns, rows, "What each fault costs", cards=True)


def _intervals(run: RecoveryRun) -> Table:
    """Table of what an interval of checkpoints costs before a fault, and what it saves after it."""
    rows: list[list[Cell]] = [
        [
            NAMES[one.fault], one.interval, _spread(one.calm_cpu_us, micros), seconds(one.calm_age_s),
            _spread(one.back_s), count(one.read_again),
        ]
        for one in run.faults if one.interval and not one.unmeasurable
    ]  # fmt: skip
    columns = ["fault", "checkpoints every", "CPU per event before it", "peak age before it", "back after"]
    return Table([*columns, "rows read again"], rows, "What an interval of checkpoints costs and saves", cards=True)


def _not_measured(run: RecoveryRun) -> Note:
    """Note on what has no figure, and why."""
    parts = [f"{_name(one)}: {one.void}" for one in run.faults if one.void]
    parts += [f"intervals of checkpoints: not measurable: {run.no_intervals}"] if run.no_intervals else []
    return Note(f"No figure: {'; '.join(parts)}." if parts else "Each fault was measured.")


def _spread(one: Spread | None, shown: Callable[[float], str] = seconds) -> str:
    if one is None:
        return MISSING
    return shown(one.value) if one.interval is None else f"{shown(one.value)} ({between(one.interval)})"


def micros(value: float) -> str:
    return number(value, "µs")


def _trials(run: RecoveryRun) -> Table:
    rows: list[list[Cell]] = [
        [
            f"{one.name} {nth}", seconds(trial.struck_s), *_times(trial),
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
            name = f"{one.name} {number_}"
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
