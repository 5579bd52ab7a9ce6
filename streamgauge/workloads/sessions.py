"""Count and sum per key and session; a gap as long as the window ends a session."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.workloads import Spec
from streamgauge.workloads.windows import bounds, exact, latest, micros, watermarked


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Aggregates by session; the sentinel's own session never closes, so it is in no result."""
    (frame,) = frames
    session = F.session_window("event_ts", micros(spec.window_us)).alias("window")
    groups = watermarked(frame, spec).groupBy(session, F.col(str(spec.key)).alias("key"))
    return groups.agg(F.count("*").alias("events"), F.sum(exact(frame, spec.value)).alias("total"), *latest()).select(
        *bounds(), "key", "events", "total", "event_wall", "offered_wall"
    )
