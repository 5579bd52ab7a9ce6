"""Text of an advice, as the command advise prints it."""

from __future__ import annotations

from typing import Any

import typer

from streamgauge.app.cli.common import print_table
from streamgauge.app.cli.profile_text import SHOWN_PARTS, hints_json
from streamgauge.base.units import PS, Tick, moment
from streamgauge.records.advice import Advice, MeasuredDelay, MeasuredTrade, PartAdvice, Trade
from streamgauge.streams.advice import words


def as_json_object(advice: Advice) -> dict[str, object]:
    """Returns the advice as `advise --json` prints it, times in nanoseconds."""
    tick, asked = advice.tick, advice.question
    best = advice.advised
    return {
        "events": advice.events,
        "event_time": {"first": moment(advice.event_time.min, tick), "last": moment(advice.event_time.max, tick)},
        "question": {
            **asked.model_dump(include={"answers", "key", "value", "left", "target", "share"}),
            "length_ns": _ns(asked.length, tick),
            "slide_ns": _ns(asked.slide, tick) if asked.windows else None,
            "allowed_lateness_ns": _ns(asked.allowed_lateness, tick),
        },
        "curve": [_trade(one, tick) for one in advice.curve],
        "advised": None if best is None else _timed(best.model_dump(), tick),
        "reason": advice.reason,
        "blocks": advice.blocks,
        "rules": [_timed(one.model_dump(exclude={"realised"}), tick) for one in advice.rules],
        "by_part": [_part(one, tick) for one in advice.by_part],
        "engines": [_timed(one.model_dump(mode="json"), tick) for one in advice.engines],
        "lines": [one.model_dump() for one in advice.lines],
        "hints": hints_json(advice.hints, advice.tick),
    }


def measured_json(measured: MeasuredTrade | None, tick: Tick) -> dict[str, Any]:
    """Returns what --measure adds to the object; nothing without it."""
    if measured is None:
        return {}
    return {
        "measured": [_measured_delay(one, tick) for one in measured.delays],
        "measurement": measured.model_dump(exclude={"delays"}),
    }


def _measured_delay(one: MeasuredDelay, tick: Tick) -> dict[str, object]:
    facts = one.model_dump(mode="json", exclude={"trade", "rate_events_per_s", "p50_ms", "p99_ms"})
    latency = {"p50_ns": one.p50_ms, "p99_ns": one.p99_ms}
    in_ns = {name: None if ms is None else round(ms * 1e6) for name, ms in latency.items()}
    return {**_trade(one.trade, tick), **facts, "rate": one.rate_events_per_s, **in_ns}


def show_measured(measured: MeasuredTrade, tick: Tick) -> None:
    from streamgauge.results.report import advice_measured

    typer.echo(advice_measured.heading(measured))
    print_table(advice_measured.rows(measured, tick))
    typer.echo(advice_measured.comparing(measured))


def _trade(trade: Trade, tick: Tick) -> dict[str, object]:
    facts = _timed(trade.model_dump(), tick)
    for name in ("wait", "wait_arrival"):
        wait = facts.pop(name)
        facts[f"{name}_ns"] = wait and {key: None if ticks is None else _ns(ticks, tick) for key, ticks in wait.items()}
    return facts


def _part(part: PartAdvice, tick: Tick) -> dict[str, object]:
    advised = None if part.advised is None else _timed(part.advised.model_dump(exclude={"promised", "rule"}), tick)
    return {
        "part": part.part, "events": part.events, "enough_ns": _ns(part.enough, tick), "advised": advised,
        "reason": part.reason,
    }  # fmt: skip


def _timed(facts: dict[str, Any], tick: Tick) -> dict[str, Any]:
    """The facts, with the delay in nanoseconds."""
    delay = facts.pop("delay")
    return {"delay_ns": None if delay is None else _ns(delay, tick), **facts}


def _ns(ticks: int, tick: Tick) -> int:
    """Ticks as nanoseconds, rounded up."""
    return -(-ticks * PS[tick] // PS["ns"])


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
