"""The records by the names under which their JSON Schemas are printed."""

from __future__ import annotations

from typing import Any

from streamgauge.base.errors import UserError
from streamgauge.records.latency import LatencyRun
from streamgauge.records.profile import Profile
from streamgauge.records.record import Record
from streamgauge.records.search import SearchAnswer

RECORDS: dict[str, type[Record]] = {"search": SearchAnswer, "latency": LatencyRun, "profile": Profile}


def schema_of(name: str) -> dict[str, Any]:
    """JSON Schema of a record. Raises UserError."""
    if name not in RECORDS:
        raise UserError(f"--record: found {name!r}, allowed: {', '.join(RECORDS)}")
    schema = RECORDS[name].model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
