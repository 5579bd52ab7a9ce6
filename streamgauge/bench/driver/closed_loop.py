"""Measures a warm system in a closed loop: the driver keeps a constant number of rows waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise

from streamgauge.bench.driver.client import WireError
from streamgauge.bench.driver.conversation import LOOK_S, Conversation, Ended
from streamgauge.bench.driver.fleet import Drivers
from streamgauge.bench.driver.observed import TrialRun, nearest
from streamgauge.bench.driver.replay import LARGEST
from streamgauge.bench.driver.schedule import NS
from streamgauge.bench.driver.system import Adapter
from streamgauge.bench.driver.trial_request import TrialRequest
from streamgauge.records.driver import DriverFigures
from streamgauge.records.measurement import Batch

LONGEST_WINDOW_S = 180.0
#: where the stream changes: rows of each of the two batches that end the state before it; seconds without batches
TURN_ROWS, TURN_S = 20_000, 1.0
#: a batch with more than so many times the held rows still has rows of the window before
_BEYOND = 1.5


class _TooLong(Ended):
    """The end of a window in which the system ran, and took too few events."""


class ClosedLoop:
    """A query that always finds a constant number of rows waiting, over the windows of a ladder.

    Every window begins and ends with a hand-over, so the batch that runs when its rows change belongs to none.
    """

    def __init__(self, system: Adapter, fleet: Drivers, request: TrialRequest, *, continuous: bool) -> None:
        self._talk, self._continuous = Conversation(system, fleet, request), continuous
        self._begun, self._held, self._stream = False, 0, 0
        self._first: int | None = None  # latest time of the stream's first loop, ticks
        self.invalid: str | None = None
        self.taken = False  # any row
        self.stuck = False  # in the last window: it ran, and took too few events in all of the time that it may last
        self.held_back = False  # in the last window: rows that are not committed filled the queues, so fewer waited

    def spent(self) -> bool:
        """True once half of the times that fit into 64 bits are used: a further window may not end before the rest is.

        A month of events that is offered a hundred times a second reaches that, at nanoseconds, in a quarter of a
        minute.
        """
        if not self._begun or self.invalid is not None:
            return False
        try:
            latest: int = max(status["latest"] for status in self._talk.status())
        except WireError:
            return False  # the window says why
        if self._first is None:
            self._first = latest
        return latest > self._first + (LARGEST - self._first) // 2

    def window(
        self,
        rows: int,
        enough: Callable[[Sequence[Batch]], bool],
        longest_s: float = LONGEST_WINDOW_S,
        stream: int = 0,
    ) -> tuple[Batch, ...]:
        """Measures a window until `enough` is true of its batches; returns them. `invalid` tells why there are none.

        stream: number of the fleet's stream. The query goes on where it changes, and the window begins once rows and
        state of the stream before it have left.
        """
        self._held, self.held_back, settling = rows, False, 0
        try:
            if not self._begun:
                self._begun, self._stream = True, stream
                self._talk.begin(hold=rows, stream=stream)
            else:
                if stream != self._stream:
                    self._turn_to(stream, rows, longest_s)
                    settling = 0 if self._continuous else 1
                self._talk.hold(rows)
            return self._watch(enough, longest_s, settling)
        except (Ended, WireError) as problem:
            self.invalid = self._talk.whose_fault(problem)
            self.stuck = isinstance(problem, _TooLong) and self.invalid == str(problem)
            return ()

    def _turn_to(self, stream: int, rows: int, longest_s: float) -> None:
        """Returns once the system works on that stream alone, and the state of the one before it has left.

        A batch moves the watermark, and the one after it drops what that has closed: both are small, and not counted.
        Nor is the first of the window's own batches: it drops only the state that a small one has closed, and took a
        sixth less than those after it (Spark, 480,000 rows).
        """
        small = rows if self._continuous else min(rows, TURN_ROWS)
        begin = self._talk.turn_to(stream, small)
        self._stream = stream
        self._wait_beyond("the stream before it did not leave", begin if self._continuous else begin + small, longest_s)
        if self._continuous:
            time.sleep(TURN_S)

    def _wait_beyond(self, what: str, row: int, longest_s: float) -> None:
        """Returns once that row was taken, over all queues. Raises Ended, with its reason, if it was not."""
        self._talk.wait(what, longest_s, lambda all_: rows_taken(all_) > row)

    def pause(self, longest_s: float = 60.0) -> None:
        """Returns once the system has ended its batch and nothing waits, or after longest_s; may set `invalid`."""
        try:
            self._talk.hold(0)
            self._talk.wait(
                "", longest_s, lambda all_: all(s["committed"] == s["planned"] == s["offered"] for s in all_)
            )
        except (Ended, WireError) as problem:
            self.invalid = self._talk.whose_fault(problem)

    def close(self) -> TrialRun:
        """Ends the query whatever it is doing; its output is not checked."""
        return self._talk.run(lambda: None, self._talk.cut)

    def _watch(self, enough: Callable[[Sequence[Batch]], bool], longest_s: float, settling: int) -> tuple[Batch, ...]:
        """Returns the batches of a window; settling: number of first batches that do not count."""
        deadline = time.monotonic() + longest_s
        since = max(status["wall_ns"] for status in self._talk.status())
        seen: list[tuple[int, int]] = []  # (wall, rows taken before), of the first driver process's instants
        before: int | None = None
        while time.monotonic() < deadline:
            processes = self._talk.samples(since)
            self.taken = self.taken or bool(rows_taken(processes))
            if self._continuous and any(s["overflow"] and s["uncommitted"] for s in processes):
                self.held_back = True
            each = [s["clock"] if self._continuous else s["samples"] for s in processes]
            if each and all(each):
                instants = [(wall, sum(nearest(other, wall)[2] for other in each)) for wall, *_ in each[0]]
                since = instants[-1][0]
                seen += changes(instants, before) if self._continuous else instants
                before = instants[-1][1]
            batches = self._batches(seen[settling:], min(s["start_wall_ns"] for s in processes))
            if enough(batches):
                return batches
            time.sleep(LOOK_S / 2)
        raise _TooLong(f"a window of {len(seen)} hand-overs was not long enough within {longest_s:g} s")

    def _batches(self, seen: Sequence[tuple[int, int]], start_ns: int) -> tuple[Batch, ...]:
        """Batches of a window: one between each two instants."""
        pairs = pairwise(seen)
        batches = [Batch((b[0] - start_ns) / NS, b[1] - a[1], (b[0] - a[0]) / NS) for a, b in pairs]
        # rows that the window before had offered still wait for the first batch
        if batches and not self._continuous and batches[0].rows > _BEYOND * self._held:
            batches = batches[1:]
        return tuple(batch for batch in batches if batch.rows > 0 or self._continuous)


def rows_taken(status: Sequence[DriverFigures]) -> int:
    """Rows that the system has taken of all driver processes."""
    return sum(sum(one["planned"]) for one in status)


def changes(instants: Sequence[tuple[int, int]], before: int | None) -> list[tuple[int, int]]:
    """Instants (wall, rows taken) at which more rows were taken than at the one before; before: rows taken earlier.

    A job that commits now and then takes no row in between. A window that begins and ends with a commit has neither
    the time in which the job connects or fills its pipeline, nor a part of a commit's rows.
    """
    taken = [instants[0][1] if before is None else before, *(rows for _, rows in instants)]
    return [instant for instant, last in zip(instants, taken, strict=False) if instant[1] > last]
