"""The last bid of each bidder on each auction, emitted again when a later one has come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from streamgauge.bench.engines.spark.queries.nexmark.events import WALLS, bids
from streamgauge.bench.workloads import Spec

STATE = "at_us long, seq long"
KEPT = "at_us long, seq long, price long, channel string, url string, extra string, event_wall long, offered_wall long"
RESULT = "bidder long, auction long, " + KEPT


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    del spec
    at_us = F.unix_micros("event_ts").alias("at_us")
    named = bids(frame).select("bidder", "auction", at_us, "seq", "price", "channel", "url", "extra", *WALLS)
    return named.groupBy("bidder", "auction").transformWithState(Last(), RESULT, "Append", "None")


class Last(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("last", STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        del key, timerValues
        last = max(rows, key=lambda row: (row.at_us, row.seq))
        known = self._state.get()
        if known is None or tuple(known) < (last.at_us, last.seq):
            self._state.update((last.at_us, last.seq))
            yield last

    def close(self) -> None:
        """Does nothing: no resource is open."""
