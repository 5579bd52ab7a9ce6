"""Query: the first event of each key and window, emitted at once.

An event's duplicates are less than a window away from it in event time. The watermark delay is at least as long, so its
state lives until they would be late anyway. So the answer does not depend on the order, and equals a plain
deduplication.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.windows import WALLS, bounds, watermarked, window
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Uses dropDuplicates in batch, where Spark refuses dropDuplicatesWithinWatermark."""
    (frame,) = frames
    named = watermarked(frame, spec).select("*", window(spec).alias("window"))
    flat = named.select("event_ts", *bounds(), F.col(str(spec.key)).alias("key"), *WALLS, "sentinel")
    identity = ["key", "window_start"]
    single = flat.dropDuplicatesWithinWatermark(identity) if frame.isStreaming else flat.dropDuplicates(identity)
    return single.select("window_start", "window_end", "key", *WALLS, "sentinel")
