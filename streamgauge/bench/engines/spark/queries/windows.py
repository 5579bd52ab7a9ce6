"""Functions that windowed queries share."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F

from streamgauge.bench.workloads import Spec

#: the largest wall times among the contributors of a row
WALLS = ("event_wall", "offered_wall")


def watermarked(frame: DataFrame, spec: Spec) -> DataFrame:
    """Sets the watermark. Filters after it must name event_ts, or the optimiser lets them hide events from it."""
    return frame.withWatermark("event_ts", f"{spec.watermark_ms} milliseconds")


def window(spec: Spec) -> Column:
    return F.window("event_ts", micros(spec.length_us), micros(spec.step_us), micros(spec.offset_us))


def by_window(frame: DataFrame, spec: Spec) -> GroupedData:
    """The events of each window and key."""
    return watermarked(frame, spec).groupBy(window(spec).alias("window"), F.col(str(spec.key)).alias("key"))


def micros(count: int) -> str:
    return f"{count} microseconds"


def bounds(name: str = "window") -> list[Column]:
    return [F.col(f"{name}.start").alias("window_start"), F.col(f"{name}.end").alias("window_end")]


def latest() -> list[Column]:
    """The largest wall times among a group's contributors."""
    return [F.max(wall).alias(wall) for wall in WALLS]


def exact(frame: DataFrame, column: str | None) -> Column:
    """The value as an integer (a float in millionths): sums must not depend on their order. Null if it is no number."""
    if dict(frame.dtypes)[str(column)] == "double":
        return F.expr(f"try_cast(round(`{column}` * 1e6) as bigint)")
    return F.col(str(column))


def marked(spec: Spec) -> Column:
    """A column that is true for events of the second kind."""
    return F.coalesce(F.col(str(spec.value)).cast("string") == F.lit(spec.mark), F.lit(False))


def joined_halves(frames: list[DataFrame], spec: Spec, how: str) -> DataFrame:
    """Joins the two halves of one stream by window and key; null keys match nothing.

    The parity of seq + event time in microseconds decides to which half an event belongs. With plain equality, the
    optimiser would drop null keys before the watermark is taken, and with them the sentinel: the last unmatched rows
    would never come out. So keys are compared null-safe. Null keys leave the right half in the one filter that names
    the event time, which stays behind the watermark.
    """
    left, right = (
        _half(frame, number, name, spec)
        for number, (frame, name) in enumerate(zip(frames, ("left", "right"), strict=True))
    )
    meet = (F.col("left_window") == F.col("right_window")) & F.col("left_key").eqNullSafe(F.col("right_key"))
    return left.join(right, meet, how).select(
        *bounds("left_window"),
        F.col("left_key").alias("key"),
        *(f"{side}_{name}" for side in ("left", "right") for name in ("seq", *(["value"] if spec.value else []))),
        *(F.greatest(f"left_{wall}", f"right_{wall}").alias(wall) for wall in WALLS),
    )


def _half(frame: DataFrame, number: int, name: str, spec: Spec) -> DataFrame:
    key = F.col(str(spec.key))
    half = F.pmod(F.unix_micros("event_ts") + F.col("seq"), F.lit(2))
    mine = F.lit(number) if number == 0 else F.when(key.isNull(), F.lit(-1)).otherwise(F.lit(number))
    return (
        watermarked(frame, spec)
        .where(half == mine)
        .select(
            window(spec).alias(f"{name}_window"),
            key.alias(f"{name}_key"),
            F.col("seq").alias(f"{name}_seq"),
            *([F.col(spec.value).alias(f"{name}_value")] if spec.value else []),
            *(F.col(wall).alias(f"{name}_{wall}") for wall in WALLS),
        )
    )
