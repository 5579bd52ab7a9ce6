"""The page's section on the experiments' streams: the wanted disorder, the achieved one, and the validation."""

from __future__ import annotations

from streamgauge.base.units import Tick, ticks_per_second
from streamgauge.base.words import THIN, counted
from streamgauge.records.manifests import StreamManifest
from streamgauge.records.profile import BinnedDelays
from streamgauge.records.validation import Expectation, Likeness, Validation
from streamgauge.results.report.blocks import Block, Cell, Chart, Hole, Note, Section, Table, Text, Tiles, attempt
from streamgauge.results.report.charts import axis, delay_axis, edges, figure, steps
from streamgauge.results.report.degrees import wanted
from streamgauge.results.report.formatting import MISSING, QUANTILES, bin_rows, count, percent, quantile_cells
from streamgauge.results.report.run_records import Records, Stream


def section(records: Records) -> Section:
    lead = "Each stream with its target disorder, its achieved disorder, and its validation."
    return Section(
        "experiments", "Experiments", lead, parts=[_experiment(records, stream) for stream in records.streams]
    )


def _experiment(records: Records, stream: Stream) -> Section:
    e, m = stream.experiment, stream.manifest
    drawn = f"{e.delay.distribution} delays from {e.delay.min} to {e.delay.max}"
    words = f"{e.delays if e.delay.outages else drawn}, seed {e.seed}"
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
            blocks += _validation(stream.validation, stream.docs)
            if alike := stream.validation.likeness:
                blocks.append(attempt("Likeness", _likeness, alike, m.tick))
    return Section(f"experiment-{e.name}", e.name, lead, blocks)


def _achievement(m: StreamManifest, target_text: str) -> Tiles:
    remark = f"not the target of {count(m.target_out_of_order)}"
    if m.achieved_out_of_order == m.target_out_of_order:
        remark = "exactly the target"
    elif m.infeasible:
        remark = "the closest this seed allows"
    achieved = f"{counted(m.achieved_out_of_order, 'event', THIN)}, {remark}"
    return Tiles(
        [
            ("target", target_text, counted(m.target_out_of_order, "event", THIN)),
            ("achieved", percent(m.achieved_out_of_order, m.events), achieved),
            ("newly delayed", count(m.newly_delayed), f"{count(m.source_out_of_order)} out of order before"),
            (
                "this seed's bound",
                percent(m.feasible_max, m.events),
                f"{counted(m.feasible_max, 'event', THIN)} could be out of order",
            ),
            *([("duplicates", count(m.duplicates), "more rows, right behind their events")] if m.duplicates else []),
        ]
    )


def _drawn_and_observed(m: StreamManifest) -> list[Block]:
    delays = {name: d for name, d in (("drawn", m.drawn_delay), ("observed", m.observed_delay)) if d.histogram}
    if not delays:
        return [Note("No event of this stream is delayed.")]
    rows: list[list[Cell]] = [[name, *quantile_cells(d, m.tick)] for name, d in delays.items()]
    return [
        attempt("Delays", _delays, delays, m.tick),
        attempt("Quantiles", Table, ["delay", *QUANTILES], rows, cards=True),
    ]


def _delays(delays: dict[str, BinnedDelays], tick: Tick) -> Chart:
    per_second = ticks_per_second(tick)
    totals = {name: sum(events for _, _, events in d.histogram) for name, d in delays.items()}
    traces = [
        steps(name, d.histogram, per_second, nth, 100 / totals[name]) for nth, (name, d) in enumerate(delays.items())
    ]
    rows = [[name, *row] for name, d in delays.items() for row in bin_rows(d.histogram, tick, totals[name])]
    return Chart(
        "Drawn and observed delays",
        figure(
            traces,
            delay_axis("delay", [edge for d in delays.values() for edge in edges(d.histogram, per_second)]),
            axis("share per bin (%)", rangemode="tozero"),
        ),
        Table(["delay", "from", "to", "events", "share"], rows),
        "Drawn: what was added to the ingestion time of newly delayed events. Observed: how far each out-of-order "
        "event lies behind the running maximum. A delayed event that no later one overtook is in order, and not "
        "counted.",
    )


def _validation(validation: Validation, docs: str | None) -> list[Block]:
    """Table of the failed expectations, and a folded one of all of them."""
    columns = ["expectation", "result", "observed"]
    failed, judged = validation.failed, validation.expectations
    blocks: list[Block] = []
    if failed:
        blocks.append(Table(columns, [_row(one) for one in failed], "Failed expectations", cards=True))
    if judged:
        folded = f"{len(judged) - len(failed)} of {len(judged)} expectations passed"
        blocks.append(Table(columns, [_row(one) for one in judged], folded=folded, cards=True))
    else:
        blocks.append(Hole("No expectations", "the validation's result names none"))
    if docs:
        blocks.append(Note("Data Docs of this validation", docs))
    return blocks


def _likeness(alike: Likeness, tick: Tick) -> Table:
    """The stream beside the profile that it shall be like."""
    bursts = ["burst, mean", "burst, p50", "burst, p90", "burst, p99", "longest burst"]
    rows: list[list[Cell]] = [
        [
            name,
            percent(one.out_of_order, one.events),
            *quantile_cells(one.delay, tick if one is alike.made else alike.tick),
            *(
                MISSING if value is None else f"{value:,.3g}"
                for value in (one.bursts.mean, one.bursts.p50, one.bursts.p90, one.bursts.p99, one.bursts.max)
            ),
        ]
        for name, one in (("profile", alike.given), ("stream", alike.made))
    ]
    caption = (
        f"Likeness to {alike.profile}: delays differ by {alike.delay_distance:.3f}, watermark curves by "
        f"{alike.curve_distance:.3f}, and {100 * alike.part_distance:.1f} % of the events out of order would have to "
        "belong to other parts"
    )
    return Table(["", "out of order", *QUANTILES, *bursts], rows, caption, cards=True)


def _row(one: Expectation) -> list[Cell]:
    result = Text("passed", "good") if one.success else Text("failed", "bad")
    return [Text(one.name.replace("_", " "), hint=one.note), result, one.text]
