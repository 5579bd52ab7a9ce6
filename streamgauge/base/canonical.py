"""Canonical JSON, which has exactly one text for a value, and records that carry the SHA-256 of it.

People may cite and compare such a SHA-256. Every other record has a seal instead (base/jsonl.py), which is short.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

_KEY = "sha256"


def canonical(value: object) -> str:
    """Canonical JSON text of a value: the same whatever the order of its keys."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def with_sha256(record: Mapping[str, object]) -> dict[str, Any]:
    """The record with the SHA-256 of its canonical JSON."""
    rest = {key: value for key, value in record.items() if key != _KEY}
    return {**rest, _KEY: hashlib.sha256(canonical(rest).encode()).hexdigest()}


def has_its_sha256(record: Mapping[str, object]) -> bool:
    """True if the record is unchanged since with_sha256() made it."""
    return record == with_sha256(record)
