"""Query q3: people who sell in category 10 in Oregon, Idaho or California.

Events more than a window apart are not joined, which bounds the state.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.bench.engines.spark.queries.nexmark.events import latest_of, near, renamed, timed
from streamgauge.bench.workloads import Spec

CATEGORY = 10
STATES = ("OR", "ID", "CA")


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    persons = timed(frames[0], spec, "person", where=F.col("state").isin(*STATES))
    auctions = timed(frames[1], spec, "auction", where=F.col("category") == CATEGORY)
    sellers = renamed(persons, "p", "id", "name", "city", "state")
    sold = renamed(auctions, "a", "id", "seller")
    joined = sellers.join(sold, (F.col("p_id") == F.col("a_seller")) & near("p", "a", spec))
    return joined.select(
        F.col("p_name").alias("name"),
        F.col("p_city").alias("city"),
        F.col("p_state").alias("state"),
        F.col("a_id").alias("id"),
        *latest_of("p", "a"),
    )
