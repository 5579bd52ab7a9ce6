"""The page's section on the source's own disorder: counts, delays, frequency and watermark curve of its events."""

from __future__ import annotations

from streamgauge.base.units import Tick, show_about, show_enough, show_ticks, ticks_per_second
from streamgauge.base.words import THIN, counted
from streamgauge.records.profile import UNMERGED, ByPart, Profile, RecordedDelays, part_name
from streamgauge.results.report.blocks import Block, Cell, Chart, Hole, Note, Section, Table, Tiles, attempt
from streamgauge.results.report.charts import axis, delay_axis, edges, figure, line, moment, moment_axis, steps
from streamgauge.results.report.formatting import QUANTILES, bin_rows, count, number, percent, quantile_cells, sentence
from streamgauge.results.report.run_records import Records

#: most parts of the stream that are shown
SHOWN_PARTS = 20
#: units of the frequency, in seconds: the first in which the peak reaches 10 events is used
_PER = (("s", 1), ("min", 60), ("h", 3600), ("d", 86400))


def section(records: Records) -> Section:
    lead = "How disordered the source itself is, as it was read, before anything was delayed."
    profile = records.profile
    if profile is None:
        why = records.why(records.status("analyze"))
        return Section("source", "The source", lead, [Hole("No profile of the source", why)])
    tick = profile.tick
    blocks: list[Block] = [
        attempt("Counts", _counts, profile, records.benchmark.source.order, tick),
        attempt("Hints", _hints, profile),
    ]
    if profile.out_of_order is not None:
        blocks.append(attempt("Delay histogram", _delays, profile, tick))
        blocks.append(attempt("Watermark curve", _watermark, profile, tick))
    blocks.append(attempt("Frequency", _frequency, profile, tick))
    if profile.by_part:
        blocks.append(attempt("Disorder by part", _by_part, profile, profile.by_part, tick))
    if profile.recorded_delay:
        blocks.append(attempt("Recorded delay", _recorded, profile.recorded_delay, tick))
    return Section("source", "The source", lead, blocks)


def _hints(p: Profile) -> Block:
    hints = p.hints
    if not hints:
        return Note("No hint: the times show no second unit, no clock that is off and no other order.")
    rows: list[list[Cell]] = [[hint.kind.replace("_", " "), hint.text] for hint in hints]
    return Table(["hint", "of the events as they are in the file"], rows, cards=True)


def _counts(p: Profile, order: str, tick: Tick) -> Tiles:
    events, in_file = p.events, p.in_file
    as_in_file = f"; as in the file {percent(in_file.out_of_order, in_file.events)}" if order != "file" else ""
    tiles = [("events", count(events), f"{counted(p.quarantined, 'line', THIN)} in quarantine")]
    if p.out_of_order is None:
        tiles.append(("out of order", "unknown", UNMERGED.removeprefix("unknown, ")))
    else:
        tiles.append(
            ("out of order", percent(p.out_of_order, events), f"{counted(p.out_of_order, 'event', THIN)}{as_in_file}")
        )
        tiles.append(("adjacent descents", count(p.adjacent_descents), counted(p.runs or 0, "ascending run", THIN)))
    if p.inversions is not None:
        remark = f"distance {count(p.distance)}, interleaved {count(p.interleaved)}"
        tiles.append(("inversions", count(p.inversions), remark))
    first, last = moment(p.event_time.min, tick), moment(p.event_time.max, tick)
    remark = f"{first[:16]} to {last[:16]}" if isinstance(first, str) and isinstance(last, str) else "relative clock"
    tiles.append(("time covered", show_ticks(p.event_time.max - p.event_time.min, tick), remark))
    remark = {"file": "as in the file", "arrival": "sorted by arrival when read", "event_time": "sorted when read"}[
        order
    ]
    return Tiles([*tiles, ("order", order.replace("_", " "), remark)])


def _delays(p: Profile, tick: Tick) -> Block:
    bins, per_second = p.delay_histogram, ticks_per_second(tick)
    if not bins:
        return Note("No event is out of order, so there are no delays to show.")
    return Chart(
        "Delays of the out-of-order events",
        figure(
            [steps("events", bins, per_second)],
            delay_axis("delay behind the running maximum", edges(bins, per_second)),
            axis("events per bin", rangemode="tozero"),
        ),
        Table(["from", "to", "events", "share of all events"], bin_rows(bins, tick, p.events)),
        sentence(p.delay, tick),
    )


def _watermark(p: Profile, tick: Tick) -> Block:
    events, per_second = p.events, ticks_per_second(tick)
    curve = p.watermark_curve
    if not curve[0][1]:
        return Note("No event is late under any watermark delay.")
    # of the first steps, which all have the same count, one is enough
    unchanged = max(i for i, (_, late) in enumerate(curve) if late == curve[0][1])
    shown = curve[max(unchanged, 1) :]
    rows: list[list[Cell]] = [
        [show_ticks(d, tick), count(late), percent(late, events)] for d, late in [curve[0], *shown]
    ]
    x, y = [d / per_second for d, _ in shown], [100 * late / events for _, late in shown]
    enough = {share: show_enough(delay, tick) for share, delay in p.enough_delay.items()}
    return Chart(
        "Events later than a watermark delay",
        figure(
            [line("late events", x, y, mode="lines+markers", fill="tozeroy")],
            delay_axis("watermark delay", x),
            axis("late events (%)", rangemode="tozero"),
        ),
        Table(["watermark delay", "late events", "share"], rows),
        f"A watermark that waits {enough['1 %']} loses at most 1\u202f%, {enough['0.1 %']} at most 0.1\u202f%, "
        f"{enough['none']} none; these are the smallest such delays.",
    )


def _frequency(p: Profile, tick: Tick) -> Block:
    f = p.frequency
    width = f.bin_ticks
    x = [moment(f.start + i * width, tick) for i in range(len(f.counts))]
    per_second = [events * ticks_per_second(tick) / width for events in f.counts]
    # for a slow source, a rate per second would be close to zero
    unit, long = next((u for u in _PER if max(per_second, default=0) * u[1] >= 10), _PER[-1])
    y = [rate * long for rate in per_second]
    whole = width % ticks_per_second(tick) == 0  # seconds, of which each begins its own bin
    rows: list[list[Cell]] = [
        [(t[:19] if whole else t) if isinstance(t, str) else f"{t:.12g}\u00a0s", count(events), number(rate)]
        for t, events, rate in zip(x, f.counts, y, strict=True)
    ]
    end = moment(f.start + len(x) * width, tick)
    mean, peak = (None if rate is None else rate * long for rate in (f.mean_per_s, f.peak_per_s))
    return Chart(
        "Frequency over event time",
        figure(
            [line("frequency", [*x, end], [*y, *y[-1:]], line={"shape": "hv"}, fill="tozeroy")],
            moment_axis(f.start, tick),
            axis(f"events per {unit}", rangemode="tozero"),
        ),
        Table(["from", "events", f"events/{unit}"], rows),
        f"Mean {number(mean)}, peak {number(peak)} events/{unit} over bins of {show_ticks(width, tick)}; "
        f"dispersion {number(f.dispersion)} (a Poisson stream has 1).",
    )


def _recorded(delay: RecordedDelays, tick: Tick) -> Table:
    columns = [*QUANTILES, "negative", "no arrival"]
    row = [*quantile_cells(delay, tick), count(delay.negative), count(delay.missing)]
    return Table(columns, [row], "Recorded delay: arrival − event time", cards=True)


def _by_part(p: Profile, by_part: ByPart, tick: Tick) -> Table:
    columns = [
        by_part.column,
        "events",
        "out of order",
        "longest delay",
        "behind, median",
        "behind, most",
        "longest idle",
        f"idle > {show_ticks(by_part.idle, tick)}",
    ]
    is_merged = p.out_of_order is not None
    columns = columns if is_merged else columns[:4]
    parts = sorted(by_part.parts, key=lambda part: -part.events)[:SHOWN_PARTS]
    rows: list[list[Cell]] = [
        [
            part_name(part.part),
            count(part.events),
            percent(part.out_of_order, part.events),
            show_ticks(part.delay.max or 0, tick),
            *((show_about(part.behind.p50 or 0, tick), show_ticks(part.behind.max or 0, tick)) if is_merged else ()),
            *((show_ticks(part.longest_idle or 0, tick), count(part.idle_spells)) if is_merged else ()),
        ]
        for part in parts
    ]
    more = f", the {SHOWN_PARTS} largest of {count(len(by_part.parts))}" if len(by_part.parts) > SHOWN_PARTS else ""
    caption = f"By {by_part.column}{more}: {count(by_part.out_of_order)} events are out of order within their part"
    if p.out_of_order is not None:
        caption += f", and {count(p.out_of_order - by_part.out_of_order)} more come from merging the parts"
    return Table(columns, rows, caption, cards=True)
