"""Spark's answers to the queries, the same in batch and in streaming: a file for each, or for a sort of Nexmark's.

A query is `query(frames, spec) -> frame`: no session, no clock, no writing. Its result carries `event_wall` and
`offered_wall`, the largest wall times among the contributors of each row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from streamgauge.base.plugins import loaded
from streamgauge.base.schemas import RESERVED
from streamgauge.bench.engines.spark.queries.nexmark import PLACES
from streamgauge.bench.workloads import Spec, find
from streamgauge.records.rules import Counted, Pace, Rules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: results that have come out stay: the sink refuses every other mode
OUTPUT_MODE = "append"
#: time between micro-batches of a stream at its own speed, where no trigger is set: about what one of few rows takes
BATCH_US = 1_000_000
#: one watermark for all queues. A micro-batch is judged by that of the one before, which follows the events of the one
#: before that. The first watermark is 0 (WatermarkTracker.globalWatermarkMs): what ends before 1970 is late at once.
RULES = Rules(
    pace=Pace("micro-batch", BATCH_US, behind=2, step_us=1000), equal_is_late=True, joins_first=False, begins_ms=0
)


def rules(spec: Spec, interval_us: int = BATCH_US, *, one_watermark: bool = False) -> Rules:
    """Spark's late rules for a query, and what Spark counts as late.

    If all operators share one watermark, it is that of the micro-batch itself, and none lags behind it.
    """
    query = find(spec.query)
    # numRowsDroppedByWatermark counts groups of a micro-batch where it groups before it drops
    counted: Counted = "none" if query.late == "never" else "groups" if query.groups_first else "rows"
    return replace(
        RULES,
        operators=spec.operators(lagging=not one_watermark),
        delay_us=spec.watermark_ms * 1000,
        pace=replace(RULES.pace, interval_us=interval_us, behind=1 if one_watermark else 2),
        late_counted=counted,
    )


def place(spec: Spec) -> str:
    """Returns the package.module:function that answers. Raises UserError for a package's query that Spark has not."""
    return find(spec.query).code_for("spark", PLACES.get(spec.query, f"{__package__}.{spec.query}:query"))


def run(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """The result frame of a query over frames that each hold the whole stream.

    A query finds key and value under these two names, so that the source's names cannot clash with what it makes.
    """
    query, answer = find(spec.query), loaded(place(spec), f"query {spec.query}")
    named = {role: column for role, column in (("key", spec.key), ("value", spec.value)) if column is not None}
    if query.reads or query.line:  # Nexmark's have their own, and an event that passes keeps them
        named = {}
    inner = replace(spec, key="key" if "key" in named else spec.key, value="value" if "value" in named else spec.value)
    assert callable(answer)
    result: DataFrame = answer([_renamed(frame, named, query.columns) for frame in frames], inner)
    return result


def _renamed(frame: DataFrame, named: dict[str, str], columns: tuple[str, ...]) -> DataFrame:
    """The frame with the wire's own columns, the query's columns, and these of the workload under other names."""
    if not named:
        return frame
    kept = [f"`{name}`" for name in frame.columns if name in RESERVED or name in columns]
    return frame.select(*kept, *(frame[f"`{column}`"].alias(role) for role, column in named.items()))
