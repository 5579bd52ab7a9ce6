"""The ten highest bids on each auction; a place is emitted again when its bid has changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from streamgauge.bench.engines.spark.queries.nexmark.events import WALLS, bids, row_of
from streamgauge.bench.workloads import Spec

BID = "price long, at_us long, seq long, bidder long, extra string, event_wall long, offered_wall long"
STATE = f"top array<struct<{BID.replace(' ', ':')}>>, seen long".replace(",:", ",")
RESULT = f"auction long, place long, revision long, {BID}"


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    at_us = F.unix_micros("event_ts").alias("at_us")
    named = bids(frame).select("auction", "price", at_us, "seq", "bidder", "extra", *WALLS)
    return named.groupBy("auction").transformWithState(Top(spec.top), RESULT, "Append", "None")


class Top(StatefulProcessor):
    """Ranks bids; of equal prices the earlier bid is the higher one. revision: bids seen, so larger is newer."""

    def __init__(self, count: int) -> None:
        self._count = count

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("top", STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        del timerValues
        new = [tuple(row)[1:] for row in rows]
        bids, seen = self._state.get() or ([], 0)
        known = [tuple(bid) for bid in bids]
        top = sorted([*known, *new], key=lambda bid: (-bid[0], bid[1], bid[2]))[: self._count]
        seen += len(new)
        row = row_of(RESULT)
        self._state.update((top, seen))
        for place, bid in enumerate(top):
            if place >= len(known) or known[place] != bid:
                yield row(key[0], place + 1, seen, *bid)

    def close(self) -> None:
        """Does nothing: no resource is open."""
