"""Rows that warm a job up: the begin of the stream, moved into the past, so that event time goes on into the trial.

A closed loop keeps the begin of each queue; every later trial has its job take those rows before the first one counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import int64s, ints, replaced
from streamgauge.base.units import Tick
from streamgauge.kafka.clients import Access, told
from streamgauge.kafka.moving import in_event_time
from streamgauge.kafka.records import headers, maker

#: the most rows that are kept of a queue, and those that are published at a time
KEPT_ROWS, CHUNK_ROWS = 1_000_000, 500
#: chunks that wait for the job, so that it never waits for them
AHEAD = 20
FLUSH_S = 30.0


def begin_of(folder: Path, queues: int, tick: Tick) -> list[pa.Table]:
    """The kept rows of each queue, moved before the stream's first event; [] if there are none."""
    tables = []
    for number in range(queues):
        with suppress(OSError, pa.ArrowException), pa.ipc.open_stream(str(folder / f"events-{number}.arrow")) as file:
            batches: list[pa.RecordBatch] = []
            with suppress(OSError, pa.ArrowException):  # it may have been cut off
                batches.extend(batch for batch in file)
            table = pa.Table.from_batches(batches, file.schema)
            tables.append(table.filter(pc.invert(table.column("sentinel"))).combine_chunks())
    if len(tables) != queues or not all(table.num_rows for table in tables):
        return []
    rows = min(table.num_rows for table in tables)
    tables = [table.slice(0, rows).combine_chunks() for table in tables]
    times = [ints(table.column("event_time").chunk(0)) for table in tables]
    least, most = min(int(time.min()) for time in times), max(int(time.max()) for time in times)
    gap = max(1, (most - least) // (rows * queues))
    seqs = [ints(table.column("seq").chunk(0)) for table in tables]
    last, back = max(int(seq.max()) for seq in seqs), most - least + gap
    return [  # -1 is the sentinel's seq
        in_event_time(table, time - back, seq - last - 2, tick)
        for table, time, seq in zip(tables, times, seqs, strict=True)
    ]


class Warming:
    """Publishes those rows bit by bit for `seconds`, always some ahead of the job."""

    def __init__(
        self, access: Access, topic: str, attempt: str, form: str, headers: bool, rows: list[pa.Table], seconds: float
    ) -> None:
        self._access, self._topic, self._attempt, self._rows, self._seconds = access, topic, attempt, rows, seconds
        self._values, self._headers = maker(form, rows[0].schema), headers
        #: rows of each partition that come before the trial's
        self.base = [0] * len(rows)
        self._kept: list[pa.RecordBatch] = []

    def run(self, committed: Callable[[], int], over: Callable[[float], bool], longest_s: float) -> bool:
        """Returns once the job has taken all that was published; False if it has not, or if `over` became true.

        committed: rows that the job has taken. over: sleeps, and tells whether to give up.
        """
        from confluent_kafka import Producer

        with told(self._access, "the producer cannot be made"):
            producer = Producer({**self._access.settings(), "enable.idempotence": True, "linger.ms": 2})
        begun = time.monotonic()
        total = sum(table.num_rows for table in self._rows)
        while time.monotonic() - begun < self._seconds and sum(self.base) < total:
            if sum(self.base) - committed() < AHEAD * CHUNK_ROWS * len(self._rows):
                self._publish(producer)
                producer.flush(FLUSH_S)
            if over(0.02):
                return False
        while committed() < sum(self.base):
            if over(0.1) or time.monotonic() - begun > self._seconds + longest_s:
                return False
        return True

    def write(self, file: Path) -> None:
        """Writes the rows that were published, as the oracle reads them."""
        if self._kept:
            with pa.ipc.new_stream(str(file), self._kept[0].schema) as out:
                for batch in self._kept:
                    out.write_batch(batch)

    def _publish(self, producer: Any) -> None:
        """Publishes the next chunk of each queue, row by row in turns, as a trial offers them."""
        queues = len(self._rows)
        records = []
        for partition, table in enumerate(self._rows):
            batch = table.slice(self.base[partition], CHUNK_ROWS).combine_chunks().to_batches()[0]
            # before every instant of the trial, whose backlog is due before its start
            walls = int64s(1 + partition + queues * (self.base[partition] + np.arange(batch.num_rows)))
            batch = replaced(batch, {"offered_wall": walls, "event_wall": walls})
            records.append(zip(self._values(batch), headers(batch, self._attempt, wanted=self._headers), strict=True))
            self._kept.append(batch)
            self.base[partition] += batch.num_rows
        for row in zip(*records, strict=True):
            for partition, (value, header) in enumerate(row):
                producer.produce(self._topic, value, partition=partition, headers=header)
