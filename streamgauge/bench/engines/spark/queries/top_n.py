"""The N largest values per key and window. The state of a group is its N rows, not all that it has seen."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.windows import WALLS, bounds, by_window, exact, latest
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    row = F.struct(exact(frame, spec.value).alias("value"), F.col("seq"))
    order = F.struct(exact(frame, spec.value), -F.col("seq"))
    largest = by_window(frame, spec).agg(F.max_by(row, order, spec.top).alias("rows"), *latest())
    ranked = largest.select(*bounds(), "key", F.posexplode("rows").alias("rank", "row"), *WALLS)
    rank = (F.col("rank") + 1).alias("rank")
    return ranked.select("window_start", "window_end", "key", rank, "row.value", "row.seq", *WALLS)
