"""Turns rows of the wire into the values and headers of Kafka's records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import ints, replaced
from streamgauge.base.units import PS, Tick
from streamgauge.streams.kafka.avro_writer import writer
from streamgauge.streams.kafka.partitioner import key_of, texts
from streamgauge.streams.kafka.registry import PREFIX
from streamgauge.streams.kafka.schemas import OWN

Headers = list[tuple[str, str]]
#: value, key, time in ms since 1970 (0: that of the producer), and headers
Record = tuple[bytes, bytes | None, int, Headers | None]
Scalar = str | int | float | None
#: what the sentinel has, by type, in a column for which the settings name no value
_DEFAULTS: dict[str, Scalar] = {"string": "sentinel", "int64": -1, "double": -1.0}
#: JSON must escape these; a text without them needs only its quotes
_SPECIAL = r'[\x00-\x1f"\\]'


@dataclass(frozen=True)
class Form:
    """The form of records: what is made of each row.

    values: format of a value. headers: whether there are some. line: template of the sentinel's line.
    by_event: a record bears its event's time, in whole milliseconds. schema_id: number of the schema in a registry.
    key: column of the records' keys, if they have some. sentinel: what the sentinel has in some columns.
    """

    values: str
    tick: Tick = "ns"
    headers: bool = True
    line: str = ""
    by_event: bool = False
    schema_id: int | None = None
    key: str | None = None
    sentinel: Mapping[str, Scalar] = field(default_factory=dict)

    def records(self, schema: pa.Schema) -> Callable[[pa.RecordBatch, str], Iterator[Record]]:
        """Returns a function that makes the records of rows of that schema, for an attempt. Raises UserError."""
        values = maker(self.values, schema, self.line, self.tick, self.schema_id)

        def made(rows: pa.RecordBatch, attempt: str) -> Iterator[Record]:
            named: Sequence[Headers | None] = headers(rows, attempt) if self.headers else [None] * rows.num_rows
            return zip(values(rows), self._keys(rows), self._times(rows), named, strict=True)

        return made

    def filled(self, sentinel: pa.RecordBatch, partition: int, partitions: int) -> pa.RecordBatch:
        """The sentinel as it stands in that partition, with a key of its own; only the settings make a value null."""
        columns = {}
        for one in sentinel.schema:
            if one.name in OWN or (self.values == "line" and one.name != self.key):
                continue
            value = key_of(partition, partitions, one.type) if one.name == self.key else _DEFAULTS[str(one.type)]
            columns[one.name] = pa.array([self.sentinel.get(one.name, value)], one.type)
        return replaced(sentinel, columns)

    def _keys(self, rows: pa.RecordBatch) -> list[bytes | None]:
        if self.key is None:
            return [None] * rows.num_rows
        distinct = texts(rows.column(self.key)).dictionary_encode()  # as few keys come again and again
        keys = [*distinct.dictionary.to_pylist(), None]
        return [keys[at] for at in pc.fill_null(distinct.indices, -1).to_numpy(zero_copy_only=False).tolist()]

    def _times(self, rows: pa.RecordBatch) -> list[int]:
        if not self.by_event:
            return [0] * rows.num_rows
        times: list[int] = (ints(rows.column("event_time")) // (PS["ms"] // PS[self.tick])).tolist()
        return times


def headers(rows: pa.RecordBatch, attempt: str) -> list[Headers]:
    """Headers of each row's record: seq and wall clocks in ns, as decimal text, attempt, and sentinel on sentinels."""
    named = [
        [(name, text) for text in pc.cast(rows.column(name), pa.string()).to_pylist()]
        for name in ("seq", "offered_wall", "event_wall")
    ]
    last = ("attempt", attempt)
    named_rows: list[Headers] = [[*three, last] for three in zip(*named, strict=True)]
    for at, sentinel in enumerate(rows.column("sentinel").to_pylist()):
        if sentinel:
            named_rows[at].append(("sentinel", "1"))
    return named_rows


def lines(rows: pa.RecordBatch, sentinel: str, tick: Tick) -> list[bytes]:
    """The source's line of each row, without its end; a sentinel's is made of the given text."""
    texts = [line.rstrip(b"\r\n") for line in rows.column("line").to_pylist()]
    for at, flag in enumerate(rows.column("sentinel").to_pylist()):
        if flag:
            texts[at] = sentinel_line(sentinel, rows.column("event_time")[at].as_py(), tick).encode()
    return texts


def sentinel_line(template: str, event_time: int, tick: Tick) -> str:
    """The template with its places filled: {ticks}, {s}, {ms}, {us}, {ns} and {time:…} with a pattern of strftime."""
    seconds = event_time * PS[tick] // PS["s"]
    whole = {unit: event_time * PS[tick] // PS[unit] for unit in ("s", "ms", "us", "ns")}
    # a horizon may lie beyond the last year that a date can have
    time = datetime.fromtimestamp(min(seconds, 253402300799), UTC)
    return template.format(ticks=event_time, time=time, **whole)


def maker(
    form: str, schema: pa.Schema, sentinel: str = "", tick: Tick = "ns", schema_id: int | None = None
) -> Callable[[pa.RecordBatch], list[bytes]]:
    """A function that turns rows into values of that format. Raises UserError. schema_id: of a registry."""
    if form == "line":
        return lambda rows: lines(rows, sentinel, tick)
    plain = writer(schema) if form.endswith("avro") else objects
    if schema_id is None:
        return plain
    prefix = PREFIX.pack(0, schema_id)
    return lambda rows: [prefix + value for value in plain(rows)]


def objects(rows: pa.RecordBatch) -> list[bytes]:
    """A JSON object for each row: event_time in ticks, event_ts in ISO-8601 (UTC, µs), and the declared columns."""
    # four times as fast as strftime
    plain = pc.cast(rows.column("event_ts").cast(pa.timestamp("us")), pa.string())
    stamps = pc.binary_replace_slice(plain, 10, 11, "T")
    pieces: list[Any] = [
        '{"event_time":', pc.cast(rows.column("event_time"), pa.string()),
        ',"event_ts":"', stamps, 'Z"',
    ]  # fmt: skip
    for name in rows.schema.names:
        if name not in OWN:
            pieces += [f",{json.dumps(name)}:", _value(rows.column(name))]
    pieces.append("}")
    texts: list[bytes] = pc.cast(pc.binary_join_element_wise(*pieces, ""), pa.binary()).to_pylist()
    return texts


def _value(column: pa.Array) -> pa.Array:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        if pc.any(pc.match_substring_regex(column, _SPECIAL)).as_py():
            return pa.array([json.dumps(text) for text in column.to_pylist()], pa.string())
        quoted = pc.binary_join_element_wise(pa.scalar('"'), column.cast(pa.string()), pa.scalar('"'), "")
        return pc.fill_null(quoted, "null")
    if pa.types.is_floating(column.type):  # JSON knows neither NaN nor infinity
        column = pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))
    return pc.fill_null(pc.cast(column, pa.string()), "null")
