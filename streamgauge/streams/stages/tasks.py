"""Spark as workers: runs work in a few large tasks, which cost less than many rows through a UDF."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from streamgauge import metrics
from streamgauge.base.errors import UserError
from streamgauge.streams.stages import frames
from streamgauge.streams.stages.workers import be_one_core

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class _Problem:
    """An error in a task that the user must correct: no retry helps."""

    message: str
    errno: int | None = None
    file: str | None = None


@dataclass(frozen=True)
class OnSpark:
    """The tasks of a Spark session, on this host or on a cluster."""

    spark: SparkSession

    @property
    def cores(self) -> int:
        return int(self.spark.sparkContext.defaultParallelism)

    def each(self, items: Sequence[T], work: Callable[[T], R]) -> list[R]:
        """Returns work(item) for each item, in order; a few tasks take consecutive items, one by one."""
        return _each(self.spark, items, work)

    def sort(self, files: list[Path], keys: list[str], schema: pa.Schema, scratch: Path, parts: int) -> list[Path]:
        frame = frames.read(self.spark, files, schema)
        order = [frame[key].asc_nulls_last() for key in keys]
        ranged = frame.repartitionByRange(parts, *order).sortWithinPartitions(*order)
        return frames.write(ranged, scratch, schema)


def _each(spark: SparkSession, items: Sequence[T], work: Callable[[T], R]) -> list[R]:
    """Returns work(item) for each item. Raises the first UserError, or OSError (a full disk), that a task raised."""
    tasks = min(len(items), 2 * int(spark.sparkContext.defaultParallelism))
    if not tasks:
        return []
    shares = [items[len(items) * i // tasks : len(items) * (i + 1) // tasks] for i in range(tasks)]

    def walk(share: Sequence[T]) -> list[R | _Problem]:
        be_one_core()
        done: list[R | _Problem] = []
        for item in share:
            try:
                done.append(work(item))
            except UserError as problem:
                return [*done, _Problem(str(problem))]
            except OSError as problem:
                file = None if problem.filename is None else str(problem.filename)
                return [*done, _Problem(problem.strerror or str(problem), problem.errno or 0, file)]
        return done

    counted = metrics.counted_for(metrics.current_step(), walk)
    results = [
        result for share in spark.sparkContext.parallelize(shares, tasks).map(counted).collect() for result in share
    ]
    for result in results:
        if isinstance(result, _Problem):
            raise (
                UserError(result.message)
                if result.errno is None
                else OSError(result.errno, result.message, result.file)
            )
    return [result for result in results if not isinstance(result, _Problem)]
