"""Spark's answers to the queries: a file for each, the same in batch and in streaming.

A query is `query(frames, spec) -> frame`: no session, no clock, no writing. Its result carries `event_wall` and
`offered_wall`, the largest wall times among the contributors of each row.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

from streamgauge.base.schemas import RESERVED
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
    """The result frame of a query over frames that each hold the whole stream.

    A query knows its key and its value by these names alone, so that their own ones cannot clash with what it makes.
    """
    named = {role: column for role, column in (("key", spec.key), ("value", spec.value)) if column is not None}
    if find(spec.query).reads or find(spec.query).line:  # Nexmark's have their own, and an event that passes keeps them
        named = {}
    inner = replace(spec, key="key" if "key" in named else spec.key, value="value" if "value" in named else spec.value)
    return importlib.import_module(f"{__package__}.{spec.query}").query([_renamed(f, named) for f in frames], inner)


def _renamed(frame: Any, named: dict[str, str]) -> Any:
    """The frame with the wire's own columns, and these of the workload under other names."""
    own = [name for name in frame.columns if name in RESERVED]
    if not named:
        return frame
    return frame.select(*own, *(frame[f"`{column}`"].alias(role) for role, column in named.items()))
