"""Count, sum and mean per key and window: the aggregation query of Karimov et al., ICDE 2018."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.windows import bounds, exact, latest, watermarked, window
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Aggregates by window; the sentinel's own window never closes, so it is in no result."""
    (frame,) = frames
    groups = watermarked(frame, spec).groupBy(window(spec).alias("window"), F.col(str(spec.key)).alias("key"))
    return groups.agg(F.count("*").alias("events"), F.sum(exact(frame, spec.value)).alias("total"), *latest()).select(
        *bounds(),
        "key",
        "events",
        "total",
        (F.col("total") / F.col("events")).alias("mean"),
        "event_wall",
        "offered_wall",
    )
