"""The Arrow schemas of all data sets. Times are int64 ticks: nanoseconds, or picoseconds for a ps source."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

#: fixed columns of `events`; an arrival column and the declared columns follow them
EVENTS = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),  # 0-based line in the source, bad ones counted; or rank, if sorted
        pa.field("event_time", pa.int64(), nullable=False),
        pa.field("line", pa.binary(), nullable=False),  # as in the source, ended by \n
    ]
)
ARRIVAL = pa.field("arrival_time", pa.int64(), nullable=True)

QUARANTINE = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("line_number", pa.int64(), nullable=False),  # 1-based in its file, header counted
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("text", pa.binary(), nullable=False),
    ]
)

#: fixed columns of `stream`, in (ingestion_time, seq) order; arrival and declared columns follow
STREAM = pa.schema([pa.field("ingestion_time", pa.int64(), nullable=False), *EVENTS])

_BESIDE = ("event_ts", "offered_wall", "event_wall", "sentinel", "partition", "row")
#: names that a declared column must not have: those above, those that the driver adds on the wire (docs/protocol.md),
#: and the place of a row in its queue, which the oracle knows beside it
RESERVED = {*STREAM.names, ARRIVAL.name, *_BESIDE}

#: types that a declared column may have
COLUMN_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int64": pa.int64(),
    "float64": pa.float64(),
}


#: Nexmark's persons, auctions and bids in one table; columns that an event does not have are null; times in us
NEXMARK: dict[str, str] = {
    "kind": "string",  # person, auction, bid
    "id": "int64",  # of a person or an auction
    "name": "string",  # of a person or an item
    "email": "string",
    "credit_card": "string",
    "city": "string",
    "state": "string",
    "description": "string",
    "initial_bid": "int64",
    "reserve": "int64",
    "expires": "int64",
    "seller": "int64",
    "category": "int64",
    "auction": "int64",
    "bidder": "int64",
    "price": "int64",
    "channel": "string",
    "url": "string",
    "extra": "string",
}
#: columns that hold the id of a person or of an auction
NEXMARK_IDS = ("id", "seller", "auction", "bidder")


def events_schema(columns: Mapping[str, str], *, arrival: bool) -> pa.Schema:
    """Schema of `events`. columns: the declared ones, name -> key of COLUMN_TYPES."""
    extra = [ARRIVAL] if arrival else []
    extra += [pa.field(name, COLUMN_TYPES[kind]) for name, kind in columns.items()]
    return pa.schema([*EVENTS, *extra])


def stream_schema(columns: Mapping[str, str], *, arrival: bool) -> pa.Schema:
    return pa.schema([STREAM.field(0), *events_schema(columns, arrival=arrival)])


#: Parquet encodings that our readers are fastest on: packed integers, plain text
ENCODINGS = {
    "ingestion_time": "DELTA_BINARY_PACKED",
    "seq": "DELTA_BINARY_PACKED",
    "event_time": "DELTA_BINARY_PACKED",
    "line": "PLAIN",
}
ROW_GROUP_ROWS = 125_000
FILE_ROWS = 500_000
