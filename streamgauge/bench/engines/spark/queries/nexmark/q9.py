"""The winning bid of each auction, when it closes."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streamgauge.bench.engines.spark.queries.nexmark.winners import winners
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    return winners(frames, spec)
