"""The link counts: every row once, whatever fails; latencies are those of the definition."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.bench.engines.spark import queries
from streamgauge.bench.engines.spark.connections import options_of
from streamgauge.bench.engines.spark.sink import MeasuringSink, Tally, without_sentinels
from streamgauge.bench.engines.spark.source import Link
from streamgauge.bench.oracle.checksum import checksum
from streamgauge.bench.workloads import Spec
from tests.engines.hand import HandDriver, row, sentinel, table

pytestmark = pytest.mark.spark


@pytest.fixture
def driver() -> Iterator[HandDriver]:
    hand = HandDriver(partitions=2)
    yield hand
    hand.close()


def start(
    spark: Any,
    driver: HandDriver,
    place: Path,
    batch_rows: int = 10**6,
    change: Any = None,
    others: tuple[HandDriver, ...] = (),
) -> Any:
    """Runs a pass-through over what is offered now, to its end."""
    spark.dataSource.register(Link)
    spark.dataSource.register(MeasuringSink)
    options = options_of((driver.endpoint, *(other.endpoint for other in others)), driver.attempt)
    frame = spark.readStream.format("streamgauge").options(**options, batch_rows=batch_rows).load()
    frame = change(frame) if change else frame
    writer = frame.writeStream.format("streamgauge-sink").options(**options, output=str(place / "out"))
    return writer.option("checkpointLocation", str(place / "check")).trigger(availableNow=True).start()


def numbers(place: Path) -> list[int]:
    return sorted(n for file in (place / "out").glob("*.parquet") for n in pq.read_table(file)["seq"].to_pylist())


def test_every_row_once_over_two_queues_in_mid_batch_offsets(spark: Any, driver: HandDriver, tmp_path: Path) -> None:
    driver.offer([row(n, n) for n in range(0, 50)], 0, chunk=7)
    driver.offer([row(n, n) for n in range(50, 80)] + [sentinel(1e6)], 1, chunk=11)
    query = start(spark, driver, tmp_path, batch_rows=20)
    query.awaitTermination(60)
    assert numbers(tmp_path) == list(range(80))
    assert [driver.reports[n]["rows"] for n in sorted(driver.reports)] == [20, 20, 20, 10, 10]
    assert driver.said("planned") == [{"0": min(50, n), "1": min(31, n)} for n in (10, 20, 30, 40, 50)]
    assert driver.said("commit") == driver.said("planned")
    total = sum(body["checksum"] for body in driver.reports.values()) % 2**64
    assert total == checksum(table([row(n, n) for n in range(80)]))


def test_a_task_that_fails_midway_is_repeated_and_counted_once(spark: Any, driver: HandDriver, tmp_path: Path) -> None:
    driver.offer([row(n, n) for n in range(40)], 0, chunk=10)
    once = str(tmp_path / "failed")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            yield batch
            if number == 1 and not os.path.exists(once):
                open(once, "w").close()
                raise RuntimeError("injected: the sink has seen two batches")

    query = start(spark, driver, tmp_path, change=lambda frame: frame.mapInArrow(fail_once, frame.schema))
    assert query.awaitTermination(60)
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert os.path.exists(once)
    assert numbers(tmp_path) == list(range(40))
    assert [body["rows"] for body in driver.reports.values()] == [40]
    assert driver.reports[0]["event_latency"]["count"] == 40


def test_a_connection_cut_within_an_answer_is_taken_up_where_it_broke(
    spark: Any, driver: HandDriver, tmp_path: Path
) -> None:
    driver.offer([row(n, n) for n in range(60_000)], 0, chunk=20_000)  # batches larger than any buffer
    driver.tear = 1
    query = start(spark, driver, tmp_path)
    assert query.awaitTermination(60)
    assert numbers(tmp_path) == list(range(60_000))
    first, second = driver.said("read")
    assert first == (0, 0, 60_000)
    assert second in [(0, 20_000, 60_000), (0, 40_000, 60_000)]


def test_a_restart_from_the_checkpoint_reads_the_uncommitted_again_and_repeats_nothing(
    spark: Any, driver: HandDriver, tmp_path: Path
) -> None:
    driver.offer([row(n, n) for n in range(30)])

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if 15 in batch["seq"].to_pylist():
                raise RuntimeError("injected: every try of the second batch")
            yield batch

    broken = start(spark, driver, tmp_path, 20, lambda frame: frame.mapInArrow(fail, frame.schema))
    with pytest.raises(Exception, match="injected"):
        broken.awaitTermination(60)
    assert (numbers(tmp_path), sorted(driver.reports)) == (list(range(10)), [0])
    driver.offer([row(n, n) for n in range(30, 35)])
    assert start(spark, driver, tmp_path, 20).awaitTermination(60)
    assert numbers(tmp_path) == list(range(35))
    assert [driver.reports[n]["rows"] for n in sorted(driver.reports)] == [10, 10, 10, 5]


def test_two_driver_processes_are_read_as_one_stream(spark: Any, driver: HandDriver, tmp_path: Path) -> None:
    other = HandDriver(partitions=1)
    driver.offer([row(n, n) for n in range(10)], 1)
    other.offer([row(n, n) for n in range(10, 15)])
    query = start(spark, driver, tmp_path, others=(other,))
    assert query.awaitTermination(60)
    assert numbers(tmp_path) == list(range(15))
    assert (driver.said("commit"), other.said("commit")) == ([{"0": 0, "1": 10}], [{"0": 5}])
    assert (len(driver.reports), len(other.reports)) == (1, 0)
    other.close()


def test_windowed_latency_is_emission_minus_the_latest_of_its_contributors(
    spark: Any, driver: HandDriver, tmp_path: Path
) -> None:
    """Two windows by hand: only the largest wall of each counts, even when an earlier event carries it."""
    now, hour = time.time_ns(), 3600 * 10**9
    ages = {0: (5, 9), 1: (2, 8), 2: (3, 7), 3: (6, 4)}  # hours since event_wall, offered_wall
    walls = {n: (now - event * hour, now - offer * hour) for n, (event, offer) in ages.items()}
    seconds = {0: 1, 1: 2, 2: 9, 3: 15}  # [0, 10) holds 0, 1, 2 and [10, 20) holds 3
    rows = [row(n, seconds[n], event_wall=event, offered_wall=offer) for n, (event, offer) in walls.items()]
    driver.offer([*rows, sentinel(1e6)])
    spec = Spec("windowed_aggregation", "name", "amount")
    query = start(spark, driver, tmp_path, change=lambda frame: queries.run([frame], spec))
    assert query.awaitTermination(60)
    (body,) = [body for body in driver.reports.values() if body["rows"]]
    assert body["clock_offset_ns"][0] == pytest.approx(-time.time_ns(), rel=1e-6)  # this driver's clock is at 0
    event, processing = body["event_latency"], body["processing_latency"]
    lag = body["emitted_wall_ns"][0] - now
    assert 0 < lag < 120 * 10**9
    assert (event["min"], event["max"], event["count"]) == (2 * hour + lag, 6 * hour + lag, 2)
    assert (processing["min"], processing["max"], processing["count"]) == (4 * hour + lag, 7 * hour + lag, 2)


def test_a_tally_counts_negative_latencies_apart_and_no_sentinel() -> None:
    rows = [row(0, 1, event_wall=50, offered_wall=70), row(1, 2, event_wall=120, offered_wall=80), sentinel(9)]
    tally = Tally()
    tally.add(without_sentinels(table(rows)), now_ns=100)
    assert (tally.rows, tally.negative) == (2, 1)
    body: dict[str, Any] = tally.body()
    assert (body["event_latency"]["max"], body["processing_latency"]["max"]) == (50, 30)
