"""Count, sum and mean per key and window: the aggregation query of Karimov et al., ICDE 2018."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.windows import WALLS, bounds, by_window, exact, latest
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Aggregates by window; the sentinel's own window never closes, so it is in no result."""
    (frame,) = frames
    total = F.sum(exact(frame, spec.value)).alias("total")
    groups = by_window(frame, spec).agg(F.count("*").alias("events"), total, *latest())
    mean = (F.col("total") / F.col("events")).alias("mean")
    return groups.select(*bounds(), "key", "events", "total", mean, *WALLS)
