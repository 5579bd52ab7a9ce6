"""The winning bid of each auction, when it closes."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streamgauge.engines.spark.queries.nexmark.winners import winners
from streamgauge.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    return winners(frames, spec)
