"""Runs a query over a finite stream, micro-batch by micro-batch, and records each of them.

This is for answers, not for speed. The caller decides the rows of every micro-batch. The record has its output, its
offsets, and each stateful operator's rows, bytes, drops and two watermarks. No progress report has those watermarks;
only the physical plan that Spark has just executed does.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from streamgauge.bench.engines.spark.engine import checkpoint_manager, one_watermark, settings, state_writer
from streamgauge.bench.engines.spark.progress import batch_of, ran
from streamgauge.bench.oracle.batches import BatchLog
from streamgauge.records.answers import HardBatch, OperatorState

WAIT_SECONDS = 600
#: of a stateful operator, ms: below the first rows are late, below the second state is evicted
Watermarks = tuple[int | None, int | None]


@dataclass(frozen=True)
class MicroBatch:
    number: int
    input_rows: int
    output: pa.Table
    watermark_ms: int  # the query's watermark with which this batch closed its windows
    ends: tuple[Mapping[int, int], ...]  # for each frame: partition 0 -> first row of the next batch
    operators: tuple[OperatorState, ...]  # in the order in which rows flow through them
    seconds: float

    def record(self, *, rows: bool = True) -> HardBatch:
        """The record of the batch; rows: with the output itself, all values as text."""
        output = self.output.to_pylist() if rows else []
        return HardBatch(
            batch=self.number,
            input_rows=self.input_rows,
            output_rows=self.output.num_rows,
            output=tuple({name: str(value) for name, value in row.items()} for row in output),
            watermark_ms=self.watermark_ms,
            operators=self.operators,
        )


@dataclass(frozen=True)
class FiniteRun:
    batches: tuple[MicroBatch, ...]
    one_watermark: bool = False  # all operators shared one watermark

    @property
    def output(self) -> pa.Table:
        """Result rows of all batches, without sentinels."""
        whole = pa.concat_tables([batch.output for batch in self.batches])
        if "sentinel" not in whole.schema.names:
            return whole
        return whole.filter(pc.invert(whole["sentinel"])).drop_columns(["sentinel"])

    @property
    def dropped(self) -> int:
        """Number of late rows, by Spark's own account."""
        return sum(operator.dropped for batch in self.batches for operator in batch.operators)

    def logs(self) -> list[BatchLog]:
        """The logs that `late_rows.expectation` reads."""
        return [BatchLog(batch.number, batch.ends, batch.watermark_ms) for batch in self.batches]


def run_finite(
    spark: SparkSession,
    query: Callable[[list[DataFrame]], DataFrame],
    batches: Sequence[pa.Table],
    work: Path,
    *,
    streams: int = 1,
    conf: Mapping[str, str] | None = None,
) -> FiniteRun:
    """Runs a query; each table of `batches` is one micro-batch.

    batches: tables of one schema; the last should hold the sentinel (see `with_sentinel`). query: takes `streams`
    frames that each read everything. work: an empty directory. Spark adds batches without rows where a watermark moved.
    Raises what the engine raises, or TimeoutError.
    """
    ends = [*accumulate((table.num_rows for table in batches), initial=0)]
    wanted = {"spark.sql.streaming.numRecentProgressUpdates": "100000", **(conf or {})}
    if manager := checkpoint_manager(spark):
        wanted["spark.sql.streaming.checkpointFileManagerClass"] = manager
    seen: dict[int, tuple[pa.Table, list[Watermarks]]] = {}
    started = threading.Event()

    def take(frame: DataFrame, number: int) -> None:
        output = frame.toArrow()
        assert started.wait(WAIT_SECONDS)
        seen[number] = (output, _watermarks(spark, running))

    with settings(spark, wanted):
        is_shared = one_watermark(spark.conf)
        frames = source_of(spark, batches, work / "source", streams)
        writer = query(frames).writeStream.foreachBatch(take).outputMode("append")
        running = writer.option("checkpointLocation", str(work / "checkpoint")).trigger(availableNow=True).start()
        started.set()
        wait_for(running)
    reports = [json.loads(report.json) for report in running.recentProgress]
    micro = tuple(_batch(report, seen, ends, streams) for report in reports if ran(report))
    return FiniteRun(micro, is_shared)


def with_sentinel(rows: pa.Table, event_us: int) -> pa.Table:
    """Makes the sentinel: a table of one row like the first of `rows`, at event_us, with all nullable columns null."""
    first = rows.slice(0, 1).to_pylist()[0]
    row = {field.name: None if field.nullable else first[field.name] for field in rows.schema}
    row |= {"seq": -1, "event_time": event_us * 1000, "event_ts": event_us, "sentinel": True}
    arrays = [
        pa.array([row[f.name]], pa.int64()).cast(f.type) if f.name == "event_ts" else pa.array([row[f.name]], f.type)
        for f in rows.schema
    ]
    return pa.Table.from_arrays(arrays, schema=rows.schema)


def wait_for(running: Any) -> None:
    """Returns once a query has ended by itself. Raises what the engine raises, or TimeoutError."""
    try:
        if not running.awaitTermination(WAIT_SECONDS):
            raise TimeoutError(f"the query did not end within {WAIT_SECONDS} s")
    finally:
        running.stop()


def source_of(spark: SparkSession, batches: Sequence[pa.Table], source: Path, streams: int = 1) -> list[DataFrame]:
    """Returns frames that each read everything, a table in each micro-batch, from a new directory.

    It has one file per micro-batch, each a second younger than the one before: Spark takes the oldest first.
    """
    source.mkdir(parents=True)
    now = time.time()
    for number, table in enumerate(batches):
        path = source / f"{number:06d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (now, now - len(batches) + number))
    reader = spark.readStream.schema(spark.read.parquet(str(source)).schema).option("maxFilesPerTrigger", 1)
    return [reader.parquet(str(source)) for _ in range(streams)]


def _batch(
    report: Mapping[str, Any],
    seen: Mapping[int, tuple[pa.Table, list[Watermarks]]],
    ends: Sequence[int],
    streams: int,
) -> MicroBatch:
    number = int(report["batchId"])
    output, watermarks = seen[number]
    operators = [
        OperatorState(
            name=str(state["operatorName"]),
            rows=int(state["numRowsTotal"]),
            bytes=int(state["memoryUsedBytes"]),
            dropped=int(state["numRowsDroppedByWatermark"]),
            late_ms=late_ms,
            eviction_ms=eviction_ms,
        )
        for state, (late_ms, eviction_ms) in zip(report["stateOperators"], watermarks, strict=True)
    ]
    taken = batch_of(report, streams)
    return MicroBatch(
        number=number,
        input_rows=taken["input_rows"],
        output=output,
        watermark_ms=taken["watermark_ms"] or 0,
        ends=tuple({0: ends[int(end["logOffset"]) + 1]} for end in taken["ends"]),
        operators=tuple(reversed(operators)),
        seconds=taken["duration_ms"] / 1000,
    )


def _watermarks(spark: SparkSession, running: Any) -> list[Watermarks]:
    """Both watermarks of each stateful operator of the physical plan that just ran, ordered as in the progress."""
    watermarks: list[Watermarks] = []
    writer = state_writer(spark)
    nodes = [running._jsq.streamingQuery().lastExecution().executedPlan()]
    while nodes:
        node = nodes.pop()
        if writer.isInstance(node):
            late, eviction = node.eventTimeWatermarkForLateEvents(), node.eventTimeWatermarkForEviction()
            watermarks.append((_option(late), _option(eviction)))
        children = node.children()
        nodes += [children.apply(number) for number in reversed(range(children.size()))]
    return watermarks


def _option(value: Any) -> int | None:
    return int(value.get()) if value.isDefined() else None
