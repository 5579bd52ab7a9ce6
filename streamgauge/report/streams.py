"""The source's disorder, and each experiment's stream: what was wanted, what came out, what proves it."""

from __future__ import annotations

from typing import Any

from streamgauge.report.blocks import (
    MISSING,
    Block,
    Cell,
    Chart,
    Hole,
    Note,
    Section,
    Table,
    Text,
    Tiles,
    count,
    number,
    percent,
)
from streamgauge.report.charts import axis, delay_axis, figure, line, moment, moment_axis, rebin, steps
from streamgauge.report.records import Json, Records, Stream, Validation
from streamgauge.units import Tick, show_ticks, ticks_per_second

_QUANTILES = ("min", "p50", "p90", "p99", "max", "mean")
_MOST_BINS = 400


def source(records: Records) -> Section:
    """Counts, delays, frequency, watermark curve of the events as they were read."""
    lead = "How disordered the source itself is, before anything was delayed."
    profile = records.profile
    if profile is None:
        status = records.status("analyze")
        return Section("source", "The source", lead, [Hole("No profile of the source", status.reason or "not found")])
    tick = _tick(profile)
    blocks: list[Block] = [_counts(profile, records)]
    blocks += [
        _attempt("Delay histogram", _delays, profile, tick),
        _attempt("Watermark curve", _watermark, profile, tick),
        _attempt("Frequency", _frequency, profile, tick),
    ]
    if profile.get("recorded_delay"):
        blocks.append(_recorded(profile["recorded_delay"], tick))
    return Section("source", "The source", lead, blocks)


def experiments(records: Records) -> Section:
    parts = [_experiment(stream) for stream in records.streams]
    lead = "Each stream: the disorder that was asked for, the disorder that came out, and the proof."
    return Section("experiments", "Experiments", lead, parts=parts)


def _experiment(stream: Stream) -> Section:
    e, m = stream.experiment, stream.manifest
    words = [f"{e.delay.distribution} delays from {e.delay.min} to {e.delay.max}", f"seed {e.seed}"]
    section = Section(f"experiment-{e.name}", e.name, f"{e.target_percent:g}\u202f% out of order; {', '.join(words)}.")
    if m is None:
        section.blocks.append(Hole("No stream", stream.generate.reason or "not found"))
        return section
    section.blocks.append(_achievement(m, e.target_percent))
    if m.get("infeasible"):
        bound = percent(m.get("feasible_max"), m.get("events"))
        section.blocks.append(
            Note(
                f"The target cannot be reached under this seed; the closest possible was taken. This seed's bound is {bound}."
            )
        )
    section.blocks.append(_attempt("Drawn and observed delays", _drawn_observed, m, _tick(m)))
    if stream.validation is None:
        section.blocks.append(Hole("No validation", stream.validate.reason or "no result found"))
    else:
        section.blocks.extend(_validation(stream.validation))
    return section


def _counts(p: Json, records: Records) -> Tiles:
    events, tick = p.get("events"), _tick(p)
    tiles = [
        ("events", count(events), f"{count(p.get('quarantined'))} lines in quarantine"),
        ("out of order", percent(p.get("out_of_order"), events), f"{count(p.get('out_of_order'))} events"),
        ("adjacent descents", count(p.get("adjacent_descents")), f"{count(p.get('runs'))} ascending runs"),
    ]
    if p.get("inversions") is not None:
        remark = f"distance {count(p.get('distance'))}, interleaved {count(p.get('interleaved'))}"
        tiles.append(("inversions", count(p["inversions"]), remark))
    span = p.get("event_time") or {}
    if span.get("min") is not None and span.get("max") is not None:
        first, last = moment(span["min"], tick), moment(span["max"], tick)
        remark = f"{_short(first)} to {_short(last)}" if isinstance(first, str) else "of a relative clock"
        tiles.append(("time covered", show_ticks(span["max"] - span["min"], tick), remark))
    order = records.benchmark.source.order.replace("_", " ")
    tiles.append(("order", order, "as in the file" if order == "file" else f"sorted by {order} when read"))
    return Tiles(tiles)


def _delays(p: Json, tick: Tick) -> Block:
    bins = p["delay_histogram"]
    if not bins:
        return Note("No event is out of order, so there are no delays to show.")
    per_second = ticks_per_second(tick)
    rows: list[list[Cell]] = [
        [show_ticks(low, tick), show_ticks(high, tick), count(events), percent(events, p["events"])]
        for low, high, events in bins
    ]
    return Chart(
        "Delays of the out-of-order events",
        figure(
            [steps("events", bins, per_second)],
            delay_axis("delay behind the running maximum", _edges(bins, per_second)),
            axis("events per bin", rangemode="tozero"),
        ),
        Table(["from", "to", "events", "share of all events"], rows),
        _quantile_sentence(p.get("delay"), tick),
    )


def _watermark(p: Json, tick: Tick) -> Block:
    curve, events, per_second = p["watermark_curve"], p["events"], ticks_per_second(tick)
    positive = [delay / per_second for delay, _ in curve if delay > 0]
    if not positive or not events:
        return Note("No watermark delay is needed: no event is late.")
    floor = min(positive) / 2  # a logarithmic axis has no zero: the first point stands at half the next
    shares = [100 * late / events for _, late in curve]
    needed = []
    for most in (1.0, 0.1):
        delay = next((d for (d, _), share in zip(curve, shares, strict=True) if share <= most), None)
        if delay is not None:
            needed.append(f"{show_ticks(delay, tick)} to lose at most {most:g}\u202f%")
    largest = (p.get("delay") or {}).get("max")
    if largest is not None:
        needed.append(f"{show_ticks(largest, tick)} to lose none")
    rows: list[list[Cell]] = [[show_ticks(d, tick), count(late), percent(late, events)] for d, late in curve]
    trace = line("late", [max(d / per_second, floor) for d, _ in curve], shares, line={"shape": "hv"}, fill="tozeroy")
    return Chart(
        "Events later than a watermark delay",
        figure(
            [trace],
            delay_axis("watermark delay", [floor, *positive]),
            axis("late events (%)", rangemode="tozero"),
        ),
        Table(["watermark delay", "late events", "share"], rows),
        f"A watermark must wait {', '.join(needed)}." if needed else "",
    )


def _frequency(p: Json, tick: Tick) -> Block:
    f = p["frequency"]
    k, counts = rebin(f["counts"], _MOST_BINS)
    width = k * f["bin_ticks"]
    starts = [f["start"] + i * width for i in range(len(counts))]
    rates = [events * ticks_per_second(tick) / width for events in counts]
    x = [moment(t, tick) for t in starts]
    # over slow sources a second is too short a measure
    unit, factor = next(
        (u for u in (("s", 1), ("min", 60), ("h", 3600), ("d", 86400)) if max(rates, default=0) * u[1] >= 10),
        ("d", 86400),
    )
    y = [rate * factor for rate in rates]
    rows: list[list[Cell]] = [
        [_short(t), count(events), number(rate)] for t, events, rate in zip(x, counts, y, strict=True)
    ]
    mean, peak, dispersion = f.get("mean_per_s"), f.get("peak_per_s"), f.get("dispersion")
    sentence = f"Mean {number(mean and mean * factor)}, peak {number(peak and peak * factor)} events/{unit}; dispersion {number(dispersion)} (1 is a Poisson stream). Bins of {show_ticks(width, tick)}."
    return Chart(
        "Frequency over event time",
        figure(
            [line("frequency", x, y, line={"shape": "hv"}, fill="tozeroy")],
            moment_axis(f["start"], tick),
            axis(f"events per {unit}", rangemode="tozero"),
        ),
        Table(["from", "events", f"events/{unit}"], rows),
        sentence,
    )


def _recorded(delay: Json, tick: Tick) -> Table:
    rows: list[list[Cell]] = [[name, _ticks(delay.get(name), tick)] for name in _QUANTILES]
    rows += [
        ["negative (arrived before they happened)", count(delay.get("negative"))],
        ["without an arrival time", count(delay.get("missing"))],
    ]
    return Table(["recorded delay (arrival − event time)", "value"], rows, "Delays that the source itself records")


def _achievement(m: Json, target_percent: float) -> Tiles:
    events, target, achieved = m.get("events"), m.get("target_out_of_order"), m.get("achieved_out_of_order")
    exact = "exactly the target" if achieved is not None and achieved == target else f"target {count(target)} events"
    return Tiles(
        [
            ("target", f"{target_percent:g}\u202f%", f"{count(target)} events"),
            ("achieved", percent(achieved, events), f"{count(achieved)} events, {exact}"),
            (
                "newly delayed",
                count(m.get("newly_delayed")),
                f"{count(m.get('source_out_of_order'))} were out of order before",
            ),
            (
                "this seed's bound",
                percent(m.get("feasible_max"), events),
                f"{count(m.get('feasible_max'))} events could be",
            ),
        ]
    )


def _drawn_observed(m: Json, tick: Tick) -> Block:
    named = [("drawn", m["drawn_delay"]), ("observed", m["observed_delay"])]
    rows: list[list[Cell]] = [[q, *(_ticks((d or {}).get(q), tick) for _, d in named)] for q in _QUANTILES]
    table = Table(["delay", "drawn", "observed"], rows)
    shown = [(name, d["histogram"]) for name, d in named if d and d.get("histogram")]
    if not shown:
        return Note("No event of this stream is delayed.")
    per_second = ticks_per_second(tick)
    traces = [
        steps(name, bins, per_second, nth, 100 / max(1, sum(events for _, _, events in bins)))
        for nth, (name, bins) in enumerate(shown)
    ]
    return Chart(
        "Drawn and observed delays",
        figure(
            traces,
            delay_axis("delay", [v for _, bins in shown for v in _edges(bins, per_second)]),
            axis("share per bin (%)", rangemode="tozero"),
        ),
        table,
        "Drawn: what was added to the ingestion time of newly delayed events. Observed: how far all out-of-order events "
        "lie behind the running maximum. The two differ, since an event counts from where later events overtake it.",
    )


def _validation(validation: Validation) -> list[Block]:
    blocks: list[Block] = []
    rows: list[list[Cell]] = [
        [
            Text(check.name.replace("_", " "), hint=check.note),
            Text("passed", "good")
            if check.success
            else Text("failed", "bad")
            if check.success is not None
            else Text("not evaluated", "open"),
            check.observed,
        ]
        for check in validation.checks
    ]
    if rows:
        blocks.append(Table(["expectation", "result", "observed"], rows, "Validation"))
    else:
        blocks.append(Hole("No single expectations", "the validation's result was not found"))
    if validation.docs:
        blocks.append(Table(["more"], [[Text("Data Docs of this validation", href=validation.docs)]]))
    return blocks


def _attempt(what: str, make: Any, *args: Any) -> Block:
    """A record with a key missing leaves a hole in the page, never a page missing."""
    try:
        block: Block = make(*args)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as problem:
        return Hole(what, f"the record lacks or garbles {problem}")
    return block


def _quantile_sentence(delay: Json | None, tick: Tick) -> str:
    if not delay or delay.get("max") is None:
        return ""
    parts = [f"{name} {_ticks(delay.get(name), tick)}" for name in ("p50", "p90", "p99", "max")]
    return f"Delays: {', '.join(parts)}; mean {_ticks(delay.get('mean'), tick)}."


def _ticks(value: float | None, tick: Tick) -> str:
    return MISSING if value is None else show_ticks(value, tick)


def _edges(bins: list[list[float]], per_second: int) -> list[float]:
    return [edge / per_second for low, high, _ in bins for edge in (low if low > 0 else high / 10, high)]


def _tick(record: Json) -> Tick:
    return "ps" if record.get("tick") == "ps" else "ns"


def _short(when: str | float) -> str:
    """A date without the seconds' fraction, or seconds."""
    return when[:19] if isinstance(when, str) else number(when, "s")
