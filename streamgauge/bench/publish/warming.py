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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Ints, int64s, ints, replaced
from streamgauge.base.units import Tick
from streamgauge.bench.driver.client import Connection, of_each
from streamgauge.bench.driver.ids import Laps, Turn
from streamgauge.bench.driver.system import TrialSetup
from streamgauge.bench.oracle.own_sql import PARTITION
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
    """The kept rows of all queues, in the order in which they were offered.

    queue, lap: of each row. laps: of the round to which the rows of all passes belong.
    ticks, seqs: distance in event time and in seq of a row in one pass to the same row in the next one. The last pass
    lies before the stream.
    """

    table: pa.Table
    queue: Ints
    lap: Ints
    tick: Tick
    laps: Laps
    ticks: int
    seqs: int
    passes: int

    @property
    def rows(self) -> int:
        """Rows of all passes."""
        return self.passes * len(self.queue)

    def part(self, at: int, most: int) -> tuple[pa.RecordBatch, Ints]:
        """The next rows and their queues, at most so many, after `at` rows of all passes."""
        number, first = divmod(at, len(self.queue))
        row, end, pieces = first, min(len(self.queue), first + most), []
        while row < end:
            lap = int(self.lap[row])
            turn = Turn(self.laps.round, number * (int(self.lap[-1]) + 1) + lap)
            piece = self.table.slice(row, min(end, int(np.searchsorted(self.lap, lap + 1))) - row)
            pieces.append(self.laps.ids.marked(piece, turn))
            row += piece.num_rows
        batch = pa.concat_tables(pieces).combine_chunks().to_batches()[0]
        back = self.passes - number
        event_time, seq = ints(batch.column("event_time")), ints(batch.column("seq"))
        # -1 is the sentinel's seq
        moved = in_event_time(batch, event_time - back * self.ticks, seq - back * self.seqs - 1, self.tick)
        return moved, self.queue[first:end]


def begin_of(folder: Path, queues: int, tick: Tick, laps: Laps, first: int | None = None) -> Begin | None:
    """Reads the kept rows, whose ids are those of the stream; None unless each queue that gets rows has some.

    first: the time in ticks before which no row may be moved, even if that leaves no pass.
    """
    used = [number for number in range(queues) if laps.rows[number]]  # the keys of none may lie in a partition
    tables = []
    for number in used:
        with suppress(OSError, pa.ArrowException), pa.ipc.open_stream(str(folder / f"events-{number}.arrow")) as file:
            batches: list[pa.RecordBatch] = []
            with suppress(OSError, pa.ArrowException):  # it may have been cut off
                batches.extend(batch for batch in file)
            table = pa.Table.from_batches(batches, file.schema)
            tables.append(table.filter(pc.invert(table.column("sentinel"))).combine_chunks())
    if not used or len(tables) != len(used) or not all(table.num_rows for table in tables):
        return None
    queue = np.repeat(used, [table.num_rows for table in tables])
    rows = [laps.rows[number] for number in used]
    lap = np.concatenate([np.arange(table.num_rows) // each for table, each in zip(tables, rows, strict=True)])
    whole = pa.concat_tables(tables).combine_chunks()
    walls = _ints(whole, "offered_wall")
    order = np.lexsort((walls, lap))
    # up to where the rows of every queue are known
    order = order[: 1 + min(int(np.flatnonzero(queue[order] == number)[-1]) for number in used)]
    whole = whole.take(int64s(order)).combine_chunks()
    least, most = int(_ints(whole, "event_time").min()), int(_ints(whole, "event_time").max())
    ticks = most - least + max(1, (most - least) // len(order))
    last = int(_ints(whole, "seq").max())
    passes = min(PASSES, (least - (first or 0)) // ticks)  # none begins before 1970, if the stream allows
    passes = passes if first is not None else max(1, passes)
    if passes <= 0:
        return None
    return Begin(whole, queue[order], lap[order], tick, laps, ticks, last + 1, passes)


def _ints(table: pa.Table, name: str) -> Ints:
    return ints(table.column(name).chunk(0))


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
        self._records, self._queues = form.records(begin.table.schema), len(begin.laps.rows)
        least = max(self._queues, round(AHEAD_S * rate))
        self._ahead = Ahead(least, is_batched=is_batched)
        self._chunk = max(1, min(CHUNK_ROWS * self._queues, HELD, least // 4))
        self._at = 0
        self._base = np.zeros(self._queues, np.int64)

    @property
    def base(self) -> list[int]:
        """Rows of each partition that come before the trial's."""
        return list(map(int, self._base))

    def run(self, file: Path, committed: Callable[[], int], over: Callable[[float], bool], longest_s: float) -> bool:
        """Returns True once the job has taken all that was published, False if the time or `over` ends it before.

        file: takes the rows that were published, as the oracle reads them. committed: rows that the job has taken.
        over: sleeps, and tells whether to give up.
        """
        from confluent_kafka import Producer

        with broker_errors(self._access, "the producer cannot be made"):
            producer = Producer({**self._access.settings(), **_PRODUCER})
        begun = time.monotonic()
        schema = self._begin.table.schema.append(pa.field(PARTITION, pa.int64()))
        with closing(pa.ipc.new_stream(str(file), schema)) as out:
            while time.monotonic() - begun < self._seconds and self._at < self._begin.rows:
                taken = committed()
                more = taken + self._ahead.look(taken) - self._at
                for _ in range(math.ceil(more / self._chunk)):
                    if len(producer) > HELD or self._at == self._begin.rows or over(0):
                        break
                    self._publish(producer, out)
                producer.poll(0)
                if over(LOOK_S):
                    return False
        producer.flush(FLUSH_S)
        while committed() < self._at:
            if over(0.1) or time.monotonic() - begun > self._seconds + longest_s:
                return False
        return True

    def _publish(self, producer: Any, out: Any) -> None:
        """Publishes the next rows, in the order in which a trial offers them."""
        batch, queue = self._begin.part(self._at, self._chunk)
        # before every instant of the trial, whose backlog is due before its start
        walls = int64s(1 + self._at + np.arange(batch.num_rows))
        batch = replaced(batch, {"offered_wall": walls, "event_wall": walls})
        made = self._records(batch, self._attempt)
        for partition, (value, key, time_ms, headers) in zip(queue.tolist(), made, strict=True):
            producer.produce(self._topic, value, key, partition, timestamp=time_ms, headers=headers)
        out.write_batch(batch.append_column(PARTITION, int64s(queue)))
        self._at += batch.num_rows
        self._base += np.bincount(queue, minlength=self._queues)


def laps_after(setup: TrialSetup) -> Laps:
    """The ids of what warms a job up: those of the round after the trial's."""
    return replace(Laps.of(of_each(setup.endpoints, setup.attempt, Connection.status)), round=setup.marking.round + 1)
