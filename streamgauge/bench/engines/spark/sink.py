"""The measuring sink, next to the last operator: latencies, counts and a checksum of the result rows.

Tasks may run twice; only what Spark commits is reported to the driver, as one body per epoch.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.clock import worst_clock
from streamgauge.bench.engines.spark.connections import clock_offset, endpoints_of, once_more
from streamgauge.bench.oracle.checksum import checksum, result_columns


@dataclass
class Tally(WriterCommitMessage):
    """Latencies, counts and checksum of the rows of one task or, merged, of an epoch. Times are in ns."""

    rows: int = 0
    negative: int = 0
    least_ns: int = 0  # the lowest latency, if it is negative
    checksum: int = 0
    event_latency: Histogram = field(default_factory=Histogram)
    processing_latency: Histogram = field(default_factory=Histogram)
    emitted: list[int] = field(default_factory=list)  # first and last emission
    emitted_sum: int = 0  # of the emission times of all rows
    clock: tuple[int, int] | None = None  # (driver's clock − the task's host's, error bound), the worst of all tasks
    files: list[str] = field(default_factory=list)  # written, but not yet under their final names

    def add(self, batch: pa.RecordBatch, now_ns: int) -> None:
        """Adds a batch without sentinels, emitted at now_ns."""
        if not batch.num_rows:
            return
        event = now_ns - batch.column("event_wall").to_numpy()
        processing = now_ns - batch.column("offered_wall").to_numpy()
        if min(event.min(), processing.min()) < 0:
            self.least_ns = min(self.least_ns, int(event.min()), int(processing.min()))
            sound = (event >= 0) & (processing >= 0)
            event, processing = event[sound], processing[sound]
        self.rows += batch.num_rows
        self.negative += batch.num_rows - len(event)
        self.checksum = (self.checksum + checksum(batch)) % 2**64
        self.event_latency.add(event)
        self.processing_latency.add(processing)
        self.emitted = [min([now_ns, *self.emitted]), max([now_ns, *self.emitted])]
        self.emitted_sum += now_ns * batch.num_rows

    def merge(self, other: Tally) -> None:
        self.rows += other.rows
        self.negative += other.negative
        self.least_ns = min(self.least_ns, other.least_ns)
        self.checksum = (self.checksum + other.checksum) % 2**64
        self.event_latency.merge(other.event_latency)
        self.processing_latency.merge(other.processing_latency)
        walls = self.emitted + other.emitted
        self.emitted = [min(walls), max(walls)] if walls else []
        self.emitted_sum += other.emitted_sum
        self.clock = worst_clock(clock for clock in (self.clock, other.clock) if clock)
        self.files += other.files

    def body(self) -> dict[str, object]:
        """The body of a report as in docs/protocol.md, and the checksum."""
        return {
            "rows": self.rows,
            "negative": self.negative,
            "least_ns": self.least_ns,
            "checksum": self.checksum,
            "event_latency": self.event_latency.to_dict(),
            "processing_latency": self.processing_latency.to_dict(),
            "emitted_wall_ns": self.emitted,
            "emitted_mean_wall_ns": self.emitted_sum // self.rows if self.rows else None,
            "clock_offset_ns": self.clock,
        }


class MeasuringSink(DataSource):
    """The sink as a data source of Spark.

    Options: those of `options_of`; output: a directory for the result rows, one file per task and epoch.
    """

    @classmethod
    def name(cls) -> str:
        return "streamgauge-sink"

    def streamWriter(self, schema: StructType, overwrite: bool) -> Writer:
        del schema, overwrite  # a stream appends, and batches bring their schema
        return Writer(dict(self.options))


class Writer(DataSourceStreamArrowWriter):
    """Measures and reports rows: `write` runs in tasks, `commit` and `abort` beside Spark's driver."""

    def __init__(self, options: dict[str, str]) -> None:
        self._endpoint = endpoints_of(options)[0]
        self._attempt = options.get("attempt", "")
        self._output = options.get("output")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Tally:
        tally = Tally(clock=clock_offset(self._endpoint, self._attempt))
        kept = []
        for batch in iterator:
            now_ns = time.time_ns()
            batch = without_sentinels(batch)
            tally.add(batch, now_ns)
            if self._output is not None and batch.num_rows:
                kept.append(batch.select(result_columns(batch.schema.names)))
        if self._output is not None and kept:
            path = Path(self._output) / f".{uuid.uuid4().hex}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_batches(kept), path)
            tally.files.append(str(path))
        return tally

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        total = Tally()
        for message in messages:
            if isinstance(message, Tally):
                total.merge(message)
        if self._output is not None:
            for old in Path(self._output).glob(f"epoch{batchId:06d}-*.parquet"):
                old.unlink()  # the same epoch, repeated after a restart
        for number, file in enumerate(total.files):
            Path(file).rename(Path(file).with_name(f"epoch{batchId:06d}-{number:04d}.parquet"))
        once_more(self._endpoint, self._attempt, lambda wire: wire.report(self._attempt, batchId, total.body()))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        del batchId
        for message in messages:
            for file in message.files if isinstance(message, Tally) else ():
                Path(file).unlink(missing_ok=True)


def without_sentinels(batch: pa.RecordBatch) -> pa.RecordBatch:
    if "sentinel" not in batch.schema.names:
        return batch
    sentinel = batch.column("sentinel")
    return batch.filter(pc.invert(sentinel)) if np.any(sentinel.to_numpy(zero_copy_only=False)) else batch
