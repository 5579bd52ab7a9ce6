"""Count, sum and mean per key and window: the aggregation query of Karimov et al., ICDE 2018."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.workloads import Spec
from streamgauge.workloads.windows import exact, watermarked, window


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """The sentinel's own window never closes, so no result needs to be told apart."""
    (frame,) = frames
    assert spec.key is not None
    assert spec.value is not None
    groups = watermarked(frame, spec).groupBy(window(spec).alias("window"), F.col(spec.key).alias("key"))
    return groups.agg(
        F.count("*").alias("events"),
        F.sum(exact(frame, spec.value)).alias("total"),
        F.max("event_wall").alias("event_wall"),
        F.max("offered_wall").alias("offered_wall"),
    ).select(
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        "key",
        "events",
        "total",
        (F.col("total") / F.col("events")).alias("mean"),
        "event_wall",
        "offered_wall",
    )
