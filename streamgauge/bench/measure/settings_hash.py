"""Hashes of what a measurement depends on."""

from __future__ import annotations

import hashlib
import json

from streamgauge.base import secrets
from streamgauge.base.canonical import canonical
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, Cell
from streamgauge.streams.keys import stream_key


def settings_hash(benchmark: Benchmark, cell: Cell) -> str:
    """Hash (16 hex digits) of the settings that decide a cell's trials, with *** for secrets.

    It stands in records that others read, where the hash of a short secret could be guessed.
    """
    parts = [
        benchmark.source, benchmark.scale, benchmark.experiment(cell.experiment), benchmark.workload(cell.workload),
        benchmark.system(cell.system), benchmark.replay, benchmark.search,
    ]  # fmt: skip
    settings = secrets.masked([json.loads(canonical(part)) for part in parts])
    return hashlib.sha256(canonical(settings).encode()).hexdigest()[:16]


def plan_key(benchmark: Benchmark, store: Store, cell: Cell) -> str:
    """Hash (16 hex digits) of these settings and of the stream: measurements with another hash are not resumed."""
    stream = stream_key(store, benchmark, benchmark.experiment(cell.experiment))
    return hashlib.sha256(f"{settings_hash(benchmark, cell)} {stream}".encode()).hexdigest()[:16]
