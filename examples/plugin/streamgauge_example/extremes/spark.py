"""Spark's answer: smallest and largest value per key and window."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.windows import bounds, exact, latest, watermarked, window
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    value = exact(frame, spec.value)
    groups = watermarked(frame, spec).groupBy(window(spec).alias("window"), F.col(str(spec.key)).alias("key"))
    answers = groups.agg(F.min(value).alias("smallest"), F.max(value).alias("largest"), *latest())
    return answers.select(*bounds(), "key", "smallest", "largest", "event_wall", "offered_wall")
