"""Counts bids in all and per price rank, and least, largest, mean and sum of prices, per auction and day.

A row is emitted again with each micro-batch that brings such a bid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from streamgauge.bench.engines.spark.queries.nexmark.events import DAY, RANKS, WALLS, bids, row_of
from streamgauge.bench.workloads import Spec

NAMES = "total_bids long, rank1_bids long, rank2_bids long, rank3_bids long, min_price long, max_price long, "
STATE = NAMES + "sum_price long, event_wall long, offered_wall long"
RESULT = "auction long, day string, " + NAMES + "avg_price double, " + STATE.removeprefix(NAMES)


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    del spec
    named = bids(frame).select("auction", F.date_format("event_ts", DAY).alias("day"), "price", *WALLS)
    return named.groupBy("auction", "day").transformWithState(Statistics(), RESULT, "Append", "None")


class Statistics(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("statistics", STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        del timerValues
        new = list(rows)
        prices = [row.price for row in new]
        ranks = [sum(price >= rank for rank in RANKS) for price in prices]
        counts = (len(new), *(ranks.count(rank) for rank in range(3)))
        ends = min(prices), max(prices)
        total, walls = sum(prices), [max(row[wall] for row in new) for wall in WALLS]
        if known := self._state.get():
            counts = tuple(a + b for a, b in zip(counts, known[:4], strict=True))
            ends = min(ends[0], known[4]), max(ends[1], known[5])
            total, walls = total + known[6], [max(pair) for pair in zip(walls, known[7:], strict=True)]
        self._state.update((*counts, *ends, total, *walls))
        yield row_of(RESULT)(*key, *counts, *ends, total / counts[0], total, *walls)

    def close(self) -> None:
        """Does nothing: no resource is open."""
