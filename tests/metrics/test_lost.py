"""Attempted against committed when files, the collector or all metrics are lost; a pipeline for each test."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from streamgauge import metrics
from streamgauge.metrics.pipeline import Pipeline
from tests.metrics.test_spark import ROWS, Batches, count, counts, fail, failing, numbers, run
from tests.told import known

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", autouse=True)
def _another_spark_afterwards(spark: SparkSession) -> Iterator[None]:
    """A Spark that lost files of its own executor takes no large results any more."""
    yield
    spark.stop()


@pytest.fixture
def pipeline(spark: SparkSession) -> Iterator[Pipeline]:
    with metrics.start(spark) as made:
        yield made


def shuffle_folder(spark: SparkSession) -> str:
    return str(spark.sparkContext.parallelize([0], 1).map(lambda _: os.environ["SPARK_LOCAL_DIRS"]).first())


def lose_shuffle_files(folder: str) -> None:
    for file in Path(folder).rglob("shuffle_*"):
        file.unlink(missing_ok=True)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_stage_that_runs_again_is_committed_once(
    spark: SparkSession, pipeline: Pipeline, adaptive: str, tmp_path: Path
) -> None:
    """Under adaptive execution the lost files are made again by another job, under another stage id."""
    folder, lost = shuffle_folder(spark), tmp_path / "lost"

    def read(batches: Batches) -> Batches:
        from pyspark import TaskContext

        first = TaskContext.get().partitionId() == 0
        while not first and not lost.exists():  # or all could have read theirs before any is lost
            time.sleep(0.01)
        for batch in batches:
            ROWS.inc(batch.num_rows)
            yield batch
        if first and not lost.exists():
            lose_shuffle_files(folder)
            lost.touch()

    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        many = numbers(spark).mapInArrow(count, "id long").repartition(6, "id")
        run(many.mapInArrow(metrics.step("read", read), "id long"))
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    attempted, committed = counts(pipeline, "count")
    assert committed == 1000
    assert attempted == 2000, "the whole stage ran again: all its files were lost"
    assert counts(pipeline, "read")[1] == 1000


def test_two_actions_are_two_pieces_of_work_but_a_lost_shuffle_is_not(spark: SparkSession, pipeline: Pipeline) -> None:
    def pairs(values: Iterator[int]) -> Iterator[tuple[int, int]]:
        for value in values:
            ROWS.inc()
            yield value % 7, value

    def result(group: tuple[int, Any]) -> int:
        metrics.counter("n", "groups").inc()
        return group[0]

    grouped = spark.sparkContext.parallelize(range(1000), 2).mapPartitions(metrics.step("pairs", pairs)).groupByKey(2)
    groups = grouped.map(metrics.step("groups", result))
    assert groups.count() == 7
    assert counts(pipeline, "pairs") == (1000, 1000)
    lose_shuffle_files(shuffle_folder(spark))
    assert groups.count() == 7
    assert counts(pipeline, "pairs") == (2000, 1000)
    assert counts(pipeline, "groups", "groups")[1] == 14


def test_values_leave_while_a_task_runs_and_a_dead_collector_fails_nothing(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    def slow(batches: Batches) -> Batches:
        for batch in batches:
            for _ in range(batch.num_rows // 20):
                time.sleep(0.1)
                ROWS.inc(20)
            yield batch

    seen: set[int] = set()
    end = threading.Event()

    def look() -> None:
        while not end.wait(0.1):
            seen.update(metric.attempted["value"] for metric in pipeline.query(name="rows"))

    watcher = threading.Thread(target=look)
    watcher.start()
    run(numbers(spark).mapInArrow(metrics.step("slow", slow), "id long"))
    end.set()
    watcher.join()
    assert len(seen - {1000}) > 1, "only at the end"
    assert counts(pipeline, "slow") == (1000, 1000)
    known(pipeline._link)._collector.close()
    run(numbers(spark).mapInArrow(failing(1, fail), "id long"))
    assert counts(pipeline, "count") == (1000, 1000), "a failed attempt is heard of by nobody"


def test_without_metrics_tasks_count_nothing_and_run(spark: SparkSession, pipeline: Pipeline) -> None:
    pipeline.stop()
    before = pipeline.query()
    run(numbers(spark).mapInArrow(count, "id long"))
    assert pipeline.query() == before
