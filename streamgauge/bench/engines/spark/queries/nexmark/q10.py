"""Query q10: bids with the day and minute by which their files are partitioned."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import DAY, MINUTE, WALLS, bids
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    del spec
    return bids(frame).select(
        "auction",
        "bidder",
        "price",
        "event_ts",
        "extra",
        F.date_format("event_ts", DAY).alias("day"),
        F.date_format("event_ts", MINUTE).alias("minute"),
        *WALLS,
    )
