"""A windowed aggregation over another: the largest value per key and window, then their sum, two windows at a time.

The first operator emits a window when the watermark has passed its end: for a second operator with the same watermark
that row is late. So the result is only right if each operator has a watermark of its own.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.windows import WALLS, bounds, exact, latest, micros, watermarked, window
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    groups = watermarked(frame, spec).groupBy(window(spec).alias("first"), F.col(str(spec.key)).alias("key"))
    first = groups.agg(F.max(exact(frame, spec.value)).alias("value"), *latest())
    double = micros(2 * spec.window_us)
    pairs = F.window(F.window_time("first"), double, double, micros(spec.offset_us)).alias("window")
    return (
        first.groupBy(pairs)
        .agg(F.count("*").alias("groups"), F.sum("value").alias("total"), *latest())
        .select(*bounds(), "groups", "total", *WALLS)
    )
