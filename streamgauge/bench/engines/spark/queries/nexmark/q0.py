"""Query q0: bids, unchanged."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streamgauge.bench.engines.spark.queries.nexmark.events import WALLS, bids
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    del spec
    return bids(frame).select("auction", "bidder", "price", "channel", "url", "event_ts", "extra", *WALLS)
