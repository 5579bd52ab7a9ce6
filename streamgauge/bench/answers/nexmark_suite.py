"""Runs the Nexmark suite in batch and in streaming, compares every answer with DuckDB's, and yields records."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from streamgauge.base.errors import UserError
from streamgauge.bench.answers.finite_stream import Events
from streamgauge.bench.answers.in_session import Outcome, attempted, compared, in_batch, in_streaming
from streamgauge.bench.answers.record import short
from streamgauge.bench.engines.spark import queries
from streamgauge.bench.engines.spark.engine import settings
from streamgauge.bench.engines.spark.finite import source_of, wait_for
from streamgauge.bench.oracle.duck import ask
from streamgauge.bench.workloads import Query, Spec, find
from streamgauge.bench.workloads.nexmark.queries import QUERIES
from streamgauge.bench.workloads.nexmark.standard import WAIT_US, standard
from streamgauge.records.answers import Answer, Mode

PARTITIONS = ("day", "minute")


def chosen(names: str) -> tuple[Query, ...]:
    """Queries that a text such as "all" or "q5,q7" names. Raises UserError for an unknown name."""
    known = {short(query): query for query in QUERIES}
    if names == "all":
        return QUERIES
    for name in names.split(","):
        if name not in known:
            raise UserError(f"--queries: found {name!r}, allowed: all, or some of {','.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(names.split(",")))


def run_suite(
    spark: SparkSession,
    events: Events,
    queries: Sequence[Query],
    mode: Mode,
    work: Path,
    *,
    conf: Mapping[str, str] | None = None,
    batches: int = 4,
    wait_us: int = WAIT_US,
) -> Iterator[Answer]:
    """Yields an answer to each query, whether or not others fail. Raises Outage if the engine is gone.

    conf: the system's settings. work: an empty directory.
    """
    work.mkdir(parents=True, exist_ok=True)
    with settings(spark, dict(conf or {})):
        pass  # a setting that cannot be set fails here: it is no fault of a query
    frame = work / "events.parquet"
    pq.write_table(events.plain, frame, compression="lz4")
    for query in queries:
        spec, place = standard(query, wait_us=wait_us), work / short(query)
        run = partial(_asked, spark, spec, mode, events, frame, batches, place, dict(conf or {}))
        answer, _ = attempted(spark, query, mode, run)
        shutil.rmtree(place, ignore_errors=True)
        yield answer


def _asked(
    spark: SparkSession,
    spec: Spec,
    mode: Mode,
    events: Events,
    frame: Path,
    batches: int,
    work: Path,
    conf: dict[str, str],
) -> Outcome:
    query = find(spec.query)
    with settings(spark, conf):
        if mode == "batch":
            return in_batch(spec, [spark.read.parquet(str(frame)) for _ in range(query.streams)], events.plain)
        if query.to_files:
            output, seconds = to_files(spark, spec, events.batches(batches), work)
            return compared(spec, mode, output, ask(spec, (events.plain,)), seconds, events.rows.num_rows), ()
        return in_streaming(spark, spec, events.rows, events.batches(batches), work)


def to_files(spark: SparkSession, spec: Spec, batches: Sequence[pa.Table], work: Path) -> tuple[pa.Table, float]:
    """Runs a query into Spark's file sink, one folder per day and minute; returns what it wrote and its seconds."""
    frames = source_of(spark, batches, work / "source")
    writer = queries.run(frames, spec).writeStream.format("parquet").partitionBy(*PARTITIONS)
    writer = writer.option("checkpointLocation", str(work / "checkpoint")).trigger(availableNow=True)
    running = writer.start(str(work / "log"))
    wait_for(running)
    seconds = sum(progress.durationMs["triggerExecution"] for progress in running.recentProgress) / 1000
    with settings(spark, {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}):
        return spark.read.parquet(str(work / "log")).toArrow(), seconds
