"""Moves rows of the wire in event time, for a job that goes on from one trial to the next."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamgauge.base.arrow import Ints, Rows, flags, int64s, ints, replaced
from streamgauge.base.errors import UserError
from streamgauge.base.units import PS, Tick
from streamgauge.bench.driver.replay import EVENT_TS, LARGEST


@dataclass(frozen=True)
class After:
    """The end of what a job has taken before, which the rows of its next trial follow."""

    event_time: int  # the latest, ticks
    seq: int  # the largest
    gap: int  # ticks from that event time to the first of the next trial


def in_event_time(rows: Rows, event_time: Ints, seq: Ints, tick: Tick) -> Rows:
    """The rows with these event times (ticks) and seqs."""
    microseconds = int64s(event_time // (PS["us"] // PS[tick])).view(EVENT_TS)
    return replaced(rows, {"event_time": int64s(event_time), "event_ts": microseconds, "seq": int64s(seq)})


class Mover:
    """Moves all rows of a trial by the same time, which follows from the first batch; notes the latest row.

    Raises UserError for times that do not fit.
    """

    def __init__(self, after: After | None, tick: Tick) -> None:
        self._after, self._tick = after, tick
        self._lock, self._by = threading.Lock(), None if after else 0
        #: the latest event time and the largest seq of all rows so far
        self.latest, self.seq = -(2**63), -1

    def moved(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        event_time, seq = ints(rows.column("event_time")), ints(rows.column("seq"))
        with self._lock:
            if self._after is not None:
                if self._by is None:
                    self._by = self._after.event_time + self._after.gap - int(event_time.min())
                if int(event_time.max()) > LARGEST - self._by:
                    raise UserError(
                        "the trials of a job that goes on reach times that do not fit into 64 bits; shorten them, or "
                        "start it for each"
                    )
                event_time = event_time + self._by
                seq = np.where(flags(rows.column("sentinel")), seq, seq + self._after.seq + 1)
                rows = in_event_time(rows, event_time, seq, self._tick)
            self.latest, self.seq = max(self.latest, int(event_time.max())), max(self.seq, int(seq.max()))
        return rows
