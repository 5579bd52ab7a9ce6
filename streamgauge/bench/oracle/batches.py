"""Reads an engine's own account of a trial: which rows it took under which watermark. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamgauge.base.arrow import Ints
from streamgauge.records.rules import LEAST_MS
from streamgauge.records.trial import Reports, Stretch, SystemFigures


@dataclass(frozen=True)
class BatchLog:
    """A micro-batch, or the rows that a continuous engine took under one watermark, by the engine's own account.

    Partitions are numbered over all endpoints.
    """

    batch_id: int
    ends: tuple[Mapping[int, int], ...]  # for each frame of the query: partition -> first row of the next batch
    watermark_ms: int  # by which this batch closed its windows


def logs_of(figures: SystemFigures) -> list[BatchLog]:
    """Reads the `stretches` of end_trial(), or its `batches`."""
    if (stretches := figures.get("stretches")) is not None:
        return [_log(number, stretch) for number, stretch in enumerate(stretches)]
    return [_log(batch["batch_id"], batch) for batch in figures.get("batches") or ()]


def _log(number: int, taken: Stretch) -> BatchLog:
    ends = tuple({int(partition): row for partition, row in ends.items()} for ends in taken["ends"])
    return BatchLog(number, ends, LEAST_MS if taken["watermark_ms"] is None else taken["watermark_ms"])


def taken_by(rows: pa.Table, logs: Sequence[BatchLog], frame: int = 0) -> Ints:
    """Returns the number of the micro-batch that took each row in one frame. rows: columns partition, row.

    Raises ValueError for batches missing in the log, and for a row that no batch has taken.
    """
    logs = sorted(logs, key=lambda log: log.batch_id)
    if [log.batch_id for log in logs] != list(range(len(logs))):
        raise ValueError("batches are missing in the log: late rows cannot be determined")
    partitions, numbers = rows["partition"].to_numpy(), rows["row"].to_numpy()
    batch_of = np.full(len(numbers), len(logs))
    for partition in np.unique(partitions):
        here = partitions == partition
        # a queue that an account leaves out stands where it stood
        ends = np.maximum.accumulate(np.array([log.ends[frame].get(int(partition), 0) for log in logs], np.int64))
        batch_of[here] = np.searchsorted(ends, numbers[here], side="right")
    if len(numbers) and batch_of.max() >= len(logs):
        raise ValueError("some offered rows were taken by no batch")
    return batch_of


def late_reported(figures: SystemFigures, reports: Reports) -> int | None:
    """Sum of the late drops in the engine's own account: records of its micro-batches, its reports, its own counter.

    None if a micro-batch has no count, or if the counter, `late_dropped`, is None: the engine has lost it.
    """
    batches = figures.get("batches") or ()
    if figures.get("late_dropped", 0) is None or any("dropped" not in batch for batch in batches):
        return None
    in_batches = sum(batch["dropped"] for batch in batches)
    in_reports = sum(batch.get("late", 0) for body in reports if (batch := body.get("batch")))
    return in_batches + in_reports + (figures.get("late_dropped") or 0)
