"""No event at all: shows what an engine reads when its query answers nothing, the ceiling of its link."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streamgauge.bench.engines.spark.queries.windows import WALLS
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:  # noqa: ARG001 - it asks for no column
    (frame,) = frames
    # a condition on the rows: a query that is empty by its plan would not read them
    return frame.where("sentinel").select("seq", "event_time", *WALLS, "sentinel")
