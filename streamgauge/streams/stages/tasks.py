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
        shares = [items[len(items) * i // tasks : len(items) * (i + 1) // tasks] for i in range(tasks)]

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
        for share in self.spark.sparkContext.parallelize(shares, tasks).map(counted).collect():
            for result in share:
                if isinstance(result, UserError | OSError):
                    raise result
                results.append(result)
        return results

    def sort(self, files: list[Path], keys: list[str], schema: pa.Schema, scratch: Path, parts: int) -> list[Path]:
        frame = frames.read(self.spark, files, schema)
        order = [frame[key].asc_nulls_last() for key in keys]
        ranged = frame.repartitionByRange(parts, *order).sortWithinPartitions(*order)
        return frames.write(ranged, scratch, schema)
