"""The counts of q15 per channel and day, with the minute of the last bid."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import DAY, MINUTE, WALLS, distinct, timed
from streamgauge.bench.engines.spark.queries.windows import latest, window
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Aggregates by window, which is a day."""
    (frame,) = frames
    minute = F.max(F.date_format("event_ts", MINUTE)).alias("minute")
    groups = timed(frame, spec, "bid").groupBy(window(spec).alias("window"), "channel")
    counts = groups.agg(minute, *distinct(), *latest())
    names = [name for name in counts.columns if name not in ("window", *WALLS)]
    return counts.select(F.date_format("window.start", DAY).alias("day"), *names, *WALLS)
