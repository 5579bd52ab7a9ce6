"""Bids of middling price: the price in another currency, the time of day, and a count by a user-defined function."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import WALLS, bids, euros
from streamgauge.bench.workloads import Spec

LEAST, MOST = 1_000_000, 50_000_000


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    del spec
    count_c = F.arrow_udf(_count_c, "long")
    hour = F.hour("event_ts")
    return (
        bids(frame)
        .withColumn("euros", euros())
        .where((F.col("euros") > LEAST) & (F.col("euros") < MOST))
        .select(
            "auction",
            "bidder",
            F.col("euros").alias("price"),
            F.when((hour >= 8) & (hour <= 18), "dayTime")
            .when((hour <= 6) | (hour >= 20), "nightTime")
            .otherwise("otherTime")
            .alias("bid_time_type"),
            "event_ts",
            "extra",
            count_c("extra").alias("c_counts"),
            *WALLS,
        )
    )


def _count_c(texts: pa.Array) -> pa.Array:
    return pc.count_substring(texts, "c").cast(pa.int64())
