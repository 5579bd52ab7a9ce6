"""Events of two streams with equal key in the same window: the join query of Karimov et al., ICDE 2018.

The two streams are the two halves of one: the parity of seq + event time in microseconds tells to which an event
belongs. That the rule names the event time keeps the optimiser from filtering before the watermark is taken.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.workloads import Spec
from streamgauge.workloads.windows import watermarked, window


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    left, right = (
        _half(frame, number, name, spec)
        for number, (frame, name) in enumerate(zip(frames, ("left", "right"), strict=True))
    )
    return left.join(right, ["window", "key"]).select(
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        "key",
        *(f"{side}_{name}" for side in ("left", "right") for name in ("seq", *(["value"] if spec.value else []))),
        F.greatest("left_event_wall", "right_event_wall").alias("event_wall"),
        F.greatest("left_offered_wall", "right_offered_wall").alias("offered_wall"),
    )


def _half(frame: DataFrame, number: int, name: str, spec: Spec) -> DataFrame:
    assert spec.key is not None
    half = F.pmod(F.unix_micros("event_ts") + F.col("seq"), F.lit(2)) == number
    return (
        watermarked(frame, spec)
        .where(half)
        .select(
            window(spec).alias("window"),
            F.col(spec.key).alias("key"),
            F.col("seq").alias(f"{name}_seq"),
            *([F.col(spec.value).alias(f"{name}_value")] if spec.value else []),
            F.col("event_wall").alias(f"{name}_event_wall"),
            F.col("offered_wall").alias(f"{name}_offered_wall"),
        )
    )
