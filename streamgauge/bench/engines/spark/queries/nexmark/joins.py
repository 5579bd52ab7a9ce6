"""Queries that join streams. Events more than a window apart are not joined, which bounds the state."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import latest_of, near, renamed, timed
from streamgauge.bench.engines.spark.queries.windows import WALLS
from streamgauge.bench.workloads import Spec

CATEGORY = 10
STATES = ("OR", "ID", "CA")


def q3(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """People who sell in category 10 in Oregon, Idaho or California."""
    persons = timed(frames[0], spec, "person", where=F.col("state").isin(*STATES))
    auctions = timed(frames[1], spec, "auction", where=F.col("category") == CATEGORY)
    sellers = renamed(persons, "p", "id", "name", "city", "state")
    sold = renamed(auctions, "a", "id", "seller")
    joined = sellers.join(sold, (F.col("p_id") == F.col("a_seller")) & near("p", "a", spec))
    names = {"p_name": "name", "p_city": "city", "p_state": "state", "a_id": "id"}
    return joined.select(*(F.col(name).alias(own) for name, own in names.items()), *latest_of("p", "a"))


def q20(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Bids with their auction of category 10."""
    auctions = timed(frames[1], spec, "auction", where=F.col("category") == CATEGORY)
    bid = renamed(timed(frames[0], spec, "bid"), "b", "auction", "bidder", "price", "channel", "url", "extra")
    sold = renamed(
        auctions, "a", "id", "name", "description", "initial_bid", "reserve", "expires", "seller", "category"
    )
    joined = bid.join(sold, (F.col("b_auction") == F.col("a_id")) & near("a", "b", spec))
    return _without(joined, "ab", "a_id")


def q23(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Bids with their auction and bidder."""
    bid = renamed(timed(frames[0], spec, "bid"), "b", "seq", "auction", "bidder", "price", "channel", "url")
    sold = renamed(timed(frames[1], spec, "auction"), "a", "id", "name", "category", "seller")
    person = renamed(timed(frames[2], spec, "person"), "p", "id", "name", "city", "state")
    auctioned = bid.join(sold, (F.col("b_auction") == F.col("a_id")) & near("a", "b", spec)).drop("a_event_ts")
    joined = auctioned.join(person, (F.col("b_bidder") == F.col("p_id")) & near("b", "p", spec))
    return _without(joined, "bap", "p_event_ts", "a_id", "p_id")


def _without(joined: DataFrame, sides: str, *names: str) -> DataFrame:
    """The joined rows without these columns, with the largest walls of their sides."""
    left_out = (*names, *(f"{side}_{wall}" for side in sides for wall in WALLS))
    return joined.select(*(name for name in joined.columns if name not in left_out), *latest_of(*sides))
