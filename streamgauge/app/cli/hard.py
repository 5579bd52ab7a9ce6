"""The command hard: runs the hard queries on a finite stream, with state growth and each operator's watermarks."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from streamgauge.app.cli.nexmark import COLUMNS, SYSTEM_HELP
from streamgauge.app.cli.planning import DEFAULT_ARTIFACTS, Artifacts, AsJson, store_at
from streamgauge.catalog.run_log import known_run
from streamgauge.config import System


def register(app: typer.Typer) -> None:
    app.command()(hard)


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

    asked = named(system)
    about = {"system": system, "disorder_percent": disorder, "events": events}
    directory = None if run is None else known_run(store_at(artifacts).runs(), run)
    with tempfile.TemporaryDirectory(prefix="streamgauge-hard-") as work:
        if askable(asked):
            found = _on_spark(conf(asked), events, disorder / 100, Path(work))
        else:
            found = _over_wire(asked, events, disorder / 100, Path(work))
    if directory is not None:
        for query in found["queries"]:
            keep(directory, {**{key: value for key, value in query.items() if key != "batches"}, **about})
        keep_hard(directory, system, disorder, found)
    if as_json:
        typer.echo(json.dumps(about | found))
    else:
        for query in found["queries"]:
            told = "  ".join(f"{'–' if query[column] is None else query[column]!s:>16}" for column in COLUMNS[1:])
            typer.echo(f"{query['query']:18}{told}  {query['why'] or ''}".rstrip())
        for case in found["example"]:
            last = case["batches"][-1]["output"]
            lost = sum(operator["dropped"] for batch in case["batches"] for operator in batch["operators"])
            typer.echo(f"{case['name']:32} last result {[int(row['total']) for row in last]}  lost or late {lost}")
    if any(query["status"] == "wrong" for query in found["queries"]):
        raise typer.Exit(1)


def _on_spark(conf: Mapping[str, str], events: int, disorder: float, work: Path) -> dict[str, Any]:
    from streamgauge.bench.answers.hard_queries import run_example, run_hard
    from streamgauge.streams.stages.session import batch_session, end

    spark = batch_session("hard", "local[2,4]", {"spark.sql.shuffle.partitions": "2"})
    try:
        found = run_hard(spark, work, count=events, disorder=disorder, conf=conf)
        return {**found, "example": run_example(spark, work / "example")}
    finally:
        end(spark)


def _over_wire(asked: System, events: int, disorder: float, work: Path) -> dict[str, Any]:
    from streamgauge.bench.answers.wire_suite import hard_over_wire, started

    with started(asked, work / asked.name) as system:
        records = [record.to_dict() for record in hard_over_wire(system, events, disorder, work / "asked")]
    longest_s = 3 * -(-events // 8)
    return {"events": events, "disorder": disorder, "longest_delay_s": longest_s, "queries": records, "example": []}
