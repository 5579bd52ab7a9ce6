"""The commands calibrate, trial, search and workloads, which measure an engine or check the instrument."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import statistics
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from streamgauge import config
from streamgauge.app.cli import options, outside, workplace
from streamgauge.app.cli.common import DEFAULT_ARTIFACTS, Artifacts, AsJson, ConfigFile, app, finite, store_at, tell
from streamgauge.app.cli.trial_text import OUTPUT, trial_lines
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import write_json
from streamgauge.base.live import Log
from streamgauge.base.units import Duration
from streamgauge.bench.driver.requests import LONGEST_S, MOST_PER_S
from streamgauge.bench.measurements import USUAL
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.catalog.claims import claimed
from streamgauge.catalog.run_log import RunLog
from streamgauge.streams.keys import stream_key
from streamgauge.streams.sources import topics

if TYPE_CHECKING:
    from pathlib import Path


ExperimentName = Annotated[str, typer.Option("--experiment", help="an experiment of the file")]
WorkloadName = Annotated[str, typer.Option("--workload", help="a workload of the file")]
SystemName = Annotated[str, typer.Option("--system", help="a system of the file")]
RunId = Annotated[str | None, typer.Option("--run", "--run-id", help="a run to continue; by default a new one")]


@app.command()
def calibrate(
    capacity: Annotated[float, typer.Option(help="rows/s within a batch (1/b), or that a continuous system carries")],
    batch_cost: Annotated[float, typer.Option(help="seconds that a batch takes besides its rows (a)")] = 0.0,
    batch_rows: Annotated[int, typer.Option(help="most rows of a batch (N)")] = 1_000_000_000,
    noise: Annotated[float, typer.Option(help="relative standard deviation of a batch's time")] = 0.0,
    hiccups: Annotated[float, typer.Option(help="share of batches that take three times as long")] = 0.0,
    compile_seconds: Annotated[
        float,
        typer.Option(
            "--compile",
            help="a process starts 1.5 times as slow; the excess decays with this time constant, in seconds",
        ),
    ] = 0.0,
    between: Annotated[
        float, typer.Option(help="how much fresh processes differ: standard deviation of the logarithm of their speed")
    ] = 0.0,
    wander: Annotated[
        float, typer.Option(help="how much the machine's speed varies: standard deviation of its logarithm")
    ] = 0.0,
    continuous: Annotated[
        bool, typer.Option("--continuous", help="the system takes rows one by one, without batches")
    ] = False,
    processes: Annotated[int, typer.Option(min=1, max=20, help="number of fresh processes of each search")] = 1,
    age: Annotated[float, typer.Option(help="allowed age, seconds")] = 10.0,
    seeds: Annotated[int, typer.Option(min=1, help="number of searches, each with another seed")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="the first seed")] = 0,
    real: Annotated[
        bool, typer.Option("--real", help="use the real clock and wire: one to two minutes for each process")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run whole searches against a system whose sustainable rate is known, to check the instrument."""
    from streamgauge.bench.search import simulate
    from streamgauge.bench.search.behaviour import Behaviour

    if not 1e-6 <= age <= 1e6:
        raise UserError(f"--age: found {age:g}, allowed: seconds from a millionth to a million")
    behaviour = Behaviour(
        capacity, batch_cost, batch_rows, noise, hiccups, compile_seconds, between, wander, continuous=continuous
    )
    settings = config.Search(max_age=Duration.parse(f"{round(age * 1e6)}us"), processes=processes)
    if real:
        from streamgauge.bench.measure.calibrate import calibrate_for_real

        outcome = calibrate_for_real(behaviour, settings, seeds, seed)
    else:
        outcome = simulate.calibrate(behaviour, settings, seeds, seed)
    searches = [
        {
            "rate_events_per_s": done.rate_events_per_s,
            "interval": done.interval,
            "proven": done.proven,
            "outcome": done.outcome,
            "reason": done.reason,
        }
        for done in outcome.searches
    ]
    seconds = statistics.median(outcome.seconds)
    record = {
        "truth": outcome.truth_events_per_s,
        "bias": outcome.bias,
        "sd": outcome.deviation,
        "coverage": outcome.coverage,
        "seconds": seconds,
        "searches": searches,
    }
    lines = []
    for number, done in enumerate(outcome.searches, 1):
        low, high = done.interval or (math.nan, math.nan)
        lines.append(
            f"{number:3}  {done.rate_events_per_s:14,.0f}  {low:,.0f} to {high:,.0f}  {done.outcome}: {done.reason}"
        )
    alone = "from the fit alone: one process cannot show the spread between processes"
    kind = "t over processes" if processes > 1 else alone
    lines += [
        f"truth {outcome.truth_events_per_s:,.0f} events/s; median error {outcome.bias:+.2%}, "
        f"sd {outcome.deviation:.2%}",
        f"the truth lies in {outcome.coverage:.0%} of the 90 % intervals ({kind}); {seconds:,.0f} s a search",
    ]
    tell("\n".join(lines), finite(record), as_json)


@app.command()
def trial(
    file: ConfigFile,
    experiment: ExperimentName,
    workload: WorkloadName,
    system: SystemName,
    rate: Annotated[
        list[float], typer.Option(help="events/s; may be repeated: one trial after the other, in one process")
    ],
    seconds: Annotated[float, typer.Option(help="length of each trial")],
    behind: Annotated[
        float, typer.Option(help="begin with a backlog of this age, in seconds, to see whether the system catches up")
    ] = 0.0,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    as_json: Annotated[
        bool, typer.Option("--json", help="print one JSON object for each rate, one a line, and nothing else")
    ] = False,
) -> None:
    """Run one trial of a cell at each rate. Exit code 1 if a trial is invalid, that is, measured nothing."""
    for one in rate:
        if not (0 < one <= MOST_PER_S):
            raise UserError(f"--rate: found {one:g}, allowed: events per second above 0, at most {MOST_PER_S:g}")
    if not (0 < seconds <= LONGEST_S):
        raise UserError(f"--seconds: found {seconds:g}, allowed: a time above 0, at most 30 days")
    if not (0 <= behind <= LONGEST_S):
        raise UserError(f"--behind: found {behind:g}, allowed: seconds, 0 or more, at most 30 days")
    cell = config.Cell(experiment=experiment, workload=workload, system=system)
    benchmark, store = _checked(file, cell, artifacts)
    from streamgauge.bench.measure.cell import ready
    from streamgauge.bench.measure.lock import measuring

    work = store.run(f"trial-{uuid.uuid4().hex[:8]}")
    benchmark = topics.in_run(benchmark, work)
    with (
        prepared(benchmark, store, work, cell.experiment, step="trial", scope=cell.model_dump()),
        measuring(f"{work} {cell.name}") as token,
        ready(benchmark, store, cell, work / "work") as bench,
    ):
        records = []
        for number, one in enumerate(rate, 1):
            begins_s = USUAL.warm_s(benchmark) if number == 1 else 0
            with workplace.progress(f"trial at {one:g} events/s", begins_s + seconds):
                record = finite(bench.trial(one, seconds, token=token, behind_s=behind).to_json())
            place = work / ("trial.json" if len(rate) == 1 else f"trial-{number}.json")
            write_json(place, record)
            records.append(record)
            if as_json:
                typer.echo(json.dumps(record))
            else:
                for line in trial_lines(record):
                    typer.echo(line)
                typer.echo(f"record      {place}")
    if any(record["observation"]["invalid"] is not None for record in records):
        raise typer.Exit(1)


@app.command()
def search(
    file: ConfigFile,
    experiment: ExperimentName,
    workload: WorkloadName,
    system: SystemName,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    processes: Annotated[
        int | None, typer.Option(min=1, max=20, help="number of fresh processes; by default search.processes")
    ] = None,
    proof_steps: Annotated[
        int | None,
        typer.Option(min=0, max=4, help="rates tried on each side as proof; by default search.proof_steps"),
    ] = None,
    long_runs: Annotated[
        float,
        typer.Option(min=0, help="test the answer by long runs at 0.9 and 1.1 of the rate, of this many seconds each"),
    ] = 0.0,
    run_id: RunId = None,
    as_json: AsJson = False,
) -> None:
    """Find the highest rate that a system sustains."""
    cell = config.Cell(experiment=experiment, workload=workload, system=system)
    benchmark, store = _checked(file, cell, artifacts)
    changes = options.given({"processes": processes, "proof_steps": proof_steps})
    benchmark = benchmark.model_copy(update={"search": benchmark.search.model_copy(update=changes)})
    from streamgauge.bench.measure.cell_run import CellRun
    from streamgauge.bench.measurements.search import stage
    from streamgauge.records.trial import TRIALS, MeasuredTrial

    run = store.run(run_id or f"search-{uuid.uuid4().hex[:8]}")
    benchmark = topics.in_run(benchmark, run)
    cell_run = CellRun(benchmark, store, cell, run)
    expected_s = benchmark.search.cell_seconds(benchmark, USUAL) + 2 * long_runs
    with (
        prepared(benchmark, store, run, cell.experiment, step="search", scope=cell.model_dump()),
        workplace.progress(f"search {cell.name}", expected_s),
    ):
        answer = stage.run(cell_run, long_runs)
    directory = cell_run.directory
    if as_json:
        trials = [
            line.model_dump(include={"number", "purpose", "rate_events_per_s", "outcome", "reason", "correct"})
            for line in MeasuredTrial.read_log(directory / TRIALS)
            if line.plan == answer.plan
        ]
        typer.echo(json.dumps(finite({**answer.to_json(), "trial_records": trials})))
        return
    claim, loss = answer.claim, answer.lost_at_own_speed
    assert claim
    assert loss
    below, above = (None if rate is None else f"{rate:,.0f}" for rate in answer.proven)
    over = f"over {len(answer.processes)} processes" if answer.interval_of == "processes" else "of one process"
    if claim.rate_events_per_s is None:
        typer.echo(f"sustainable rate  none  ({claim.kind})")
    else:
        typer.echo(f"sustainable rate  {claim.rate_events_per_s:,.0f} events/s  ({claim.kind})")
    if claim.interval:
        low, high = claim.interval
        typer.echo(f"interval          {low:,.0f} to {high:,.0f} (90 %, {over})")
    typer.echo(f"claim             {claim.sentence}")
    typer.echo(f"proof trials      caught up at {below or 'no rate'}, fell further behind at {above or 'no rate'}")
    typer.echo(f"output            {OUTPUT[answer.correct]}")
    typer.echo(f"reason            {answer.reason}")
    typer.echo(f"lost              {loss.sentence}")
    for doubt in answer.doubts:
        typer.echo(f"doubt             {doubt.sentence}")
    for one in answer.long_runs:
        expected = "grows" if one.predicted_age_s is None else f"{one.predicted_age_s:.2f} s"
        typer.echo(
            f"long run at {one.fraction:g}   age predicted: {expected}, measured: {one.age_s or 0:.2f} s; {one.outcome}"
        )
    typer.echo(f"records           {directory}")


@app.command()
def workloads(as_json: AsJson = False) -> None:
    """List the queries. A workload may name those whose rule of comparison is exact or bounded."""
    from streamgauge.bench.workloads import WORKLOADS, find

    queries = []
    for name in WORKLOADS.names():
        try:
            queries.append(find(name, f"workloads.{name}"))
        except UserError as problem:  # of one package; the others have queries too
            typer.echo(f"streamgauge: {problem}", err=True)
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(query) for query in queries]))
        return
    for query in queries:
        needs = f" (needs {', '.join(query.needs)})" if query.needs else ""
        typer.echo(f"{query.name:24} {query.asks}{needs}")


def _checked(file: Path, cell: config.Cell, artifacts: Path) -> tuple[config.Benchmark, Store]:
    """Loads the benchmark with this cell among its cells, and checks it. Raises UserError."""
    benchmark = config.load(file)
    benchmark.experiment(cell.experiment), benchmark.workload(cell.workload), benchmark.system(cell.system)
    if cell not in benchmark.all_cells():
        benchmark = benchmark.model_copy(update={"cells": (*benchmark.all_cells(), cell)})
    return benchmark, checked(benchmark, artifacts, (cell.system,))


def checked(benchmark: config.Benchmark, artifacts: Path, systems: Collection[str] | None = None) -> Store:
    """Returns the store after checking that everything that a measurement needs is there. Raises UserError.

    systems: names of those that are measured; all if None.
    """
    logging.basicConfig(level=logging.INFO, handlers=[Log()], format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    from streamgauge.bench.measure import checks
    from streamgauge.catalog import preflight

    outside.announce(benchmark)
    checks.check(benchmark, systems)
    store = store_at(artifacts)
    preflight.check(store, benchmark.source.files)
    return store


@contextmanager
def prepared(
    benchmark: config.Benchmark, store: Store, run: Path, *experiments: str, step: str, scope: dict[str, str]
) -> Iterator[None]:
    """Builds missing streams, by default of all experiments; pushes metrics to the sinks while the block runs.

    The run's records name the streams that it uses, and the step that the block is, so that gc keeps both the streams
    and the step's working files while it is in progress. Raises UserError while another process has that run.
    """
    from streamgauge.metrics.pipeline import Pipeline

    with claimed(run):
        pipeline = Pipeline(benchmark.metrics, benchmark.name).start()
        try:
            for experiment in map(benchmark.experiment, experiments or [one.name for one in benchmark.experiments]):
                with RunLog(run).stage("generate", {"experiment": experiment.name}) as outcome:
                    stream = store.find("stream", stream_key(store, benchmark, experiment))
                    stream = stream or _build_stream(benchmark, store, experiment)
                    outcome |= {"artifact": stream.kind, "key": stream.key, "reused": stream.reused}
            with RunLog(run).stage(step, scope):
                yield
        finally:
            pipeline.stop()


def _build_stream(benchmark: config.Benchmark, store: Store, experiment: config.Experiment) -> Artifact:
    from streamgauge.streams.stages import generate, ingest
    from streamgauge.streams.stages.workers import Forked

    logging.getLogger("streamgauge").info("building the stream of %s", experiment.name)
    ingest.run(Forked(), benchmark, store)
    return generate.run(Forked(), benchmark, store, experiment)
