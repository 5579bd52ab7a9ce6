"""Offers the streams of a driver in turns to one query, all at one rate: an open loop, whose latencies are by turn."""

from __future__ import annotations

import time
from dataclasses import replace

from streamgauge.bench.driver.client import WireError
from streamgauge.bench.driver.closed_loop import LONGEST_WINDOW_S, TURN_S, ClosedLoop, rows_taken
from streamgauge.bench.driver.conversation import Ended
from streamgauge.bench.driver.observed import TrialRun

#: where the stream changes: batches until the state before it has left, one more than a closed loop's small ones
_BATCHES = 3


class PacedLoop(ClosedLoop):
    """A query to which streams are offered in turns, on schedule, whatever it does. `invalid` tells why it ended."""

    def turn(self, stream: int, seconds: float) -> None:
        """Offers that stream for so many seconds, from when the stream before it has left; the query goes on."""
        if self.invalid is not None:
            return
        try:
            if not self._begun:
                self._begun, self._stream = True, stream
                self._talk.begin(stream=stream)
                self._settle(0)
            elif stream != self._stream:
                first, self._stream = self._talk.turn_to(stream, None), stream
                self._settle(first)
            begin = time.time_ns()
            if self._talk.wait("", seconds, lambda all_: any(one["overflow"] or one["finished"] for one in all_)):
                is_full = any(one["overflow"] for one in self._talk.status())
                raise Ended("the rate was not sustained: a queue was full" if is_full else "all events were offered")
            self._talk.spans.append((begin, time.time_ns()))
        except (Ended, WireError) as problem:
            self.invalid = self._talk.whose_fault(problem)

    def close(self) -> TrialRun:
        """Ends the query; the run has the latencies of each turn, and is invalid if one could not be measured."""
        run = super().close()
        observation = replace(run.observation, invalid=self.invalid or run.observation.invalid)
        return replace(run, observation=observation)

    def _settle(self, first: int) -> None:
        """Returns some batches after that row was taken; without batches, a second."""
        for _ in range(1 if self._continuous else _BATCHES):
            self._wait_beyond("no row of the stream was taken", first, LONGEST_WINDOW_S)
            first = rows_taken(self._talk.status())
        if self._continuous:
            time.sleep(TURN_S)
