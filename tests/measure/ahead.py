"""An engine that reads its first queue three times as fast as the second: a thread that answers windowed_aggregation.

Engines may have one watermark, which the queue in front moves for both, or one for each queue. `Lying` has the former,
and declares the latter.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.client import Connection, Latest
from streamgauge.bench.driver.system import Adapter, Capabilities, TrialSetup
from streamgauge.bench.oracle.checksum import checksum
from streamgauge.bench.workloads import Spec
from streamgauge.config import System
from streamgauge.records.rules import LEAST_MS, Clock, Rules
from streamgauge.records.trial import Stretch

TURN_S = 0.02
#: rows that it takes of each queue in a turn
MOST = (600, 200)
TIMESTAMP = pa.timestamp("us", "UTC")


class OneForAll(Adapter):
    """Has one watermark, which follows the latest event of any queue."""

    capabilities = Capabilities(continuous=True)
    declares: ClassVar[Clock] = "all queues"
    follows: ClassVar[Clock] = "all queues"

    def __init__(self, system: System, work: Path) -> None:
        super().__init__(system, work)
        self._over, self._thread = threading.Event(), threading.Thread()
        self._stretches: list[Stretch] = []
        self._late = 0

    def rules(self, spec: Spec) -> Rules:
        return Rules(spec.operators(), spec.watermark_ms * 1000, self.declares)

    def start(self) -> None: ...

    def begin_trial(self, setup: TrialSetup) -> None:
        self.failure, self._over, self._stretches, self._late = None, threading.Event(), [], 0
        self._thread = threading.Thread(target=self._guarded, args=(setup,), daemon=True)
        self._thread.start()

    def end_trial(self, timeout_s: float) -> dict[str, object]:
        self._thread.join(timeout_s)
        drained = not self._thread.is_alive() and self.failure is None
        self.stop()
        return {"drained": drained, "failure": self.failure, "stretches": self._stretches, "late_dropped": self._late}

    def alive(self) -> bool:
        return self.failure is None

    def stop(self) -> None:
        self._over.set()

    def _guarded(self, setup: TrialSetup) -> None:
        try:
            with Connection(setup.endpoints[0], setup.attempt) as wire:
                wire.ready(setup.attempt)
                self._run(wire, setup.attempt, Spec.of(setup.workload, setup.columns))
        except Exception as problem:
            self.failure = f"it failed: {problem!r}"

    def _run(self, wire: Connection, attempt: str, spec: Spec) -> None:
        """Takes rows in turns; windows end by the watermark, and all of them after the sentinels."""
        open_ = Windows(spec)
        at, marks, latest = [0, 0], [LEAST_MS, LEAST_MS], wire.latest()
        while not self._over.is_set() and not (latest.finished and tuple(at) == latest.rows):
            watermark_ms = max(marks) if self.follows == "all queues" else min(marks)
            taken = [batch for queue, n in enumerate(self._turn(latest, at)) for batch in _rows(wire, queue, at, n)]
            for queue, rows in taken:
                events_us = rows["event_ts"].cast(pa.int64()).to_numpy()
                marks[queue] = max(marks[queue], (int(events_us.max()) - spec.watermark_ms * 1000) // 1000)
                self._late += open_.add(rows, events_us, watermark_ms)
            if taken or latest.finished:
                ends = {str(queue): row for queue, row in enumerate(at)}
                begun = None if watermark_ms == LEAST_MS else watermark_ms
                self._stretches.append({"ends": [ends], "watermark_ms": begun})
                body = open_.ended(watermark_ms if not (latest.finished and tuple(at) == latest.rows) else None)
                wire.report(attempt, len(self._stretches), body)
                wire.commit(dict(enumerate(at)))
            time.sleep(TURN_S)
            latest = wire.latest() if not latest.finished else latest

    def _turn(self, latest: Latest, at: list[int]) -> list[int]:
        """Number of rows to take of each queue; the sentinels come last, and together."""
        left = [rows - row - latest.finished for rows, row in zip(latest.rows, at, strict=True)]
        return [1, 1] if latest.finished and not any(left) else [min(*both) for both in zip(left, MOST, strict=True)]


class OneForEach(OneForAll):
    """Has a watermark for each queue, of which the least judges."""

    declares, follows = "least queue", "least queue"


class Lying(OneForAll):
    declares = "least queue"


def _rows(wire: Connection, queue: int, at: list[int], count: int) -> list[tuple[int, pa.RecordBatch]]:
    """Reads so many rows of a queue; returns them with its number, without a sentinel."""
    batches = list(wire.read(queue, at[queue], at[queue] + count)) if count else []
    at[queue] += count
    kept = [batch.filter(pa.array(~batch["sentinel"].to_numpy(zero_copy_only=False))) for batch in batches]
    return [(queue, rows) for rows in kept if rows.num_rows]


class Windows:
    """Tumbling windows that are open, by begin and key: count, sum, and walls of the latest contributor."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._counts, self._sums = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
        self._event, self._offered = Counter[tuple[int, str]](), Counter[tuple[int, str]]()

    def add(self, rows: pa.RecordBatch, events_us: np.ndarray, watermark_ms: int) -> int:
        """Adds the rows whose window has not ended; returns the number of the others."""
        begins = events_us - events_us % self._spec.window_us
        kept = begins + self._spec.window_us > watermark_ms * 1000
        columns = (rows[str(name)].to_pylist() for name in (self._spec.key, self._spec.value, *_WALLS))
        for begin, key, value, event, offered in np.array([*zip(begins.tolist(), *columns, strict=True)], object)[kept]:
            place = begin, key
            self._counts[place] += 1
            self._sums[place] += value
            self._event[place], self._offered[place] = (
                max(self._event[place], event),
                max(self._offered[place], offered),
            )
        return int((~kept).sum())

    def ended(self, watermark_ms: int | None) -> dict[str, object]:
        """Report of the windows that the watermark has passed; None: of all."""
        length_us = self._spec.window_us
        done = [p for p in self._counts if watermark_ms is None or p[0] + length_us <= watermark_ms * 1000]
        counts, sums = [self._counts.pop(place) for place in done], [self._sums.pop(place) for place in done]
        starts = np.array([begin for begin, _ in done], np.int64)
        result = pa.record_batch(
            {
                "window_start": pa.array(starts).cast(TIMESTAMP),
                "window_end": pa.array(starts + length_us).cast(TIMESTAMP),
                "key": pa.array([key for _, key in done], pa.string()),
                "events": pa.array(counts, pa.int64()),
                "total": pa.array(sums, pa.int64()),
                "mean": pa.array([total / n for total, n in zip(sums, counts, strict=True)], pa.float64()),
            }
        )
        now = time.time_ns()
        body: dict[str, object] = {"rows": len(done), "checksum": checksum(result)}
        for name, walls in (("event_latency", self._event), ("processing_latency", self._offered)):
            (latencies := Histogram()).add(now - np.array([walls.pop(place) for place in done], np.int64))
            body[name] = latencies.to_dict()
        return body | {"emitted_wall_ns": [now, now] if done else []}


_WALLS = ("event_wall", "offered_wall")
