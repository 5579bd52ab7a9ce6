"""The queries of the Nexmark suite: for each a row here, a file with the query, and one with the same question in SQL.

q0 to q12 are as in Apache Beam, q13 to q23 as in nexmark-flink, except where `differs` says otherwise. The SQL's tables
are person, auction and bid, and those that oracle/duck.py makes. Their columns are those of schemas.NEXMARK, seq,
event_ts, and at_us, which is event_ts in microseconds.
"""

from __future__ import annotations

from functools import partial

from streamgauge.workloads.query import Query, Rule

PERSONS, AUCTIONS, BIDS = ({"kind": (kind,)} for kind in ("person", "auction", "bid"))
_BID = ("kind", "auction", "bidder", "price")
_BOUNDED = "joins only what is at most 600 s apart (the window): else state would grow for ever"
_UPDATES = "emits a row again whenever it changes, since a Python sink takes no updates"
_DAYS = "a row when its day has ended"
_SALE = (*_BID, "id", "expires", "seller", "category")
_AUCTION = ("id", "seller", "category")
_PERSON = ("name", "city", "state")
_stateful = partial(Query, output_mode="append", rocksdb=True)
_simple = partial(
    Query, contributors="the bid", output_mode="append", late="never", reads=(BIDS,), features=("projection",)
)
_joined = partial(
    Query, output_mode="append", late="event", drops_counted="rows", rule=Rule("bounded"), differs=_BOUNDED
)
_windowed = partial(Query, output_mode="append", drops_counted="groups", reads=(BIDS,))

QUERIES = (
    _simple(
        "nexmark.q0",
        "Pass-through",
        "every bid",
        columns=(*_BID, "channel", "url", "extra"),
    ),
    _simple(
        "nexmark.q1",
        "Currency conversion",
        "every bid with its price in another currency",
        columns=(*_BID, "extra"),
        differs="whole numbers, rounded down, as in Beam",
    ),
    _simple(
        "nexmark.q2",
        "Selection",
        "bids on every 123rd auction",
        columns=("kind", "auction", "price"),
        features=("filter",),
    ),
    _joined(
        "nexmark.q3",
        "Local item suggestion",
        "who sells in category 10 in Oregon, Idaho or California",
        "the person and the auction",
        columns=("kind", *_AUCTION, *_PERSON),
        streams=2,
        reads=({**PERSONS, "state": ("OR", "ID", "CA")}, {**AUCTIONS, "category": (10,)}),
        features=("stream-stream join",),
    ),
    _stateful(
        "nexmark.q4",
        "Average price for a category",
        "average winning price per category",
        "all bids on the category's closed auctions that won, and these auctions",
        columns=_SALE,
        late="event",
        drops_counted="rows",
        reads=({"kind": ("auction", "bid")},),
        rule=Rule("last per key", ("category",), ("sales",)),
        features=("transformWithState", "event-time timer", "chained stateful operators"),
        differs=_UPDATES,
    ),
    _windowed(
        "nexmark.q5",
        "Hot items",
        "auctions with most bids in each sliding window, ties kept",
        "every bid in the window",
        columns=("kind", "auction"),
        slides=True,
        groups=(("auction",),),
        features=("sliding window", "chained aggregations"),
    ),
    _stateful(
        "nexmark.q6",
        "Average selling price by seller",
        "average price of a seller's last 10 sales, with every sale",
        "the seller's closed auctions so far and the bids that won them",
        columns=_SALE,
        late="event",
        drops_counted="rows",
        reads=({"kind": ("auction", "bid")},),
        features=("transformWithState", "event-time timer", "chained stateful operators"),
        differs="10 sales, in the order in which auctions expire; nexmark-flink averages 11",
    ),
    _windowed(
        "nexmark.q7",
        "Highest bid",
        "highest bid of each window, ties kept",
        "every bid in the window",
        columns=_BID,
        groups=(("price",),),
        features=("tumbling window", "chained aggregations"),
        differs="windows without their end, which nexmark-flink counts twice",
    ),
    Query(
        "nexmark.q8",
        "Monitor new users",
        "people who joined and opened an auction in the same window",
        "the person and the auctions",
        "append",
        columns=("kind", "id", "name", "seller"),
        streams=2,
        drops_counted="groups",
        groups=(("id", "name"), ("seller",)),
        reads=(PERSONS, AUCTIONS),
        features=("tumbling window", "join of aggregations"),
    ),
    _stateful(
        "nexmark.q9",
        "Winning bids",
        "the winning bid of each auction, when it closes",
        "the auction and the bid that won",
        columns=_SALE,
        late="event",
        drops_counted="rows",
        reads=({"kind": ("auction", "bid")},),
        features=("transformWithState", "event-time timer"),
    ),
    _simple(
        "nexmark.q10",
        "Log to file system",
        "all bids in files by day and minute",
        columns=(*_BID, "extra"),
        features=("partitioned file sink",),
    ),
    Query(
        "nexmark.q11",
        "User sessions",
        "bids of each user per session",
        "every bid of the session",
        "append",
        columns=("kind", "bidder"),
        needs=("key",),
        late="session",
        drops_counted="groups",
        groups=(("bidder",),),
        reads=(BIDS,),
        features=("session window",),
    ),
    Query(
        "nexmark.q12",
        "Processing-time windows",
        "bids of each user per window of the engine's clock",
        "every bid in the window",
        "append",
        columns=("kind", "bidder"),
        late="never",
        reads=(BIDS,),
        rule=Rule("invariant", ("bidder",), ("bids",)),
        features=("processing-time window",),
        differs="the clock is the time of the micro-batch; windows differ from run to run, their sums do not",
    ),
    _simple(
        "nexmark.q13",
        "Bounded side input join",
        "bids with what a side input of 10,000 rows says of their auction",
        columns=_BID,
        features=("stream-static join",),
    ),
    _simple(
        "nexmark.q14",
        "Calculation",
        "bids of middling price: price, time of day, and a count by a user's function",
        columns=(*_BID, "extra"),
        features=("user-defined function", "filter"),
        differs="the price in whole numbers, as in q1; the function is Python's, over Arrow",
    ),
    _windowed(
        "nexmark.q15",
        "Bidding statistics",
        "bids, different bidders and different auctions per day, by rank of price",
        "every bid of the day",
        columns=_BID,
        groups=((),),
        features=("tumbling window", "distinct counts"),
        differs=_DAYS,
    ),
    _windowed(
        "nexmark.q16",
        "Channel statistics",
        "the same per channel, with the minute of its last bid",
        "every bid of the day on the channel",
        columns=(*_BID, "channel"),
        groups=(("channel",),),
        features=("tumbling window", "distinct counts"),
        differs=_DAYS,
    ),
    _stateful(
        "nexmark.q17",
        "Auction statistics",
        "count, ranks, least, largest, mean and sum of prices per auction and day",
        "the day's bids on the auction so far",
        columns=_BID,
        late="never",
        reads=(BIDS,),
        rule=Rule("last per key", ("auction", "day"), ("total_bids",)),
        features=("transformWithState",),
        differs=_UPDATES,
    ),
    _stateful(
        "nexmark.q18",
        "Last bid",
        "the last bid of each bidder on each auction",
        "the bid",
        columns=(*_BID, "channel", "url", "extra"),
        late="never",
        reads=(BIDS,),
        rule=Rule("last per key", ("bidder", "auction"), ("at_us", "seq")),
        features=("transformWithState", "deduplication"),
        differs=_UPDATES,
    ),
    _stateful(
        "nexmark.q19",
        "Top 10 bids",
        "the ten highest bids on each auction",
        "the bid",
        columns=(*_BID, "extra"),
        late="never",
        reads=(BIDS,),
        rule=Rule("last per key", ("auction", "place"), ("revision",)),
        features=("transformWithState", "top N"),
        differs=_UPDATES,
    ),
    _joined(
        "nexmark.q20",
        "Bids with their auction",
        "bids on auctions of category 10, with the auction",
        "the bid and the auction",
        columns=(
            *_BID,
            *_AUCTION,
            "channel",
            "url",
            "extra",
            "name",
            "description",
            "initial_bid",
            "reserve",
            "expires",
        ),
        streams=2,
        reads=(BIDS, {**AUCTIONS, "category": (10,)}),
        features=("stream-stream join",),
    ),
    _simple(
        "nexmark.q21",
        "Channel id",
        "bids with the id of their channel, out of the URL where it is not known",
        columns=(*_BID, "channel", "url"),
        features=("regular expression",),
    ),
    _simple(
        "nexmark.q22",
        "URL directories",
        "bids with the three directories of their URL",
        columns=(*_BID, "channel", "url"),
        features=("text functions",),
    ),
    _joined(
        "nexmark.q23",
        "Bids with auction and bidder",
        "bids with their auction and their bidder",
        "the bid, the auction and the person",
        columns=(*_BID, *_AUCTION, *_PERSON, "channel", "url"),
        streams=3,
        reads=(BIDS, AUCTIONS, PERSONS),
        lags=(0, 0, 1),
        features=("stream-stream join", "chained joins"),
    ),
)
