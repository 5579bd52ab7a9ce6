"""Average price of a seller's last ten sales, emitted with every sale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from streamgauge.bench.engines.spark.queries.nexmark.events import row_of
from streamgauge.bench.engines.spark.queries.nexmark.winners import winners
from streamgauge.bench.workloads import Spec

LAST = 10
STATE = "prices array<long>, event_wall long, offered_wall long"
RESULT = "seller long, auction long, sales long, average double, event_wall long, offered_wall long"


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    return winners(frames, spec).groupBy("seller").transformWithState(LastSales(), RESULT, "Append", "None")


class LastSales(StatefulProcessor):
    """Keeps sales in the order in which auctions expire: those of a micro-batch expire after those of earlier ones."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("sales", STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        del timerValues
        prices, *walls = self._state.get() or ([], 0, 0)
        prices, result = list(prices), row_of(RESULT)
        for row in sorted(rows, key=lambda row: (row.expires, row.auction)):
            prices = [*prices, row.price][-LAST:]
            walls = [max(walls[0], row.event_wall), max(walls[1], row.offered_wall)]
            yield result(key[0], row.auction, len(prices), float(sum(prices)) / len(prices), *walls)
        self._state.update((prices, *walls))

    def close(self) -> None:
        """Does nothing: no resource is open."""
