"""Makes streams from events that are hard on generation, on the workers of Spark masters, and prints their hashes.

python -m tests.spark.shapes FOLDER local[1] local[2] spark://host:7077
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.catalog.artifacts import Artifact
from streamgauge.config import Experiment, Source, TimeColumn
from streamgauge.streams.stages.generate import write_stream
from streamgauge.streams.stages.workers import Workers
from tests import manifests

ROWS, GROUP_ROWS, CHUNK_ROWS = 20_000, 500, 1_000
MS = 10**6
SOURCE = Source(files=("none",), header=False, time=TimeColumn(column=0, unit="ns"))
#: times of n events, in ms, and the longest delay
SHAPES: dict[str, tuple[Callable[[int], Any], str]] = {
    "delays longer than a chunk": (np.arange, "3s"),
    "delays as long as the stream": (np.arange, f"{ROWS}ms"),
    "one event far ahead": (lambda n: np.where(np.arange(n) == n // 2, 10**9, np.arange(n)), "2s"),
    "all events at one time": (np.zeros, "2s"),
    "half of them at one time": (lambda n: np.maximum(np.arange(n) - n // 2, 0), "5s"),
}


def events(name: str, place: Path) -> Artifact:
    """Writes the events of a shape, unless they are there."""
    file = place / name.replace(" ", "-") / "events.parquet"
    if not file.exists():
        file.parent.mkdir(parents=True)
        times = SHAPES[name][0](ROWS).astype(np.int64) * MS
        lines = pa.array([b"%d\n" % time for time in times.tolist()], pa.binary())
        pq.write_table(
            pa.table({"seq": np.arange(ROWS), "event_time": times, "line": lines}), file, row_group_size=GROUP_ROWS
        )
    return Artifact("events", "shape", file.parent, manifests.of_events(files=[file.name]))


def hashes(workers: Workers, place: Path) -> dict[str, tuple[str, int]]:
    """Maps each shape to the hash of its stream, and to the number of its late events."""
    found = {}
    for number, name in enumerate(SHAPES):
        out = place / f"stream-{number}"
        out.mkdir(exist_ok=True)
        asked = {"name": "e", "target_percent": 30, "delay": {"max": SHAPES[name][1]}, "on_infeasible": "closest"}
        experiment = Experiment.model_validate(asked)
        made = write_stream(
            workers, events(name, place), SOURCE, experiment, out, outputs={"csv"}, chunk_rows=CHUNK_ROWS
        )
        found[name] = made.sha256, made.achieved_out_of_order
    return found


def main(folder: str, *masters: str) -> None:
    from streamgauge.streams.stages.session import batch_session, end
    from streamgauge.streams.stages.tasks import OnSpark

    found = {}
    for master in masters:
        session = batch_session("shapes", master, {"spark.executor.memory": "512m"})
        found[master] = hashes(OnSpark(session), Path(folder))
        end(session)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
