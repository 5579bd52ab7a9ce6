"""Bids of each user per session; a session ends with a gap of one window."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import timed
from streamgauge.bench.engines.spark.queries.windows import bounds, latest, micros
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    session = F.session_window("event_ts", micros(spec.window_us)).alias("window")
    groups = timed(frame, spec, "bid").groupBy(session, "bidder")
    return groups.agg(F.count("*").alias("bids"), *latest()).select(
        *bounds(), "bidder", "bids", "event_wall", "offered_wall"
    )
