"""hard: the hard queries on a finite stream, with state growth and each operator's watermarks."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.artifacts import Store, write_json
from streamgauge.cli.planning import DEFAULT_ARTIFACTS, Artifacts, AsJson

COLUMNS = ("query", "mode", "status", "rows", "hash", "seconds", "late_drops_expected", "late_drops_reported")


def register(app: typer.Typer) -> None:
    app.command()(hard)


def hard(
    events: Annotated[int, typer.Option(min=10, help="how many, one a second of event time")] = 400,
    disorder: Annotated[float, typer.Option(min=0, max=100, help="percent of the events that come late")] = 20.0,
    run: Annotated[str | None, typer.Option(help="a run whose page shall show the record")] = None,
    artifacts: Artifacts = DEFAULT_ARTIFACTS,
    as_json: AsJson = False,
) -> None:
    """Run the hard queries in batch and streaming, check their answers, record state and watermarks."""
    from streamgauge.spark.session import batch_session
    from streamgauge.suite.hard import run_hard

    spark = batch_session("hard", "local[2,4]", {"spark.sql.shuffle.partitions": "2"})
    try:
        with tempfile.TemporaryDirectory(prefix="streamgauge-hard-") as work:
            found = run_hard(spark, Path(work), count=events, disorder=disorder / 100)
    finally:
        spark.stop()
    if run is not None:
        write_json(Store(artifacts).run(run) / "hard.json", found)
    if as_json:
        typer.echo(json.dumps(found))
    else:
        for query in found["queries"]:
            told = "  ".join(f"{query.get(column, '')!s:>16}" for column in COLUMNS[1:])
            typer.echo(f"{query['query']:18}{told}  {query.get('reason', '')}".rstrip())
        for case in found["example"]:
            last = case["batches"][-1]["output"]
            lost = sum(operator["dropped"] for batch in case["batches"] for operator in batch["operators"])
            typer.echo(f"{case['name']:32} last result {[int(row['total']) for row in last]}  lost or late {lost}")
    if any(query["status"] != "correct" for query in found["queries"]):
        raise typer.Exit(1)
