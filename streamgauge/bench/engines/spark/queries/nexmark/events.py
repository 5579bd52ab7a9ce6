"""Functions that the Nexmark queries share. A frame holds persons, auctions and bids in one table (schemas.NEXMARK)."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from streamgauge.base.schemas import NEXMARK_IDS
from streamgauge.bench.engines.spark.queries.windows import WALLS, micros, watermarked
from streamgauge.bench.workloads import Spec

DAY = "yyyy-MM-dd"
MINUTE = "HH:mm"
#: bounds of the three ranks of prices in q15 to q17: below the first, from the first on, from the second on
RANKS = (10_000, 1_000_000)


def row_of(schema: str) -> Row:
    """Row class with the columns of a DDL text: transformWithState wants rows with names."""
    return Row(*(field.split()[0] for field in schema.split(", ")))


def bids(frame: DataFrame) -> DataFrame:
    """The bids of a frame, for queries that need no watermark."""
    return frame.where(F.col("kind") == "bid")


def some_time(name: str = "event_ts") -> Column:
    """A condition that is always true without the optimiser knowing it.

    A filter that names the event time stays above the watermark.
    """
    return F.col(name) >= F.lit(datetime(1, 1, 2))


def timed(frame: DataFrame, spec: Spec, *kinds: str, where: Column | None = None) -> DataFrame:
    """The events of these kinds that satisfy `where`, under the watermark of all events."""
    wanted = F.col("kind").isin(*kinds) if where is None else F.col("kind").isin(*kinds) & where
    return watermarked(frame, spec).where(wanted | ~some_time())


def joinable(name: str) -> Column:
    """A column to join by: the engine removes its nulls before the join, but not before the watermark."""
    return F.when(some_time(), F.col(name)).otherwise(F.col("seq"))


def renamed(frame: DataFrame, prefix: str, *names: str) -> DataFrame:
    """Selects these columns, the event time and the wall times for a join, each name with the prefix."""
    columns = (joinable(name) if name in NEXMARK_IDS else F.col(name) for name in (*names, "event_ts", *WALLS))
    labels = (f"{prefix}_{name}" for name in (*names, "event_ts", *WALLS))
    return frame.select(*(column.alias(label) for column, label in zip(columns, labels, strict=True)))


def near(left: str, right: str, spec: Spec) -> Column:
    """The condition that event times are at most a window apart, which bounds the state of a join."""
    span = f"interval '{micros(spec.window_us)}'"
    return F.expr(f"{right}_event_ts between {left}_event_ts - {span} and {left}_event_ts + {span}")


def latest_of(*prefixes: str) -> list[Column]:
    """The wall times of a joined row: the largest of its parts."""
    return [F.greatest(*(F.col(f"{prefix}_{wall}") for prefix in prefixes)).alias(wall) for wall in WALLS]


def euros() -> Column:
    """The price in euros, in whole numbers as in Beam."""
    return F.expr("price * 89 div 100")


def per_rank(of: Column | None = None) -> list[Column]:
    """A column for each rank of price: its condition or, with `of`, that column where the condition holds."""
    price = F.col("price")
    ranks = (price < RANKS[0], (price >= RANKS[0]) & (price < RANKS[1]), price >= RANKS[1])
    return [rank if of is None else F.when(rank, of) for rank in ranks]


def distinct() -> list[Column]:
    """Counts of bids, of distinct bidders and of distinct auctions: of all, and of each rank of price."""
    columns = [F.count("*").alias("total_bids")]
    columns += [F.count_if(rank).alias(f"rank{n}_bids") for n, rank in enumerate(per_rank(), 1)]
    for name in ("bidder", "auction"):
        parts = [F.col(name), *per_rank(F.col(name))]
        labels = [f"total_{name}s", *(f"rank{n}_{name}s" for n in (1, 2, 3))]
        columns += [F.size(F.collect_set(part)).alias(label) for part, label in zip(parts, labels, strict=True)]
    return columns
