"""Query q1: bids with their price in another currency."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streamgauge.bench.engines.spark.queries.nexmark.events import WALLS, bids, euros
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    del spec
    return bids(frame).select("auction", "bidder", euros().alias("price"), "event_ts", "extra", *WALLS)
