"""Bids with the id of their channel: known for four channels, else taken from the URL; without either, left out."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import WALLS, bids
from streamgauge.bench.workloads import Spec

PATTERN = r"[&^]channel_id=([^&]*)"


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    del spec
    number = F.regexp_extract("url", PATTERN, 1)
    known = F.lower("channel")
    channel = F.when(known == "apple", "0").when(known == "google", "1")
    channel = channel.when(known == "facebook", "2").when(known == "baidu", "3").when(number != "", number)
    rows = bids(frame).withColumn("channel_id", channel).where(F.col("channel_id").isNotNull())
    return rows.select("auction", "bidder", "price", "channel", "channel_id", *WALLS)
