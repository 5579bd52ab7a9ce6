"""Average winning price per category, emitted again with every micro-batch in which auctions were won."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from streamgauge.bench.engines.spark.queries.nexmark.events import row_of
from streamgauge.bench.engines.spark.queries.nexmark.winners import winners
from streamgauge.bench.workloads import Spec

STATE = "sales long, total long, event_wall long, offered_wall long"
RESULT = "category long, sales long, total long, average double, event_wall long, offered_wall long"


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    return winners(frames, spec).groupBy("category").transformWithState(Average(), RESULT, "Append", "None")


class Average(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("average", STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        del timerValues
        sales, total, *walls = self._state.get() or (0, 0, 0, 0)
        for row in rows:
            sales, total = sales + 1, total + row.price
            walls = [max(walls[0], row.event_wall), max(walls[1], row.offered_wall)]
        self._state.update((sales, total, *walls))
        yield row_of(RESULT)(key[0], sales, total, total / sales, *walls)

    def close(self) -> None:
        """Does nothing: no resource is open."""
