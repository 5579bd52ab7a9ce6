"""Blocks of the page that show a cell's recovery: what each fault costs, each trial, and the age after the fault."""

from __future__ import annotations

from collections.abc import Callable

from streamgauge.bench.measurements.recovery.record import RecoveryRun, Struck, Suffered
from streamgauge.records.spread import Spread
from streamgauge.results.report.blocks import Block, Cell, Chart, Note, Table, Tiles
from streamgauge.results.report.formatting import MISSING, count, number, seconds
from streamgauge.results.report.measured import ANSWERS, ages, answers, blocks_of, load, within
from streamgauge.results.report.run_records import CellRecord, Records

#: faults in words
NAMES = {"kill": "system killed", "restart": "worker killed", "cut": "link cut", "rescale": "parallelism doubled"}


def blocks(records: Records, record: CellRecord) -> list[Block]:
    makers = (_tiles, _table, _intervals, _not_measured, _trials, _chart)
    return blocks_of(records, record, RecoveryRun, "recovery", *makers)


def _name(one: Suffered) -> str:
    return one.called(NAMES[one.fault])


def _tiles(run: RecoveryRun) -> Tiles:
    measured = [one for one in run.faults if not one.unmeasurable]
    outputs = {one.correct for one in measured}
    correct = False if False in outputs else None if None in outputs or not outputs else True
    promises = {one.promise for one in measured}
    told = [f"{_name(one)}: {one.answers}" for one in measured if one.correct is correct]
    if correct and len(promises) == 1:
        told = [*filter(None, promises), "through all faults"]
    tiles: list[tuple[str, str, str]] = [
        (f"{_name(one)}: back after", seconds(one.back_s.value if one.back_s else None), _about(one, one.back_s))
        for one in measured
    ]
    offered = ("offered", number(run.rate_events_per_s), f"events/s, {load(run.fraction)}")
    return Tiles([*tiles, offered, ("answers", ANSWERS[correct], "; ".join(told))])


def _about(one: Suffered, spread: Spread | None) -> str:
    if spread is None:
        return one.void or f"not back in {one.not_back} of {count(len(one.counted))} trials"
    return within(spread, f"{spread.samples} trials")


def _table(run: RecoveryRun) -> Table:
    rows: list[list[Cell]] = [
        [
            _name(one), _spread(one.taken_again_s), _spread(one.back_s), seconds(one.peak_age_s),
            count(one.read_again), answers(one.correct, one.answers),
        ]
        for one in run.faults if not one.unmeasurable
    ]  # fmt: skip
    columns = ["fault", "taken again after", "back after", "peak age", "rows read again", "answers"]
    return Table(columns, rows, "What each fault costs", cards=True)


def _intervals(run: RecoveryRun) -> list[Block]:
    """Table of what an interval of checkpoints costs before a fault, and what it saves after it; none without one."""
    if not any(one.interval for one in run.faults):
        return []
    rows: list[list[Cell]] = [
        [
            NAMES[one.fault], one.interval, _spread(one.calm_cpu_us, micros), seconds(one.calm_age_s),
            _spread(one.back_s), count(one.read_again),
        ]
        for one in run.faults if one.interval and not one.unmeasurable
    ]  # fmt: skip
    columns = ["fault", "checkpoints every", "CPU per event before it", "peak age before it", "back after"]
    return [Table([*columns, "rows read again"], rows, "What an interval of checkpoints costs and saves", cards=True)]


def _not_measured(run: RecoveryRun) -> Note:
    """Note on what has no figure, and why, and on what else to know of the figures."""
    parts = [f"{_name(one)}: {one.void}" for one in run.faults if one.void]
    parts += [f"intervals of checkpoints: not measurable: {run.no_intervals}"] if run.no_intervals else []
    said = [f"No figure: {'; '.join(parts)}." if parts else "Each fault was measured."]
    return Note(" ".join([*said, *(f"{_name(one)}: {one.remark}." for one in run.faults if one.remark)]))


def _spread(one: Spread | None, shown: Callable[[float], str] = seconds) -> str:
    if one is None:
        return MISSING
    ends = "" if one.interval is None else " ({} to {})".format(*map(shown, one.interval))
    return f"{shown(one.value)}{ends}"


def micros(value: float) -> str:
    return number(value, "µs")


def _trials(run: RecoveryRun) -> Table:
    rows: list[list[Cell]] = [
        [
            f"{one.name}, trial {nth}", seconds(trial.struck_s), *_times(trial),
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
    lines = [
        (one.name, f"{one.name}, trial {nth}", trial.ages)
        for one in run.faults
        for nth, trial in enumerate(one.trials, 1)
    ]
    note = f"A line for each trial; it is back while none waits for longer than {run.max_age_s:g}\u00a0s."
    return ages("Age around each fault", "fault", "trial", lines, note)
