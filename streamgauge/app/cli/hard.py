"""The command hard: runs the hard queries on a finite stream, with state growth and each operator's watermarks."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamgauge.app.cli.common import DEFAULT_ARTIFACTS, Artifacts, AsJson, app, store_at
from streamgauge.app.cli.nexmark import COLUMNS, SYSTEM_HELP
from streamgauge.catalog.run_log import known_run
from streamgauge.config import System

if TYPE_CHECKING:
    from streamgauge.records.answers import HardQueries


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
    from streamgauge.bench.answers.record import keep, keep_hard
    from streamgauge.bench.answers.systems import askable, conf, named
    from streamgauge.records.answers import AnswerLine

    asked = named(system)
    directory = None if run is None else known_run(store_at(artifacts).runs(), run)
    with tempfile.TemporaryDirectory(prefix="streamgauge-hard-") as work:
        if askable(asked):
            record = _on_spark(system, conf(asked), events, disorder, Path(work))
        else:
            record = _over_wire(asked, events, disorder, Path(work))
    if directory is not None:
        for answer in record.queries:
            line = AnswerLine(**answer.fields, system=system, disorder_percent=disorder, events=events)
            keep(directory, line)
        keep_hard(directory, record)
    if as_json:
        typer.echo(json.dumps(record.to_json()))
    else:
        for answer in record.queries:
            cells = "  ".join(f"{'–' if (cell := answer.fields[name]) is None else cell!s:>16}" for name in COLUMNS[1:])
            typer.echo(f"{answer.query:18}{cells}  {answer.why or ''}".rstrip())
        for case in record.example:
            totals = [int(row["total"]) for row in case.batches[-1].output]
            lost = sum(operator.dropped for batch in case.batches for operator in batch.operators)
            typer.echo(f"{case.name:32} last result {totals}  lost or late {lost}")
    if any(answer.status == "wrong" for answer in record.queries):
        raise typer.Exit(1)


def _on_spark(system: str, conf: Mapping[str, str], events: int, percent: float, work: Path) -> HardQueries:
    from streamgauge.bench.answers.hard_queries import run_example, run_hard
    from streamgauge.streams.stages.session import batch_session, end

    spark = batch_session("hard", "local[2,4]", {"spark.sql.shuffle.partitions": "2"})
    try:
        record = run_hard(spark, system, percent, work, count=events, conf=conf)
        return record.model_copy(update={"example": run_example(spark, work / "example")})
    finally:
        end(spark)


def _over_wire(asked: System, events: int, percent: float, work: Path) -> HardQueries:
    from streamgauge.bench.answers.wire_suite import hard_over_wire, started
    from streamgauge.records.answers import HardAnswer, HardQueries

    with started(asked, work / asked.name) as system:
        answers = hard_over_wire(system, events, percent / 100, work / "asked")
        queries = tuple(HardAnswer(**answer.fields) for answer in answers)
    return HardQueries(
        system=asked.name, disorder_percent=percent, events=events, disorder=percent / 100,
        longest_delay_s=3 * -(-events // 8), queries=queries, example=(),
    )  # fmt: skip
