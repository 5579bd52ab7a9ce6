"""Queries over windows and sessions."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import (
    DAY,
    MINUTE,
    distinct,
    joinable,
    latest_of,
    some_time,
    timed,
)
from streamgauge.bench.engines.spark.queries.windows import WALLS, bounds, latest, micros, window
from streamgauge.bench.workloads import Spec

CLOSING = "interval 1 day"


def q5(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """The auction with most bids in each sliding window; all of them if several have as many."""
    each = _bids_by(frames, spec, "auction").agg(F.count("*").alias("bids"), *latest())
    most = each.groupBy("window").agg(
        F.max("bids").alias("most"), F.collect_list(F.struct("auction", "bids")).alias("all"), *latest()
    )
    hot = most.select("window", F.explode(F.expr("filter(all, one -> one.bids = most)")).alias("hot"), *WALLS)
    return hot.select(*bounds(), "hot.auction", "hot.bids", *WALLS)


def q7(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Highest bid of each window, which includes its begin and excludes its end; all of them if several are as high."""
    bids = F.collect_list(F.struct("auction", "bidder", "event_ts")).alias("bids")
    each = _bids_by(frames, spec, "price").agg(bids, *latest())
    best = each.groupBy("window").agg(F.max("price").alias("price"), F.max_by("bids", "price").alias("bids"), *latest())
    rows = best.select("window", "price", F.explode("bids").alias("bid"), *WALLS)
    return rows.select(*bounds(), "price", "bid.auction", "bid.bidder", F.col("bid.event_ts").alias("bid_ts"), *WALLS)


def q8(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """People who joined and opened an auction in the same window."""
    joined = _each(timed(frames[0], spec, "person"), spec, "id", "name").agg(*latest())
    opened = _each(timed(frames[1], spec, "auction"), spec, "seller").agg(F.count("*").alias("auctions"), *latest())
    left = joined.select("window", "id", "name", *_walls("p"))
    right = opened.select("window", "id", "auctions", *_walls("a"))
    return left.join(right, ["window", "id"]).select(*bounds(), "id", "name", "auctions", *latest_of("p", "a"))


def _each(frame: DataFrame, spec: Spec, key: str, *more: str) -> GroupedData:
    return frame.groupBy(window(spec).alias("window"), joinable(key).alias("id"), *more)


def _walls(prefix: str) -> list[Column]:
    return [F.col(wall).alias(f"{prefix}_{wall}") for wall in WALLS]


def q11(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Bids of each user per session; a session ends with a gap of one window."""
    session = F.session_window("event_ts", micros(spec.window_us)).alias("window")
    return _counted(timed(frames[0], spec, "bid").groupBy(session, "bidder"))


def q12(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Bids of each user per window of the engine's own clock, which is the time of the micro-batch.

    The sentinel comes a day later, so that all windows end.
    """
    (frame,) = frames
    now = F.current_timestamp()
    clock = F.when(F.col("kind").isNull(), now + F.expr(CLOSING)).otherwise(now)
    clocked = frame.withColumn("clock", clock).withWatermark("clock", "0 seconds")
    wanted = (F.col("kind") == "bid") | ~some_time("clock")
    return _counted(clocked.where(wanted).groupBy(F.window("clock", micros(spec.window_us)).alias("window"), "bidder"))


def _counted(groups: GroupedData) -> DataFrame:
    return groups.agg(F.count("*").alias("bids"), *latest()).select(*bounds(), "bidder", "bids", *WALLS)


def q15(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Counts of bids, distinct bidders and distinct auctions per day, a window: of all bids and by rank of price."""
    return _by_day(_bids_by(frames, spec).agg(*distinct(), *latest()))


def q16(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """The counts of q15 per channel and day, with the minute of the last bid."""
    minute = F.max(F.date_format("event_ts", MINUTE)).alias("minute")
    return _by_day(_bids_by(frames, spec, "channel").agg(minute, *distinct(), *latest()))


def _bids_by(frames: list[DataFrame], spec: Spec, *columns: str) -> GroupedData:
    return timed(frames[0], spec, "bid").groupBy(window(spec).alias("window"), *columns)


def _by_day(counts: DataFrame) -> DataFrame:
    names = [name for name in counts.columns if name not in ("window", *WALLS)]
    return counts.select(F.date_format("window.start", DAY).alias("day"), *names, *WALLS)
