"""A profile of a stream's disorder, as analyze prints it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import typer

from streamgauge.base.units import PS, Tick, moment, show_ticks
from streamgauge.records.profile import Hint, Profile


def as_json_object(profile: Profile) -> dict[str, Any]:
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
    first, last = profile.event_time.min, profile.event_time.max
    facts["event_time"] = {"first": moment(first, tick), "last": moment(last, tick)}
    facts["event_time_ns"] = {"first": _ns(first, tick), "last": _ns(last, tick)}
    in_file = profile.in_file
    facts["in_file"] = in_file.model_dump(mode="json", exclude={"hints"})
    facts["hints"] = hints_json(in_file.hints)
    facts["delay_ns"] = _in_ns(whole["delay"], tick)
    facts["watermark_curve"] = [
        {"watermark_ns": _ns(delay, tick), "late": late, "fraction": late / profile.events}
        for delay, late in profile.watermark_curve
    ]
    facts["enough_delay_ns"] = _in_ns(profile.enough_delay, tick)
    if profile.recorded_delay is not None:
        facts["recorded_delay_ns"] = _in_ns(whole["recorded_delay"], tick)
    return facts


def hints_json(hints: Iterable[Hint]) -> list[dict[str, Any]]:
    """Returns hints as `--json` prints them."""
    return [hint.model_dump(mode="json") for hint in hints]


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


def _in_ns(summary: Mapping[str, Any], tick: Tick) -> dict[str, Any]:
    return {k: v if v is None or k in ("negative", "missing") else _ns(v, tick) for k, v in summary.items()}


def _ns(ticks: float, tick: Tick) -> float:
    """Converts ticks to nanoseconds; an integer wherever that is exact."""
    size = PS["ns"] // PS[tick]
    return ticks if size == 1 else ticks // size if ticks % size == 0 else ticks / size


def show(profile: Profile) -> None:
    """Prints the profile for people."""
    tick: Tick = profile.tick
    events = profile.events
    typer.echo(
        f"events              {events:,}"
        + (f"  ({profile.quarantined:,} bad lines left out)" if profile.quarantined else "")
    )
    first, last = profile.event_time.min, profile.event_time.max
    typer.echo(f"event time          {moment(first, tick)} to {moment(last, tick)}")
    typer.echo(f"out of order        {profile.out_of_order:,}  ({100 * profile.out_of_order / events:.4f} %)")
    in_file = profile.in_file
    if in_file.out_of_order != profile.out_of_order:
        share = 100 * in_file.out_of_order / in_file.events
        typer.echo(f"  as in the file    {in_file.out_of_order:,}  ({share:.4f} %)")
    typer.echo(f"adjacent descents   {profile.adjacent_descents:,}  ({profile.runs:,} runs)")
    counts = (profile.inversions, profile.distance, profile.interleaved)
    for name, value in zip(("inversions", "distance", "interleaved"), counts, strict=True):
        if value is not None:
            typer.echo(f"{name:<19} {value:,}")
    for title, delays in (("delay", profile.delay), ("arrival − event time", profile.recorded_delay)):
        if delays and delays.min is not None:
            named = zip(("min", "p50", "p90", "p99", "max", "mean"), delays.values, strict=True)
            typer.echo(f"{title:<19} " + "  ".join(f"{name} {show_ticks(value or 0, tick)}" for name, value in named))
    if profile.out_of_order:
        enough = {share: show_ticks(delay, tick) for share, delay in profile.enough_delay.items()}
        typer.echo(
            f"smallest watermark  {enough['1 %']} loses at most 1 %, {enough['0.1 %']} at most 0.1 %, "
            f"{enough['none']} none"
        )
    typer.echo("late beyond a watermark delay of")
    curve = profile.watermark_curve
    for (delay, late), following in zip(curve, [*curve[1:], (None, None)], strict=True):
        if late != following[1]:  # the largest delay that still has this count
            typer.echo(f"  {show_ticks(delay, tick):>10}  {100 * late / events:8.4f} %  {late:,}")
    for hint in in_file.hints:
        typer.echo(f"hint                {hint.text}")
