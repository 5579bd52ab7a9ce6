"""A profile of a stream's disorder, as analyze prints it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer

from streamgauge.app.cli.common import print_table
from streamgauge.base.units import PS, Tick, moment, show_about, show_enough, show_ticks
from streamgauge.base.words import counted
from streamgauge.records.profile import UNMERGED, ByPart, Hint, Profile, Span, StreamPart, part_name

#: most parts of a stream that are printed
SHOWN_PARTS = 10
_COUNTS = (
    "events", "out_of_order", "quarantined", "adjacent_descents", "runs", "inversions", "distance", "interleaved",
)  # fmt: skip
#: keys of records that are lengths of time in ticks, or have some by name
_TICKS = (
    "delay", "enough_delay", "behind", "idle", "longest_idle", "enough_without",  # of a profile
    "enough", "length", "slide", "allowed_lateness", "wait", "wait_arrival",  # of an advice
)  # fmt: skip


def as_json_object(profile: Profile) -> dict[str, Any]:
    """Returns the profile as `analyze --json` prints it, times in nanoseconds."""
    tick, events = profile.tick, profile.events
    facts: dict[str, Any] = in_ns(profile.model_dump(include={*_COUNTS, "delay", "enough_delay"}), tick)
    facts |= span_json(profile.event_time, tick)
    facts["in_file"] = profile.in_file.model_dump(mode="json", exclude={"hints"})
    facts["hints"] = hints_json(profile.hints, tick)
    curve = _curve_json(profile.watermark_curve, tick)
    facts["watermark_curve"] = [step | {"fraction": step["late"] / events} for step in curve]
    if profile.recorded_delay is not None:
        delay, counts = profile.recorded_delay, {"negative", "missing"}
        facts["recorded_delay_ns"] = _ns(delay.model_dump(exclude=counts), tick) | delay.model_dump(include=counts)
    if profile.by_part is not None:
        facts["by_part"] = _parts_json(profile.by_part, tick)
    return facts


def _parts_json(by_part: ByPart, tick: Tick) -> dict[str, Any]:
    parts = [
        in_ns(part.model_dump(exclude={"out_of_order_in_all", "event_time", "watermark_curve"}), tick)
        | {
            "event_time_ns": _ns(part.event_time.ends, tick),
            "watermark_curve": _curve_json(part.watermark_curve, tick),
        }
        for part in by_part.parts
    ]
    return {**in_ns(by_part.model_dump(include={"column", "idle", "out_of_order"}), tick), "parts": parts}


def _curve_json(curve: Iterable[tuple[int, int]], tick: Tick) -> list[dict[str, Any]]:
    return [{"watermark_ns": _ns(delay, tick), "late": late} for delay, late in curve]


def span_json(event_time: Span, tick: Tick) -> dict[str, Any]:
    """Returns the first and the last event time as `--json` prints them."""
    shown = {name: moment(at, tick) for name, at in event_time.ends.items()}
    return {"event_time": shown, "event_time_ns": _ns(event_time.ends, tick)}


def hints_json(hints: Iterable[Hint], tick: Tick) -> list[dict[str, Any]]:
    return [in_ns(hint.model_dump(mode="json"), tick) for hint in hints]


def in_ns(facts: Any, tick: Tick, *, up: bool = False) -> Any:
    """Facts of records with their ticks in nanoseconds, under names that say so: exactly, or up to whole ones."""
    if isinstance(facts, list | tuple):
        return [in_ns(one, tick, up=up) for one in facts]
    if not isinstance(facts, dict):
        return facts
    made = {}
    for name, value in facts.items():
        if name in _TICKS:
            made[f"{name}_ns"] = _ns(value, tick, up=up)
        else:
            made[name] = in_ns(value, tick, up=up)
    return made


def _ns(ticks: Any, tick: Tick, *, up: bool = False) -> Any:
    """Ticks as nanoseconds, an integer wherever that is exact; or several of them, by name; or None."""
    if isinstance(ticks, dict):
        return {name: _ns(one, tick, up=up) for name, one in ticks.items()}
    size = PS["ns"] // PS[tick]
    if ticks is None or size == 1:
        return ticks
    return -(-ticks // size) if up or ticks % size == 0 else ticks / size


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
    columns: tuple[str, ...] = ("part", "events", "out of order", "longest delay")
    if profile.out_of_order is not None:
        columns += ("behind p50", "behind max", "longest idle", "spells")
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
    print_table([columns, *rows], left={0})
    if len(parts) > SHOWN_PARTS:
        typer.echo(f"  and {len(parts) - SHOWN_PARTS:,} more, which --json lists")


def _beside_others(part: StreamPart, tick: Tick) -> tuple[str, ...]:
    """Figures of a part among the others; none where nobody knows the order between them."""
    if part.idle_spells is None:
        return ()
    behind, most, idle = part.behind.p50 or 0, part.behind.max or 0, part.longest_idle or 0
    return show_about(behind, tick), show_ticks(most, tick), show_ticks(idle, tick), f"{part.idle_spells:,}"
