"""Query: events, unchanged; shows the cost of the link and the engine without any state."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streamgauge.bench.engines.spark.queries.windows import WALLS
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    columns = dict.fromkeys(name for name in (spec.key, spec.value) if name is not None)
    return frame.select("seq", "event_time", *(frame[f"`{name}`"] for name in columns), *WALLS, "sentinel")
