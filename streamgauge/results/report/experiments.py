"""The page's section on the experiments' streams: the wanted disorder, the achieved one, and the validation."""

from __future__ import annotations

from streamgauge.base.units import Tick, ticks_per_second
from streamgauge.records.profile import BinnedDelays
from streamgauge.results.report.blocks import (
    Block,
    Cell,
    Chart,
    Hole,
    Note,
    Section,
    Table,
    Text,
    Tiles,
    attempt,
    count,
    percent,
)
from streamgauge.results.report.charts import axis, delay_axis, edges, figure, steps
from streamgauge.results.report.degrees import wanted
from streamgauge.results.report.delay_format import QUANTILES, bin_rows, quantile_cells, tick_of
from streamgauge.results.report.run_records import Check, Json, Records, Stream, Validation


def section(records: Records) -> Section:
    lead = "Each stream with its target disorder, its achieved disorder, and its validation."
    return Section(
        "experiments", "Experiments", lead, parts=[_experiment(records, stream) for stream in records.streams]
    )


def _experiment(records: Records, stream: Stream) -> Section:
    e, m = stream.experiment, stream.manifest
    words = f"{e.delay.distribution} delays from {e.delay.min} to {e.delay.max}, seed {e.seed}"
    lead = "The events as they came: no delay is added." if e.target else f"{wanted(e)} out of order; {words}."
    blocks: list[Block] = []
    if m is None:
        blocks.append(Hole("No stream", records.why(stream.generate)))
    else:
        blocks.append(attempt("Target and achieved factor", _achievement, m, wanted(e)))
        blocks += _drawn_and_observed(m)
        if stream.validation is None:
            blocks.append(Hole("No validation", records.why(stream.validate)))
        else:
            blocks += _validation(stream.validation)
    return Section(f"experiment-{e.name}", e.name, lead, blocks)


def _achievement(m: Json, target_text: str) -> Tiles:
    events, target, achieved = m["events"], m.get("target_out_of_order"), m.get("achieved_out_of_order")
    if achieved is not None and achieved == target:
        remark = "exactly the target"
    elif m.get("infeasible"):
        remark = "the closest this seed allows"
    else:
        remark = f"not the target of {count(target)}"
    return Tiles(
        [
            ("target", target_text, f"{count(target)} events"),
            ("achieved", percent(achieved, events), f"{count(achieved)} events, {remark}"),
            (
                "newly delayed",
                count(m.get("newly_delayed")),
                f"{count(m.get('source_out_of_order'))} out of order before",
            ),
            (
                "this seed's bound",
                percent(m.get("feasible_max"), events),
                f"{count(m.get('feasible_max'))} events could be out of order",
            ),
        ]
    )


def _drawn_and_observed(m: Json) -> list[Block]:
    tick = tick_of(m)
    told = {name: m.get(f"{name}_delay") for name in ("drawn", "observed")}
    lost = [Hole(f"No {name} delays", "the stream's manifest lacks them") for name, d in told.items() if d is None]
    found = {name: BinnedDelays.model_validate(d) for name, d in told.items() if d is not None}
    some = {name: d for name, d in found.items() if d.histogram}
    if lost or not some:
        return [*lost] or [Note("No event of this stream is delayed.")]
    rows: list[list[Cell]] = [[name, *quantile_cells(d, tick)] for name, d in some.items()]
    return [
        attempt("Delays", _delays, some, tick),
        attempt("Quantiles", Table, ["delay", *QUANTILES], rows, cards=True),
    ]


def _delays(found: dict[str, BinnedDelays], tick: Tick) -> Chart:
    per_second = ticks_per_second(tick)
    totals = {name: sum(events for _, _, events in d.histogram) for name, d in found.items()}
    traces = [
        steps(name, d.histogram, per_second, nth, 100 / totals[name]) for nth, (name, d) in enumerate(found.items())
    ]
    rows = [[name, *row] for name, d in found.items() for row in bin_rows(d.histogram, tick, totals[name])]
    return Chart(
        "Drawn and observed delays",
        figure(
            traces,
            delay_axis("delay", [edge for d in found.values() for edge in edges(d.histogram, per_second)]),
            axis("share per bin (%)", rangemode="tozero"),
        ),
        Table(["delay", "from", "to", "events", "share"], rows),
        "Drawn: what was added to the ingestion time of newly delayed events. Observed: how far each out-of-order "
        "event lies behind the running maximum. A delayed event that no later one overtook is in order, and not "
        "counted.",
    )


def _validation(validation: Validation) -> list[Block]:
    """Table of the failed expectations, and a folded one of all of them."""
    columns = ["expectation", "result", "observed"]
    failed = [check for check in validation.checks if not check.success]
    passed = len(validation.checks) - len(failed)
    blocks: list[Block] = []
    if failed:
        blocks.append(Table(columns, [_row(check) for check in failed], "Failed expectations", cards=True))
    if validation.checks:
        folded = f"{passed} of {len(validation.checks)} expectations passed"
        blocks.append(Table(columns, [_row(check) for check in validation.checks], folded=folded, cards=True))
    else:
        blocks.append(Hole("No expectations", "the validation's result names none"))
    if validation.docs:
        blocks.append(Note("Data Docs of this validation", validation.docs))
    return blocks


def _row(check: Check) -> list[Cell]:
    result = Text("passed", "good") if check.success else Text("failed", "bad")
    return [Text(check.name.replace("_", " "), hint=check.note), result, check.observed]
