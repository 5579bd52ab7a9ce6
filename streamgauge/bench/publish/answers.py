"""Reads the answers that a job has written to its output topic, and reports their latencies over the wire."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Ints, bools, flags, int64s, ints, replaced
from streamgauge.base.errors import UserError
from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.client import Connection
from streamgauge.bench.driver.schedule import NS
from streamgauge.bench.oracle.own_sql import EARLIER, PARTITION, WALLS, Timed
from streamgauge.bench.publish.publisher import HALF_MS_NS
from streamgauge.records.rules import Rules
from streamgauge.streams.kafka.clients import TIMEOUT_S, Access, broker_errors, ends
from streamgauge.streams.lateness.loss import LossCount

EPOCH_NS = NS // 2
LOOK_S = 0.1
#: most records of one look, and seconds that it waits for them
READ_RECORDS, READ_S = 10_000, 0.05
_SHOWN = 120


@dataclass(frozen=True)
class Topic:
    """The records of an output topic: values (None: a tombstone), instants at which the broker took them, and keys."""

    values: list[bytes | None]
    appended_ns: Ints
    keys: list[bytes | None]

    def last_of_each_key(self) -> Topic:
        """Returns the last record of each key, without those of keys that a tombstone has removed. Raises UserError."""
        last: dict[bytes, int] = {}
        for at, key in enumerate(self.keys):
            if key is None:
                shown = (self.values[at] or b"")[:_SHOWN].decode(errors="backslashreplace")
                raise UserError(f"answer.mode: found upsert, but an answer has no key: {shown!r}; allowed: append")
            last[key] = at
        kept = sorted(at for at in last.values() if self.values[at] is not None)
        return Topic([self.values[at] for at in kept], self.appended_ns[kept], [self.keys[at] for at in kept])


class Output:
    """A reader of an output topic, which sees committed transactions alone. Every method raises UserError."""

    def __init__(self, access: Access, topic: str, partitions: int) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self._access, self._topic = access, topic
        settings = {
            "group.id": f"{topic}-reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,  # the end of a partition comes after an empty fetch
        }
        with broker_errors(access, "the consumer cannot be made"):
            self._consumer = Consumer(access.settings() | settings)
        self._places = [TopicPartition(topic, number, 0) for number in range(partitions)]

    def close(self) -> None:
        self._consumer.close()

    def size(self) -> int:
        """Sum of the ends of all partitions, up to the first open transaction; it grows with each record."""
        with broker_errors(self._access, f"the topic {self._topic} cannot be read"):
            return sum(self._consumer.get_watermark_offsets(place, timeout=TIMEOUT_S)[1] for place in self._places)

    def is_open(self) -> bool:
        """True while an open transaction hides records, as that of a killed job until its timeout."""
        return self.size() < sum(ends(self._access, self._topic, len(self._places)))

    def wait_until_quiet(self, quiet_s: float, longest_s: float) -> None:
        """Returns once nothing was written for quiet_s. Raises UserError after longest_s: answers still come."""
        deadline = time.monotonic() + longest_s
        size, since = self.size(), time.monotonic()
        while time.monotonic() - since < quiet_s and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            if (now := self.size()) != size:
                size, since = now, time.monotonic()
        if time.monotonic() - since < quiet_s:
            raise UserError(f"answers still came {longest_s:.0f} s after the job had taken its last record")

    def read(self) -> Topic:
        """Returns all records up to the end of each partition."""
        from confluent_kafka import KafkaError, KafkaException

        values: list[bytes | None] = []
        keys: list[bytes | None] = []
        stamps: list[int] = []
        at_end: set[int] = set()
        with broker_errors(self._access, f"the topic {self._topic} cannot be read"):
            self._consumer.assign(self._places)
            last = time.monotonic()
            while len(at_end) < len(self._places):
                for message in self._consumer.consume(READ_RECORDS, READ_S):
                    last, error = time.monotonic(), message.error()
                    if error is None:
                        values.append(message.value())
                        keys.append(message.key())
                        stamps.append(message.timestamp()[1])
                    elif error.code() == KafkaError._PARTITION_EOF:
                        at_end.add(message.partition())
                    else:
                        raise KafkaException(error)
                if time.monotonic() - last > TIMEOUT_S:
                    raise UserError(f"the topic {self._topic} cannot be read: no record came for {TIMEOUT_S:g} s")
        return Topic(values, np.array(stamps, np.int64) * 1_000_000 + HALF_MS_NS, keys)


#: the file of rows that a job has taken before the trial's
WARM = "warm.arrow"


def offered(folder: Path, queues: int, earlier: Sequence[Path] = ()) -> pa.Table:
    """The rows that the publisher has written down, and those that the job took before, whose column EARLIER is true.

    earlier: folders of the trials before, if the job goes on; their walls become small numbers in the same order.
    Raises UserError if rows are missing.
    """
    parts = [_offered(folder, queues)]
    first = 1
    for before in reversed(earlier):
        parts.insert(0, _offered(before, queues))
    for number, part in enumerate(parts[:-1]):
        walls = ints(part.column("offered_wall").combine_chunks())
        ranks = np.empty(len(walls), np.int64)
        ranks[np.argsort(walls, kind="stable")] = np.arange(first, first + len(walls))
        first += len(walls)
        parts[number] = replaced(
            part, {**dict.fromkeys(WALLS, int64s(ranks)), EARLIER: bools(np.ones(len(walls), bool))}
        )
    return pa.concat_tables(parts)


def _offered(folder: Path, queues: int) -> pa.Table:
    try:
        parts = [pa.ipc.open_stream(str(folder / WARM)).read_all()] if (folder / WARM).exists() else []
        for number in range(queues):
            table = pa.ipc.open_stream(str(folder / f"events-{number}.arrow")).read_all()
            parts.append(table.append_column(PARTITION, pa.repeat(pa.scalar(number, pa.int64()), table.num_rows)))
    except (OSError, pa.ArrowException) as problem:
        raise UserError(f"the offered rows cannot be read: {problem}") from None
    warm = len(parts) > queues
    return pa.concat_tables(
        table.append_column(EARLIER, pa.repeat(pa.scalar(warm and not number), table.num_rows))
        for number, table in enumerate(parts)
    )


def finite(rows: pa.Table) -> pa.Table:
    """The rows as a job has them by JSON, which knows neither NaN nor infinity: null stands for both."""
    floats = {one.name: rows.column(one.name) for one in rows.schema if pa.types.is_floating(one.type)}
    nothing = {name: pa.scalar(None, column.type) for name, column in floats.items()}
    return replaced(
        rows, {name: pc.if_else(pc.is_finite(column), column, nothing[name]) for name, column in floats.items()}
    )


def without_lost(rows: pa.Table, rules: Rules, key: str | None = None) -> pa.Table:
    """The offered rows without those that the job drops by these rules, for which each partition has its own time.

    key: the column of the records' keys; a record without one moves no time.
    """
    partition, event_us = (ints(rows.column(name).combine_chunks()) for name in (PARTITION, "event_ts"))
    lost = np.zeros(rows.num_rows, bool)
    keyed = np.ones(rows.num_rows, bool) if key is None else flags(rows.column(key).is_valid().combine_chunks())
    for number in np.unique(partition):
        own = np.flatnonzero((partition == number) & keyed)
        lost[own] = LossCount(rules).add(event_us[own], event_us[own])
    return rows.filter(bools(~lost))


def report(wire: Connection, attempt: str, timed: Timed, clock: Sequence[int] | None) -> None:
    """Sends the latencies, an epoch for each half second in which answers were appended.

    clock: the driver's clock minus the broker's, ns, and its error bound.
    """
    appended = timed.appended
    if not len(appended):
        return
    epochs = (appended - appended[0]) // EPOCH_NS
    begins = np.concatenate([[0], np.flatnonzero(np.diff(epochs)) + 1])
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(appended)], strict=True):
        wire.report(attempt, int(epochs[begin]), _body(timed, slice(begin, end), clock))


def _body(timed: Timed, part: slice, clock: Sequence[int] | None) -> dict[str, object]:
    appended = timed.appended[part]
    event, processing = Histogram(), Histogram()
    least = 0
    if timed.event_wall is not None and timed.offered_wall is not None:
        # the contributors' largest walls: no event was offered before its time had come
        waits = np.stack([appended - timed.event_wall[part], appended - timed.offered_wall[part]])
        # a broker's stamp is exact to half a millisecond: what looks negative by less is none
        waits = np.where((waits < 0) & (waits >= -HALF_MS_NS), 0, waits)
        least, sound = int(waits.min()), (waits >= 0).all(axis=0)
        for histogram, some in zip((event, processing), waits, strict=True):
            histogram.add(some[sound])
    return {
        "rows": len(appended),
        "negative": 0 if timed.event_wall is None else len(appended) - event.count,
        "least_ns": min(least, 0),
        "event_latency": event.to_dict(),
        "processing_latency": processing.to_dict(),
        "emitted_wall_ns": [int(appended[0]), int(appended[-1])],
        "emitted_mean_wall_ns": int(appended[0]) + int((appended - appended[0]).mean()),
        "clock_offset_ns": None if clock is None else list(clock),
        "split": False,  # a group commits what it has answered, so no hand-over is known
        "batch": {},
    }
