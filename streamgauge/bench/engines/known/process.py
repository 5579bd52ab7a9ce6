"""The process of the known system, which runs one trial. It imports little, as each trial starts it anew.

`search/behaviour.py` says how long a batch takes; a row is emitted `delay` after it was read. The system sleeps for
its service time, until absolute instants. So no error adds up, and the capacity is exact at any load of the host.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from streamgauge.base.arrow import flags, ints
from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.child import pin, run_task
from streamgauge.bench.driver.client import Connection, WireError
from streamgauge.bench.driver.schedule import NS, Ints
from streamgauge.bench.driver.system import Endpoint
from streamgauge.bench.search.behaviour import Behaviour, Process

POLL_S = 0.001
EPOCH_S = 0.5


@dataclass(frozen=True)
class Wired:
    """Settings of the system: its behaviour, and what applies only to a real clock."""

    behaviour: Behaviour = field(default_factory=Behaviour)
    delay_s: float = 0.0
    interval_s: float = 0.0  # least time between two batches
    seed: int = 0
    process: int = 1  # which process of that seed it simulates
    leak_bytes_per_s: int = 0
    worked_s: float = 0.0  # how long it has worked in earlier trials
    cpus_file: str = ""  # tells on how many CPUs it works; without the file on one


@dataclass
class _Epoch:
    number: int = 0
    event: Histogram = field(default_factory=Histogram)
    processing: Histogram = field(default_factory=Histogram)
    first_ns: int = 0
    last_ns: int = 0

    def body(self, clock: tuple[int, int] | None) -> dict[str, object]:
        return {
            "rows": self.event.count + self.event.negative,
            "negative": self.processing.negative,
            "event_latency": self.event.to_dict(),
            "processing_latency": self.processing.to_dict(),
            "emitted_wall_ns": [self.first_ns, self.last_ns],
            "clock_offset_ns": clock,
            "batch": {},
        }


class Emitter:
    """The system's sink: stamps rows when their delay is over, in a thread of its own."""

    def __init__(self, delay_s: float) -> None:
        self._delay_ns = round(delay_s * NS)
        self._waiting: queue.SimpleQueue[tuple[int, Ints, Ints] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._epoch = _Epoch()
        self._thread = threading.Thread(target=self._emit, name="emit", daemon=True)
        self._thread.start()

    def take(self, read_wall_ns: int, event_wall: Ints, offered_wall: Ints) -> None:
        self._waiting.put((read_wall_ns + self._delay_ns, event_wall, offered_wall))

    def epoch(self) -> _Epoch:
        """Returns what was emitted since the last call, and begins the next epoch."""
        with self._lock:
            done, self._epoch = self._epoch, _Epoch(self._epoch.number + 1)
        return done

    def drain(self, timeout_s: float) -> None:
        self._waiting.put(None)
        self._thread.join(timeout_s)

    def _emit(self) -> None:
        while (item := self._waiting.get()) is not None:
            due, event_wall, offered_wall = item
            time.sleep(max(0, due - time.time_ns()) / NS)
            with self._lock:
                now, epoch = time.time_ns(), self._epoch
                epoch.event.add(now - event_wall)
                epoch.processing.add(now - offered_wall)
                epoch.first_ns, epoch.last_ns = epoch.first_ns or now, now


def run(
    wired: Wired, endpoints: list[Endpoint], attempt: str, stop: threading.Event, *, patience_s: float = 600.0
) -> dict[str, float]:
    """Takes part in one trial until it is drained or `stop` is set; returns its figures.

    Raises WireError when the driver leaves, or when no row waits although patience_s has passed since the first row.
    """
    connections = [Connection(endpoint, attempt) for endpoint in endpoints]
    emitter = Emitter(wired.delay_s)
    try:
        for connection in connections:
            connection.ready(attempt)
        clock = connections[0].clock_offset()
        figures = _serve(wired, connections, attempt, emitter, stop, patience_s, clock)
        emitter.drain(wired.delay_s + 30)
        last = emitter.epoch()
        connections[0].report(attempt, last.number, last.body(clock))
        return figures
    finally:
        emitter.drain(0)
        for connection in connections:
            connection.close()


def _serve(
    wired: Wired,
    connections: list[Connection],
    attempt: str,
    emitter: Emitter,
    stop: threading.Event,
    patience_s: float,
    clock: tuple[int, int],
) -> dict[str, float]:
    process, worked_s = Process(wired.behaviour, wired.seed, wired.process), wired.worked_s
    paced = wired.behaviour.capacity is not None
    position = [[0] * connection.partitions for connection in connections]
    rows = batches = 0
    cpu_begin_s = time.process_time()
    last_row = free_at = reported = time.monotonic()
    idle = True
    leaked: list[bytes] = []
    readers = ThreadPoolExecutor(len(connections))  # uses all hosts' links at the same time
    side_by_side = map if len(connections) == 1 else readers.map
    while not stop.is_set():
        latest = [connection.latest() for connection in connections]
        there = [[b - a for a, b in zip(at, new.rows, strict=True)] for at, new in zip(position, latest, strict=True)]
        count = sum(map(sum, there))
        now = time.monotonic()
        if not count:
            idle = True
            if all(new.finished for new in latest):
                break
            if now - last_row > patience_s:
                raise WireError(f"no row came for {patience_s} s")
        else:
            last_row = now
            process.behaviour = wired.behaviour.on(_cpus(wired))
            share = min(1.0, process.most_rows / count)
            wanted = [[-(-int(n * share * 1000) // 1000) for n in new] for new in there]
            taken = sum(side_by_side(partial(_take, emitter), connections, position, wanted))
            if paced:
                cost_s = process.batch_s(taken, worked_s, count)
                worked_s += cost_s
                free_at = (now if idle else free_at) + cost_s  # includes the time that the wire took
                stop.wait(max(0.0, free_at - time.monotonic()))
            for connection, at in zip(connections, position, strict=True):
                connection.commit(dict(enumerate(at)))
            rows, batches, idle = rows + taken, batches + 1, False
        if time.monotonic() - reported > EPOCH_S:
            leaked.append(b"x" * round(wired.leak_bytes_per_s * (time.monotonic() - reported)))
            done, reported = emitter.epoch(), time.monotonic()
            connections[0].report(attempt, done.number, done.body(clock))
        pause = wired.interval_s - (time.monotonic() - now)
        if pause > 0 or not count or not paced:
            idle = True
            stop.wait(max(pause, POLL_S))
    return {
        "rows": rows,
        "batch_count": batches,
        "cpu_seconds": time.process_time() - cpu_begin_s,
        "worked_s": worked_s,
    }


def _cpus(wired: Wired) -> float:
    """Number of CPUs on which it works now."""
    try:
        return float(Path(wired.cpus_file).read_text()) if wired.cpus_file else 1.0
    except FileNotFoundError:
        return 1.0


def _take(emitter: Emitter, connection: Connection, at: list[int], rows: list[int]) -> int:
    """Plans and reads rows[i] more rows of each partition i; returns their sum."""
    connection.planned({partition: at[partition] + n for partition, n in enumerate(rows)})
    for partition, n in enumerate(rows):
        for batch in connection.read(partition, at[partition], at[partition] + n):
            read_wall_ns = time.time_ns()
            event = ~flags(batch.column("sentinel"))
            event_wall, offered_wall = ints(batch.column("event_wall")), ints(batch.column("offered_wall"))
            emitter.take(read_wall_ns, event_wall[event], offered_wall[event])
        at[partition] += n
    return sum(rows)


def take_part(task: dict[str, Any], stop: threading.Event) -> dict[str, float]:
    """Runs one trial; returns its figures."""
    pin(task["cpus"])
    endpoints = [Endpoint(**endpoint) for endpoint in task["endpoints"]]
    wired = Wired(**{**task["wired"], "behaviour": Behaviour(**task["wired"]["behaviour"])})
    figures = run(wired, endpoints, task["attempt"], stop)
    return figures | {"memory_bytes": psutil.Process(os.getpid()).memory_info().rss}


if __name__ == "__main__":
    sys.exit(run_task(take_part))
