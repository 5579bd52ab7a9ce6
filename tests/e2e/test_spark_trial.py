"""A whole trial: driver process, wire, Spark, sink, and the answer checked against DuckDB's."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.driver.replay import load_stream, offered_rows
from streamgauge.bench.driver.split import PARTS
from streamgauge.bench.driver.system import make_system
from streamgauge.bench.driver.trial import run_trial
from streamgauge.bench.driver.trial_request import Bounds, TrialRequest
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.bench.oracle.check import check
from streamgauge.bench.workloads import Spec
from streamgauge.config import Replay, Workload

pytestmark = [pytest.mark.e2e, pytest.mark.alone]
COLUMNS = {"carrier": "string", "flight": "int64"}


def disordered(place: Path, count: int = 3000) -> Path:
    """An event every 10 ms of stream time; one in ten comes up to 10 s late."""
    draw = random.Random(7)
    times = [n * 10_000_000 for n in range(count)]
    ingestion = [t + (draw.randrange(10**10) if draw.random() < 0.1 else 0) for t in times]
    order = np.argsort(ingestion, kind="stable")
    table = pa.table(
        {
            "ingestion_time": pa.array(ingestion, pa.int64()),
            "seq": pa.array(range(count), pa.int64()),
            "event_time": pa.array(times, pa.int64()),
            "line": pa.array([b"x\n"] * count, pa.binary()),
            "carrier": pa.array([draw.choice("ABC") for _ in range(count)]),
            "flight": pa.array([draw.randrange(100) for _ in range(count)], pa.int64()),
        }
    ).take(pa.array(order))
    pq.write_table(table, place / "part-0.parquet")
    manifest = {"files": ["part-0.parquet"], "tick": "ns", "columns": COLUMNS}
    (place / "manifest.json").write_text(json.dumps(manifest))
    return place


def test_the_output_of_a_trial_is_duckdbs_answer_minus_what_was_rightly_dropped(tmp_path: Path) -> None:
    (tmp_path / "stream").mkdir()
    stream = disordered(tmp_path / "stream")
    system = make_system(SparkSettings(name="hdfs", memory="1g", batch_rows=400), tmp_path / "system")
    system.start()
    holds = []
    try:
        with Fleet(stream, Replay(partitions=2), tick="ns", columns=COLUMNS) as fleet:
            for query in ("windowed_join", "windowed_aggregation"):
                workload = Workload.model_validate(
                    {"name": query, "query": query, "key": "carrier", "value": "flight", "window": "500ms"}
                )
                request = TrialRequest(workload, tmp_path / query, 600, 6, Bounds(max_slip_s=5))
                run = run_trial(system, fleet, request)
                assert run.observation.invalid is None
                rows = load_stream([stream / "part-0.parquet"], "ns", COLUMNS, line=False, max_memory_mb=100, densify=1)
                counts = [[n - 1 for n in driver["offered"]] for driver in run.details["drivers"]]
                spec = Spec.of(workload, COLUMNS)
                offered = offered_rows(rows, counts)
                found = check(offered, run.details["system"], run.details["epochs"], spec, run.details["rules"])
                assert (found.wrong, found.watermarks_checked) == (None, True)
                assert run.observation.offered == offered.num_rows == 3600
                assert found.expected_rows > 100
                assert found.reported_late == found.expected_late > 0
                known = {name: part for name, part in run.details["latency_split_ns"].items() if part is not None}
                assert known.keys() == run.details["latency_split_ns"].keys()
                assert sum(known[name] for name in PARTS[:-1]) == pytest.approx(run.event_latency.mean)
                assert min(known.values()) >= 0
                holds.append(known["watermark_hold"])
                apart = run.details["outside_event_latency_ns"]["count"]
                assert run.event_latency.count + apart + run.details["negative_latencies"] == found.reported_rows
        assert (
            holds[0] < holds[1] / 4
        )  # a pair is emitted at once, a window only by the batch after the one that closes it
    finally:
        system.stop()
