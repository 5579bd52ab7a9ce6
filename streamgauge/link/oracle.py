"""Which rows a watermark rightly dropped in a trial, from the trial's own logs. Pure.

A micro-batch n drops the rows whose window had ended at the watermark in force for late rows: the one by which
batch n − 1 closed its windows. Before the first batch it is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamgauge.workloads import Spec, find

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class BatchLog:
    """One micro-batch, by the engine's own account; partitions are numbered over all endpoints."""

    batch_id: int
    ends: tuple[Mapping[int, int], ...]  # for each frame of the query: partition -> first row of the next batch
    watermark_ms: int  # by which this batch closed its windows


def batch_logs(batches: Sequence[Mapping[str, Any]]) -> list[BatchLog]:
    """From the `batches` of end_trial()."""
    return [
        BatchLog(
            int(batch["batch_id"]),
            tuple({int(p): int(row) for p, row in ends.items()} for ends in batch["ends"]),
            int(batch["watermark_ms"] or 0),
        )
        for batch in batches
    ]


def late_watermarks_us(rows: pa.Table, logs: Sequence[BatchLog], frame: int = 0) -> Ints:
    """The watermark against which each row was judged. rows: columns partition, row.

    Raises ValueError for a row that no batch of the log has taken.
    """
    logs = sorted(logs, key=lambda log: log.batch_id)
    if [log.batch_id for log in logs] != list(range(len(logs))):
        raise ValueError("batches are missing in the log: the late rows cannot be told")
    partitions, numbers = rows["partition"].to_numpy(), rows["row"].to_numpy()
    taken_by = np.full(len(numbers), len(logs))
    for partition in np.unique(partitions):
        here = partitions == partition
        ends = np.array([log.ends[frame].get(int(partition), 0) for log in logs])
        taken_by[here] = np.searchsorted(ends, numbers[here], side="right")
    if len(numbers) and taken_by.max() >= len(logs):
        raise ValueError("rows were offered that no batch has taken")
    before = np.array([0, *[log.watermark_ms for log in logs]], np.int64)  # of batch n − 1
    return before[taken_by] * 1000


def late(event_ts_us: Ints, watermarks_us: Ints, spec: Spec) -> NDArray[np.bool_]:
    """True where the row's tumbling window had ended."""
    start = event_ts_us - np.mod(event_ts_us - spec.offset_us, spec.window_us)
    return start + spec.window_us <= watermarks_us


@dataclass(frozen=True)
class Kept:
    """What one tumbling part of a query must have counted: a table for each of its frames."""

    spec: Spec
    frames: tuple[pa.Table, ...]


@dataclass(frozen=True)
class Expectation:
    parts: tuple[Kept, ...]  # the answer is the union of theirs
    late: int  # rows dropped, once for each window and each frame


def expectation(rows: pa.Table, logs: Sequence[BatchLog], spec: Spec) -> Expectation:
    """rows: the wire's columns without sentinels, and partition, row: where each was offered."""
    query = find(spec.query)
    whole = rows.drop_columns(["partition", "row"])
    if not query.windows:
        return Expectation((Kept(spec, (whole,) * query.streams),), 0)
    event_ts = rows["event_ts"].cast(pa.int64()).to_numpy()
    parts, dropped = [], 0
    for part in spec.tumbling():
        frames = []
        for frame in range(query.streams):
            gone = late(event_ts, late_watermarks_us(rows, logs, frame), part)
            frames.append(whole.filter(pa.array(~gone)))
            # each of two frames reads the whole stream, but only its own half comes to the join
            mine = half(rows, frame) if query.streams == 2 else np.ones(len(gone), bool)
            dropped += int((gone & mine).sum())
        parts.append(Kept(part, tuple(frames)))
    return Expectation(tuple(parts), dropped)


def half(rows: pa.Table, number: int) -> NDArray[np.bool_]:
    """The rows of one side of the windowed join."""
    both = pc.add(rows["event_ts"].cast(pa.int64()), rows["seq"]).to_numpy()
    return np.asarray(np.mod(both, 2) == number)
