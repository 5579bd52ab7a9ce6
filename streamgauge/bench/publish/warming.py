"""Rows that warm a job up: the beginning of the stream, moved into the past, so that event time goes on into the trial.

Their ids are of a round of their own (driver/ids.py).

A closed loop keeps the beginning of each queue. A later trial that starts a job first has it take those rows, again
and again until the time for it is over. They come as fast as the job takes them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import int64s, ints, replaced
from streamgauge.base.units import Tick
from streamgauge.bench.driver.ids import Laps, Turn
from streamgauge.bench.publish.moving import in_event_time
from streamgauge.streams.kafka.clients import Access, broker_errors
from streamgauge.streams.kafka.records import Form

#: the most rows that are kept of a queue, and the most that are published at a time
KEPT_ROWS, CHUNK_ROWS = 1_000_000, 1_000
#: the most times that the kept rows are published
PASSES = 20
#: seconds at the trial's rate for which rows wait for the job
AHEAD_S = 2.0
LOOK_S, FLUSH_S = 0.02, 30.0
#: records that the producer holds at most before more are made
HELD = 50_000
_PRODUCER = {"enable.idempotence": True, "linger.ms": 2, "queue.buffering.max.messages": 500_000}


@dataclass(frozen=True)
class Begin:
    """The kept rows of each queue, as many of each.

    laps: of the round to which the rows of all passes belong.
    ticks, seqs: distance in event time and in seq of a row in one pass to the same row in the next one. The last pass
    lies before the stream.
    """

    tables: list[pa.Table]
    tick: Tick
    laps: Laps
    ticks: int
    seqs: int
    passes: int

    @property
    def rows(self) -> int:
        """Rows of a queue in all passes."""
        rows: int = self.tables[0].num_rows
        return self.passes * rows

    def part(self, queue: int, at: int, most: int) -> pa.RecordBatch:
        """The next rows of a queue, at most so many, after `at` rows of all passes."""
        rows, lap_rows = self.tables[queue].num_rows, self.laps.rows[queue]
        number, row = divmod(at, rows)
        end, pieces = min(rows, row + most), []
        while row < end:
            lap = row // lap_rows
            turn = Turn(self.laps.round, number * -(-rows // lap_rows) + lap)
            piece = self.tables[queue].slice(row, min(end, (lap + 1) * lap_rows) - row)
            pieces.append(self.laps.ids.marked(piece, turn))
            row += piece.num_rows
        batch = pa.concat_tables(pieces).combine_chunks().to_batches()[0]
        back = self.passes - number
        event_time, seq = ints(batch.column("event_time")), ints(batch.column("seq"))
        # -1 is the sentinel's seq
        return in_event_time(batch, event_time - back * self.ticks, seq - back * self.seqs - 1, self.tick)


def begin_of(folder: Path, queues: int, tick: Tick, laps: Laps, first: int | None = None) -> Begin | None:
    """Reads the kept rows, whose ids are those of the stream; None if there are none.

    first: the time in ticks before which no row may be moved, even if none can be.
    """
    tables = []
    for number in range(queues):
        with suppress(OSError, pa.ArrowException), pa.ipc.open_stream(str(folder / f"events-{number}.arrow")) as file:
            batches: list[pa.RecordBatch] = []
            with suppress(OSError, pa.ArrowException):  # it may have been cut off
                batches.extend(batch for batch in file)
            table = pa.Table.from_batches(batches, file.schema)
            tables.append(table.filter(pc.invert(table.column("sentinel"))).combine_chunks())
    if len(tables) != queues or not all(table.num_rows for table in tables):
        return None
    rows = min(table.num_rows for table in tables)
    tables = [table.slice(0, rows).combine_chunks() for table in tables]
    times = [ints(table.column("event_time").chunk(0)) for table in tables]
    least, most = min(int(time.min()) for time in times), max(int(time.max()) for time in times)
    ticks = most - least + max(1, (most - least) // (rows * queues))
    last = max(int(ints(table.column("seq").chunk(0)).max()) for table in tables)
    passes = min(PASSES, (least - (first or 0)) // ticks)  # none begins before 1970, if the stream allows
    passes = passes if first is not None else max(1, passes)
    return Begin(tables, tick, laps, ticks, last + 1, passes) if passes > 0 else None


class Ahead:
    """The rows that may wait for a job: at least so many, or twice what it takes from one commit to the next.

    is_batched: a commit ends a micro-batch of all rows that waited; twice as many would let batches grow without end.
    """

    def __init__(self, least: int, *, is_batched: bool) -> None:
        self._is_batched, self._rows, self._committed = is_batched, least, 0

    def look(self, committed: int) -> int:
        """Returns the rows that may wait. committed: rows that the job has taken."""
        if not self._is_batched:
            self._rows = max(self._rows, 2 * (committed - self._committed))
        self._committed = committed
        return self._rows


class Warming:
    """Publishes the begin of a stream to a job for `seconds`. rate: of the trial that follows, events/s."""

    def __init__(
        self, access: Access, topic: str, attempt: str, form: Form, begin: Begin, seconds: float,
        *, rate: float, is_batched: bool,
    ) -> None:  # fmt: skip
        self._access, self._topic, self._attempt, self._begin, self._seconds = access, topic, attempt, begin, seconds
        self._records = form.records(begin.tables[0].schema)
        queues = len(begin.tables)
        least = max(queues, round(AHEAD_S * rate))
        self._ahead = Ahead(least, is_batched=is_batched)
        self._chunk = max(1, min(CHUNK_ROWS, HELD // queues, least // (4 * queues)))
        #: rows of each partition that come before the trial's
        self.base = [0] * queues

    def run(self, file: Path, committed: Callable[[], int], over: Callable[[float], bool], longest_s: float) -> bool:
        """Returns once the job has taken all that was published; False if it has not, or if `over` became true.

        file: takes the rows that were published, as the oracle reads them. committed: rows that the job has taken.
        over: sleeps, and tells whether to give up.
        """
        from confluent_kafka import Producer

        with broker_errors(self._access, "the producer cannot be made"):
            producer = Producer({**self._access.settings(), **_PRODUCER})
        begun = time.monotonic()
        with closing(pa.ipc.new_stream(str(file), self._begin.tables[0].schema)) as out:
            while time.monotonic() - begun < self._seconds and self.base[0] < self._begin.rows:
                taken = committed()
                more = taken + self._ahead.look(taken) - sum(self.base)
                for _ in range(math.ceil(more / (self._chunk * len(self.base)))):
                    if len(producer) > HELD or self.base[0] == self._begin.rows or over(0):
                        break
                    self._publish(producer, out)
                producer.poll(0)
                if over(LOOK_S):
                    return False
        producer.flush(FLUSH_S)
        while committed() < sum(self.base):
            if over(0.1) or time.monotonic() - begun > self._seconds + longest_s:
                return False
        return True

    def _publish(self, producer: Any, out: Any) -> None:
        """Publishes the next chunk of each queue, row by row in turns, as a trial offers them."""
        queues = len(self.base)
        records = []
        for partition, at in enumerate(self.base):
            batch = self._begin.part(partition, at, self._chunk)
            # before every instant of the trial, whose backlog is due before its start
            walls = int64s(1 + partition + queues * (at + np.arange(batch.num_rows)))
            batch = replaced(batch, {"offered_wall": walls, "event_wall": walls})
            records.append(self._records(batch, self._attempt))
            out.write_batch(batch)
            self.base[partition] += batch.num_rows
        for row in zip(*records, strict=True):
            for partition, (value, time_ms, headers) in enumerate(row):
                producer.produce(self._topic, value, partition=partition, timestamp=time_ms, headers=headers)
