"""The N largest values per key and window. The state of a group is its N rows, not all that it has seen."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.windows import bounds, exact, latest, watermarked, window
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    row = F.struct(exact(frame, spec.value).alias("value"), F.col("seq"))
    order = F.struct(exact(frame, spec.value), -F.col("seq"))
    groups = watermarked(frame, spec).groupBy(window(spec).alias("window"), F.col(str(spec.key)).alias("key"))
    ranked = groups.agg(F.max_by(row, order, spec.top).alias("rows"), *latest()).select(
        *bounds(), "key", F.posexplode("rows").alias("rank", "row"), "event_wall", "offered_wall"
    )
    return ranked.select(
        "window_start",
        "window_end",
        "key",
        (F.col("rank") + 1).alias("rank"),
        "row.value",
        "row.seq",
        "event_wall",
        "offered_wall",
    )
