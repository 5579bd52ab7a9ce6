"""Events of two streams with equal key in the same window: the join query of Karimov et al., ICDE 2018."""

from __future__ import annotations

from pyspark.sql import DataFrame

from streamgauge.bench.engines.spark.queries.windows import joined_halves
from streamgauge.bench.workloads import Spec


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    return joined_halves(frames, spec, "inner")
