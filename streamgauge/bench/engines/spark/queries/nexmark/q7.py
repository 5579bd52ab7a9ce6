"""Highest bid of each window, which includes its begin and excludes its end; all of them if several are as high."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import WALLS, timed
from streamgauge.bench.engines.spark.queries.windows import bounds, latest, window
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    prices = timed(frame, spec, "bid").groupBy(window(spec).alias("window"), "price")
    each = prices.agg(F.collect_list(F.struct("auction", "bidder", "event_ts")).alias("bids"), *latest())
    best = each.groupBy("window").agg(F.max("price").alias("price"), F.max_by("bids", "price").alias("bids"), *latest())
    rows = best.select("window", "price", F.explode("bids").alias("bid"), *WALLS)
    return rows.select(*bounds(), "price", "bid.auction", "bid.bidder", F.col("bid.event_ts").alias("bid_ts"), *WALLS)
