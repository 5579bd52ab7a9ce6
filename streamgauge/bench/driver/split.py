"""Splits latency into parts, from stamps that driver, sink and engine take anyway. Pure; terms: docs/definitions.md.

A row whose latest contributor was offered at o was handed over by the plan that took the rows around o. The latency
histogram of an epoch and its mean emission E give o = E − latency, so nothing more is recorded per row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from streamgauge.base.histogram import Histogram
from streamgauge.bench.driver.schedule import NS, Ints
from streamgauge.records.driver import QueueSample
from streamgauge.records.trial import EngineBatch, Split, SystemFigures

#: in order of time; all but the last add up to the mean event-time latency
PARTS = ("disorder", "queue_wait", "watermark_hold", "micro_batch", "commit")
_NEEDED = {"batch_id", "at", "rows", "duration_ms"}


class Plans:
    """The instants of a driver process's hand-overs, and the oldest `offered_wall` that each took, ns."""

    def __init__(self, samples: Sequence[QueueSample]) -> None:
        """samples: ascending."""
        self.walls: Ints = np.array([sample[0] for sample in samples], np.int64)
        self.firsts = np.maximum.accumulate(self.walls - np.array([sample[1] * NS for sample in samples]))

    def split(
        self,
        emitted: Sequence[int],
        mean_emitted: float,
        event: Histogram,
        processing: Histogram,
        batch: EngineBatch | None,
    ) -> Split | None:
        """Returns the mean of each part over one epoch's rows, ns; None where it is unknown.

        emitted: the epoch's first and last emission, ns. mean_emitted: its mean emission, ns. batch: the engine's own
        record of the epoch (at, rows, duration_ms), or None.
        """
        if not processing.count or event.mean is None or processing.mean is None or not len(self.walls):
            return None
        ages, counts = processing.points()
        ages *= processing.mean / max(1e-9, float(np.average(ages, weights=counts)))
        last = max(0, int(np.searchsorted(self.walls, emitted[0 if batch else 1], side="right")) - 1)
        offered = mean_emitted - ages
        took = np.clip(np.searchsorted(self.firsts, offered, side="right") - 1, 0, last)
        hold: float | None = None
        if batch:
            # a batch that only closes windows takes no rows, so no plan belongs to it
            planned = max(int(self.walls[last]), 0 if batch["rows"] else round(batch["at"] * NS))
            hold = float(np.average(planned - self.walls[took], weights=counts))
            work = mean_emitted - planned
            wait = processing.mean - hold - work
        else:
            wait = float(np.average(np.maximum(0, self.walls[took] - offered), weights=counts))
            work = processing.mean - wait
        commit = batch["at"] * NS + batch["duration_ms"] * 1e6 - mean_emitted if batch else None
        return dict(zip(PARTS, (event.mean - processing.mean, wait, hold, work, commit), strict=True))


def batch_log(figures: SystemFigures) -> dict[int, EngineBatch]:
    """Maps numbers to the engine's micro-batches; empty unless its adapter gives them as Spark's does."""
    known = [batch for batch in figures.get("batches") or () if batch.keys() >= _NEEDED]
    return {batch["batch_id"]: batch for batch in known}


def overall(epochs: Iterable[tuple[int, Mapping[str, float | None] | None]]) -> Split:
    """Returns the mean of each part over the (rows, split) of epochs, weighted by rows; None where no epoch has it."""
    splits = [(rows, split) for rows, split in epochs if split and rows]

    def mean(part: str) -> float | None:
        known = [(rows, value) for rows, split in splits if (value := split[part]) is not None]
        return sum(rows * value for rows, value in known) / sum(rows for rows, _ in known) if known else None

    return {part: mean(part) for part in PARTS}
