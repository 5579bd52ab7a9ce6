"""Measures how many bytes of state an engine keeps for a window by key that is open.

    .venv/bin/python -m benchmarks.state [--keys 40000,160000]

Each event has a key of its own, and all lie in one window of the query windowed_aggregation. A line of the table has
the largest state that a trial reports. The bytes a window are those between the smallest and the largest trial.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.driver.system import Adapter, make_system
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.config import Replay, Workload
from streamgauge.config.systems import settings_of

_COLUMNS = {"key": "int64", "value": "int64"}
_WORKLOAD = Workload.model_validate(
    {"name": "w", "query": "windowed_aggregation", "key": "key", "value": "value", "window": "1h", "watermark": "1s"}
)
#: a trial's checkpoint of Flink comes each second, so that the last one lacks a twentieth at most
_SECONDS = 20.0


def stream(place: Path, keys: int) -> Path:
    """Writes a stream of so many keys."""
    place.mkdir()
    numbers = pa.array(range(keys), pa.int64())
    times = pa.array([number * 1000 for number in range(keys)], pa.int64())
    lines = pa.array([b"x\n"] * keys, pa.binary())
    columns = {"ingestion_time": times, "seq": numbers, "event_time": times, "line": lines}
    pq.write_table(pa.table({**columns, "key": numbers, "value": numbers}), place / "part-0.parquet")
    (place / "manifest.json").write_text(json.dumps({"files": ["part-0.parquet"], "tick": "ns", "columns": _COLUMNS}))
    return place


def state(system: Adapter, work: Path, keys: int) -> int:
    """Returns the largest state of a trial, in bytes."""
    place = stream(work / f"stream-{keys}", keys)
    (work / f"trial-{keys}").mkdir()
    with Fleet(place, Replay(), tick="ns", columns=_COLUMNS) as fleet:
        bounds = Bounds(max_slip_s=60, max_clock_offset_s=20, drain_s=120)
        request = TrialRequest(_WORKLOAD, work / f"trial-{keys}", keys / _SECONDS, _SECONDS, bounds)
        run = run_trial(system, fleet, request)
    if run.observation.invalid is not None:
        raise SystemExit(run.observation.invalid)
    figures: Mapping[str, Any] = run.details["system"]
    return max((batch["state_bytes"] for batch in figures.get("batches", ())), default=figures.get("state_bytes") or 0)


def main() -> int:
    parser = argparse.ArgumentParser(description="Bytes of state a window")
    parser.add_argument("--keys", default="40000,160000", help="of a trial each")
    parser.add_argument("--engines", default="spark,flink")
    args = parser.parse_args()
    sizes = sorted(map(int, args.keys.split(",")))
    table = Table("engine", *(f"state of {keys:,} windows" for keys in sizes), "bytes a window")
    for engine in args.engines.split(","):
        with tempfile.TemporaryDirectory() as place:
            given = settings_of(engine).model_validate({"name": engine, "engine": engine})
            system = make_system(given, Path(place) / "system")
            system.start()
            try:
                found = [state(system, Path(place), keys) for keys in sizes]
            finally:
                system.stop()
        slope = (found[-1] - found[0]) / (sizes[-1] - sizes[0])
        table.add_row(engine, *(f"{size:,}" for size in found), f"{slope:,.0f}")
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
