"""People who joined and opened an auction in the same window."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import WALLS, joinable, latest_of, timed
from streamgauge.bench.engines.spark.queries.windows import bounds, latest, window
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    joined = _each(timed(frames[0], spec, "person"), spec, "id", "name").agg(*latest())
    opened = _each(timed(frames[1], spec, "auction"), spec, "seller").agg(F.count("*").alias("auctions"), *latest())
    left = joined.select("window", "id", "name", *_walls("p"))
    right = opened.select("window", "id", "auctions", *_walls("a"))
    return left.join(right, ["window", "id"]).select(*bounds(), "id", "name", "auctions", *latest_of("p", "a"))


def _each(frame: DataFrame, spec: Spec, key: str, *more: str) -> GroupedData:
    return frame.groupBy(window(spec).alias("window"), joinable(key).alias("id"), *more)


def _walls(prefix: str) -> list[Column]:
    return [F.col(wall).alias(f"{prefix}_{wall}") for wall in WALLS]
