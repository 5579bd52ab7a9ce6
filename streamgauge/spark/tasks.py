"""Work on the cluster as a few fat tasks: they cost less than many rows through a UDF."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from streamgauge import metrics
from streamgauge.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class _Problem:
    """What a task found that is the user's to mend: no retry helps."""

    message: str
    errno: int | None = None
    file: str | None = None


def each(spark: SparkSession, items: Sequence[T], work: Callable[[T], R]) -> list[R]:
    """work(item) for each, in order, in few tasks that each walk their items one by one.

    Raises the first UserError, or OSError (a full disk), as the exception that it was in its task.
    """
    tasks = min(len(items), 2 * int(spark.sparkContext.defaultParallelism))
    if not tasks:
        return []
    shares = [items[len(items) * i // tasks : len(items) * (i + 1) // tasks] for i in range(tasks)]

    def walk(share: Sequence[T]) -> list[R | _Problem]:
        pa.set_cpu_count(1)  # a task is one core; threads of its own would take others' cores
        pa.set_io_thread_count(1)
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
