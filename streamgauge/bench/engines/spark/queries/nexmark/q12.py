"""Bids of each user per window of the engine's own clock."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import some_time
from streamgauge.bench.engines.spark.queries.windows import bounds, latest, micros
from streamgauge.bench.workloads import Spec

CLOSING = "interval 1 day"


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Counts by the time of the micro-batch as clock. The sentinel comes a day later, so that all windows end."""
    (frame,) = frames
    now = F.current_timestamp()
    clock = F.when(F.col("kind").isNull(), now + F.expr(CLOSING)).otherwise(now)
    timed = frame.withColumn("clock", clock).withWatermark("clock", "0 seconds")
    wanted = (F.col("kind") == "bid") | ~some_time("clock")
    groups = timed.where(wanted).groupBy(F.window("clock", micros(spec.window_us)).alias("window"), "bidder")
    return groups.agg(F.count("*").alias("bids"), *latest()).select(
        *bounds(), "bidder", "bids", "event_wall", "offered_wall"
    )
