"""Streaming tests need one state partition and a checkpoint manager that starts no process per file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from streamgauge.bench.engines.spark.engine import checkpoint_manager

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def spark(spark: SparkSession) -> Iterator[SparkSession]:
    wanted = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.streaming.checkpointFileManagerClass": checkpoint_manager(spark),
    }
    before = {key: spark.conf.get(key, None) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    yield spark
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)
