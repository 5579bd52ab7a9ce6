"""Health monitoring: an event counts in its own window, a failure also in the next three.

Spark has no such windows. So the query uses sliding windows four times as long, each of which stands for its last
quarter. It holds every event that may count in that quarter; a filter leaves out those that do not.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.windows import WALLS, latest, marked, micros, watermarked, window
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    key, failure = F.col(str(spec.key)).alias("key"), marked(spec).alias("failure")
    within = watermarked(frame, spec).select(window(spec).alias("window"), key, failure, "event_ts", *WALLS)
    own = F.col("window.end") - F.expr(f"INTERVAL '{micros(spec.window_us)}'")
    groups = within.where(F.col("failure") | (F.col("event_ts") >= own)).groupBy("window", "key")
    failures = F.count_if("failure").alias("failures")
    return groups.agg(F.count("*").alias("events"), failures, *latest()).select(
        own.alias("window_start"), F.col("window.end").alias("window_end"), "key", "events", "failures", *WALLS
    )
