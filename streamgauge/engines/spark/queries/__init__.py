"""Spark's answers to the queries: a file for each, the same in batch and in streaming.

A query is `query(frames, spec) -> frame`: no session, no clock, no writing. Its result carries `event_wall` and
`offered_wall`, the largest wall times among the contributors of each row.
"""

from __future__ import annotations

import importlib
from typing import Any

from streamgauge.oracle.batches import Rules
from streamgauge.workloads import Spec, find

#: results that have come out stay: the sink refuses every other mode
OUTPUT_MODE = "append"
#: queries with transformWithState, which takes no other state store than RocksDB
NEED_ROCKSDB = {
    "incremental_join",
    "nexmark.q4",
    "nexmark.q6",
    "nexmark.q9",
    "nexmark.q17",
    "nexmark.q18",
    "nexmark.q19",
}

#: queries that group before they drop: Spark's numRowsDroppedByWatermark counts groups of a micro-batch there
_COUNT_GROUPS = {
    "windowed_aggregation",
    "top_n",
    "sessions",
    "custom_windows",
    "chained_windows",
    "nexmark.q5",
    "nexmark.q7",
    "nexmark.q8",
    "nexmark.q11",
    "nexmark.q15",
    "nexmark.q16",
}
#: for each frame, how many windows the watermark of its operator lies behind
_LAGS = {"nexmark.q23": (0, 0, 1)}


def rules(query: str) -> Rules:
    """Spark's rules for event time in a query: one watermark for all queues, and what Spark counts as late.

    Its watermark begins at 0 (WatermarkTracker.globalWatermarkMs), by which what ends before 1970 is late at once.
    """
    never = find(query).late == "never"
    counted = "none" if never else "groups" if query in _COUNT_GROUPS else "rows"
    return Rules(late_counted=counted, lags=_LAGS.get(query, ()), begins_ms=0)


def run(frames: list[Any], spec: Spec) -> Any:
    """The result frame of a query over frames that each hold the whole stream."""
    return importlib.import_module(f"{__package__}.{spec.query}").query(frames, spec)
