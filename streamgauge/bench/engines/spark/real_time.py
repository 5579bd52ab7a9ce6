"""Spark's Real-time Mode: batches of some seconds, whose rows flow through all operators at once.

Spark's list of allowed sinks has none but its own, so its check is switched off, and made here for the operators alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamgauge.bench.driver.client import Connection, of_each
from streamgauge.bench.driver.system import Endpoint
from streamgauge.bench.engines.spark.progress import ends_of
from streamgauge.bench.workloads.query import Query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BATCH_MS = 5000  # the shortest that Spark takes, unless its own setting says otherwise
POLL_SECONDS = 0.1
SETTINGS = {
    "spark.sql.streaming.realTimeMode.asyncProgressTrackingByDefault.enabled": "false",  # our sink does not take part
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
    # a batch that is repeated must not find its own half-written state
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}


def runs(spark: SparkSession, query: StreamingQuery) -> bool:
    """True once the first batch runs. Raises what Spark says if one of its operators is not allowed."""
    if not spark.sparkContext.statusTracker().getActiveJobsIds():  # then it is not planned yet
        return False
    execution = query._jsq.streamingQuery().lastExecution()
    allowed = spark._jvm.org.apache.spark.sql.execution.streaming.runtime.RealTimeModeAllowlist
    allowed.checkAllowedPhysicalOperator(execution.executedPlan(), True)
    return True


def drain(query: StreamingQuery, endpoints: Sequence[Endpoint], attempt: str) -> None:
    """Waits until the batch has ended that took the last row which was offered."""
    counts = [count for latest in of_each(endpoints, attempt, Connection.latest) for count in latest.rows]
    offered = {str(queue): count for queue, count in enumerate(counts)}
    while query.isActive:
        progress = query.lastProgress
        if progress is not None and all(end == offered for end in ends_of(json.loads(progress.json), 10)):
            return
        time.sleep(POLL_SECONDS)


def account(reports: Sequence[Mapping[str, Any]], query: Query, queues: int) -> dict[str, Any]:
    """The account of a query without state; with state the reason why there is none."""
    if query.late != "never" or any(report.get("stateOperators") for report in reports):
        return {"unchecked": "it emits running answers instead of final ones"}
    everything = {str(queue): 2**62 for queue in range(queues)}
    return {"stretches": [{"ends": [everything] * query.streams, "watermark_ms": None}]}
