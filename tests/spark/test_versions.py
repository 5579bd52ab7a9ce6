"""Artifacts are found again by their keys: what an algorithm makes may change only together with its version."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.catalog.artifacts import ALGORITHM, Store
from streamgauge.config import Benchmark, parse
from streamgauge.streams.stages import analyze, generate, ingest
from tests.spark.ingesting import rows

if TYPE_CHECKING:
    from streamgauge.streams.stages.workers import Workers

#: (kind, version) -> what it makes of the source below
MADE = {
    ("events", 7): "bf6130164c35d65b",
    ("profile", 8): "9fba0a9a95706c5f",
    ("stream", 2): "226cd929c911eec7",
}


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()[:16]


def test_what_an_algorithm_makes_changes_with_its_version_alone(workers: Workers, tmp_path: Path) -> None:
    """Raise the kind's number in ALGORITHM if this fails, as old artifacts are something else now, and add a line."""
    hours = [
        f"20{year}-0{month}-15 {hour:02d}:00:00" for year in (13, 39, 50) for month in (1, 7) for hour in range(24)
    ]
    hours[10], hours[50] = hours[2], hours[30]  # out of order, both before and after 2037
    lines = [f'{number},"a, b",{hour}\n' for number, hour in enumerate([*hours, "never"])]
    lines[5] = lines[5].replace("\n", "\r\n")
    (tmp_path / "f.csv").write_text("n,text,t\n" + "".join(lines), newline="")
    raw = {
        "name": "pinned",
        "source": {
            "files": str(tmp_path / "f.csv"),
            "time": {"column": "t", "format": "%Y-%m-%d %H:%M:%S", "zone": "Europe/Berlin"},
            "columns": {"n": "int64"},
        },
        "experiments": [{"name": "e", "target_percent": 20, "delay": {"max": "5h"}}],
    }
    benchmark, store = parse(Benchmark, raw, "test"), Store(tmp_path / "artifacts")
    events = ingest.run(workers, benchmark, store)
    profile = analyze.run(workers, benchmark, store)
    stream = generate.run(workers, benchmark, store, benchmark.experiments[0])
    made = {
        "events": digest([rows(events), events.manifest["quarantined"]]),
        "profile": digest(json.loads((profile.path / "profile.json").read_text())),
        "stream": stream.manifest["sha256"][:16],
    }
    assert {(kind, ALGORITHM[kind]): found for kind, found in made.items()} == MADE
