"""Bids with the three directories of their URL."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import WALLS, bids
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    del spec
    parts = F.split("url", "/")
    directories = (parts[n + 2].alias(f"dir{n}") for n in (1, 2, 3))
    return bids(frame).select("auction", "bidder", "price", "channel", *directories, *WALLS)
