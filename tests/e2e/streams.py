"""A stream in disorder, and what a trial was offered of it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.bench.driver.observed import TrialRun
from streamgauge.bench.driver.replay import load_stream, offered_rows
from tests.driver.conftest import COLUMNS, stream_table


def late_stream(place: Path) -> Path:
    """An event a millisecond; one in five comes up to five seconds late."""
    draw = random.Random(3)
    ingestion = [n * 1_000_000 for n in range(20_000)]
    times = [max(0, t - draw.randrange(5 * 10**9)) if draw.random() < 0.2 else t for t in ingestion]
    pq.write_table(stream_table(times, ingestion), place / "part-0.parquet")
    (place / "manifest.json").write_text(json.dumps({"files": ["part-0.parquet"], "tick": "ns", "columns": COLUMNS}))
    return place


def offered(run: TrialRun, stream: Path) -> pa.Table:
    table = load_stream([stream / "part-0.parquet"], "ns", COLUMNS, line=False, max_memory_mb=64, densify=1)
    return offered_rows(table, [[rows - 1 for rows in driver["offered"]] for driver in run.details["drivers"]])
