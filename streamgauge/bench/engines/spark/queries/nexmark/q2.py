"""Bids on every 123rd auction."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import WALLS, bids
from streamgauge.bench.workloads import Spec

SKIP = 123


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    del spec
    return bids(frame).where(F.col("auction") % SKIP == 0).select("auction", "price", *WALLS)
