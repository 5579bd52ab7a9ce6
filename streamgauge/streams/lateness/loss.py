"""Counts the events that a query loses to its watermark while a stream comes at its own speed. Pure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamgauge.base.arrow import Ints, Mask
from streamgauge.records.loss import Loss
from streamgauge.records.rules import MOST_US, Pace, Rules
from streamgauge.streams.lateness.late import first_ends, late
from streamgauge.streams.lateness.sessions import left_out
from streamgauge.streams.lateness.watermark import Watermark


def ends_of(rules: Rules) -> tuple[Rules, ...]:
    """Rules whose watermark never moves, and whose watermark follows each event: any pace loses a number in between.

    None for a watermark after each event, which is no estimate.
    """
    if rules.pace.kind == "event":
        return ()
    often = replace(rules, pace=Pace(step_us=rules.pace.step_us))
    return replace(often, delay_us=MOST_US), often


class LossCount:
    """Counts the loss of a stream, piece by piece, at the first operator that may lose an event."""

    def __init__(self, rules: Rules, queues: int = 1) -> None:
        self.rules, self._operator = rules, rules.losing
        self._at_ends = [LossCount(one, queues) for one in ends_of(rules)]
        self._watermark = Watermark(rules, queues)
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
        queue: Ints | None = None,
    ) -> Mask:
        """Takes the next events in order of arrival; returns which are lost.

        read: events that the query reads; the watermark follows all. narrow: events that belong only to the window that
        ends first. keys: a number for each key; rules that are `by_key` want them, and the whole stream at once.
        queue: that of each event; by default they take turns.
        """
        for one in self._at_ends:
            one.add(event_us, arrival_us, read=read, narrow=narrow, keys=keys, queue=queue)
        rules, operator = self.rules, self._operator
        watermark = self._watermark.next(event_us, arrival_us, keys, queue)
        if operator.kind == "session" and rules.joins_first:
            assert keys is not None
            partly = left_out(keys, event_us, watermark, operator.length_us)
        else:
            partly = late(event_us, watermark, operator, rules)
        if read is not None:
            partly &= read
        lost = partly
        if operator.kind == "window":
            first = first_ends(event_us, operator)
            last = first + (operator.length_us - operator.slide_us)
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
            end = end + self._operator.slide_us
            stays = (end <= last) & (end <= watermark)
            end, last, watermark = end[stays], last[stays], watermark[stays]

    def loss(self) -> Loss:
        windows = len(self._ends) if self._operator.kind == "window" else None
        counts = self._events, self._of, self._operator.kind, self.rules.pace.cadence, self._partly, windows
        between = tuple(one._events for one in self._at_ends)
        return Loss(*counts, between=(between[0], between[1]) if between else None)
