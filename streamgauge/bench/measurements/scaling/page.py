"""Blocks of the page that show how a cell scales: rates on parts of the machine, the law, cores and money."""

from __future__ import annotations

from functools import partial

from streamgauge.bench.measurements.scaling.record import Carried, Need, ScalingRun
from streamgauge.results.report.blocks import Block, Cell, Chart, Note, Table, Tiles
from streamgauge.results.report.charts import Trace, axis, error_bars, figure, line
from streamgauge.results.report.degrees import in_cpus
from streamgauge.results.report.formatting import MISSING, between, number, share
from streamgauge.results.report.measured import ANSWERS, blocks_of
from streamgauge.results.report.model import LIMITS
from streamgauge.results.report.run_records import CellRecord, Records


def blocks(records: Records, record: CellRecord) -> list[Block]:
    return blocks_of(records, record, ScalingRun, "scaling", _tiles, partial(_notes, records, record), _measured)


def _measured(run: ScalingRun) -> list[Block]:
    return [] if run.void else [_table(run), _chart(run)]


def _notes(records: Records, record: CellRecord, run: ScalingRun) -> list[Block]:
    if run.void:
        return [Note(f"No figure counts: {run.void}. {run.checked.reason if run.checked else ''}")]
    notes = [f"The points carry no scalability law: {run.refused}."] if run.refused else []
    if run.checked is not None and not run.checked.correct:
        notes.append(f"Answers {run.checked.at}: {run.checked.reason}.")
    if (cost := in_cpus(records).get(record.cell.name)) is not None:
        notes.append(f"{cost.sentence[0].upper()}{cost.sentence[1:]}.")
    return [Note(note) for note in notes]


def _tiles(run: ScalingRun) -> Tiles:
    if run.void:
        return Tiles([_answers(run)])
    tiles: list[tuple[str, str, str]] = []
    if run.known:
        most = run.known[-1]
        tiles += [
            (f"rate {run.at(most.cpus)}", number(most.rate_events_per_s), f"events/s; {_ends(most.interval)}"),
            _efficiency(run, run.known[0] if most.cpus <= 1 else most),
        ]
    if run.law is not None:
        for name, sign, one in (("contention", "σ", run.law.contention), ("coherency", "κ", run.law.coherency)):
            tiles.append((f"{name} {sign}", f"{one.value:.3g}", f"{one.low:.3g} to {one.high:.3g} with 90\u202f%"))
    if run.need is not None:
        tiles.append(_need(run, run.need))
    if run.core_hour is not None and run.known:
        cheapest = min(run.known, key=lambda one: run.cost_of(one) or 0.0)
        price = f"at {run.core_hour:g} for a core for an hour, {run.at(cheapest.cpus)}"
        tiles.append(("a billion events cost", f"{run.cost_of(cheapest):.3g}", price))
    return Tiles([*tiles, _answers(run)])


def _efficiency(run: ScalingRun, one: Carried) -> tuple[str, str, str]:
    value = MISSING if one.efficiency is None else share(round(one.efficiency, 3))
    ends = one.efficiency_interval
    shown = "" if ends is None else f"; {share(round(ends[0], 3))} to {share(round(ends[1], 3))}"
    of = f"of the rate with the least {run.setting}" if run.setting else "of the rate of one CPU for each CPU"
    in_proportion = ", in proportion" if run.setting and run.counts_workers else ""
    return (f"{_compared(run)} {run.at(one.cpus)}", value, f"{of}{in_proportion}{shown}")


def _compared(run: ScalingRun) -> str:
    return "efficiency" if run.counts_workers else "relative rate"


def _need(run: ScalingRun, need: Need) -> tuple[str, str, str]:
    label = f"{run.unit} for {number(need.rate_events_per_s)}\u00a0events/s"
    if need.cpus is None:
        none = f"no number of {run.unit} carries it" if need.by == "law" else "no measured part carries it"
        return (label, MISSING, none)
    ends = f"{number(need.low)} to {'no known number' if need.high is None else number(need.high)}"
    by = "the least measured part" if need.by == "points" else "by the law"
    beyond = ", continued beyond what was measured" if need.is_beyond else ""
    fresh = f"if processes differ from their middle by up to {share(round(run.differ, 2))}"
    return (label, number(need.cpus), f"{by}{beyond}; {ends} with 90\u202f%, {fresh}")


def _answers(run: ScalingRun) -> tuple[str, str, str]:
    if run.checked is None:
        return ("answers", "not compared", "no part had a rate")
    at = f"{run.checked.at}, at {number(run.checked.rate_events_per_s)} events/s"
    return ("answers", ANSWERS[run.checked.correct], at)


def _table(run: ScalingRun) -> Table:
    columns = [run.unit, "rate (events/s)", "90\u202f% interval", _compared(run), "90\u202f% interval of it"]
    columns += ["blocks", "limited by", *(["a billion events cost"] if run.core_hour is not None else [])]
    rows: list[list[Cell]] = []
    for one in run.points:
        row: list[Cell] = [
            run.shown(one.cpus),
            number(one.rate_events_per_s),
            between(one.interval),
            number(one.efficiency),
            between(one.efficiency_interval),
            f"{len(one.blocks)} of {run.blocks}",
            LIMITS.get(one.limited_by, one.limited_by) or one.reason,
        ]
        cost = run.cost_of(one)
        rows.append([*row, *([MISSING if cost is None else f"{cost:.3g}"] if run.core_hour is not None else [])])
    kind = "a quota of the CPUs' time" if run.kind == "quotas" else "so many CPUs"
    caption = f"Parts of the machine, by {kind}, in {run.blocks} blocks of one warm process"
    if run.setting:
        caption = f"Values of {run.setting}, in {run.blocks} blocks, each time in a fresh process"
    return Table(columns, rows, caption, cards=True)


def _chart(run: ScalingRun) -> Chart:
    """Chart of the rate over CPUs or values, beside the line of one CPU's rate, and the law."""
    known = run.known
    cpus, rates = [one.cpus for one in known], [one.rate_events_per_s or 0.0 for one in known]
    bars = error_bars(rates, [one.interval for one in known])
    traces: list[Trace] = [line("measured", cpus, rates, 0, mode="markers", marker={"size": 9}, error_y=bars)]
    base = next((one for one in known if one.cpus == 1), known[0] if known else None)
    if base is not None and base.rate_events_per_s is not None and run.counts_workers:
        each = base.rate_events_per_s / base.cpus
        traces.append(
            line("in proportion" if run.setting else "as one CPU each", [0.0, cpus[-1]], [0.0, each * cpus[-1]], 1)
        )
    if run.law is not None:
        traces.append(line("the law", [at for at, *_ in run.law.curve], [rate for _, rate, *_ in run.law.curve], 2))
    rows: list[list[Cell]] = [
        [run.shown(one.cpus), number(rate), "block " + str(nth)]
        for one in known
        for nth, rate in enumerate(one.blocks, 1)
    ]
    return Chart(
        f"Rate over {run.setting}" if run.setting else "Rate on parts of the machine",
        figure(traces, axis(run.unit, rangemode="tozero"), axis("events/s", rangemode="tozero"), showlegend=True),
        Table([run.unit, "rate (events/s)", "of"], rows),
        f"With 90\u202f% intervals over the blocks{'' if run.setting else ' of one process'}.",
    )


def _ends(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f"{number(interval[0])} to {number(interval[1])} with 90\u202f%"
