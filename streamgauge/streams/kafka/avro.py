"""Avro's binary encoding: turns values into lines of JSON, and rows into values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.errors import UserError
from streamgauge.streams.kafka.schemas import OWN, avro_schema

#: decimals as numbers of all their digits
_JSON = msgspec.json.Encoder(decimal_format="number")


def reader(schema: str, referenced: Sequence[str] = ()) -> Callable[[bytes], bytes]:
    """Returns a function that turns a value into a line of JSON, and raises ValueError for one that is none.

    referenced: schemas whose names it uses, each after those that it uses itself. Raises ValueError for what is no
    schema of Avro.
    """
    from fastavro import schemaless_reader

    usual = _parsed(schema, referenced, ("string",))
    plain = _parsed(schema, referenced, ("string", "int", "long"))

    def line(value: bytes) -> bytes:
        file = BytesIO(value)
        try:
            try:
                found = schemaless_reader(file, usual, None)
            except (OverflowError, ValueError):  # of a time that no date can have: its number is shown
                file.seek(0)
                found = schemaless_reader(file, plain, None)
        except Exception as problem:  # fastavro raises whatever the bytes lead to
            is_short = isinstance(problem, EOFError | IndexError) and file.tell() == len(value)
            raise ValueError(
                "it ends too early" if is_short else f"it does not follow its schema: {problem!r}"
            ) from None
        if rest := len(value) - file.tell():
            raise ValueError(f"{rest} bytes stand behind it")
        return _JSON.encode(found)

    return line


def _parsed(schema: str, referenced: Sequence[str], untyped: Sequence[str]) -> Any:
    from fastavro import parse_schema

    names: dict[str, Any] = {}
    try:
        *_, parsed = [parse_schema(_without(json.loads(text), untyped), names) for text in (*referenced, schema)]
    except Exception as problem:  # as json and fastavro have it
        raise ValueError(f"it is no schema of Avro: {' '.join(str(problem).split()) or repr(problem)}") from None
    return parsed


def _without(schema: Any, kinds: Sequence[str]) -> Any:
    """The schema without logical types of these kinds."""
    if isinstance(schema, list):
        return [_without(one, kinds) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: one for key, one in schema.items() if key != "logicalType" or schema.get("type") not in kinds}
    return {key: _without(one, kinds) for key, one in kept.items()}


def writer(schema: pa.Schema) -> Callable[[pa.RecordBatch], list[bytes]]:
    """A function that turns rows into values, by the schema of `avro_schema`. Raises UserError."""
    import fastavro

    names = ["event_time", "event_ts", *(name for name in schema.names if name not in OWN)]
    for name in names:
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
            raise UserError(f"format avro: found the column {name!r}, allowed: letters, digits and _")
    parsed = fastavro.parse_schema(avro_schema(schema))

    def values(rows: pa.RecordBatch) -> list[bytes]:
        encoded = []
        stamps = pc.cast(rows.column("event_ts").cast(pa.timestamp("us")), pa.int64())
        plain = rows.set_column(rows.schema.get_field_index("event_ts"), "event_ts", stamps)
        for row in plain.select(names).to_pylist():
            out = BytesIO()
            fastavro.schemaless_writer(out, parsed, row)
            encoded.append(out.getvalue())
        return encoded

    return values
