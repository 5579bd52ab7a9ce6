"""Queries that answer each bid by itself."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import DAY, MINUTE, bids, euros
from streamgauge.bench.engines.spark.queries.windows import WALLS
from streamgauge.bench.workloads import Spec

SKIP = 123  # of q2
SIDE = 10_000  # rows of the side input of q13
LEAST, MOST = 1_000_000, 50_000_000  # prices of q14
CHANNEL_ID = r"[&^]channel_id=([^&]*)"


def q0(frames: list[DataFrame], _: Spec) -> DataFrame:
    """Bids, unchanged."""
    return bids(*frames).select("auction", "bidder", "price", "channel", "url", "event_ts", "extra", *WALLS)


def q1(frames: list[DataFrame], _: Spec) -> DataFrame:
    """Bids with their price in another currency."""
    return bids(*frames).select("auction", "bidder", euros().alias("price"), "event_ts", "extra", *WALLS)


def q2(frames: list[DataFrame], _: Spec) -> DataFrame:
    """Bids on every 123rd auction."""
    return bids(*frames).where(F.col("auction") % SKIP == 0).select("auction", "price", *WALLS)


def q10(frames: list[DataFrame], _: Spec) -> DataFrame:
    """Bids with the day and minute by which their files are partitioned."""
    times = (F.date_format("event_ts", form).alias(name) for name, form in (("day", DAY), ("minute", MINUTE)))
    return bids(*frames).select("auction", "bidder", "price", "event_ts", "extra", *times, *WALLS)


def q13(frames: list[DataFrame], _: Spec) -> DataFrame:
    """Bids joined with the value that a bounded side input has for their auction."""
    (frame,) = frames
    side = frame.sparkSession.range(SIDE).select(
        F.col("id").alias("key"), F.concat(F.lit("side-"), "id").alias("value")
    )
    joined = bids(frame).withColumn("key", F.col("auction") % SIDE).join(F.broadcast(side), "key")
    return joined.select("auction", "bidder", "price", "event_ts", "value", *WALLS)


def q14(frames: list[DataFrame], _: Spec) -> DataFrame:
    """Bids of middling price: the price in another currency, the time of day, a count by a user-defined function."""
    count_c = F.arrow_udf(_count_c, "long")
    hour = F.hour("event_ts")
    time_of_day = F.when((hour >= 8) & (hour <= 18), "dayTime").when((hour <= 6) | (hour >= 20), "nightTime")
    wanted = bids(*frames).withColumn("euros", euros()).where((F.col("euros") > LEAST) & (F.col("euros") < MOST))
    return wanted.select(
        "auction",
        "bidder",
        F.col("euros").alias("price"),
        time_of_day.otherwise("otherTime").alias("bid_time_type"),
        "event_ts",
        "extra",
        count_c("extra").alias("c_counts"),
        *WALLS,
    )


def _count_c(texts: pa.Array) -> pa.Array:
    return pc.count_substring(texts, "c").cast(pa.int64())


def q21(frames: list[DataFrame], _: Spec) -> DataFrame:
    """Bids with the id of their channel: known for four channels, else taken from the URL; without either, left out."""
    number = F.regexp_extract("url", CHANNEL_ID, 1)
    known = F.lower("channel")
    channel = F.when(known == "apple", "0").when(known == "google", "1")
    channel = channel.when(known == "facebook", "2").when(known == "baidu", "3").when(number != "", number)
    rows = bids(*frames).withColumn("channel_id", channel).where(F.col("channel_id").isNotNull())
    return rows.select("auction", "bidder", "price", "channel", "channel_id", *WALLS)


def q22(frames: list[DataFrame], _: Spec) -> DataFrame:
    """Bids with the three directories of their URL."""
    parts = F.split("url", "/")
    directories = (parts[n + 2].alias(f"dir{n}") for n in (1, 2, 3))
    return bids(*frames).select("auction", "bidder", "price", "channel", *directories, *WALLS)
