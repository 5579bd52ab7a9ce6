"""Shared by all tests: one Spark session, and the real data sets where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from streamgauge.spark.session import batch_session

    session = batch_session("tests", "local[2,4]", {"spark.sql.shuffle.partitions": "3"})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def flights_gz() -> Path:
    return ROOT / "configs" / "data" / "flights_2013_01.csv.gz"
