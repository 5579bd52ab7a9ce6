"""Correctness beside speed: the output of a trial against the batch answer of the same query on the same events."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from streamgauge import workloads
from streamgauge.link.checksum import checksum
from streamgauge.link.engine import PROVIDER, ROCKSDB, settings
from streamgauge.link.oracle import Expectation, batch_logs, expectation
from streamgauge.link.sink import without_sentinels
from streamgauge.workloads import Spec


@dataclass(frozen=True)
class Check:
    """Sizes and checksums side by side; late drops are what the engine says and what its logs imply."""

    expected_rows: int
    reported_rows: int
    expected_checksum: int
    reported_checksum: int
    expected_late: int
    reported_late: int
    late_counted: str  # what the engine counts: rows, groups, none

    @property
    def wrong(self) -> str | None:
        """Why the output is wrong, in one line."""
        if self.expected_rows != self.reported_rows:
            return f"output wrong: {self.reported_rows} rows, {self.expected_rows} expected"
        if self.expected_checksum != self.reported_checksum:
            return f"output wrong: {self.reported_rows} rows as expected, but with other values"
        if self.late_counted == "rows" and self.expected_late != self.reported_late:
            return f"late events: {self.reported_late} reported as dropped, {self.expected_late} expected"
        return None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"wrong": self.wrong}


def check(
    spark: SparkSession, rows: pa.Table, figures: Mapping[str, Any], reports: Sequence[Mapping[str, Any]], spec: Spec
) -> Check:
    """rows: all that was offered (see oracle.expectation); figures: of end_trial; reports: bodies of all epochs."""
    wanted = expectation(rows, batch_logs(figures["batches"]), spec)
    size, total = answer(spark, wanted)
    return Check(
        expected_rows=size,
        reported_rows=sum(int(body["rows"]) for body in reports),
        expected_checksum=total,
        reported_checksum=sum(int(body["checksum"]) for body in reports) % 2**64,
        expected_late=wanted.late,
        reported_late=sum(int(batch["dropped"]) for batch in figures["batches"]),
        late_counted=workloads.find(spec.query).drops_counted,
    )


def answer(spark: SparkSession, wanted: Expectation) -> tuple[int, int]:
    """Rows and checksum of the batch answer. Rows go through files: a trial may hold more than the JVM's heap."""
    rows, total = 0, 0
    conf = {PROVIDER: ROCKSDB} if any(workloads.find(part.spec.query).rocksdb for part in wanted.parts) else {}
    with tempfile.TemporaryDirectory(prefix="streamgauge-check-") as scratch, settings(spark, conf):
        for number, part in enumerate(wanted.parts):
            frames = []
            for frame, table in enumerate(part.frames):
                path = f"{scratch}/{number}-{frame}.parquet"
                pq.write_table(table, path, compression="lz4", row_group_size=1_000_000)
                frames.append(spark.read.schema(_schema(spark, table)).parquet(path))
            sums = workloads.run(frames, part.spec).mapInArrow(_sums, "rows long, checksum string").collect()
            rows += sum(row.rows for row in sums)
            total += sum(int(row.checksum) for row in sums)
    return rows, total % 2**64


def _sums(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row per task: how many result rows, and the sum of their checksums."""
    rows, total = 0, 0
    for batch in batches:
        kept = without_sentinels(batch)
        rows, total = rows + kept.num_rows, (total + checksum(kept)) % 2**64
    yield pa.RecordBatch.from_pydict({"rows": [rows], "checksum": [str(total)]})


def _schema(spark: SparkSession, table: pa.Table) -> StructType:
    return spark.createDataFrame(table.slice(0, 0)).schema
