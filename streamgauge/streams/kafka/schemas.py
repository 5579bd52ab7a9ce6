"""Schemas of the records that are made of rows: event_time in ticks, event_ts, and the declared columns or null."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from streamgauge.descriptions.schema_registry import Kind

#: the wire's own columns; all other columns of a row are declared
OWN = ("seq", "event_time", "event_ts", "ingestion_time", "offered_wall", "event_wall", "sentinel", "line")
_AVRO = {"string": "string", "int64": "long", "double": "double"}
_JSON = {"string": "string", "int64": "integer", "double": "number"}


def text_of(kind: Kind, schema: pa.Schema) -> str:
    """The schema of records as a registry takes it."""
    return json.dumps(avro_schema(schema) if kind == "AVRO" else json_schema(schema))


def avro_schema(schema: pa.Schema) -> dict[str, Any]:
    """Avro's schema, with event_ts in µs."""
    own = [
        {"name": "event_time", "type": "long"},
        {"name": "event_ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ]
    declared = [{"name": name, "type": ["null", _AVRO[kind]]} for name, kind in _declared(schema).items()]
    return {"type": "record", "name": "Event", "fields": own + declared}


def json_schema(schema: pa.Schema) -> dict[str, Any]:
    """JSON Schema, with event_ts in ISO-8601; what may be null is written as Confluent's serializer writes it."""
    own = {"event_time": {"type": "integer"}, "event_ts": {"type": "string", "format": "date-time"}}
    declared = {name: {"oneOf": [{"type": "null"}, {"type": _JSON[kind]}]} for name, kind in _declared(schema).items()}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Event",
        "type": "object",
        "properties": own | declared,
        "required": [*own, *declared],
    }


def _declared(schema: pa.Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema if field.name not in OWN}
