"""Seals of JSON records: a checksum among a record's keys, by which a flipped bit is seen when it is read."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

SEAL = "crc32"


def sealed(record: Mapping[str, object]) -> dict[str, Any]:
    """The record with its checksum."""
    plain = _plain(record)
    return {**plain, SEAL: _checksum(plain)}


def unsealed(record: Mapping[str, object]) -> dict[str, Any]:
    """The record without its checksum, if it has one. Raises ValueError if it does not hold."""
    plain = _plain(record)
    if SEAL in record and record[SEAL] != _checksum(plain):
        raise ValueError("its checksum does not match")
    return plain


def _plain(record: Mapping[str, object]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != SEAL}


def _checksum(record: Mapping[str, object]) -> str:
    as_read = json.loads(json.dumps(record))  # keys are text then, whose order may be another
    # not by `canonical`, as it imports pydantic, and processes that start often read records too
    text = json.dumps(as_read, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x}"
