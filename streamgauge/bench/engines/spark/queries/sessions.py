"""Count and sum per key and session; a gap as long as the window ends a session."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.windows import WALLS, bounds, exact, latest, micros, watermarked
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Aggregates by session; the sentinel's own session never closes, so it is in no result."""
    (frame,) = frames
    session = F.session_window("event_ts", micros(spec.window_us)).alias("window")
    groups = watermarked(frame, spec).groupBy(session, F.col(str(spec.key)).alias("key"))
    return groups.agg(F.count("*").alias("events"), F.sum(exact(frame, spec.value)).alias("total"), *latest()).select(
        *bounds(), "key", "events", "total", *WALLS
    )
