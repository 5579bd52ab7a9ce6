"""The windowed join, plus the left events without a partner, which come out when their window ends."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streamgauge.bench.engines.spark.queries.windows import joined_halves
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Joins both halves; the sentinel's own window never ends, so it is in no result."""
    return joined_halves(frames, spec, "left_outer")
