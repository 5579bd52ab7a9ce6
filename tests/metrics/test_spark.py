"""Attempted against committed on a real Spark: retries, reruns, restarts, killed workers, every kind of function."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from streamgauge import metrics
from streamgauge.metrics.pipeline import Pipeline
from tests.metrics.backend import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ROWS = metrics.counter("n", "rows")
ID = metrics.distribution("n", "id")
Batches = Iterator[Any]


@pytest.fixture(scope="module")
def started(spark: SparkSession) -> Iterator[Pipeline]:
    with metrics.start(spark) as pipeline:
        yield pipeline


@pytest.fixture
def pipeline(started: Pipeline) -> Pipeline:
    """A pipeline for all tests, as each start costs new Python workers; its values begin anew."""
    started.registry.__init__(started.registry.batch_of_thread)  # type: ignore[misc]
    return started


def numbers(spark: SparkSession, rows: int = 1000) -> DataFrame:
    return spark.range(0, rows, 1, 2)


def run(frame: DataFrame) -> None:
    frame.write.format("noop").mode("append").save()


def counts(pipeline: Pipeline, step: str, name: str = "rows") -> tuple[int, int | None]:
    [metric] = pipeline.query(step=step, name=name)
    return metric.attempted["value"], None if metric.committed is None else metric.committed["value"]


@metrics.step("count")
def count(batches: Batches) -> Batches:
    for batch in batches:
        ROWS.inc(batch.num_rows)
        ID.update_many(batch.column(0))
        yield batch


@metrics.step("again")
def count_again(batches: Batches) -> Batches:
    for batch in batches:
        ROWS.inc(batch.num_rows)
        yield batch


def failing(times: int, how: Callable[[], object]) -> Callable[[Batches], Batches]:
    """Counts each batch; then partition 1 of two fails, that many times. What follows is counted as well."""

    def count_and_fail(batches: Batches) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        for batch in batches:
            ROWS.inc(batch.num_rows)
            if context.partitionId() == 1 and context.attemptNumber() < times:
                how()
            yield batch
            metrics.counter("n", "passed on").inc(batch.num_rows)

    return metrics.step("count", count_and_fail)


def fail() -> None:
    raise RuntimeError("as the test wants it")


def test_a_task_that_fails_twice_is_attempted_three_times_and_committed_once(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    """Two workers serve each task: the one upstream of the failure is counted, too."""
    run(numbers(spark).mapInArrow(count_again, "id long").mapInArrow(failing(2, fail), "id long"))
    assert counts(pipeline, "count") == counts(pipeline, "again") == (1000 + 2 * 500, 1000)
    assert counts(pipeline, "count", "passed on") == (1000, 1000)


def test_of_a_killed_worker_at_least_what_it_told_is_known(spark: SparkSession, pipeline: Pipeline) -> None:
    def die() -> None:
        time.sleep(1.1)  # it tells about every second
        ROWS.inc(0)
        metrics.counter("n", "untold").inc(7)
        os.kill(os.getpid(), signal.SIGKILL)

    run(numbers(spark).mapInArrow(failing(1, die), "id long"))
    assert counts(pipeline, "count") == (1000 + 500, 1000)
    assert pipeline.query(name="untold") == ()  # the stated bound: what it counted since


def test_distributions_and_gauges_equal_the_truth(spark: SparkSession, pipeline: Pipeline) -> None:
    run(numbers(spark).mapInArrow(count, "id long"))
    [ids] = pipeline.query(name="id")
    truth = {"count": 1000, "sum": sum(range(1000)), "min": 0, "max": 999, "mean": 499.5}
    assert ids.attempted == ids.committed == truth


def test_every_kind_of_function_counts(spark: SparkSession, pipeline: Pipeline) -> None:
    from pyspark.sql.functions import pandas_udf, udf

    @metrics.step("udf")
    def plain(value: int) -> int:
        ROWS.inc()
        return value

    def vectorised(values: Any) -> Any:
        ROWS.inc(len(values))
        return values

    def pandas(frames: Batches) -> Batches:
        for frame in frames:
            ROWS.inc(len(frame))
            yield frame

    def group(frame: Any) -> Any:
        ROWS.inc(len(frame))
        return frame

    by_row, in_pandas = udf(plain, "long"), pandas_udf(metrics.step("pandas", vectorised), "long", functionType=200)
    few = spark.range(0, 100, 1, 1)
    run(few.select(by_row("id").alias("id")).select(in_pandas("id").alias("id")))
    run(few.mapInPandas(metrics.step("frames", pandas), "id long"))
    run(few.groupBy((few.id % 3).alias("id")).applyInPandas(metrics.step("groups", group), "id long"))
    few.rdd.foreach(metrics.step("rdd", lambda _: ROWS.inc()))
    with metrics.step("driver"):
        ROWS.inc(100)
    for step in ("udf", "pandas", "frames", "groups", "rdd", "driver"):
        assert counts(pipeline, step) == (100, 100), step


def test_a_plain_function_that_fails_without_a_step_is_counted(spark: SparkSession, pipeline: Pipeline) -> None:
    def map_one(row: Any) -> int:
        from pyspark import TaskContext

        metrics.counter("n", "seen").inc()
        if row.id == 300 and TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("as the test wants it")
        return int(row.id)

    assert numbers(spark).rdd.map(map_one).sum() == sum(range(1000))
    assert counts(pipeline, "main", "seen") == (1000 + 301, 1000)


def test_a_restarted_query_commits_each_batch_once(spark: SparkSession, pipeline: Pipeline, tmp_path: Path) -> None:
    for start in range(0, 300, 100):
        spark.range(start, start + 100, 1, 1).write.mode("append").parquet(str(tmp_path / "in"))
    crash = [1]  # the batch after whose work the query fails, once

    @metrics.step("write")
    def write(frame: DataFrame, number: int) -> None:
        metrics.counter("n", "batches").inc()
        ROWS.inc(frame.count())
        if number in crash:
            crash.clear()
            raise RuntimeError("as the test wants it")

    def query() -> Any:
        stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        writer = stream.mapInArrow(count, "id long").writeStream.foreachBatch(write)
        started = writer.option("checkpointLocation", str(tmp_path / "check")).trigger(availableNow=True).start()
        return started.awaitTermination

    with pytest.raises(Exception, match="as the test wants it"):
        query()()
    assert counts(pipeline, "count") == (200, 100)
    assert counts(pipeline, "write", "batches") == (2, 1)
    query()()
    wait_until(lambda: counts(pipeline, "count") == counts(pipeline, "write") == (400, 300), "news of the last batch")
    assert counts(pipeline, "write", "batches") == (4, 3)
