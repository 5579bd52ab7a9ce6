"""Queries whose state is kept by code: a row is emitted again when it has changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from streamgauge.bench.engines.spark.queries.nexmark.events import DAY, RANKS, bids, row_of, timed
from streamgauge.bench.engines.spark.queries.windows import WALLS
from streamgauge.bench.workloads import Spec

WALLS_DDL = ", event_wall long, offered_wall long"
LAST = 10  # sales of q6
Fields = tuple[int, ...]


class _Kept(StatefulProcessor):
    """Keeps one value for each key."""

    state: ClassVar[str]

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("state", self.state)

    def close(self) -> None:
        """Does nothing: no resource is open."""


# -- the winning bid of each auction: the highest up to its expiry, of equal ones the earliest

WINNER = f"auction long, seller long, category long, expires long, bidder long, price long, at_us long{WALLS_DDL}"


def q9(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """The winning bid of each auction, when it closes."""
    (frame,) = frames
    named = timed(frame, spec, "auction", "bid").select(
        F.coalesce("auction", "id").alias("auction"),
        "event_ts",
        F.unix_micros("event_ts").alias("at_us"),
        *("kind", "seq", "expires", "seller", "category", "bidder", "price"),
        *WALLS,
    )
    return named.groupBy("auction").transformWithState(Winner(), WINNER, "Append", "EventTime")


class Winner(_Kept):
    """Keeps an auction until it expires, and bids without one until their auction could only come late."""

    _auction = "at_us:long,expires:long,seller:long,category:long,event_wall:long,offered_wall:long"
    _bid = "price:long,back:long,seq:long,bidder:long,event_wall:long,offered_wall:long"
    state = f"auctions array<struct<{_auction}>>, bids array<struct<{_bid}>>"

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

    def _known(self) -> tuple[Fields | None, list[Fields]]:
        auctions, bids = self._state.get() or ([], [])
        return (tuple(auctions[0]) if auctions else None), [tuple(bid) for bid in bids]


def _result(key: int, auction: Fields | None, bids: list[Fields]) -> Iterator[Row]:
    if auction is not None and bids:
        _, expires, seller, category, *walls = auction
        price, back, _, bidder, *others = bids[0]
        yield row_of(WINNER)(key, seller, category, expires, bidder, price, -back, *map(max, walls, others))


# -- and what follows from the winners

AVERAGE = f"category long, sales long, total long, average double{WALLS_DDL}"
LAST_SALES = f"seller long, auction long, sales long, average double{WALLS_DDL}"


def q4(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Average winning price per category, emitted again with every micro-batch in which auctions were won."""
    return q9(frames, spec).groupBy("category").transformWithState(Average(), AVERAGE, "Append", "None")


class Average(_Kept):
    state = f"sales long, total long{WALLS_DDL}"

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        del timerValues
        sales, total, *walls = self._state.get() or (0, 0, 0, 0)
        for row in rows:
            sales, total = sales + 1, total + row.price
            walls = [max(walls[0], row.event_wall), max(walls[1], row.offered_wall)]
        self._state.update((sales, total, *walls))
        yield row_of(AVERAGE)(key[0], sales, total, total / sales, *walls)


def q6(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """Average price of a seller's last ten sales, emitted with every sale."""
    return q9(frames, spec).groupBy("seller").transformWithState(LastSales(), LAST_SALES, "Append", "None")


class LastSales(_Kept):
    """Keeps sales in the order in which auctions expire: those of a micro-batch expire after those of earlier ones."""

    state = f"prices array<long>{WALLS_DDL}"

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        del timerValues
        prices, *walls = self._state.get() or ([], 0, 0)
        prices, result = list(prices), row_of(LAST_SALES)
        for row in sorted(rows, key=lambda row: (row.expires, row.auction)):
            prices = [*prices, row.price][-LAST:]
            walls = [max(walls[0], row.event_wall), max(walls[1], row.offered_wall)]
            yield result(key[0], row.auction, len(prices), float(sum(prices)) / len(prices), *walls)
        self._state.update((prices, *walls))


# -- what follows from bids alone

_NAMES = "total_bids long, rank1_bids long, rank2_bids long, rank3_bids long, min_price long, max_price long"
STATISTICS = f"auction long, day string, {_NAMES}, avg_price double, sum_price long{WALLS_DDL}"
LAST_BID = (
    f"bidder long, auction long, at_us long, seq long, price long, channel string, url string, extra string{WALLS_DDL}"
)
TOP_BID = f"price long, at_us long, seq long, bidder long, extra string{WALLS_DDL}"
TOP = f"auction long, place long, revision long, {TOP_BID}"


def q17(frames: list[DataFrame], _: Spec) -> DataFrame:
    """Counts bids in all and per price rank, and least, largest, mean and sum of prices, per auction and day.

    A row is emitted again with each micro-batch that brings such a bid.
    """
    named = bids(*frames).select("auction", F.date_format("event_ts", DAY).alias("day"), "price", *WALLS)
    return named.groupBy("auction", "day").transformWithState(Statistics(), STATISTICS, "Append", "None")


class Statistics(_Kept):
    state = f"{_NAMES}, sum_price long{WALLS_DDL}"

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
        yield row_of(STATISTICS)(*key, *counts, *ends, total / counts[0], total, *walls)


def q18(frames: list[DataFrame], _: Spec) -> DataFrame:
    """The last bid of each bidder on each auction, emitted again when a later one has come."""
    at_us = F.unix_micros("event_ts").alias("at_us")
    named = bids(*frames).select("bidder", "auction", at_us, "seq", "price", "channel", "url", "extra", *WALLS)
    return named.groupBy("bidder", "auction").transformWithState(Last(), LAST_BID, "Append", "None")


class Last(_Kept):
    state = "at_us long, seq long"

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        del key, timerValues
        last = max(rows, key=lambda row: (row.at_us, row.seq))
        known = self._state.get()
        if known is None or tuple(known) < (last.at_us, last.seq):
            self._state.update((last.at_us, last.seq))
            yield last


def q19(frames: list[DataFrame], spec: Spec) -> DataFrame:
    """The ten highest bids on each auction; a place is emitted again when its bid has changed."""
    at_us = F.unix_micros("event_ts").alias("at_us")
    named = bids(*frames).select("auction", "price", at_us, "seq", "bidder", "extra", *WALLS)
    return named.groupBy("auction").transformWithState(Top(spec.top), TOP, "Append", "None")


class Top(_Kept):
    """Ranks bids; of equal prices the earlier bid is the higher one. revision: bids seen, so larger is newer."""

    state = f"top array<struct<{TOP_BID.replace(' ', ':')}>>, seen long".replace(",:", ",")

    def __init__(self, count: int) -> None:
        self._count = count

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        del timerValues
        new = [tuple(row)[1:] for row in rows]
        before, seen = self._state.get() or ([], 0)
        known = [tuple(bid) for bid in before]
        top = sorted([*known, *new], key=lambda bid: (-bid[0], bid[1], bid[2]))[: self._count]
        seen += len(new)
        row = row_of(TOP)
        self._state.update((top, seen))
        for place, bid in enumerate(top):
            if place >= len(known) or known[place] != bid:
                yield row(key[0], place + 1, seen, *bid)
