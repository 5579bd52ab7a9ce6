"""The winning bid of each auction, when it closes."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streamgauge.workloads import Spec
from streamgauge.workloads.nexmark.winners import winners


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    return winners(frames, spec)
