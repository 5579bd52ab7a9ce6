"""Spark as workers: runs work in a few large tasks, which cost less than many rows through a UDF.

Also reads and writes the files of a frame.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from streamgauge import metrics
from streamgauge.base.errors import UserError
from streamgauge.base.parquet import parquet_file, parquet_writer
from streamgauge.base.places import Remote, publish
from streamgauge.base.schemas import ROW_GROUP_ROWS
from streamgauge.streams.stages.workers import be_one_core, shared

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
R = TypeVar("R")


def read(spark: SparkSession, files: Sequence[Path], schema: pa.Schema) -> DataFrame:
    """Reads Parquet files of one schema as a frame; those of a remote store by pyarrow, as Spark may not reach it."""
    if not any(isinstance(file, Remote) for file in files):
        # escapes brackets and the like: a path is no pattern
        checked = spark.read.option("parquet.page.verify-checksum.enabled", "true")
        return checked.parquet(*[re.sub(r"([\\[\]{}*?])", r"\\\1", _local(file)) for file in files])
    from pyspark.sql.pandas.types import from_arrow_schema

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with parquet_file(files[number], pre_buffer=True) as file:
                    for part in file.iter_batches(ROW_GROUP_ROWS, columns=schema.names):
                        yield pa.Table.from_batches([part]).cast(schema).to_batches()[0]

    return spark.range(0, len(files), 1, len(files)).mapInArrow(rows, from_arrow_schema(schema))


def write(frame: DataFrame, directory: Path, schema: pa.Schema) -> list[Path]:
    """Writes each partition into a file; returns the files in the order of the partitions. Raises OSError."""
    if not isinstance(directory, Remote):
        try:
            frame.write.option("compression", "snappy").parquet(_local(directory))
        except Exception as problem:
            if "No space left on device" in str(problem):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from problem
            raise
        return sorted(directory.glob("part-*.parquet"))

    def save(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = context.partitionId() if context else 0

        def fill(sink: pa.NativeFile) -> None:
            with parquet_writer(sink, schema, use_dictionary=False) as writer:
                for batch in batches:
                    writer.write_table(pa.Table.from_batches([batch]).select(schema.names).cast(schema))

        name = publish(directory / f"part-{number:05d}.parquet", fill)
        yield pa.record_batch({"number": pa.array([number], pa.int32()), "name": [name]})

    rows = frame.mapInArrow(save, "number int, name string").collect()
    return [directory / row["name"] for row in sorted(rows)]


def _local(path: Path) -> str:
    """A path as Spark takes it: unlike in a URI, its characters are not encoded."""
    return f"file:{path}"


@dataclass(frozen=True)
class OnSpark:
    """The tasks of a Spark session, on this host or on a cluster."""

    spark: SparkSession

    @property
    def cores(self) -> int:
        return int(self.spark.sparkContext.defaultParallelism)

    def each(self, items: Sequence[T], work: Callable[[T], R]) -> list[R]:
        """Returns work(item) for each item, in order; a few tasks take consecutive items, one by one."""
        tasks = min(len(items), 2 * self.cores)
        if not tasks:
            return []

        def walk(share: Sequence[T]) -> list[R | UserError | OSError]:
            be_one_core()
            done: list[R | UserError | OSError] = []
            for item in share:
                try:
                    done.append(work(item))
                except (UserError, OSError) as problem:  # no retry helps
                    return [*done, problem]
            return done

        counted = metrics.counted_for(metrics.current_step(), walk)
        results: list[R] = []
        for share in self.spark.sparkContext.parallelize(shared(items, tasks), tasks).map(counted).collect():
            for result in share:
                if isinstance(result, UserError | OSError):
                    raise result
                results.append(result)
        return results

    def sort(self, files: list[Path], keys: list[str], schema: pa.Schema, scratch: Path, parts: int) -> list[Path]:
        frame = read(self.spark, files, schema)
        order = [frame[key].asc_nulls_last() for key in keys]
        ranged = frame.repartitionByRange(parts, *order).sortWithinPartitions(*order)
        return write(ranged, scratch, schema)
