"""Bids with their auction of category 10. Events more than a window apart are not joined, which bounds the state."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import latest_of, near, renamed, timed
from streamgauge.bench.workloads import Spec

CATEGORY = 10


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    auctions = timed(frames[1], spec, "auction", where=F.col("category") == CATEGORY)
    bid = renamed(timed(frames[0], spec, "bid"), "b", "auction", "bidder", "price", "channel", "url", "extra")
    sold = renamed(
        auctions, "a", "id", "name", "description", "initial_bid", "reserve", "expires", "seller", "category"
    )
    joined = bid.join(sold, (F.col("b_auction") == F.col("a_id")) & near("a", "b", spec))
    walls = ("a_event_wall", "a_offered_wall", "b_event_wall", "b_offered_wall", "a_id")
    return joined.select(*(name for name in joined.columns if name not in walls), *latest_of("a", "b"))
