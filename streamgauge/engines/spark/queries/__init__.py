"""Spark's answers to the queries: a file for each, the same in batch and in streaming.

A query is `query(frames, spec) -> frame`: no session, no clock, no writing. Its result carries `event_wall` and
`offered_wall`, the largest wall times among the contributors of each row.
"""

from __future__ import annotations

import importlib
from typing import Any

from streamgauge.workloads import Spec

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


def run(frames: list[Any], spec: Spec) -> Any:
    """The result frame of a query over frames that each hold the whole stream."""
    return importlib.import_module(f"{__package__}.{spec.query}").query(frames, spec)
