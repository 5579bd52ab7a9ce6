"""Compares what an advice says that Spark loses with what Spark drops."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.bench.driver.system import make_system
from streamgauge.bench.engines.spark.settings import SparkSettings
from tests.e2e.advised import compare

pytestmark = pytest.mark.e2e


def test_spark_drops_what_the_advice_says(tmp_path: Path) -> None:
    system = make_system(SparkSettings(name="s", memory="1g"), tmp_path / "system")
    system.start()
    try:
        compare(system, "Spark", tmp_path)
    finally:
        system.stop()
