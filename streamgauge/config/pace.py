"""Parameters of an engine's watermark, as its settings declare them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Pace:
    """Parameters of an engine: when its watermark moves, and what is late by it. All times are µs of the stream.

    kind: after each event, at intervals of arrival, or with micro-batches at such intervals. interval_us: length of an
    interval; 0: one for each event. behind: how many intervals later an event moves the watermark by which others are
    judged. step_us: the largest event time is rounded down to a multiple. least_us: the watermark is never below it.
    each_queue: it is the least of the queues' own ones. equal_is_late and joins_first: see `oracle.batches.Rules`.
    """

    kind: Literal["event", "interval", "micro-batch"] = "event"
    interval_us: int = 0
    behind: int = 1
    step_us: int = 1
    least_us: int | None = None
    each_queue: bool = False
    equal_is_late: bool = False
    joins_first: bool = True

    @property
    def cadence(self) -> str:
        """The cadence in words."""
        every = f"every {self.interval_us / 1e6:g} s"
        return {
            "event": "a watermark after each event",
            "interval": f"a watermark {every}",
            "micro-batch": f"a micro-batch {every}",
        }[self.kind]
