"""The commands check, schema, run, demo and ui, which take benchmark files."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from streamgauge import config
from streamgauge.app.cli import losses, options, outside
from streamgauge.app.cli.common import DEFAULT_ARTIFACTS, Artifacts, AsJson, ConfigFile, app, store_at, tell
from streamgauge.app.cli.profile_text import hints_json
from streamgauge.base.errors import STOPPED, UserError
from streamgauge.base.places import place, text_of_user
from streamgauge.base.shipped import INSTALL, shipped
from streamgauge.base.units import Tick, moment
from streamgauge.catalog.artifacts import Store
from streamgauge.config.reached import is_remote, without_own
from streamgauge.records.registry import RECORDS, schema_of
from streamgauge.streams.keys import events_key, profile_key, stream_key

if TYPE_CHECKING:
    from streamgauge.streams.stages.reach import Reached
    from streamgauge.streams.text.sample import Sample

Master = Annotated[str | None, typer.Option(help="Spark master; by default the Airflow connection's, or local[2]")]

#: most bytes of a new source that `check` reads to learn its key: well below a second
HASHED_AT_ONCE = 256 * 2**20


@app.command()
def check(
    file: ConfigFile,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    connect: Annotated[
        bool, typer.Option("--connect", help="also try brokers, stores and rights, and import the code that it names")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Validate a benchmark file, run nothing of it, and print the plan: sources, cells, and what is already built."""
    benchmark = config.load(file)
    if connect:
        outside.announce(benchmark)
    plan = plan_of(benchmark, store_at(artifacts), connect=connect)
    if as_json:
        typer.echo(json.dumps(plan, default=asdict))
        return
    from rich.markup import escape
    from rich.table import Table

    from streamgauge.base.console import Console

    console = Console(highlight=False)
    say = partial(console.print, soft_wrap=True, markup=False)
    built = {True: "[green]built[/]", False: "to build"}
    console.print(f"[bold]{benchmark.name}[/]  {escape(benchmark.description)}", soft_wrap=True)
    for source in plan["sources"]:
        there = "on a store, not checked here" if benchmark.source.kafka is None else "a topic"
        size = there if source["size"] is None else f"{source['size']:,} bytes"
        say(f"  source  {source['file']}  ({size})")
    if looked := plan["sample"]:
        counts = f"{looked['events']:,} of {looked['lines']:,} lines are events"
        say(f"  begins  {counts}, from {looked['first']} to {looked['last']}")
        for doubt in looked["doubts"]:
            say(f"  {doubt}")
        for hint in looked["hints"]:
            say(f"  hint    {hint['text']}")
    console.print(f"  events  {built[plan['events']['built']]}    profile  {built[plan['profile']['built']]}")
    table = Table("experiment", "target", "delay", "seed", "outputs", "stream", box=None, padding=(0, 2))
    for e, planned in zip(benchmark.experiments, plan["experiments"], strict=True):
        table.add_row(e.name, e.wanted, e.delays, str(e.seed), " ".join(e.outputs), built[planned["built"]])
    console.print(table)
    cells = plan["cells"]
    console.print(
        f"  cells   {len(cells)}" + (": " + ", ".join(cells[:6]) + (" …" if len(cells) > 6 else "") if cells else "")
    )
    for word, lines in (
        ("lost", losses.lines(plan["lost_at_own_speed"])),
        ("takes", [plan["takes"]]),
        ("release check:", filter(None, [plan["release_takes"]])),
        ("hint", plan["hints"]),
    ):
        for line in lines:
            say(f"  {word:<7} {line}")
    if not connect and plan["reached"]:
        for line in outside.lines(benchmark):
            say(f"  names   {line}")
        say("  Not checked here: check --connect tries what a run would reach, and runs its code.")


def plan_of(benchmark: config.Benchmark, store: Store, *, connect: bool = False) -> dict[str, Any]:
    """Plan of a run as `check` prints it. Raises UserError for what would make the run fail.

    connect: also asks stores and brokers, and runs code that the file names.
    """
    from streamgauge.bench.answers.systems import require_askable
    from streamgauge.bench.measure import timing
    from streamgauge.catalog.source_files import stat_source
    from streamgauge.streams.stages import reach

    looked = check_all(benchmark, connect=connect)
    if benchmark.release and benchmark.release.queries:
        require_askable(benchmark.systems)
    topic = benchmark.source.kafka  # which records a run will read is not known before
    tried = benchmark if connect else without_own(benchmark)
    near = [connect or not is_remote(file) for file in benchmark.source.files]
    store.require_space(0)  # raises if the store does not answer
    # a file that no run has hashed has no artifacts here: a large one need not be read to say so
    quick = all(near) and topic is None and store.unhashed_bytes(benchmark.source.files) <= HASHED_AT_ONCE
    reached = reach.check(tried, store, looked, hashed=quick, hints=all(near))

    def state(kind: str, key: Callable[[], str], known: bool = True) -> dict[str, object]:
        if not (quick and known):
            return {"key": None, "built": False}
        return {"key": key(), "built": store.find(kind, key()) is not None}

    return {
        "benchmark": benchmark.name,
        "takes": timing.summary(benchmark),
        "hints": [line for section in benchmark.sections.values() for line in section.hints(benchmark)],
        "release_takes": timing.release_summary(benchmark) if benchmark.release else None,
        "sources": [
            {"file": file, "size": stat_source(file).st_size if is_near else None}
            for file, is_near in zip(benchmark.source.files, near, strict=True)
        ]
        or [{"file": name, "size": None} for name in benchmark.source.names],
        "sample": looked and _shown(looked, benchmark.source.tick, reached),
        "events": state("events", lambda: events_key(store, benchmark)),
        "profile": state("profile", lambda: profile_key(store, benchmark)),
        "experiments": [
            {
                "name": e.name,
                "target_percent": e.target_percent,
                **state("stream", partial(stream_key, store, benchmark, e), e in tried.experiments),
            }
            for e in benchmark.experiments
        ],
        "cells": [cell.name for cell in benchmark.all_cells()],
        "lost_at_own_speed": losses.of_cells(tried, store) if quick else {},
        "reached": outside.facts(benchmark),
    }


def _shown(looked: Sample, tick: Tick, reached: Reached) -> dict[str, object]:
    first, last = (moment(time, tick) for time in looked.span)
    counts = {"lines": looked.lines, "events": looked.lines - len(looked.bad), "first": first, "last": last}
    return {
        **counts,
        "bad_lines": [line["reason"] for line in looked.bad[:3]],
        "doubts": [*looked.doubts, *reached.doubts],
        "hints": hints_json(looked.hints if reached.hints is None else reached.hints, tick),
    }


def check_all(benchmark: config.Benchmark, *, connect: bool = True) -> Sample | None:
    """Checks columns, first lines, delays, queries, engines and verdict before a run. Raises UserError.

    connect: also asks stores and brokers, and runs code that the file names. Returns the sample read from the source's
    first lines; None for a generated source, for one on a store that is not asked, and for a format that is not run.
    """
    from streamgauge.bench.measure import checks
    from streamgauge.catalog.source_files import stat_source
    from streamgauge.streams.disorder.outages import delays_of
    from streamgauge.streams.sources import topics
    from streamgauge.streams.text import splits
    from streamgauge.streams.text.sample import sample

    checks.check(benchmark) if connect else checks.check_here(benchmark)
    if find_spec("croniter"):  # comes with Airflow, without which nothing is scheduled
        from streamgauge.app.airflow import benchmarks

        benchmarks.check(benchmark)
    for file in benchmark.source.expectations:
        if connect or not is_remote(file):
            stat_source(file, "source.expectations")
            if not is_remote(file):
                text_of_user(place(file))
    source = benchmark.source
    near = connect or not (source.own_code or source.kafka or any(map(is_remote, source.files)))
    if near:
        source = topics.pinned(source)
        topics.require_order(source)
        splits.source_splits(source, 1 << 40)
    for experiment in (benchmark if connect else without_own(benchmark)).experiments:
        try:
            delays_of(experiment.delay, benchmark.source.tick)
        except UserError as problem:
            raise UserError(f"experiment {experiment.name}: {problem}") from None
    return sample(source) if near and source.names else None


@app.command()
def schema(
    record: Annotated[
        str | None, typer.Option(help=f"print that of a run's record instead: {', '.join(RECORDS)}")
    ] = None,
) -> None:
    """Print the JSON Schema of a benchmark file, for editors that complete keys."""
    typer.echo(json.dumps(schema_of(record) if record else config.schema(), indent=1))


@app.command()
def run(
    file: ConfigFile,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    master: Master = None,
    experiment: Annotated[list[str] | None, typer.Option(help="only this experiment; may be repeated")] = None,
    workload: Annotated[list[str] | None, typer.Option(help="only this workload; may be repeated")] = None,
    system: Annotated[list[str] | None, typer.Option(help="only this system; may be repeated")] = None,
    processes: Annotated[
        int | None, typer.Option(help="number of fresh processes of each search; by default search.processes")
    ] = None,
    proof_steps: Annotated[
        int | None, typer.Option(help="rates tried on each side as proof; by default search.proof_steps")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="a first look: a minute or two a cell, with wide intervals")
    ] = False,
    only: Annotated[
        str | None, typer.Option(help="only this stage and those that it needs, such as generate; without Airflow")
    ] = None,
    scale: Annotated[float | None, typer.Option(help="fraction of the source's lines, from its beginning")] = None,
    seed: Annotated[int | None, typer.Option(help="seed for all experiments")] = None,
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run",
            "--resume",
            "--run-id",
            help="name of the run: a new one, or one to resume: what it has measured is kept; by default a new name",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the whole benchmark through Airflow and print a summary and the page's path."""
    overrides = options.given({
        "experiments": experiment or None, "workloads": workload or None, "systems": system or None,
        "processes": processes, "proof_steps": proof_steps, "quick": quick or None, "scale": scale, "seed": seed,
    })  # fmt: skip
    outcome = ran(file, artifacts, overrides, master=master, run_id=run_id, only=only, as_json=as_json)
    _end(outcome, as_json=as_json)


@app.command()
def demo(
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    as_json: AsJson = False,
) -> None:
    """Show what a run is: two streams of real flights share one short process of Spark, without Airflow.

    It ends with a page. Its figures only show what a run prints: too little is measured for a finding.
    """
    outcome = ran(shipped("configs/demo.yaml"), artifacts, {}, alone=True, as_json=as_json)
    if outcome[0] == 0 and not as_json:
        typer.echo(f"next: how long must a job wait for these flights, as they really came?\n  {question()}")
        typer.echo("the same of your own file:\n  streamgauge advise FILE --window 1m --lost 1%")
    _end(outcome, as_json=as_json)


def question() -> str:
    """The command that asks how long to wait for the flights that come with Streamgauge."""
    flights = shlex.quote(str(shipped("configs/data/flights_2013_01.csv.gz")))
    return f"streamgauge advise {flights} --time sched --window 1h --lost 1%"


def _end(outcome: tuple[int, str, Store], *, as_json: bool) -> NoReturn:
    """Ends the command with the exit code of a run. as_json: names its records and its page first."""
    code, name, store = outcome
    if as_json:
        records = store.run(name)
        page = records / "index.html"
        tell("", {"run": name, "exit_code": code, "records": records, "page": page if page.exists() else None}, True)
    raise typer.Exit(code)


def ran(
    file: Path,
    artifacts: Path,
    overrides: Mapping[str, object],
    *,
    master: str | None = None,
    run_id: str | None = None,
    only: str | None = None,
    alone: bool = False,
    as_json: bool,
) -> tuple[int, str, Store]:
    """Checks the benchmark and runs it; returns the exit code, the run's name and its store. Raises UserError.

    as_json: what it tells goes to standard error.
    """
    benchmark = config.load(file, options.parse(config.Overrides, overrides, "overrides"))
    from streamgauge.catalog import preflight
    from streamgauge.streams.stages import reach

    outside.announce(benchmark)
    looked, store = check_all(benchmark), store_at(artifacts)
    preflight.check(store, benchmark.source.files)
    reach.check(benchmark, store, looked, hashed=store.unhashed_bytes(benchmark.source.files) <= HASHED_AT_ONCE)
    dag_run = _airflow_runner()
    name = run_id or new_name(benchmark)
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        try:
            one = dag_run.BenchmarkRun(file, benchmark, store, overrides, name, master)
            code = dag_run.run(one, only=only, alone=alone)
        except KeyboardInterrupt:
            code = STOPPED
        if code == STOPPED and not alone:
            resumed = [] if run_id else ["--resume", name]
            typer.echo(f"to go on: {shlex.join(['streamgauge', *sys.argv[1:], *resumed])}")
    return code, name, store


def new_name(benchmark: config.Benchmark) -> str:
    """A name for a new run, which no other has."""
    return f"{benchmark.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


@app.command()
def ui(
    configs: Annotated[Path, typer.Argument(help="a folder of benchmark files")] = Path("configs"),
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    port: Annotated[int, typer.Option(min=0, max=65535, help="port of the web page; 0 takes a free one")] = 8080,
    master: Master = None,
) -> None:
    """Start Airflow with its web page; Ctrl-C stops all of it."""
    raise typer.Exit(_airflow_runner().ui(configs, artifacts, port=port, master=master))


def _airflow_runner() -> ModuleType:
    os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    try:
        from streamgauge.app.airflow import dag_run
    except ImportError as problem:
        raise UserError(f"a package is not installed here ({problem}); {INSTALL}") from None
    return dag_run
