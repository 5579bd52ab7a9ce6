"""The commands nexmark and hard: ask a system suites of queries in batch and streaming, and check every answer."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from streamgauge.app.cli import workplace
from streamgauge.app.cli.common import DEFAULT_ARTIFACTS, Artifacts, AsJson, app, store_at, tell
from streamgauge.base.errors import UserError
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import known_run
from streamgauge.config import System

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamgauge.bench.answers.finite_stream import Events, Wanted
    from streamgauge.bench.workloads import Query
    from streamgauge.records.answers import Answer, HardQueries, Mode

COLUMNS = ("query", "mode", "status", "rows", "hash", "seconds", "late_drops_expected", "late_drops_reported")
SYSTEM_HELP = (
    "spark, spark-hdfs, spark-changelog or spark-one-watermark; flink and spark-real-time are asked in streaming alone"
)
_WIDTHS = (6, 10, 12, 8, 17, 9, 20, 20)


@app.command()
def nexmark(
    events: Annotated[int, typer.Option(min=50, help="number of events, spread over 100 s of event time")] = 100_000,
    queries: Annotated[str, typer.Option(help="all, or some of q0 to q23: q5,q7")] = "all",
    mode: Annotated[Literal["batch", "streaming", "both"], typer.Option(help="how each query is asked")] = "both",
    disorder: Annotated[float, typer.Option(min=0, max=100, help="percent of the events out of order")] = 0.0,
    system: Annotated[str, typer.Option(help=SYSTEM_HELP)] = "spark",
    seed: Annotated[int, typer.Option(min=0, help="seed of the events and their disorder")] = 1,
    batches: Annotated[int, typer.Option(min=1, help="number of micro-batches in streaming")] = 4,
    run: Annotated[str | None, typer.Option(help="a run, whose page will show the rows")] = None,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    as_json: AsJson = False,
) -> None:
    """Run the Nexmark suite in batch and streaming, and check every answer against DuckDB's."""
    from streamgauge.bench.answers import nexmark_suite as suite
    from streamgauge.bench.answers.finite_stream import wanted_stream
    from streamgauge.bench.answers.record import keep
    from streamgauge.bench.answers.systems import askable, conf, named
    from streamgauge.records.answers import MODES, AnswerLine

    chosen, asked = suite.chosen(queries), named(system)
    if not askable(asked) and mode == "batch":
        raise UserError(f"--mode: found batch, allowed for {system}: streaming")
    about: dict[str, Any] = {"system": system, "disorder_percent": disorder, "events": events, "seed": seed}
    lines: list[AnswerLine] = []
    directory = None if run is None else known_run(store_at(artifacts).runs(), run)
    with _only_results_on_stdout() as echo:
        wanted = wanted_stream(events, seed, disorder)
        if askable(asked):
            modes: tuple[Mode, ...] = MODES if mode == "both" else (mode,)
            answers, asked_count = _records(wanted, batches, chosen, modes, conf(asked)), len(modes) * len(chosen)
        else:
            answers, asked_count = _over_wire(asked, wanted, chosen), len(chosen)
        while True:
            with workplace.progress(f"answer {len(lines) + 1} of {asked_count}"):
                answer = next(answers, None)
            if answer is None:
                break
            line = AnswerLine(**answer.fields, **about)
            lines.append(line)
            if directory is not None:
                keep(directory, line)
            if as_json:
                print(f"{answer.query} {answer.mode}: {answer.status}", file=sys.stderr)
            else:
                if len(lines) == 1:
                    echo(_line(COLUMNS))
                echo(_line([answer.fields[name] for name in COLUMNS], answer.why))
        if as_json:
            echo(json.dumps({**about, "rows": [line.to_json() for line in lines]}))
    if any(line.status == "wrong" for line in lines):
        raise typer.Exit(1)


def _over_wire(asked: System, wanted: Wanted, chosen: Sequence[Query]) -> Iterator[Answer]:
    """Yields an answer per query, of a system that is started for all of them."""
    from streamgauge.bench.answers.wire_suite import run_over_wire, started

    with tempfile.TemporaryDirectory(prefix="streamgauge-nexmark-") as scratch:
        place = Path(scratch)
        events = _made(wanted, place)
        with started(asked, place / asked.name) as system:
            yield from run_over_wire(system, events, chosen, place / "asked")


def _records(
    wanted: Wanted, batches: int, chosen: Sequence[Query], modes: Sequence[Mode], conf: Mapping[str, str]
) -> Iterator[Answer]:
    """Yields an answer per query and mode. There is one Spark application per mode; the first one makes the events."""
    from streamgauge.bench.answers.nexmark_suite import run_suite
    from streamgauge.catalog import preflight

    events = None
    preflight.check_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with tempfile.TemporaryDirectory(prefix="streamgauge-nexmark-") as scratch:
        for mode in modes:
            with _spark(f"nexmark {mode}") as spark:
                events = events or _made(wanted, Path(scratch))
                yield from run_suite(spark, events, chosen, mode, Path(scratch) / mode, conf=conf, batches=batches)


@contextmanager
def _spark(name: str) -> Iterator[SparkSession]:
    from streamgauge.streams.stages.session import batch_session, end

    session = batch_session(name, "local[2,4]", {"spark.sql.shuffle.partitions": "2"})
    try:
        yield session
    finally:
        end(session)


def _made(wanted: Wanted, scratch: Path) -> Events:
    from streamgauge.bench.answers.finite_stream import make_events

    assert wanted.source.nexmark
    print(f"making {wanted.source.nexmark.events:,} events", file=sys.stderr)
    return make_events(Store(scratch / "store"), wanted)


@contextmanager
def _only_results_on_stdout() -> Iterator[Callable[[str], None]]:
    """Yields a function that prints to standard output; everything else that is printed goes to standard error.

    Spark's Python workers print on the standard output that they inherit.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    with os.fdopen(kept, "w", encoding="utf-8") as out:
        try:
            yield lambda text: print(text, file=out, flush=True)
        finally:
            os.dup2(kept, 1)


def _line(cells: Sequence[object], why: str | None = None) -> str:
    texts = (f"{'–' if cell is None else cell!s:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))
    return ("".join(texts) + (why or "")).rstrip()


@app.command()
def hard(
    events: Annotated[int, typer.Option(min=10, help="number of events, one per second of event time")] = 400,
    disorder: Annotated[
        float, typer.Option(min=0, max=100, help="percent of the events that are delayed, drawn at random")
    ] = 20.0,
    system: Annotated[str, typer.Option(help=SYSTEM_HELP)] = "spark",
    run: Annotated[str | None, typer.Option(help="a run, whose page will show the record")] = None,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    as_json: AsJson = False,
) -> None:
    """Run the hard queries in batch and streaming, check their answers, record state and watermarks."""
    from streamgauge.bench.answers.hard_queries import record_of
    from streamgauge.bench.answers.record import keep, keep_hard
    from streamgauge.bench.answers.systems import askable, conf, named
    from streamgauge.bench.answers.wire_suite import hard_over_wire, started
    from streamgauge.records.answers import AnswerLine

    asked = named(system)
    directory = None if run is None else known_run(store_at(artifacts).runs(), run)
    with tempfile.TemporaryDirectory(prefix="streamgauge-hard-") as work:
        if askable(asked):
            record = _hard_on_spark(system, conf(asked), events, disorder, Path(work))
        else:
            with started(asked, Path(work) / asked.name) as engine:
                answers = hard_over_wire(engine, events, disorder, Path(work, "asked"))
                record = record_of(system, events, disorder, answers)
    if directory is not None:
        for answer in record.queries:
            line = AnswerLine(**answer.fields, system=system, disorder_percent=disorder, events=events)
            keep(directory, line)
        keep_hard(directory, record)
    lines = []
    for answer in record.queries:
        cells = "  ".join(f"{'–' if (cell := answer.fields[name]) is None else cell!s:>16}" for name in COLUMNS[1:])
        lines.append(f"{answer.query:18}{cells}  {answer.why or ''}".rstrip())
    for case in record.example:
        totals = [int(row["total"]) for row in case.batches[-1].output]
        lost = sum(operator.dropped for batch in case.batches for operator in batch.operators)
        lines.append(f"{case.name:32} last result {totals}  lost or late {lost}")
    tell("\n".join(lines), record.to_json(), as_json)
    if any(answer.status == "wrong" for answer in record.queries):
        raise typer.Exit(1)


def _hard_on_spark(system: str, conf: Mapping[str, str], events: int, percent: float, work: Path) -> HardQueries:
    from streamgauge.bench.answers.hard_queries import record_of, run_example, run_hard

    with _spark("hard") as spark:
        answers = [*run_hard(spark, events, percent, work, conf)]
        return record_of(system, events, percent, answers, run_example(spark, work / "example"))
