"""Bids with their auction and bidder. Events more than a window apart are not joined, which bounds the state."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import latest_of, near, renamed, timed
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    bid = renamed(timed(frames[0], spec, "bid"), "b", "seq", "auction", "bidder", "price", "channel", "url")
    sold = renamed(timed(frames[1], spec, "auction"), "a", "id", "name", "category", "seller")
    person = renamed(timed(frames[2], spec, "person"), "p", "id", "name", "city", "state")
    auctioned = bid.join(sold, (F.col("b_auction") == F.col("a_id")) & near("a", "b", spec)).drop("a_event_ts")
    joined = auctioned.join(person, (F.col("b_bidder") == F.col("p_id")) & near("b", "p", spec))
    left_out = (
        "p_event_ts",
        "a_id",
        "p_id",
        *(f"{side}_{w}" for side in "abp" for w in ("event_wall", "offered_wall")),
    )
    return joined.select(*(name for name in joined.columns if name not in left_out), *latest_of("b", "a", "p"))
