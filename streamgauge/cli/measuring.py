"""calibrate, trial, search, driver, workloads: what measures an engine."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamgauge import config
from streamgauge.artifacts import Artifact, Store, read_jsonl, write_json
from streamgauge.cli.planning import DEFAULT_ARTIFACTS, Artifacts, AsJson, ConfigFile
from streamgauge.errors import UserError
from streamgauge.runs import RunLog

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ExperimentName = Annotated[str, typer.Option("--experiment", help="an experiment of the file")]
WorkloadName = Annotated[str, typer.Option("--workload", help="a workload of the file")]
SystemName = Annotated[str, typer.Option("--system", help="a system of the file")]
RunId = Annotated[str | None, typer.Option(help="a run to go on with; without it, a new one")]


def register(app: typer.Typer) -> None:
    app.command()(calibrate)
    app.command()(trial)
    app.command()(search)
    app.command(
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
        help="Start one driver process by hand, on this or another host (--help tells its options).",
    )(driver)
    app.command()(workloads)


def calibrate(
    capacity: Annotated[float, typer.Option(help="events/s that the known system carries")],
    noise: Annotated[float, typer.Option(help="standard deviation of its batches' times, mean 1")] = 0.0,
    seed: Annotated[int, typer.Option(help="of the noise")] = 0,
    real: Annotated[bool, typer.Option("--real", help="on the real clock and wire, a minute or two")] = False,
    as_json: AsJson = False,
) -> None:
    """Run the whole search against a system of known capacity: does the instrument tell the truth?"""
    from streamgauge import simulate

    if real:
        from streamgauge.measure.calibrate import calibrate_for_real

        found = calibrate_for_real(capacity, noise, seed)
    else:
        found = simulate.calibrate(capacity, noise, seed)
    if as_json:
        record = dataclasses.asdict(found)
        typer.echo(json.dumps(_finite({**record, "trials": len(found.trials), "trial_records": record["trials"]})))
        return
    for number, one in enumerate(found.trials, 1):
        typer.echo(
            f"{number:3}  {one.purpose:8} {one.rate_events_per_s:14,.1f}  {one.verdict.outcome}: {one.verdict.reason}"
        )
    low, high = found.interval
    error = found.sustainable_rate_events_per_s / capacity - 1
    typer.echo(
        f"found {found.sustainable_rate_events_per_s:,.1f} events/s in {len(found.trials)} trials: {error:+.2%} of the truth"
    )
    typer.echo(f"interval {low:,.1f} to {'no limit found' if high is None else f'{high:,.1f}'}; {found.reason}")


def trial(
    file: ConfigFile,
    experiment: ExperimentName,
    workload: WorkloadName,
    system: SystemName,
    rate: Annotated[float, typer.Option(help="events/s")],
    seconds: Annotated[float, typer.Option(help="how long")],
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    as_json: AsJson = False,
) -> None:
    """Run one trial of a cell at one rate; exit code 1 for an invalid one, which measured nothing."""
    if not (0 < rate < math.inf):
        raise UserError(f"--rate: found {rate:g}, allowed: events per second above 0")
    if not (0 < seconds < math.inf):
        raise UserError(f"--seconds: found {seconds:g}, allowed: a time above 0")
    cell = config.Cell(experiment=experiment, workload=workload, system=system)
    benchmark, store = _checked(file, cell, artifacts)
    from streamgauge.measure.cell import ready
    from streamgauge.measure.lock import measuring

    work = store.run(f"trial-{uuid.uuid4().hex[:8]}")
    with (
        sessions(benchmark, store, work, cell.experiment) as session,
        measuring(f"{work.name} {cell.name}") as token,
        ready(benchmark, store, cell, work / "work", session) as bench,
    ):
        measured = bench.trial(rate, seconds, token=token)
    record = _finite(measured.record())
    write_json(work / "trial.json", record)
    if as_json:
        typer.echo(json.dumps(record))
    else:
        _show_trial(record)
        typer.echo(f"record      {work / 'trial.json'}")
    if record["observation"]["invalid"] is not None:
        raise typer.Exit(1)


def search(
    file: ConfigFile,
    experiment: ExperimentName,
    workload: WorkloadName,
    system: SystemName,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    repeats: Annotated[
        int | None, typer.Option(min=1, max=20, help="whole searches; else as search.repeats says")
    ] = None,
    run_id: RunId = None,
    as_json: AsJson = False,
) -> None:
    """Find the highest rate that a system sustains."""
    cell = config.Cell(experiment=experiment, workload=workload, system=system)
    benchmark, store = _checked(file, cell, artifacts)
    if repeats is not None:
        search_plan = benchmark.search.model_copy(update={"repeats": repeats})
        benchmark = benchmark.model_copy(update={"search": search_plan})
    from streamgauge.measure import search as stage

    run = store.run(run_id or f"search-{uuid.uuid4().hex[:8]}")
    with sessions(benchmark, store, run, cell.experiment) as session:
        found = stage.run(benchmark, store, cell, run, session)
    if as_json:
        plan = stage.plan_hash(benchmark, cell)
        trials = [
            {
                key: record[key]
                for key in ("search", "number", "purpose", "rate_events_per_s", "outcome", "reason", "correct")
            }
            for record in read_jsonl(stage.cell_directory(run, cell) / "trials.jsonl")
            if record["plan"] == plan
        ]
        typer.echo(json.dumps(_finite({**found, "trial_records": trials})))
        return
    low, high = found["interval"]
    typer.echo(f"sustainable rate  {found['sustainable_rate_events_per_s']:,.0f} events/s  ({found['outcome']})")
    typer.echo(f"interval          {low:,.0f} to {'no limit found' if high is None else f'{high:,.0f}'}")
    typer.echo(f"trials            {found['trials']}: {stage.cell_directory(run, cell) / 'trials.jsonl'}")
    typer.echo(f"reason            {found['reason']}")
    if rates := found.get("repeats"):
        spread = "unknown, as most found nothing" if found["spread"] is None else f"{100 * found['spread']:.1f} %"
        typer.echo(f"spread            {spread}: {', '.join(f'{rate:,.0f}' for rate in rates)}")


def driver(context: typer.Context) -> None:
    from streamgauge.driver import process

    raise typer.Exit(process.main(context.args))


def workloads(as_json: AsJson = False) -> None:
    """List the queries that a workload may name."""
    from streamgauge.workloads import registry

    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(query) for query in registry()]))
        return
    for query in registry():
        needs = f" (needs {', '.join(query.needs)})" if query.needs else ""
        typer.echo(f"{query.name:24} {query.asks}{needs}")


def _checked(file: Any, cell: config.Cell, artifacts: Any) -> tuple[config.Benchmark, Store]:
    """The benchmark, with this cell among its cells."""
    benchmark = config.load(file)
    benchmark.experiment(cell.experiment), benchmark.workload(cell.workload), benchmark.system(cell.system)
    if cell not in benchmark.all_cells():
        benchmark = benchmark.model_copy(update={"cells": (*benchmark.all_cells(), cell)})
    return benchmark, checked(benchmark, artifacts)


def checked(benchmark: config.Benchmark, artifacts: Any) -> Store:
    """Where artifacts are kept, once everything is there that a measurement needs. Raises UserError."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    from streamgauge import preflight
    from streamgauge.measure import plan

    plan.check(benchmark)
    store = Store(artifacts)
    preflight.check(store, benchmark.source.files)
    return store


@contextmanager
def sessions(benchmark: config.Benchmark, store: Store, run: Path, *experiments: str) -> Iterator[Any]:
    """Gives a Spark session when it is asked for; builds the experiments' streams first where they are missing.

    The run's records name the streams that it uses: gc leaves those of a run that goes on.
    """
    from streamgauge.metrics.pipeline import Pipeline

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    made: list[SparkSession] = []
    pipeline = Pipeline(benchmark.metrics, benchmark.name).start()

    def session() -> SparkSession:
        from streamgauge.spark.session import batch_session

        if not made:
            made.append(batch_session("measure", "local[2]", {"spark.driver.memory": "1g"}))
            pipeline.attach(made[0])
        return made[0]

    try:
        for experiment in map(benchmark.experiment, experiments):
            with RunLog(run).stage("generate", {"experiment": experiment.name}) as outcome:
                stream = store.find("stream", store.stream_key(benchmark, experiment))
                stream = stream or _build_stream(benchmark, store, experiment, session())
                outcome |= {"artifact": stream.kind, "key": stream.key, "reused": stream.reused}
        yield session
    finally:
        pipeline.stop()
        for one in made:
            from streamgauge.spark.session import end

            end(one)


def _build_stream(
    benchmark: config.Benchmark, store: Store, experiment: config.Experiment, spark: SparkSession
) -> Artifact:
    from streamgauge.spark import generate, ingest

    logging.getLogger("streamgauge").info("building the stream of %s", experiment.name)
    ingest.run(spark, benchmark, store)
    return generate.run(spark, benchmark, store, experiment)


def _show_trial(record: dict[str, Any]) -> None:
    observation, details = record["observation"], record["details"]
    typer.echo(f"verdict     {record['outcome']}: {record['reason']}")
    typer.echo(
        f"offered     {observation['offered']:,}   taken {observation['taken']:,}   emitted {details['emitted']:,}"
    )
    typer.echo(
        f"output      {({True: 'equals the batch answer', False: 'wrong', None: 'not checked'})[record['correct']]}"
    )
    loops = max((driver["loops"] for driver in details["drivers"]), default=0)
    if loops > 1:
        typer.echo(f"stream      too short for this trial: {loops} loops of it, each with later times")
    for name in ("event", "processing"):
        latency = details[f"{name}_latency_ns"]
        if latency["count"]:
            parts = "  ".join(f"{q} {latency[q] / 1e6:,.1f} ms" for q in ("p50", "p90", "p99", "p99.9", "max"))
            typer.echo(f"{name + '-time':<15} latency  {parts}")


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
