"""Query q13: bids joined with the value that a bounded side input has for their auction."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import WALLS, bids
from streamgauge.bench.workloads import Spec

SIDE = 10_000


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    del spec
    side = frame.sparkSession.range(SIDE).select(
        F.col("id").alias("key"), F.concat(F.lit("side-"), "id").alias("value")
    )
    joined = bids(frame).withColumn("key", F.col("auction") % SIDE).join(F.broadcast(side), "key")
    return joined.select("auction", "bidder", "price", "event_ts", "value", *WALLS)
