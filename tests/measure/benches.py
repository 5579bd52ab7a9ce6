"""A benchmark of the known system whose stream is there already: measured without Spark, in seconds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from streamgauge.catalog.artifacts import Build, Store
from streamgauge.config import Benchmark, Cell, load
from streamgauge.records.loss import Loss
from streamgauge.records.measurement import TrialObservation
from streamgauge.records.trial import Details, TrialResult
from streamgauge.streams.keys import stream_key
from tests import manifests
from tests.driver.conftest import COLUMNS, stream_table

CELL = Cell(experiment="e", workload="all", system="known")
EVENTS = 20_000  # one a millisecond; a batch of the driver ends with its loop, so short streams cost it much


@dataclass(frozen=True)
class Bench:
    file: Path
    benchmark: Benchmark
    store: Store


def write_bench(
    place: Path,
    *,
    capacity: float | None = None,
    delay: str = "0s",
    batch_cost: str = "0s",
    cpus: Collection[int] | None = None,
    events: int = EVENTS,
    ms: Sequence[int] | None = None,
    **more: Any,
) -> Bench:
    """Batches of 50 ms, so that a second has enough of them for a verdict.

    ms: event times in order of arrival; None means one event a millisecond, in order. cpus: those of the system, on
    which the yardstick runs; None means all.
    """
    (place / "f.csv").write_text("t,carrier,flight\n1,A,1\n")
    known: dict[str, Any] = {"name": "known", "engine": "known", "capacity": capacity, "delay": delay}
    known |= {"trigger": "50ms", "batch_cost": batch_cost, "cpus": None if cpus is None else list(cpus)}
    known |= {"batch_rows": max(1, round(capacity / 20))} if capacity else {}
    raw: dict[str, Any] = {
        "name": "b",
        "source": {"files": "f.csv", "time": {"column": "t", "unit": "ns"}, "columns": COLUMNS},
        "experiments": [{"name": "e", "target_percent": 0}],
        "workloads": [{"name": "all", "query": "passthrough"}],
        "systems": [known],
        # another process may have the CPU for a while: these tests count, the clock's own are elsewhere
        "replay": {"max_memory_mb": 64, "max_slip": "3s"},
        **more,
        # the known system compiles nothing, and other tests share the CPUs
        "search": {"warmup_seconds": 0, "yardstick": False, **more.get("search", {})},
    }
    file = place / "b.yaml"
    file.write_text(yaml.safe_dump(raw))
    benchmark, store = load(file), Store(place / "artifacts")

    def make(build: Build) -> None:
        times = [i * 1_000_000 for i in (range(events) if ms is None else ms)]
        pq.write_table(stream_table(times), build.path / "part-00000.parquet")
        build.manifest |= manifests.of_stream(files=["part-00000.parquet"], columns=COLUMNS, events=len(times))

    for experiment in benchmark.experiments:
        store.made("stream", stream_key(store, benchmark, experiment), make)
    return Bench(file, benchmark, store)


def uncompared(seen: TrialObservation, details: Details) -> TrialResult:
    """A trial whose output was not compared, and whose verdict nobody asks for."""
    return TrialResult(
        rate_events_per_s=seen.rate_events_per_s, seconds=seen.seconds, outcome="inconclusive", reason="", figures={},
        observation=seen, correct=None, check=None, dropped=None, lost_at_own_speed=Loss(0, 0, "never", ""),
        details=details,
    )  # fmt: skip
