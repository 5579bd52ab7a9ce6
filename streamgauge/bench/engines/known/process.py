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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import psutil

from streamgauge.base.arrow import flags, ints
from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.child import pin, run_task
from streamgauge.bench.driver.client import Connection, RefusedError, WireError, reached
from streamgauge.bench.driver.schedule import NS, Ints
from streamgauge.bench.driver.system import Endpoint
from streamgauge.bench.search.behaviour import Behaviour, Process

T = TypeVar("T")
POLL_S = 0.001
#: the driver has left if no row has come for so long
PATIENCE_S = 600.0
#: for each driver process, the first row of each of its queues that was not taken
Position = list[list[int]]


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
    parallelism: int = 1  # number of CPUs on which it works
    cpus_file: str = ""  # file with another number, once there is one
    commits_answered: bool = False  # it commits rows once it has reported them, not once it has taken them
    report_s: float = 0.5  # time between two reports
    reconnect_s: float = 0.0  # for so long it tries to reach a driver that is away


@dataclass
class _Epoch:
    number: int = 0
    event: Histogram = field(default_factory=Histogram)
    processing: Histogram = field(default_factory=Histogram)
    first_ns: int = 0
    last_ns: int = 0
    position: Position | None = None  # up to which its rows go

    def merge(self, later: _Epoch) -> None:
        self.event.merge(later.event)
        self.processing.merge(later.processing)
        self.first_ns, self.last_ns = self.first_ns or later.first_ns, later.last_ns or self.last_ns

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
    """The system's sink: stamps rows when their delay is over, in a thread of its own.

    An epoch has the number of rows that were taken before it, and ends between two batches. So a system that was killed
    repeats the number of the epoch that it begins again, and the driver counts no row twice.
    """

    def __init__(self, delay_s: float, taken: int = 0) -> None:
        self._delay_ns = round(delay_s * NS)
        self._waiting: queue.SimpleQueue[tuple[int, Ints, Ints] | Position | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._epoch, self._batch = _Epoch(taken), _Epoch()
        self._thread = threading.Thread(target=self._emit, name="emit", daemon=True)
        self._thread.start()

    def take(self, read_wall_ns: int, event_wall: Ints, offered_wall: Ints) -> None:
        self._waiting.put((read_wall_ns + self._delay_ns, event_wall, offered_wall))

    def end_batch(self, position: Position) -> None:
        self._waiting.put(position)

    def epoch(self) -> _Epoch:
        """Returns the batches that were emitted since the last call, and begins the next epoch."""
        with self._lock:
            done = self._epoch
            self._epoch = _Epoch(done.number if done.position is None else sum(map(sum, done.position)))
        return done

    def drain(self, timeout_s: float) -> None:
        self._waiting.put(None)
        self._thread.join(timeout_s)

    def _emit(self) -> None:
        while (item := self._waiting.get()) is not None:
            if isinstance(item, list):
                with self._lock:
                    self._epoch.merge(self._batch)
                    self._epoch.position, self._batch = item, _Epoch()
                continue
            due, event_wall, offered_wall = item
            time.sleep(max(0, due - time.time_ns()) / NS)
            with self._lock:
                now, epoch = time.time_ns(), self._batch
                epoch.event.add(now - event_wall)
                epoch.processing.add(now - offered_wall)
                epoch.first_ns, epoch.last_ns = epoch.first_ns or now, now


def run(wired: Wired, endpoints: list[Endpoint], attempt: str, stop: threading.Event) -> dict[str, float]:
    """Takes part in one trial until it is drained or `stop` is set; returns its figures.

    Raises WireError when the driver leaves.
    """
    with closing(Service(wired, endpoints, attempt)) as service:
        return service.run(stop)


class Service:
    """The system's part in one trial, from the first row that is not committed on."""

    def __init__(self, wired: Wired, endpoints: list[Endpoint], attempt: str) -> None:
        self._wired, self._endpoints, self._attempt = wired, endpoints, attempt
        self._connections = [Connection(endpoint, attempt) for endpoint in endpoints]
        self._clock = self._connections[0].clock_offset()
        self._position: Position = [connection.status()["committed"] for connection in self._connections]
        self._emitter = Emitter(wired.delay_s, sum(map(sum, self._position)))
        self._leaked: list[bytes] = []
        self._reported_s = time.monotonic()
        self._readers = ThreadPoolExecutor(len(endpoints))  # uses all hosts' links at the same time

    def close(self) -> None:
        self._emitter.drain(0)
        for connection in self._connections:
            connection.close()

    def run(self, stop: threading.Event) -> dict[str, float]:
        """Takes rows until all were taken or `stop` is set, and reports the last of them; returns its figures."""
        for number in range(len(self._endpoints)):
            self._ask(number, lambda connection: connection.ready(self._attempt))
        figures = self._serve(stop)
        self._emitter.drain(self._wired.delay_s + 30)
        self._report()
        return figures

    def _serve(self, stop: threading.Event) -> dict[str, float]:
        wired, hosts = self._wired, range(len(self._endpoints))
        process, worked_s = Process(wired.behaviour, wired.seed, wired.process), wired.worked_s
        paced = wired.behaviour.capacity is not None
        rows = batches = 0
        cpu_begin_s = time.process_time()
        last_row = free_at = time.monotonic()
        idle = True
        side_by_side = map if len(hosts) == 1 else self._readers.map
        while not stop.is_set():
            latest = [self._ask(number, Connection.latest) for number in hosts]
            there = [
                [b - a for a, b in zip(at, new.rows, strict=True)]
                for at, new in zip(self._position, latest, strict=True)
            ]
            count = sum(map(sum, there))
            now = time.monotonic()
            if not count:
                idle = True
                if all(new.finished for new in latest):
                    break
                if now - last_row > PATIENCE_S:
                    raise WireError(f"no row came for {PATIENCE_S} s")
            else:
                last_row = now
                process.behaviour = wired.behaviour.on(_cpus(wired))
                share = min(1.0, process.most_rows / count)
                wanted = [[-(-int(n * share * 1000) // 1000) for n in new] for new in there]
                taken = sum(side_by_side(self.take, hosts, wanted))
                self._emitter.end_batch([[*at] for at in self._position])
                if paced:
                    cost_s = process.batch_s(taken, worked_s, count)
                    worked_s += cost_s
                    free_at = (now if idle else free_at) + cost_s  # includes the time that the wire took
                    stop.wait(max(0.0, free_at - time.monotonic()))
                if not wired.commits_answered:
                    self._commit(self._position)
                rows, batches, idle = rows + taken, batches + 1, False
            if time.monotonic() - self._reported_s > wired.report_s:
                self._leaked.append(b"x" * round(wired.leak_bytes_per_s * (time.monotonic() - self._reported_s)))
                self._report()
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

    def take(self, number: int, rows: list[int]) -> int:
        """Plans and reads rows[i] more rows of each queue i of a driver process; returns their sum."""
        at = self._position[number]
        ends = [row + more for row, more in zip(at, rows, strict=True)]
        self._ask(number, lambda connection: connection.planned(dict(enumerate(ends))))
        for queue_, end in enumerate(ends):
            self._ask(number, partial(self._read, at, queue_, end))
        return sum(rows)

    def _read(self, at: list[int], queue_: int, end: int, connection: Connection) -> None:
        """Reads the rows of a queue up to `end`, and moves `at` with what came."""
        for batch in connection.read(queue_, at[queue_], end):
            read_wall_ns = time.time_ns()
            event = ~flags(batch.column("sentinel"))
            event_wall, offered_wall = ints(batch.column("event_wall")), ints(batch.column("offered_wall"))
            self._emitter.take(read_wall_ns, event_wall[event], offered_wall[event])
            at[queue_] += batch.num_rows

    def _report(self) -> None:
        """Reports what was emitted since the last report, and then commits it if it commits what is answered."""
        done, self._reported_s = self._emitter.epoch(), time.monotonic()
        body = done.body(self._clock)
        self._ask(0, lambda connection: connection.report(self._attempt, done.number, body))
        if self._wired.commits_answered and done.position is not None:
            self._commit(done.position)

    def _commit(self, position: Position) -> None:
        for number, at in enumerate(position):
            self._ask(number, partial(Connection.commit, offsets=dict(enumerate(at))))

    def _ask(self, number: int, call: Callable[[Connection], T]) -> T:
        """Asks a driver process, again after it was away for at most `reconnect_s`. Raises WireError."""
        while True:
            try:
                return call(self._connections[number])
            except RefusedError:
                raise
            except WireError:
                if not self._wired.reconnect_s:
                    raise
                self._connections[number].close()
                self._connections[number] = reached(self._endpoints[number], self._attempt, self._wired.reconnect_s)


def _cpus(wired: Wired) -> float:
    try:
        return float(Path(wired.cpus_file).read_text()) if wired.cpus_file else wired.parallelism
    except FileNotFoundError:
        return wired.parallelism


def take_part(task: dict[str, Any], stop: threading.Event) -> dict[str, float]:
    """Runs one trial; returns its figures."""
    pin(task["cpus"])
    time.sleep(max(0.0, task["from_s"] - time.time()))
    endpoints = [Endpoint(**endpoint) for endpoint in task["endpoints"]]
    wired = Wired(**{**task["wired"], "behaviour": Behaviour(**task["wired"]["behaviour"])})
    figures = run(wired, endpoints, task["attempt"], stop)
    return figures | {"memory_bytes": psutil.Process(os.getpid()).memory_info().rss}


if __name__ == "__main__":
    sys.exit(run_task(take_part))
