"""A profile of a stream's disorder, as analyze prints it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import typer

from streamgauge.app.cli.common import print_table
from streamgauge.base.units import PS, Tick, moment, show_about, show_enough, show_ticks
from streamgauge.base.words import counted
from streamgauge.records.profile import UNMERGED, ByPart, Hint, Profile, Span, StreamPart, part_name

#: most parts of a stream that are printed
SHOWN_PARTS = 10


def as_json_object(profile: Profile) -> dict[str, object]:
    """Returns the profile as `analyze --json` prints it, times in nanoseconds."""
    tick: Tick = profile.tick
    keys = (
        "events",
        "out_of_order",
        "quarantined",
        "adjacent_descents",
        "runs",
        "inversions",
        "distance",
        "interleaved",
    )
    whole = profile.model_dump()
    facts = {key: whole[key] for key in keys}
    facts |= span_json(profile.event_time, tick)
    facts["in_file"] = profile.in_file.model_dump(mode="json", exclude={"hints"})
    facts["hints"] = hints_json(profile.hints, tick)
    facts["delay_ns"] = _in_ns(whole["delay"], tick)
    facts["watermark_curve"] = [
        {"watermark_ns": _ns(delay, tick), "late": late, "fraction": late / profile.events}
        for delay, late in profile.watermark_curve
    ]
    facts["enough_delay_ns"] = _in_ns(profile.enough_delay, tick)
    if profile.recorded_delay is not None:
        facts["recorded_delay_ns"] = _in_ns(whole["recorded_delay"], tick)
    if profile.by_part is not None:
        facts["by_part"] = _parts_json(profile.by_part, tick)
    return facts


def _parts_json(by_part: ByPart, tick: Tick) -> dict[str, object]:
    parts = [
        {
            **part.model_dump(include={"part", "events", "out_of_order", "idle_spells", "overtaken"}),
            "event_time_ns": {"first": _ns(part.event_time.min, tick), "last": _ns(part.event_time.max, tick)},
            "delay_ns": _in_ns(part.delay.model_dump(), tick),
            "behind_ns": _in_ns(part.behind.model_dump(), tick),
            "longest_idle_ns": None if part.longest_idle is None else _ns(part.longest_idle, tick),
            "watermark_curve": [{"watermark_ns": _ns(delay, tick), "late": n} for delay, n in part.watermark_curve],
        }
        for part in by_part.parts
    ]
    idle_ns = _ns(by_part.idle, tick)
    return {"column": by_part.column, "idle_ns": idle_ns, "out_of_order": by_part.out_of_order, "parts": parts}


def span_json(event_time: Span, tick: Tick) -> dict[str, object]:
    """Returns the first and the last event time as `--json` prints them."""
    ends = {"first": event_time.min, "last": event_time.max}
    shown = {name: moment(at, tick) for name, at in ends.items()}
    return {"event_time": shown, "event_time_ns": {name: _ns(at, tick) for name, at in ends.items()}}


def hints_json(hints: Iterable[Hint], tick: Tick) -> list[dict[str, object]]:
    enough = "enough_without"
    return [
        hint.model_dump(mode="json", exclude={enough})
        | {f"{enough}_ns": None if hint.enough_without is None else _ns(hint.enough_without, tick)}
        for hint in hints
    ]


def doubtful(profile: Profile) -> list[str]:
    """A warning about recorded delays that no real stream has; empty if there is nothing to warn of."""
    recorded = profile.recorded_delay
    if not recorded:
        return []
    known = profile.events - recorded.missing
    span = profile.event_time.max - profile.event_time.min
    if not known:
        why = f"none of {profile.events:,} arrival times can be read"
    elif recorded.negative > known / 2:
        why = f"{recorded.negative:,} of {known:,} events arrive before their own time"
    elif (recorded.p50 or 0) > max(span, 1):
        why = f"half of the events arrive later than {show_ticks(span, profile.tick)}, which is the stream's length"
    else:
        return []
    return [f"warning: {why}; check --arrival, --arrival-unit and --arrival-format"]


def _in_ns(summary: Mapping[str, float | None], tick: Tick) -> dict[str, float | None]:
    return {k: v if v is None or k in ("negative", "missing") else _ns(v, tick) for k, v in summary.items()}


def _ns(ticks: float, tick: Tick) -> float:
    """Converts ticks to nanoseconds; an integer wherever that is exact."""
    size = PS["ns"] // PS[tick]
    return ticks if size == 1 else ticks // size if ticks % size == 0 else ticks / size


def show(profile: Profile) -> None:
    tick: Tick = profile.tick
    events = profile.events
    typer.echo(
        f"events              {events:,}"
        + (f"  ({counted(profile.quarantined, 'bad line')} left out)" if profile.quarantined else "")
    )
    first, last = profile.event_time.min, profile.event_time.max
    typer.echo(f"event time          {moment(first, tick)} to {moment(last, tick)}")
    if profile.out_of_order is None:
        typer.echo(f"out of order        {UNMERGED}")
    else:
        _show_merged(profile, profile.out_of_order)
    if profile.by_part is not None:
        _show_parts(profile, profile.by_part)
    for hint in profile.hints:
        typer.echo(f"hint                {hint.text}")


def _show_merged(profile: Profile, out_of_order: int) -> None:
    """Prints what depends on the order of all events."""
    tick, events = profile.tick, profile.events
    typer.echo(f"out of order        {out_of_order:,}  ({100 * out_of_order / events:.4f} %)")
    in_file = profile.in_file
    if in_file.out_of_order not in (None, out_of_order):
        share = 100 * (in_file.out_of_order or 0) / in_file.events
        typer.echo(f"  as in the file    {in_file.out_of_order:,}  ({share:.4f} %)")
    typer.echo(f"adjacent descents   {profile.adjacent_descents:,}  ({counted(profile.runs or 0, 'run')})")
    counts = (profile.inversions, profile.distance, profile.interleaved)
    for name, value in zip(("inversions", "distance", "interleaved"), counts, strict=True):
        if value is not None:
            typer.echo(f"{name:<19} {value:,}")
    for title, delays in (("delay", profile.delay), ("arrival − event time", profile.recorded_delay)):
        if delays and delays.min is not None:
            named = zip(("min", "p50", "p90", "p99", "max", "mean"), delays.values, strict=True)
            typer.echo(f"{title:<19} " + "  ".join(f"{name} {show_ticks(value or 0, tick)}" for name, value in named))
    if out_of_order:
        enough = {share: show_enough(delay, tick) for share, delay in profile.enough_delay.items()}
        typer.echo(
            f"smallest watermark  {enough['1 %']} loses at most 1 %, {enough['0.1 %']} at most 0.1 %, "
            f"{enough['none']} none"
        )
    typer.echo("late beyond a watermark delay of")
    curve = profile.watermark_curve
    for (delay, late), following in zip(curve, [*curve[1:], (None, None)], strict=True):
        if late != following[1]:  # the largest delay that still has this count
            typer.echo(f"  {show_ticks(delay, tick):>10}  {100 * late / events:8.4f} %  {late:,}")


def _show_parts(profile: Profile, by_part: ByPart) -> None:
    """Prints the parts that have the most events."""
    tick, parts = profile.tick, sorted(by_part.parts, key=lambda part: -part.events)
    within = by_part.out_of_order
    merged = "" if profile.out_of_order is None else f", and {profile.out_of_order - within:,} more when merged"
    mean = counted(profile.events // len(parts), "event")
    typer.echo(f"by {by_part.column}: {counted(len(parts), 'part')}, of {mean} on average")
    typer.echo(f"  out of order      {within:,} within their part{merged}")
    columns: tuple[str, ...] = (
        "part",
        "events",
        "out of order",
        "longest delay",
        "behind p50",
        "behind max",
        "longest idle",
        "spells",
    )
    rows = [
        (
            part_name(part.part),
            f"{part.events:,}",
            f"{part.out_of_order:,}",
            show_ticks(part.delay.max or 0, tick),
            *_beside_others(part, tick),
        )
        for part in parts[:SHOWN_PARTS]
    ]
    if profile.out_of_order is None:
        columns = columns[:4]
    print_table([columns, *rows], left={0})
    if len(parts) > SHOWN_PARTS:
        typer.echo(f"  and {len(parts) - SHOWN_PARTS:,} more, which --json lists")


def _beside_others(part: StreamPart, tick: Tick) -> tuple[str, ...]:
    """Figures of a part among the others; none where nobody knows the order between them."""
    if part.idle_spells is None:
        return ()
    behind, most, idle = part.behind.p50 or 0, part.behind.max or 0, part.longest_idle or 0
    return show_about(behind, tick), show_ticks(most, tick), show_ticks(idle, tick), f"{part.idle_spells:,}"
