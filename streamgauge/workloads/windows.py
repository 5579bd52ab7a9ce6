"""What windowed queries share."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.workloads import Spec


def watermarked(frame: DataFrame, spec: Spec) -> DataFrame:
    """Filters after this must name event_ts, or the optimiser lets them hide events from the watermark."""
    return frame.withWatermark("event_ts", f"{spec.watermark_ms} milliseconds")


def window(spec: Spec) -> Column:
    length = f"{spec.window_us} microseconds"
    slide = f"{spec.slide_us or spec.window_us} microseconds"
    return F.window("event_ts", length, slide, f"{spec.offset_us} microseconds")


def exact(frame: DataFrame, column: str) -> Column:
    """The value as an integer, a float in millionths: sums must not depend on their order. Null when it is no number."""
    if dict(frame.dtypes)[column] == "double":
        return F.expr(f"try_cast(round(`{column}` * 1e6) as bigint)")
    return F.col(column)
