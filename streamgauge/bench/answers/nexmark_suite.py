"""Runs the Nexmark suite in batch and in streaming, compares every answer with DuckDB's, and yields records."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from streamgauge.base.errors import UserError
from streamgauge.bench.answers.finite_stream import Events
from streamgauge.bench.answers.record import Mode, Record, judged, short, unsupported
from streamgauge.bench.engines.spark import queries
from streamgauge.bench.engines.spark.engine import settings
from streamgauge.bench.engines.spark.finite import WAIT_SECONDS, FiniteRun, run_finite, write_source
from streamgauge.bench.oracle.duck import answer, ask, size_and_hash
from streamgauge.bench.oracle.late_rows import expectation
from streamgauge.bench.workloads import Query, Spec
from streamgauge.bench.workloads.nexmark.queries import QUERIES
from streamgauge.bench.workloads.nexmark.standard import WAIT_US, standard

WATERMARK_MS = 5_000
MICRO_BATCHES = 4
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
    batches: int = MICRO_BATCHES,
    watermark_ms: int = WATERMARK_MS,
    wait_us: int = WAIT_US,
) -> Iterator[Record]:
    """Yields a record for each query, whether or not others fail. Raises Outage if the engine is gone.

    conf: the system's settings. work: an empty directory.
    """
    work.mkdir(parents=True, exist_ok=True)
    with settings(spark, dict(conf or {})):
        pass  # a setting that cannot be set fails here: it is no fault of a query
    frame = work / "events.parquet"
    pq.write_table(events.plain, frame, compression="lz4")
    for query in queries:
        spec, place = standard(query, watermark_ms, wait_us), work / short(query)
        try:
            with settings(spark, dict(conf or {})):
                if mode == "batch":
                    yield in_batch(spark, spec, query, events, frame)
                else:
                    yield in_streaming(spark, spec, query, events, batches, place)
        except Exception as problem:
            yield unsupported(spark, query, mode, problem)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def in_batch(spark: SparkSession, spec: Spec, query: Query, events: Events, frame: Path) -> Record:
    began = time.monotonic()
    frames = [spark.read.parquet(str(frame)) for _ in range(query.streams)]
    output = queries.run(frames, spec).toArrow()
    seconds = time.monotonic() - began
    wanted = ask(spec, (events.plain,) * query.streams)
    return _judged(query, "batch", output, wanted, seconds, events)


def in_streaming(spark: SparkSession, spec: Spec, query: Query, events: Events, batches: int, work: Path) -> Record:
    """Runs a query in streaming and compares it with DuckDB's answer.

    That answer leaves out exactly the rows that the run's offsets and watermarks let it drop.
    """
    if query.to_files:
        output, seconds = to_files(spark, spec, events.batches(batches), work)
        return _judged(query, "streaming", output, ask(spec, (events.plain,)), seconds, events)
    run = stream(spark, spec, query, events.batches(batches), work)
    wanted = expectation(events.rows, run.logs(), spec, queries.rules(query.name))
    seconds = sum(batch.seconds for batch in run.batches)
    peak = max(sum(operator.rows for operator in batch.operators) for batch in run.batches)
    late = wanted.late, run.dropped, peak, wanted.wrong_watermark
    return _judged(query, "streaming", run.output, answer(wanted), seconds, events, *late)


def stream(spark: SparkSession, spec: Spec, query: Query, batches: Sequence[pa.Table], work: Path) -> FiniteRun:
    def frame(frames: list[DataFrame]) -> DataFrame:
        return queries.run(frames, spec)

    return run_finite(spark, frame, batches, work, streams=query.streams)


def to_files(spark: SparkSession, spec: Spec, batches: Sequence[pa.Table], work: Path) -> tuple[pa.Table, float]:
    """Runs a query into Spark's file sink, one folder per day and minute; returns what it wrote and its seconds."""
    write_source(batches, work / "source")
    schema = spark.read.parquet(str(work / "source")).schema
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(work / "source"))
    writer = queries.run([frame], spec).writeStream.format("parquet").partitionBy(*PARTITIONS)
    writer = writer.option("checkpointLocation", str(work / "checkpoint")).trigger(availableNow=True)
    running = writer.start(str(work / "log"))
    try:
        if not running.awaitTermination(WAIT_SECONDS):
            raise TimeoutError(f"the query did not end within {WAIT_SECONDS} s")
    finally:
        running.stop()
    seconds = sum(progress.durationMs["triggerExecution"] for progress in running.recentProgress) / 1000
    with settings(spark, {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}):
        return spark.read.parquet(str(work / "log")).toArrow(), seconds


def _judged(
    query: Query, mode: Mode, output: pa.Table, wanted: pa.Table, seconds: float, events: Events, *more: Any
) -> Record:
    answers = size_and_hash(output, query.rule), size_and_hash(wanted, query.rule)
    counted = queries.rules(query.name).late_counted
    return judged(query, mode, *answers, seconds, events.rows.num_rows, output.nbytes, counted, *more)
