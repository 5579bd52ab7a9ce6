"""Option --measure of advise: the advised delay and its neighbours as cells of a run, which differ in it alone."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from streamgauge import config
from streamgauge.app.cli import planning
from streamgauge.app.cli.common import DEFAULT_ARTIFACTS, Artifacts, store_at
from streamgauge.base.errors import STOPPED, UserError
from streamgauge.base.jsonl import write_json
from streamgauge.base.live import tell
from streamgauge.base.places import here
from streamgauge.base.units import PS, Duration, Tick
from streamgauge.base.words import counted
from streamgauge.catalog.run_summary import last_attempts
from streamgauge.config.systems import DEFAULT, ENGINES
from streamgauge.records.advice import Advice, MeasuredDelay, MeasuredTrade, Question, Trade

#: processes from which a rate has an interval
PROCESSES = 3
#: seconds in which the longest delay passes in a latency run, and the events/s allowed for it
_DELAY_S, _LEAST, _MOST_RATE = 2.0, 100.0, 20_000.0
#: most delays that are measured
_MOST = 5
_FILE, _EXPERIMENT, _QUERY = "measure.json", "as_it_came", "windowed_aggregation"
#: short windows, and no proof of the rate
_SEARCH = {
    "max_age": "2s", "warmup_seconds": 8.0, "window_seconds": 0.5, "window_error": 0.1, "proof_steps": 0,
    "yardstick": False, "in_turns": True,
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """Options of the measurement, and the place where it is kept."""

    system: Annotated[str, typer.Option(help="with --measure: the engine, with its default settings")] = DEFAULT
    rate: Annotated[
        float | None,
        typer.Option(
            help="with --measure: events/s at which each delay's latency is measured",
            show_default="the longest delay passes in 2 s",
        ),
    ] = None
    processes: Annotated[int, typer.Option(min=1, max=20, help="with --measure: fresh processes of each delay")] = (
        PROCESSES
    )
    run: Annotated[
        str | None, typer.Option("--run", help="with --measure: name of its run, a new one, or one to go on with")
    ] = None
    artifacts: Artifacts = DEFAULT_ARTIFACTS


def check(source: config.Source, window: str | None, key: str | None, value: str | None, system: str) -> None:
    """Raises UserError for what cannot be measured, before anything is read."""
    if window is None or key is None or value is None:
        missing = next(name for name, given in (("window", window), ("key", key), ("value", value)) if given is None)
        raise UserError(
            f"--{missing}: this option is missing; --measure wants it, as it measures sums of windows by key"
        )
    if source.kafka is not None:
        raise UserError("--measure: found a topic, allowed: files")
    if system not in ENGINES.names():
        raise UserError(f"--system: found {system!r}, allowed: {', '.join(ENGINES.names())}")


def delays_of(advice: Advice) -> tuple[Trade, ...]:
    """The advised delay, those of the curve nearest to half and to twice of it, and what was asked, or 0.

    Raises UserError if these are fewer than two.
    """
    delays = [one.delay for one in advice.curve]
    chosen: list[int] = []
    if advice.advised is not None:
        best = advice.advised.delay
        below, above = [one for one in delays if 0 < one < best], [one for one in delays if one > best]
        chosen = [best, *sorted(below, key=lambda one: abs(2 * one - best))[:1]]
        chosen += sorted(above, key=lambda one: abs(one - 2 * best))[:1]
    chosen = [*dict.fromkeys([*chosen, *(advice.asked or (0,))])][:_MOST]
    if len(chosen) < 2:
        raise UserError("--measure: found one delay, allowed: from 2 on; name --lost, or --delay more than once")
    return tuple(one for one in advice.curve if one.delay in chosen)


def rate_of(advice: Advice, trades: tuple[Trade, ...]) -> float:
    """The rate at which the longest delay passes in about two seconds, as far as allowed, in two digits."""
    span = max(1, advice.event_time.max - advice.event_time.min)
    rate = advice.events / span * trades[-1].delay / _DELAY_S
    return float(f"{min(_MOST_RATE, max(_LEAST, rate)):.2g}")


def benchmark_of(
    source: config.Source, question: Question, trades: tuple[Trade, ...], tick: Tick, setting: Setting, rate: float
) -> config.Benchmark:
    """The benchmark whose cells differ in their watermark alone. rate: that of latency runs. Raises UserError."""
    slide = Duration(question.slide * PS[tick]) if question.answers == "sliding" else None
    workloads = [
        {
            "name": _name(trade, tick), "query": _QUERY, "key": question.key, "value": question.value,
            "window": Duration(question.length * PS[tick]), "slide": slide,
            "watermark": Duration(trade.delay * PS[tick]),
        }
        for trade in trades
    ]  # fmt: skip
    raw = {
        "name": "advice",
        "description": "An advised watermark delay and its neighbours. Each has fresh processes, in turns",
        "source": source,
        "experiments": [{"name": _EXPERIMENT, "target": "source"}],
        "workloads": workloads,
        "systems": [{"name": setting.system, "engine": setting.system}],
        "search": {**_SEARCH, "processes": setting.processes},
        "latency": {"fractions": [], "rates": [rate], "seconds": 20.0},
    }
    return config.parse(config.Benchmark, raw, "--measure")


def _name(trade: Trade, tick: Tick) -> str:
    ps = trade.delay * PS[tick]
    if ps % PS["ms"]:
        raise UserError(f"--delay: found {Duration(ps)}, allowed with --measure: whole milliseconds")
    return f"wait_{ps // PS['ms']}ms"


def measured(
    source: config.Source, question: Question, advice: Advice, setting: Setting, *, as_json: bool
) -> MeasuredTrade:
    """Measures the delays in a run of their own. Raises UserError; ends the command if a stage failed."""
    from streamgauge.bench.measure import timing

    trades = delays_of(advice)
    rate = rate_of(advice, trades) if setting.rate is None else setting.rate
    benchmark = benchmark_of(source, question, trades, advice.tick, setting, rate)
    store = store_at(setting.artifacts)
    name = setting.run or planning.new_name(benchmark)
    file = here(store.run(name)) / _FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, benchmark.model_dump(mode="json"))
    tell(f"measuring {counted(len(trades), 'delay')}: {timing.summary(benchmark)}", sys.stderr)
    code, *_ = planning.ran(file, setting.artifacts, {}, run_id=name, alone=True, as_json=as_json)
    states = {stage.state for stage in last_attempts(store.run(name))}
    if code == STOPPED or (code and states != {"done"}):  # else answers were wrong
        tell(f"to go on: the same command with --run {name}", sys.stderr)
        raise typer.Exit(code)
    return result(config.load(file), setting, trades, advice.tick, name)


def result(
    benchmark: config.Benchmark, setting: Setting, trades: tuple[Trade, ...], tick: Tick, name: str
) -> MeasuredTrade:
    """The figures that a run has measured at each delay."""
    from streamgauge.results.report import degrees
    from streamgauge.results.report.run_records import Records

    (rate,) = benchmark.latency.rates
    records = Records(benchmark, store_at(setting.artifacts), name)
    by_workload = {record.cell.workload: record for record in records.cells}
    records.require_sound()
    delays, speeds = [], []
    for trade in trades:
        record = by_workload[_name(trade, tick)]
        latency = degrees.at_common_rate(record, rate)
        speeds += [latency.stream_seconds_per_second] if latency else []
        delays.append(
            MeasuredDelay(
                trade=trade,
                cell=record.cell.name,
                claim=record.claim.kind,
                rate_events_per_s=record.rate,
                interval=record.claim.interval if record.rate else None,
                p50_ms=degrees.latency_ms(latency, "p50"),
                p99_ms=degrees.latency_ms(latency, "p99"),
                state_bytes=degrees.state_of(record)[0],
                output=record.output,
            )
        )
    return MeasuredTrade(
        run=name, system=setting.system, processes=setting.processes, latency_at_events_per_s=rate,
        stream_seconds_per_second=next(filter(None, speeds), None), delays=tuple(delays),
    )  # fmt: skip
