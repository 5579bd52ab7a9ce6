"""Canonical JSON, which has exactly one text for a value, and records that carry a checksum of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

CHECKSUM = "sha256"


def canonical(value: object) -> str:
    """Canonical JSON text of a value: the same whatever the order of its keys."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(record: Mapping[str, object]) -> str:
    """SHA-256 of a record's canonical JSON without the checksum itself."""
    rest = {key: value for key, value in record.items() if key != CHECKSUM}
    return hashlib.sha256(canonical(rest).encode()).hexdigest()


def with_checksum(record: Mapping[str, object]) -> dict[str, Any]:
    """The record with its checksum."""
    return {**record, CHECKSUM: digest(record)}


def holds(record: Mapping[str, object]) -> bool:
    """True if the record is unchanged since with_checksum() made it."""
    return record.get(CHECKSUM) == digest(record)
