"""Counts the events that a query loses to its watermark while a stream comes at its own speed. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamgauge.records.loss import Kind, Loss
from streamgauge.streams.lateness.pace import IDEAL, Ints, Pace, Watermark
from streamgauge.streams.lateness.sessions import left_out

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class LateRule:
    """Rule by which a query loses an event: never, once its windows or its session have ended, or below the watermark.

    tolerance: an event below it may be lost, by what a job says of itself. length_us: of a window, or the gap of a
    session. slide_us: a window begins at each multiple of it.
    """

    kind: Kind
    delay_us: int = 0
    length_us: int = 0
    slide_us: int = 0


class LossCount:
    """Counts the loss of a stream, piece by piece."""

    def __init__(self, rule: LateRule, pace: Pace = IDEAL, queues: int = 1) -> None:
        self.rule, self.pace = rule, pace
        self._watermark = Watermark(rule.delay_us, pace, queues)
        self._events = self._partly = self._of = 0
        self._ends = np.zeros(0, np.int64)  # of windows that lack an event

    def add(
        self,
        event_us: Ints,
        arrival_us: Ints,
        *,
        read: Mask | None = None,
        narrow: Mask | None = None,
        keys: Ints | None = None,
    ) -> Mask:
        """Takes the next events in order of arrival; returns which are lost.

        read: events that the query reads; the watermark follows all. narrow: events that belong only to the window that
        ends first. keys: a number for each key; where sessions are joined first, they want the whole stream at once.
        """
        rule, watermark = self.rule, self._watermark.next(event_us, arrival_us)
        partly: Mask = np.zeros(len(event_us), bool)
        if rule.kind == "window":
            first = event_us - np.mod(event_us, rule.slide_us) + rule.slide_us
            partly = first <= watermark
        elif rule.kind in ("event", "tolerance"):
            partly = event_us <= watermark if self.pace.equal_is_late else event_us < watermark
        elif rule.kind == "session" and self.pace.joins_first:
            assert keys is not None
            partly = left_out(keys, event_us, watermark, rule.length_us)
        elif rule.kind == "session":
            partly = event_us + rule.length_us <= watermark
        if read is not None:
            partly &= read
        lost = partly
        if rule.kind == "window":
            last = first + (rule.length_us - rule.slide_us)
            last = last if narrow is None else np.where(narrow, first, last)
            lost = partly & (last <= watermark)
            self._keep_ends(first[partly], last[partly], watermark[partly])
        self._events += int(lost.sum())
        self._partly += int(partly.sum())
        self._of += len(event_us) if read is None else int(read.sum())
        return lost

    def _keep_ends(self, first: Ints, last: Ints, watermark: Ints) -> None:
        """Keeps the windows that have ended and hold these events, whose windows end from first to last."""
        end = first
        while len(end):
            self._ends = np.union1d(self._ends, end)
            end = end + self.rule.slide_us
            stays = (end <= last) & (end <= watermark)
            end, last, watermark = end[stays], last[stays], watermark[stays]

    def loss(self) -> Loss:
        """The loss of all events so far."""
        windows = len(self._ends) if self.rule.kind == "window" else None
        return Loss(self._events, self._of, self.rule.kind, self.pace.cadence, self._partly, windows)


def loss(event_us: Ints, arrival_us: Ints, rule: LateRule, pace: Pace = IDEAL, keys: Ints | None = None) -> Loss:
    """Returns the loss of a whole stream; both times in order of arrival."""
    count = LossCount(rule, pace)
    count.add(event_us, arrival_us, keys=keys)
    return count.loss()
