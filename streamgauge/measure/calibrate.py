"""The whole search on the real clock and wire against the known-capacity system: the instrument checks itself."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.artifacts import MANIFEST, write_json
from streamgauge.config import Replay, Search, System, Workload
from streamgauge.driver.fleet import Fleet
from streamgauge.driver.system import make_system
from streamgauge.driver.trial import run_trial
from streamgauge.errors import UserError
from streamgauge.measure.lock import measuring
from streamgauge.schemas import STREAM
from streamgauge.search import Done, next_step
from streamgauge.simulate import CalibrationResult
from streamgauge.trial import Trial
from streamgauge.units import Duration
from streamgauge.verdict import carried, judge

ROWS = 100_000


def calibrate_for_real(capacity: float, noise: float, seed: int, plan: Search | None = None) -> CalibrationResult:
    """Real time: about ten seconds a trial. Raises UserError."""
    if not 0 < capacity < 2_000_000:
        raise UserError(f"--capacity: found {capacity:g}, allowed with --real: above 0 and below 2,000,000 events/s")
    plan = plan or Search(trial_seconds=8.0, min_rate=min(100.0, capacity / 10), max_rate=4_000_000)
    known = System(name="known", engine="known", capacity=capacity, noise=noise, trigger=Duration.parse("100ms"))
    trials: list[Trial] = []
    with (
        tempfile.TemporaryDirectory(prefix="streamgauge-") as scratch,
        measuring(f"calibration {uuid.uuid4().hex[:8]}"),
    ):
        stream = small_stream(Path(scratch), seed)
        system = make_system(known, stream)
        with Fleet(stream, Replay(), tick="ns", columns={}) as fleet:
            while not isinstance(step := next_step(plan, trials), Done):
                run = run_trial(
                    system,
                    fleet,
                    Workload(name="all", query="passthrough"),
                    rate=step.rate_events_per_s,
                    seconds=plan.trial_seconds * step.seconds_factor,
                    work=Path(scratch),
                    hold=step.purpose == "probe",
                )
                trials.append(
                    step.tried(
                        judge(run.observation, plan), carried(run.observation), valid=run.observation.invalid is None
                    )
                )
    return CalibrationResult(capacity, step.rate_events_per_s, step.interval, step.outcome, step.reason, tuple(trials))


def small_stream(directory: Path, seed: int) -> Path:
    """A small stream artifact: a millisecond between events, a little disorder."""
    rng = np.random.default_rng(seed)
    ingestion = np.arange(ROWS, dtype=np.int64) * 1_000_000
    event = ingestion - np.where(rng.random(ROWS) < 0.1, rng.integers(0, 50_000_000, ROWS), 0)
    columns = [ingestion, np.arange(ROWS), event, pa.array([b"x\n"] * ROWS, pa.binary())]
    pq.write_table(
        pa.Table.from_arrays([pa.array(c) for c in columns], schema=STREAM), directory / "part-00000.parquet"
    )
    manifest = {"files": ["part-00000.parquet"], "tick": "ns", "columns": {}, "arrival": False, "events": ROWS}
    write_json(directory / MANIFEST, manifest)
    return directory
