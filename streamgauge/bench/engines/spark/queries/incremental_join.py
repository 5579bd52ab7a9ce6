"""Persons and auctions of the same key less than a window apart in event time, each pair as soon as both have come.

There are two value states per key: the persons seen, and the auctions seen. A new element is paired with those that are
there and waits for later ones, so disorder changes when a pair comes out, not whether. An event-time timer ends the
wait after a window: a partner that came after that would be late.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues, ValueState

from streamgauge.bench.engines.spark.queries.windows import WALLS, marked, watermarked
from streamgauge.bench.workloads import Spec

WAITING = "waiting array<struct<seq long, at long, event_wall long, offered_wall long>>"
RESULT = "key {key}, person_seq long, auction_seq long, event_wall long, offered_wall long"
Element = tuple[int, int, int, int]  # seq, event time in us, event_wall, offered_wall


def query(frames: list[DataFrame], spec: Spec) -> DataFrame:
    (frame,) = frames
    key, person = F.col(str(spec.key)).alias("key"), marked(spec).alias("person")
    at = F.unix_micros("event_ts").alias("at")
    named = watermarked(frame, spec).select("event_ts", key, person, "seq", at, *WALLS)
    result = RESULT.format(key=dict(frame.dtypes)[str(spec.key)])
    return named.groupBy("key").transformWithState(Join(spec.window_us), result, "Append", "EventTime")


class Join(StatefulProcessor):
    """Keeps each element for window_us, to pair it with the other side."""

    def __init__(self, window_us: int) -> None:
        self._window_us = window_us

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._persons = handle.getValueState("persons", WAITING)
        self._auctions = handle.getValueState("auctions", WAITING)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        del timerValues
        persons, auctions = _waiting(self._persons), _waiting(self._auctions)
        before = len(persons), len(auctions)
        for row in rows:
            new: Element = (row.seq, row.at, row.event_wall, row.offered_wall)
            (persons if row.person else auctions).append(new)
            for other in auctions if row.person else persons:
                if abs(other[1] - new[1]) < self._window_us:
                    person, auction = (new, other) if row.person else (other, new)
                    yield Row(
                        key=key[0],
                        person_seq=person[0],
                        auction_seq=auction[0],
                        event_wall=max(new[2], other[2]),
                        offered_wall=max(new[3], other[3]),
                    )
        for state, waiting, known in zip((self._persons, self._auctions), (persons, auctions), before, strict=True):
            if len(waiting) > known:
                state.update((waiting,))
        self._wake([*persons, *auctions])

    def handleExpiredTimer(self, key: Any, timerValues: TimerValues, expiredTimerInfo: Any) -> Iterator[Row]:
        del key, expiredTimerInfo
        ended = timerValues.getCurrentWatermarkInMs() * 1000 - self._window_us
        left: list[Element] = []
        for state in (self._persons, self._auctions):
            waiting = _waiting(state)
            stay = [element for element in waiting if element[1] > ended]
            if not stay and waiting:
                state.clear()
            elif len(stay) < len(waiting):
                state.update((stay,))
            left += stay
        self._wake(left)
        yield from ()

    def close(self) -> None:
        """Does nothing: no resource is open."""

    def _wake(self, waiting: list[Element]) -> None:
        """Sets a timer at the first expiry, which will set the next one."""
        if waiting:
            expiry_us = min(element[1] for element in waiting) + self._window_us
            self._handle.registerTimer(-(-expiry_us // 1000))


def _waiting(state: ValueState) -> list[Element]:
    kept = state.get() if state.exists() else None
    return [] if kept is None else [tuple(element) for element in kept[0]]
