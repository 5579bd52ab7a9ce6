"""Bytewax as an engine under test: windowed_aggregation on one queue, in Python. See docs/engines.md.

In a benchmark file, with this folder on PYTHONPATH: `{name: bytewax, engine: "bytewax_engine:Bytewax"}`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
import numpy as np
import pyarrow as pa
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.run import cli_main

from streamgauge.base.errors import UserError
from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.client import Connection
from streamgauge.bench.driver.system import Adapter, Capabilities, Endpoint, TrialSetup
from streamgauge.bench.engines.processes import Session
from streamgauge.bench.oracle.checksum import checksum
from streamgauge.bench.workloads import Spec
from streamgauge.records.rules import Rules

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMESTAMP = pa.timestamp("us", "UTC")
Row = tuple[Any, ...]  # event time, value, event_wall, offered_wall


class Bytewax(Adapter):
    """A fresh process for each trial."""

    capabilities = Capabilities(continuous=True)

    def __init__(self, system: Any, work: Path) -> None:
        super().__init__(system, work)
        self._process: subprocess.Popen[bytes] | None = None
        self._session: Session | None = None
        self._log = work / "bytewax.log"

    def rules(self, spec: Spec) -> Rules:
        """Declares a watermark for each key: an event below it is late even if its window is open."""
        return Rules(spec.operators("event"), spec.watermark_ms * 1000, "own key")

    def start(self) -> None:
        self._log.parent.mkdir(parents=True, exist_ok=True)

    def begin_trial(self, setup: TrialSetup) -> None:
        self.stop()
        spec = Spec.of(setup.workload, setup.columns)
        if spec.query != "windowed_aggregation" or spec.slide_us or setup.columns[str(spec.value)] != "int64":
            raise UserError(f"{self.name}: answers windowed_aggregation of integers in tumbling windows alone")
        if [endpoint.partitions for endpoint in setup.endpoints] != [1]:
            raise UserError(f"{self.name}: reads one queue; set replay.partitions and replay.processes to 1")
        job = {"attempt": setup.attempt, "endpoint": asdict(setup.endpoints[0]), "spec": spec.to_dict()}
        job["type"] = setup.columns[str(spec.key)]
        with self._log.open("wb") as log:
            command = [sys.executable, __file__]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
        assert self._process.stdin is not None
        with self._process.stdin as given:  # everybody can read arguments, and the endpoint has a token
            given.write(json.dumps(job).encode())
        self._session = Session(self._process.pid)

    def end_trial(self, timeout_s: float) -> dict[str, Any]:
        with suppress(subprocess.TimeoutExpired):
            if self._process is not None:
                self._process.wait(timeout_s)
        self.alive()  # and if not, why
        drained = self._process is not None and self._process.returncode == 0
        figures = {"drained": drained, "cpu_seconds": self.cpu_seconds(), "failure": self.failure}
        self.stop()
        return figures | {"stretches": [{"ends": [{"0": 2**62}], "watermark_ms": None}]}

    def alive(self) -> bool:
        if self._process is not None and self._process.poll():
            last = self._log.read_text(errors="replace").splitlines()[-1:]
            self.failure = f"bytewax died: exit code {self._process.returncode}: {' '.join(last)}"
        return self.failure is None

    def cpu_seconds(self) -> float:
        return self._session.cpu_seconds() if self._session else 0.0

    def stop(self) -> None:
        if self._session is not None and self._process is not None:
            self._session.end()
            self._process.wait()
        self._process, self._session, self.failure = None, None, None


class Wire(FixedPartitionedSource[tuple[str, Row], int], StatefulSourcePartition[tuple[str, Row], int]):
    """The driver's queue; it is committed once Bytewax asks for more."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._job, self._row = job, 0
        about = job["spec"]
        self._columns = (about["key"], "event_ts", about["value"], "event_wall", "offered_wall", "sentinel")

    def list_parts(self) -> list[str]:
        return ["0"]

    def build_part(self, *_: object) -> Wire:
        self._wire = Connection(Endpoint(**self._job["endpoint"]), self._job["attempt"])
        self._wire.ready(self._job["attempt"])
        return self

    def next_batch(self) -> list[tuple[str, Row]]:
        self._wire.commit({0: self._row})
        latest = self._wire.latest()
        if latest.finished and self._row == latest.rows[0]:
            raise StopIteration  # Bytewax then closes every window
        taken: list[tuple[str, Row]] = []
        for batch in self._wire.read(0, self._row, max_rows=20_000, wait_s=0.02):
            self._row += batch.num_rows
            columns = (batch[name].to_pylist() for name in self._columns)
            rows = zip(*columns, strict=True)  # Bytewax's keys are texts
            taken += [(json.dumps(key), tuple(row)) for key, *row, sentinel in rows if not sentinel]
        return taken

    def snapshot(self) -> int:
        return self._row


class Measure(DynamicSink[Any], StatelessSinkPartition[Any]):
    """Stamps rows as they come out and reports them; one report for each of Bytewax's batches."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._job, self._epoch = job, 0

    def build(self, *_: object) -> Measure:
        self._wire = Connection(Endpoint(**self._job["endpoint"]), self._job["attempt"])
        return self

    def write_batch(self, items: list[Any]) -> None:
        now = time.time_ns()
        rows = [row for row in items if row is not None]
        key, begin, count, total, event_wall, offered_wall = zip(*rows, strict=True) if rows else ((),) * 6
        starts = np.array(begin, np.int64)
        mean = [None if t is None else t / n for t, n in zip(total, count, strict=True)]
        result = pa.record_batch(
            {
                "window_start": pa.array(starts).cast(TIMESTAMP),
                "window_end": pa.array(starts + self._job["spec"]["window_us"]).cast(TIMESTAMP),
                "key": pa.array(key, {"string": pa.string(), "int64": pa.int64()}.get(self._job["type"], pa.float64())),
                "events": pa.array(count, pa.int64()),
                "total": pa.array(total, pa.int64()),
                "mean": pa.array(mean, pa.float64()),
            }
        )
        event, processing = now - np.array(event_wall, np.int64), now - np.array(offered_wall, np.int64)
        sound = (event >= 0) & (processing >= 0)
        body: dict[str, Any] = {"rows": len(rows), "negative": int((~sound).sum()), "checksum": checksum(result)}
        for name, values in (("event_latency", event[sound]), ("processing_latency", processing[sound])):
            (histogram := Histogram()).add(values)
            body[name] = histogram.to_dict()
        body |= {"emitted_wall_ns": [now, now] if rows else [], "batch": {"late": len(items) - len(rows)}}
        self._wire.report(self._job["attempt"], self._epoch, body)
        self._epoch += 1


def add(so_far: list[Any] | None, row: Row) -> list[Any]:
    """Adds a row to its window's count, sum and latest walls; a sum without values is null."""
    _, value, event, offered = row
    if so_far is None:
        return [1, value, event, offered]
    count, total, latest, entered = so_far
    total = total if value is None else value + (total or 0)
    return [count + 1, total, max(latest, event), max(entered, offered)]


def _never(*_: object) -> None:
    raise AssertionError("tumbling windows do not merge")


def flow(job: dict[str, Any]) -> Dataflow:
    spec = Spec(**job["spec"])
    # the wall clock would move the watermark, so that answers depended on the machine's speed: it stands still
    delay = timedelta(milliseconds=spec.watermark_ms)
    clock: win.EventClock[Row] = win.EventClock(lambda row: row[0], delay, lambda: EPOCH, lambda _: None)
    windows = win.TumblingWindower(align_to=EPOCH, length=timedelta(microseconds=spec.window_us))
    made = Dataflow("streamgauge")
    rows = op.input("wire", made, Wire(job))
    folded = win.fold_window("windows", rows, clock, windows, lambda: None, add, _never)
    answers = op.map("results", folded.down, lambda i: (json.loads(i[0]), i[1][0] * spec.window_us, *i[1][1]))
    late = op.map("late", folded.late, lambda _: None)
    op.output("measure", op.merge("all", answers, late), Measure(job))
    return made


if __name__ == "__main__":
    cli_main(flow(json.load(sys.stdin)), epoch_interval=timedelta(milliseconds=100))
