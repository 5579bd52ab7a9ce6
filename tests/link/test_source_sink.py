"""The link counts: every row once, whatever fails; latencies are those of the definition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamgauge.link.checksum import checksum
from streamgauge.link.connections import options_of
from streamgauge.link.sink import MeasuringSink
from streamgauge.link.source import Link
from tests.link.hand import HandDriver, row, sentinel, table

pytestmark = pytest.mark.spark


@pytest.fixture
def driver() -> Iterator[HandDriver]:
    hand = HandDriver(partitions=2)
    yield hand
    hand.close()


def start(spark: Any, driver: HandDriver, place: Path, batch_rows: int = 10**6, change: Any = None) -> Any:
    """Runs a pass-through over what is offered now, to its end."""
    spark.dataSource.register(Link)
    spark.dataSource.register(MeasuringSink)
    options = options_of((driver.endpoint,), driver.attempt)
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
