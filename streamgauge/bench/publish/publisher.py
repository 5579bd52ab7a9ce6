"""The process that takes the events of a trial by the wire and produces them to a topic, one partition for each queue.

The n-th row of a queue is the n-th record that this process appends to its partition, behind those of a warm-up.
This module imports little, as each trial starts it anew.
"""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa

from streamgauge.base.arrow import ints
from streamgauge.base.errors import UserError
from streamgauge.base.histogram import Counts, Histogram
from streamgauge.bench.driver.child import run_task
from streamgauge.bench.driver.client import Connection
from streamgauge.bench.driver.ids import Laps
from streamgauge.bench.driver.schedule import NS
from streamgauge.bench.driver.system import Endpoint
from streamgauge.bench.publish.moving import After, Mover
from streamgauge.records.driver import DriverFigures
from streamgauge.streams.kafka.clients import TIMEOUT_S, Access, broker_errors
from streamgauge.streams.kafka.records import Form, Record

READ_ROWS, READ_S = 5_000, 0.05
FEW_ROWS, PAUSE_S = 500, 0.008
TELL_S = 0.1
#: how often, and after how many seconds each, a sentinel is repeated
WAKES, WAKE_S = 3, 0.7
#: of so many records one tells when the broker appended it
EVERY = 8
#: a broker stamps whole milliseconds, cut: half of one on average is missing
HALF_MS_NS = 500_000
#: an estimate of the clocks' distance is renewed after so long
CLOCK_NS = 60 * NS
PATIENCE_S = 60.0
#: once a row waits less than this and the clock's error, the broker has caught up with the backlog of the start
CAUGHT_UP_NS = 50_000_000
_PRODUCER = {
    "enable.idempotence": True,  # each record once, in its order: so a record's place tells its row
    "linger.ms": 2,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 262_144,
    "message.timeout.ms": int(PATIENCE_S * 1000),
}


@dataclass(frozen=True)
class Task:
    """Settings of one trial.

    after: what the job took in earlier trials.
    events: directory to which the offered rows are written too, or the first `kept` of each queue; None for none.
    clock: a topic whose records bear the broker's time, where those of `topic` do not.
    """

    attempt: str
    endpoints: tuple[Endpoint, ...]
    bootstrap: str
    security: dict[str, str]
    topic: str
    form: Form
    events: str | None
    kept: int | None = None
    after: After | None = None
    clock: str | None = None

    @classmethod
    def of(cls, given: dict[str, Any]) -> Task:
        after, endpoints = given["after"], tuple(Endpoint(**endpoint) for endpoint in given["endpoints"])
        made = {"endpoints": endpoints, "form": Form(**given["form"])}
        return cls(**given | made | {"after": None if after is None else After(**after)})

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass
class BrokerClock:
    """Distance of our clock from the broker's, ns, with its error bound: the best reading of the last two minutes."""

    offset: tuple[int, int] | None = None
    _best: tuple[int, int] | None = None  # reading of the minute that runs
    _begun_ns: int | None = None

    def read(self, offset_ns: int, error_ns: int, now_ns: int) -> tuple[int, int]:
        """Takes a reading into account; returns the offset."""
        reading = offset_ns, error_ns
        self._best = reading if self._best is None or error_ns < self._best[1] else self._best
        self.offset = reading if self.offset is None or error_ns < self.offset[1] else self.offset
        if self._begun_ns is None:
            self._begun_ns = now_ns
        elif now_ns - self._begun_ns > CLOCK_NS:  # clocks drift apart
            self.offset, self._best, self._begun_ns = self._best, None, now_ns
        return self.offset


@dataclass
class _Seen:
    """Figures of delivery reports. Slip: append time − offered_wall, of rows that fell due after the start.

    A backlog that is there from the start takes a while to fill in; until then nothing counts as slip.
    """

    slip: Histogram = field(default_factory=Histogram)
    waits: deque[int] = field(default_factory=deque)
    clock: BrokerClock = field(default_factory=BrokerClock)
    failure: str | None = None
    full: int = 0  # times that the producer's queue was full


class LinkFigures(TypedDict, total=False):
    """Figures of what is between driver and job; a publisher that had to be killed has none."""

    published: list[int]  # rows of each queue
    finished: int  # queues that are published to the end
    queue_full: int  # times that the producer's queue was full
    latest: list[int]  # latest event time in ticks, and largest seq
    filled_s: float | None  # until the backlog of the start was handed on
    slip: Counts
    clock_offset_ns: tuple[int, int] | None  # this process's clock − the broker's, and its error bound
    cpu_seconds: float
    starved_share: float  # of looks at which the job waited for its link


class Publisher:
    """Reads all queues, each in a thread of its own, until `stop` is set."""

    def __init__(self, task: Task, stop: threading.Event) -> None:
        from confluent_kafka import Producer

        self._task, self._stop, self._seen, self._mover = task, stop, _Seen(), Mover(task.after, task.form.tick)
        self._access = Access(task.bootstrap, task.security)
        with broker_errors(self._access, "the producer cannot be made"):
            self._producer = Producer({**self._access.settings(), **_PRODUCER, "error_cb": self._error})
        self._counts: list[int] = []
        self._records: Callable[[pa.RecordBatch, str], Iterator[Record]] = lambda *_: iter(())
        self._start_ns, self._filled_ns = 0, 0
        #: queues that are published to the end, with their sentinel
        self.finished = 0

    def run(self) -> None:
        """Publishes until `stop` is set; prints a line of figures now and then. Raises UserError or WireError."""
        sources = []
        for endpoint in self._task.endpoints:
            with Connection(endpoint, self._task.attempt) as wire:
                sources += [(endpoint, queue) for queue in range(wire.partitions)]
                self._records = self._task.form.records(wire.schema)
                self._records(nothing(wire.schema), "")  # loads the code that makes records
        self._counts = [0] * len(sources)
        threads = [
            threading.Thread(target=self._guarded, args=(number, *source), daemon=True)
            for number, source in enumerate(sources)
        ]
        with broker_errors(self._access, f"the topic {self._task.topic} cannot be written"):
            self._producer.list_topics(self._task.topic, timeout=TIMEOUT_S)  # connects before the first row is due
        for thread in threads:
            thread.start()
        next_line = 0.0
        while not self._stop.is_set() and self._seen.failure is None:
            self._producer.poll(0.02)
            self._take()
            if time.monotonic() > next_line:
                next_line = time.monotonic() + TELL_S
                print(json.dumps({"published": self._counts, "filled": bool(self._filled_ns)}), flush=True)
                if self._task.clock is not None:
                    with suppress(BufferError):  # the queue is full, and the next line comes soon
                        self._producer.produce(self._task.clock, b"", on_delivery=self._reported(None))
        self._stop.set()
        for thread in threads:
            thread.join(1.0)
        self._producer.purge()
        self._producer.flush(1.0)
        self._take()
        if self._seen.failure is not None:
            raise UserError(self._access.masked(self._seen.failure))

    def figures(self) -> LinkFigures:
        return {
            "published": self._counts,
            "finished": self.finished,
            "queue_full": self._seen.full,
            "latest": [self._mover.latest, self._mover.seq],
            "filled_s": (self._filled_ns - self._start_ns) / NS if self._filled_ns else None,
            "slip": self._seen.slip.to_dict(),
            "clock_offset_ns": self._seen.clock.offset,
            "cpu_seconds": round(time.process_time(), 3),
        }

    def _guarded(self, number: int, endpoint: Endpoint, queue: int) -> None:
        try:
            self._publish(number, endpoint, queue)
        except Exception as problem:  # nobody watches this thread
            if not self._stop.is_set():
                self._seen.failure = self._seen.failure or f"{type(problem).__name__}: {problem}"

    def _publish(self, number: int, endpoint: Endpoint, queue: int) -> None:
        with Connection(endpoint, self._task.attempt) as wire:
            kept, laps = self._kept(number, wire.schema), None
            while not self._stop.is_set():
                row = self._counts[number]
                batches = list(wire.read(queue, row, max_rows=READ_ROWS, wait_s=READ_S))
                if batches and not row:
                    laps = Laps.of([status := wire.status()])
                    self._begun(status)
                if sum(batch.num_rows for batch in batches) < FEW_ROWS:
                    self._stop.wait(PAUSE_S)  # else it would ask for each row by itself
                for batch in map(self._mover.moved, batches):
                    if is_last := batch.column("sentinel")[batch.num_rows - 1].as_py():  # it comes by itself
                        batch = self._task.form.filled(batch, number, len(self._counts))
                    self._produce(number, batch)
                    if kept is not None:
                        # those of a closed loop warm later trials up, as other events
                        if laps is not None and self._task.kept is not None:
                            batch = laps.plain(batch, queue, self._counts[number])
                        kept.write_batch(batch.select(kept_columns(batch.schema)))
                    self._counts[number] += batch.num_rows
                    if kept is not None and self._counts[number] >= (self._task.kept or math.inf):
                        kept.close()
                        kept = None
                    if is_last:
                        self.finished += 1
                        if kept is not None:
                            kept.close()
                        self._wake(number, batch.slice(batch.num_rows - 1))
                        return

    def _wake(self, number: int, sentinel: pa.RecordBatch) -> None:
        """Repeats the sentinel: a consumer that waits for a record, as Flink's for ten seconds, commits late."""
        for _ in range(WAKES):
            if self._stop.wait(WAKE_S):
                return
            self._produce(number, sentinel, every=0)

    def _begun(self, status: DriverFigures) -> None:
        if self._start_ns:
            return
        self._filled_ns = 0 if status["behind_s"] else status["start_wall_ns"]
        self._start_ns = status["start_wall_ns"]

    def _produce(self, number: int, batch: pa.RecordBatch, every: int = EVERY) -> None:
        """Produces the rows; of every so many records one tells when the broker appended it."""
        offered = ints(batch.column("offered_wall")).tolist()
        produce, topic, last = self._producer.produce, self._task.topic, len(offered) - 1
        for at, (value, key, time_ms, headers) in enumerate(self._records(batch, self._task.attempt)):
            # an idempotent producer loses no record between two that arrive: these tell of the others
            report = self._reported(offered[at]) if every and (not at % every or at == last) else None
            while True:
                try:
                    produce(topic, value, key, number, report, timestamp=time_ms, headers=headers)
                    break
                except BufferError:
                    self._seen.full += 1
                    if self._stop.wait(0.005):
                        return

    def _kept(self, number: int, schema: pa.Schema) -> Any:
        """A file for the rows of a queue, if they are wanted."""
        if self._task.events is None:
            return None
        names = kept_columns(schema)
        fields = pa.schema([schema.field(name) for name in names])
        return pa.ipc.new_stream(str(Path(self._task.events) / f"events-{number}.arrow"), fields)

    def _reported(self, offered_ns: int | None) -> Any:
        """A function that takes the broker's report on a record. offered_ns: None if only its clock is asked for."""
        sent_ns = time.time_ns()
        is_stamped = offered_ns is None or self._task.clock is None

        def report(error: Any, message: Any) -> None:
            if error is not None:
                if not self._stop.is_set():
                    self._seen.failure = f"the broker did not take a record: {error.str()}"
                return
            taken_ns = back_ns = time.time_ns()  # known to be there, at the latest, where nothing tells when it came
            error_ns = 0
            if is_stamped:
                appended_ns = message.timestamp()[1] * 1_000_000 + HALF_MS_NS
                error_ns = (back_ns - sent_ns) // 2 + HALF_MS_NS
                offset_ns, error_ns = self._seen.clock.read((sent_ns + back_ns) // 2 - appended_ns, error_ns, back_ns)
                taken_ns = appended_ns + offset_ns
            if offered_ns is not None and offered_ns >= self._start_ns:
                self._waited(taken_ns, offered_ns, error_ns)

        return report

    def _waited(self, taken_ns: int, offered_ns: int, error_ns: int) -> None:
        """Counts the wait of a row. taken_ns: by our clock, with an error of error_ns at most."""
        wait_ns = max(0, taken_ns - offered_ns)
        if not self._filled_ns and wait_ns < CAUGHT_UP_NS + error_ns:
            self._filled_ns = taken_ns
        if self._filled_ns:
            self._seen.waits.append(wait_ns)

    def _error(self, error: Any) -> None:
        if error.fatal():
            self._seen.failure = f"the producer failed: {error.str()}"

    def _take(self) -> None:
        """Moves the slips that have come into the histogram."""
        waits = self._seen.waits
        if count := len(waits):
            self._seen.slip.add(ints(pa.array([waits.popleft() for _ in range(count)], pa.int64())))


def nothing(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def kept_columns(schema: pa.Schema) -> list[str]:
    """Columns of the offered rows that the oracle reads."""
    return [name for name in schema.names if name not in ("ingestion_time", "line")]


def publish(given: dict[str, Any], stop: threading.Event) -> LinkFigures:
    publisher = Publisher(Task.of(given), stop)
    publisher.run()
    return publisher.figures()


if __name__ == "__main__":
    sys.exit(run_task(publish))
