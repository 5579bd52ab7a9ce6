"""Checks the instrument itself: runs whole searches, on the real clock and wire, against the known system."""

from __future__ import annotations

import tempfile
import time
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import write_record
from streamgauge.base.schemas import STREAM
from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.measure.cell import ReadyCell
from streamgauge.bench.measure.cell_plan import CellPlan
from streamgauge.bench.measure.lock import measuring
from streamgauge.bench.measure.searcher import Searcher
from streamgauge.bench.search.behaviour import Behaviour
from streamgauge.bench.search.simulate import Calibration, truth_of
from streamgauge.bench.search.steps import Done
from streamgauge.catalog.artifacts import MANIFEST, Artifact
from streamgauge.config import Cell, Replay, Search, Workload, parse
from streamgauge.config.systems import settings_of

ROWS = 100_000


def calibrate_for_real(
    behaviour: Behaviour,
    settings: Search,
    seeds: int,
    first_seed: int = 0,
    *,
    system: dict[str, object] | None = None,
) -> Calibration:
    """Runs a whole search per seed in real time, one to two minutes for each process. Raises UserError.

    system: settings of another system that behaves so; by default the engine known itself.
    """
    behaviour.check()
    if behaviour.capacity is None or behaviour.capacity >= 2_000_000:
        raise UserError("--capacity: allowed with --real: above 0 and below 2,000,000 events/s")
    if behaviour.wander:
        raise UserError("--wander: not with --real, as the machine's own speed wanders")
    truth = truth_of(behaviour, settings)
    searches, seconds = list[Done](), list[float]()
    for seed in range(first_seed, first_seed + seeds):
        with (
            tempfile.TemporaryDirectory(prefix="streamgauge-") as scratch,
            measuring(f"calibration {uuid.uuid4().hex[:8]}") as token,
        ):
            bench = bench_of(system or known(behaviour, seed), settings, Path(scratch), seed)
            began = time.monotonic()
            with bench.fleet:
                try:
                    searches.append(Searcher(bench, settings, token).search())
                finally:
                    bench.stop()
            seconds.append(time.monotonic() - began)
    return Calibration(truth, tuple(searches), tuple(seconds))


def known(behaviour: Behaviour, seed: int) -> dict[str, object]:
    """The known system as the keys of a benchmark file."""
    return {
        "name": "known",
        "engine": "known",
        "capacity": behaviour.capacity,
        "batch_cost": f"{round(behaviour.batch_cost_s * 1e6)}us",
        "batch_rows": behaviour.batch_rows,
        "noise": behaviour.noise,
        "hiccups": behaviour.hiccups,
        "compile": f"{round(behaviour.compile_s * 1e6)}us",
        "between": behaviour.between,
        "continuous": behaviour.continuous,
        "seed": seed + 1,
    }


def bench_of(system: dict[str, object], settings: Search, scratch: Path, seed: int = 0) -> ReadyCell:
    """Makes a cell of that system over a small stream, without a benchmark file."""
    workload = Workload(name="all", query="passthrough")
    measured = parse(settings_of(str(system["engine"])), system, "calibrate")
    cell = Cell(experiment="known", workload=workload.name, system=measured.name)
    stream, replay = small_stream(scratch, seed), Replay()
    fleet = Fleet(stream, replay, tick="ns", columns={})
    artifact = Artifact("stream", "calibration", stream, {"columns": {}, "events": ROWS})
    return ReadyCell(CellPlan([cell], workload, measured, replay, settings), [artifact], fleet, scratch / "work")


def small_stream(directory: Path, seed: int) -> Path:
    """Writes a small stream artifact, a millisecond between events, a little disorder; returns its directory."""
    rng = np.random.default_rng(seed)
    ingestion = np.arange(ROWS, dtype=np.int64) * 1_000_000
    event = ingestion - np.where(rng.random(ROWS) < 0.1, rng.integers(0, 50_000_000, ROWS), 0)
    columns = [ingestion, np.arange(ROWS), event, pa.array([b"x\n"] * ROWS, pa.binary())]
    pq.write_table(
        pa.Table.from_arrays([pa.array(c) for c in columns], schema=STREAM), directory / "part-00000.parquet"
    )
    manifest = {"files": ["part-00000.parquet"], "tick": "ns", "columns": {}, "arrival": False, "events": ROWS}
    write_record(directory / MANIFEST, {"kind": "stream", "key": "calibration", **manifest})
    return directory
