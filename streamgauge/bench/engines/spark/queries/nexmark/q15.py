"""Counts of bids, distinct bidders and distinct auctions per day: of all bids and by rank of price."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import DAY, WALLS, distinct, timed
from streamgauge.bench.engines.spark.queries.windows import latest, window
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Aggregates by window, which is a day."""
    (frame,) = frames
    groups = timed(frame, spec, "bid").groupBy(window(spec).alias("window")).agg(*distinct(), *latest())
    names = [name for name in groups.columns if name not in ("window", *WALLS)]
    return groups.select(F.date_format("window.start", DAY).alias("day"), *names, *WALLS)
