"""Records that carry a checksum: the SHA-256 of their canonical JSON without the checksum itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from streamgauge.config import canonical

SIGNATURE = "sha256"


def digest(record: Mapping[str, Any]) -> str:
    unsigned = {key: value for key, value in record.items() if key != SIGNATURE}
    return hashlib.sha256(canonical(unsigned).encode()).hexdigest()


def signed(record: Mapping[str, Any]) -> dict[str, Any]:
    return {**record, SIGNATURE: digest(record)}


def holds(record: Mapping[str, Any]) -> bool:
    """True if the record is unchanged since signed() made it."""
    return record.get(SIGNATURE) == digest(record)
