"""Text of an advice, as the command advise prints it."""

from __future__ import annotations

from typing import Any

import typer

from streamgauge.app.cli.common import print_table
from streamgauge.app.cli.profile_text import SHOWN_PARTS, hints_json, in_ns
from streamgauge.base.units import Tick, moment
from streamgauge.records.advice import Advice, MeasuredDelay, MeasuredTrade
from streamgauge.streams.advice import words

#: parts of an advice that are not printed, or in another form
_UNSHOWN: dict[str, Any] = {
    **dict.fromkeys(("version", "tick", "event_time", "asked", "asked_tests", "hints"), True),
    "rules": {"__all__": {"realised"}},
    "by_part": {"__all__": {"advised": {"promised", "rule"}}},
}


def as_json_object(advice: Advice) -> dict[str, Any]:
    """Returns the advice as `advise --json` prints it, times in nanoseconds."""
    facts = in_ns(advice.model_dump(mode="json", exclude=_UNSHOWN), advice.tick, up=True)
    if not advice.question.windows:
        facts["question"]["slide_ns"] = None
    event_time = {name: moment(at, advice.tick) for name, at in advice.event_time.ends.items()}
    return {**facts, "event_time": event_time, "hints": hints_json(advice.hints, advice.tick)}


def measured_json(measured: MeasuredTrade | None, tick: Tick) -> dict[str, Any]:
    """Returns what --measure adds to the object; nothing without it."""
    if measured is None:
        return {}
    return {
        "measured": [_measured_delay(one, tick) for one in measured.delays],
        "measurement": measured.model_dump(exclude={"delays"}),
    }


def _measured_delay(one: MeasuredDelay, tick: Tick) -> dict[str, Any]:
    facts = in_ns(one.trade.model_dump(), tick, up=True)
    facts |= one.model_dump(mode="json", exclude={"trade", "rate_events_per_s", "p50_ms", "p99_ms"})
    latency = {"p50_ns": one.p50_ms, "p99_ns": one.p99_ms}
    in_whole_ns = {name: None if ms is None else round(ms * 1e6) for name, ms in latency.items()}
    return {**facts, "rate": one.rate_events_per_s, **in_whole_ns}


def show_measured(measured: MeasuredTrade, tick: Tick) -> None:
    from streamgauge.results.report import advice_measured

    typer.echo(advice_measured.heading(measured))
    print_table(advice_measured.rows(measured, tick))
    typer.echo(advice_measured.comparing(measured))


def show(advice: Advice) -> None:
    tick = advice.tick
    typer.echo(f"events              {advice.events:,}")
    typer.echo(f"event time          {moment(advice.event_time.min, tick)} to {moment(advice.event_time.max, tick)}")
    typer.echo(f"answers             {words.answers(advice.question, tick)}")
    typer.echo(f"advice              {words.headline(advice)}")
    if advice.rules:
        typer.echo(words.tests(advice))
        print_table(words.rules(advice), left={4})
    typer.echo("at a watermark delay of")
    print_table(words.curve(advice))
    if advice.engines:
        typer.echo("at the stream's own speed each engine loses, by its own rule")
        print_table(words.engines(advice), left={0})
        for engine, rule in {one.engine: one.rule for one in advice.engines}.items():
            typer.echo(f"  {engine}: {rule}")
    if advice.by_part:
        typer.echo(words.parts(advice))
        print_table(words.by_part(advice, SHOWN_PARTS), left={0, 5})
        if len(advice.by_part) > SHOWN_PARTS:
            typer.echo(f"  and {len(advice.by_part) - SHOWN_PARTS:,} more, which --json lists")
    for line in advice.lines:
        typer.echo(f"{line.engine:<19} {line.text}")
    for hint in advice.hints:
        typer.echo(f"hint                {hint.text}")
