"""Text of an advice, as the command advise prints it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import typer

from streamgauge.app.cli.profile_text import hints_json
from streamgauge.base.units import PS, Tick, moment, show_ticks
from streamgauge.records.advice import Advice, ByEngine, Errors, Question, Tested, Trade, Wait


def as_json_object(advice: Advice) -> dict[str, Any]:
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
        "rules": [_timed(one.model_dump(exclude={"broken"}), tick) for one in advice.rules],
        "engines": [_timed(one.model_dump(mode="json"), tick) for one in advice.engines],
        "lines": [one.model_dump() for one in advice.lines],
        "hints": hints_json(advice.hints, advice.tick),
    }


def _trade(trade: Trade, tick: Tick) -> dict[str, Any]:
    facts = _timed(trade.model_dump(), tick)
    for name in ("wait", "wait_arrival"):
        wait = facts.pop(name)
        facts[f"{name}_ns"] = wait and {key: None if ticks is None else _ns(ticks, tick) for key, ticks in wait.items()}
    return facts


def _timed(facts: dict[str, Any], tick: Tick) -> dict[str, Any]:
    """The facts, with the delay in nanoseconds."""
    delay = facts.pop("delay")
    return {"delay_ns": None if delay is None else _ns(delay, tick), **facts}


def _ns(ticks: int, tick: Tick) -> int:
    """Ticks as nanoseconds, rounded up."""
    return -(-ticks * PS[tick] // PS["ns"])


def show(advice: Advice) -> None:
    """Prints the advice for people."""
    tick = advice.tick
    typer.echo(f"events              {advice.events:,}")
    typer.echo(f"event time          {moment(advice.event_time.min, tick)} to {moment(advice.event_time.max, tick)}")
    typer.echo(f"answers             {_words(advice.question, tick)}")
    typer.echo(f"advice              {headline(advice)}")
    if advice.rules:
        _show_rules(advice.rules, advice.question, tick)
    _show_curve(advice)
    if advice.engines:
        _show_engines(advice.engines, tick)
    for line in advice.lines:
        typer.echo(f"{line.engine:<19} {line.text}")
    for hint in advice.hints:
        typer.echo(f"hint                {hint.text}")


def headline(advice: Advice) -> str:
    """Returns one sentence: the delay that is advised, or why there is none."""
    best = advice.advised
    if best is None:
        return f"none: {advice.reason}"
    what = "events lost" if advice.question.target == "lost" else "windows wrong"
    return (
        f"wait {show_exact(best.delay, advice.tick)}: at most {100 * best.promised:g} % of the {what} held in "
        f"{best.held} of {best.tests} tests (median {_percent(best.realised_p50)}, worst {_percent(best.realised_max)})"
    )


def show_exact(ticks: int, tick: Tick) -> str:
    """A delay as text: rounded for reading, and exactly where that differs."""
    milliseconds = ticks * PS[tick] / PS["ms"]
    seconds = f"{milliseconds / 1000:,.3f}".rstrip("0").rstrip(".") + " s"
    about = show_ticks(ticks, tick)
    return seconds if about == seconds.replace(",", "") else f"{seconds} ({about})"


def _words(asked: Question, tick: Tick) -> str:
    length = show_ticks(asked.length, tick)
    by = f", by {asked.key}" if asked.key else ""
    return {
        "tumbling": f"windows of {length}{by}",
        "sliding": f"windows of {length}, one every {show_ticks(asked.slide, tick)}{by}",
        "session": f"sessions with a gap of {length}{by}",
        "join": f"pairs of events at most {length} apart{by}",
        "event": "each event by itself",
    }[asked.answers]


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _show_rules(rules: Sequence[Tested], asked: Question, tick: Tick) -> None:
    typer.echo(
        f"each rule chose on the past; at most {100 * (asked.share or 0):g} % was to be lost in the block after it"
    )
    header = ("held", "median", "worst", "delay from all", "rule")
    rows = [
        (
            f"{one.held} of {one.tests}",
            _percent(one.realised_p50),
            _percent(one.realised_max),
            show_exact(one.delay, tick) if one.delay is not None else "",
            one.rule,
        )
        for one in rules
    ]
    _table((header, *rows), left={4})


def _show_engines(engines: Sequence[ByEngine], tick: Tick) -> None:
    typer.echo("at the stream's own speed each engine loses, by its own rule")
    header = ("", "delay", "events", "lost", "at any other pace", "bytes of state")
    rows = [
        (
            one.engine,
            show_ticks(one.delay, tick),
            f"{one.loss.events:,}",
            _percent(one.loss.events / max(1, one.loss.of)),
            "{:,} to {:,}".format(*one.loss.between) if one.loss.between else "the same",
            "" if one.state_bytes is None else f"{one.state_bytes:,}",
        )
        for one in engines
    ]
    _table((header, *rows), left={0})
    for engine, rule in {one.engine: one.rule for one in engines}.items():
        typer.echo(f"  {engine}: {rule}")


def _show_curve(advice: Advice) -> None:
    typer.echo("at a watermark delay of")
    shown = _columns(advice)
    rows = [tuple(text(trade) for _, text in shown) for trade in advice.curve]
    kept = [k for k in range(len(shown)) if any(row[k] for row in rows)]
    header = tuple(name for name, _ in shown)
    _table([tuple(row[k] for k in kept) for row in (header, *rows)])


def _columns(advice: Advice) -> list[tuple[str, Callable[[Trade], str]]]:
    """The columns of the curve: their names, and the text of each row, empty for what is not known."""
    tick, value = advice.tick, advice.question.value
    advised = advice.advised and advice.advised.delay

    def counted(number: int | None) -> str:
        return "" if number is None else f"{number:,}"

    def share(number: int | None, of: int | None) -> str:
        return "" if number is None or not of else _percent(number / of)

    def relative(errors: Errors | None, *, worst: bool = False) -> str:
        return "" if errors is None else _percent(errors.worst if worst else errors.median)

    def lasting(wait: Wait | None, *, p99: bool = False) -> str:
        ticks = None if wait is None else wait.p99 if p99 else wait.p50
        return "" if ticks is None else show_ticks(ticks, tick)

    return [
        ("", lambda one: show_ticks(one.delay, tick)),
        ("lost", lambda one: share(one.lost, advice.events)),
        ("events", lambda one: counted(one.lost)),
        ("wrong", lambda one: share(one.windows_wrong, one.windows)),
        ("windows", lambda one: counted(one.windows_wrong)),
        ("count off by", lambda one: relative(one.count_error)),
        ("at worst", lambda one: relative(one.count_error, worst=True)),
        (f"{value} off by", lambda one: relative(one.value_error)),
        ("at worst", lambda one: relative(one.value_error, worst=True)),
        ("answer after", lambda one: lasting(one.wait)),
        ("p99", lambda one: lasting(one.wait, p99=True)),
        ("open", lambda one: counted(one.open_windows)),
        ("revised", lambda one: counted(one.revised)),
        ("", lambda one: "advised" if one.delay == advised else ""),
    ]


def _table(rows: Sequence[tuple[str, ...]], left: set[int] | None = None) -> None:
    """Prints rows in columns, flush right but for those in `left`."""
    columns = max(map(len, rows))
    filled = [(*row, *[""] * (columns - len(row))) for row in rows]
    widths = [max(map(len, column)) for column in zip(*filled, strict=True)]
    for row in filled:
        cells = [
            text.ljust(width) if left and k in left else text.rjust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        typer.echo(f"  {'  '.join(cells)}".rstrip())
