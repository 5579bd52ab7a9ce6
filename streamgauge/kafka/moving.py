"""Moves rows of the wire in event time, for a job that goes on from one trial to the next."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamgauge.base.arrow import flags, int64s, ints
from streamgauge.base.units import PS, Tick

_EVENT_TS = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class After:
    """The end of what a job has taken before, which the rows of its next trial follow."""

    event_time: int
    """the latest, ticks"""
    seq: int
    """the largest"""
    gap: int
    """ticks from that event time to the first of the next trial"""


class Mover:
    """Moves all rows of a trial by the same time, which follows from the first batch; notes the latest row."""

    def __init__(self, after: After | None, tick: Tick) -> None:
        self._after, self._ticks_per_us = after, PS["us"] // PS[tick]
        self._lock, self._by = threading.Lock(), None if after else 0
        #: the latest event time and the largest seq of all rows so far
        self.latest, self.seq = -(2**63), -1

    def moved(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        event_time, seq = ints(rows.column("event_time")), ints(rows.column("seq"))
        with self._lock:
            if self._after is not None:
                if self._by is None:
                    self._by = self._after.event_time + self._after.gap - int(event_time.min())
                event_time = event_time + self._by
                seq = np.where(flags(rows.column("sentinel")), seq, seq + self._after.seq + 1)
                microseconds = int64s(event_time // self._ticks_per_us).view(_EVENT_TS)
                for name, values in (
                    ("event_time", int64s(event_time)),
                    ("event_ts", microseconds),
                    ("seq", int64s(seq)),
                ):
                    place = rows.schema.get_field_index(name)
                    rows = rows.set_column(place, rows.schema.field(place), values)
            self.latest, self.seq = max(self.latest, int(event_time.max())), max(self.seq, int(seq.max()))
        return rows
