"""The auction with most bids in each sliding window; all of them if several have as many."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import WALLS, timed
from streamgauge.bench.engines.spark.queries.windows import bounds, latest, window
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    counts = timed(frame, spec, "bid").groupBy(window(spec).alias("window"), "auction")
    each = counts.agg(F.count("*").alias("bids"), *latest())
    most = each.groupBy("window").agg(
        F.max("bids").alias("most"), F.collect_list(F.struct("auction", "bids")).alias("all"), *latest()
    )
    hot = most.select("window", F.explode(F.expr("filter(all, one -> one.bids = most)")).alias("hot"), *WALLS)
    return hot.select(*bounds(), "hot.auction", "hot.bids", *WALLS)
