"""The winning bid of each auction, for q4, q6 and q9: the highest up to its expiry, of equal ones the earliest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from streamgauge.bench.engines.spark.queries.nexmark.events import WALLS, row_of, timed
from streamgauge.bench.workloads import Spec

_AUCTION = "at_us:long,expires:long,seller:long,category:long,event_wall:long,offered_wall:long"
_BID = "price:long,back:long,seq:long,bidder:long,event_wall:long,offered_wall:long"
STATE = f"auctions array<struct<{_AUCTION}>>, bids array<struct<{_BID}>>"
RESULT = "auction long, seller long, category long, expires long, bidder long, price long, at_us long, "
RESULT += "event_wall long, offered_wall long"
Fields = tuple[int, ...]


def winners(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Returns a row for each auction with a winner."""
    (frame,) = frames
    named = timed(frame, spec, "auction", "bid").select(
        F.coalesce("auction", "id").alias("auction"),
        "event_ts",
        F.unix_micros("event_ts").alias("at_us"),
        *("kind", "seq", "expires", "seller", "category", "bidder", "price"),
        *WALLS,
    )
    return named.groupBy("auction").transformWithState(Winner(), RESULT, "Append", "EventTime")


class Winner(StatefulProcessor):
    """Keeps an auction until it expires, and bids without one until their auction could only come late."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("auction", STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        auction, bids = self._known()
        for row in rows:
            walls = row.event_wall, row.offered_wall
            if row.kind == "auction":
                auction = (row.at_us, row.expires, row.seller, row.category, *walls)
            else:  # the largest of these wins
                bids.append((row.price, -row.at_us, -row.seq, row.bidder, *walls))
        if auction is not None:
            bids = [max(within)] if (within := [bid for bid in bids if auction[0] <= -bid[1] <= auction[1]]) else []
        if timerValues.getCurrentWatermarkInMs() < 0:  # batch: nothing comes after this
            yield from _result(key[0], auction, bids)
            return
        self._state.update(([] if auction is None else [auction], bids))
        wake = auction[1] if auction is not None else min(-bid[1] for bid in bids)
        self._handle.registerTimer(-(-wake // 1000))

    def handleExpiredTimer(self, key: Any, timerValues: TimerValues, expiredTimerInfo: Any) -> Iterator[Row]:
        del expiredTimerInfo
        now = timerValues.getCurrentWatermarkInMs() * 1000
        auction, bids = self._known()
        if auction is None:
            if left := [bid for bid in bids if -bid[1] > now]:
                self._state.update(([], left))
                self._handle.registerTimer(-(-min(-bid[1] for bid in left) // 1000))
            else:
                self._state.clear()
        elif auction[1] <= now:
            self._state.clear()
            yield from _result(key[0], auction, bids)

    def close(self) -> None:
        """Does nothing: no resource is open."""

    def _known(self) -> tuple[Fields | None, list[Fields]]:
        auctions, bids = self._state.get() or ([], [])
        return (tuple(auctions[0]) if auctions else None), [tuple(bid) for bid in bids]


def _result(key: int, auction: Fields | None, bids: list[Fields]) -> Iterator[Row]:
    if auction is not None and bids:
        _, expires, seller, category, *walls = auction
        price, back, _, bidder, *others = bids[0]
        yield row_of(RESULT)(key, seller, category, expires, bidder, price, -back, *map(max, walls, others))
