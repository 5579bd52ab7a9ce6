"""A record signed by its hash: SHA-256 of its canonical JSON without the signature."""

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
    """Whether nothing was changed since it was signed."""
    return record.get(SIGNATURE) == digest(record)
