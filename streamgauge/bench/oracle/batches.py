"""Reads an engine's own account of a trial: which rows it took under which watermark. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
#: below every event time, in ms and in µs: a watermark before the first event, where the engine sets none
LEAST_MS = -(2**62) // 1000


@dataclass(frozen=True)
class Rules:
    """An engine's rules for event time in a query, as its adapter declares them: `rules` of end_trial().

    late_counted: what it counts as late: rows, groups (of a micro-batch), "events in no window", none. each_queue: the
    watermark is the least of the queues' own ones; otherwise it follows the latest event of all queues. each_key: every
    key has a watermark of its own, which moves with each event of that key, and an event below it is late, whether its
    window is still open or not. equal_is_late: an event at the watermark itself is late, where a query judges each
    event by itself. joins_first: an event joins the open session that it touches; any other event is judged as a
    session of its own. lags: for each frame of the query, how many windows the watermark of its operator lies behind;
    empty: 0.
    begins_ms: the watermark before the first event, and the least that there is; what ends at it is late at once.
    """

    late_counted: str = "rows"
    each_queue: bool = False
    each_key: bool = False
    equal_is_late: bool = True
    joins_first: bool = False
    lags: Sequence[int] = ()
    begins_ms: int = LEAST_MS


@dataclass(frozen=True)
class BatchLog:
    """A micro-batch, or the rows that a continuous engine took under one watermark, by the engine's own account.

    Partitions are numbered over all endpoints.
    """

    batch_id: int
    ends: tuple[Mapping[int, int], ...]  # for each frame of the query: partition -> first row of the next batch
    watermark_ms: int  # by which this batch closed its windows
    late_ms: int | None = None  # the watermark by which it judged rows late; None: that of the batch before


def logs_of(figures: Mapping[str, Any]) -> list[BatchLog]:
    """Reads the `batches`, or the `stretches`, of end_trial(); a stretch judges rows by its own watermark."""
    if "stretches" in figures:
        return [
            BatchLog(
                number,
                tuple({int(p): int(row) for p, row in ends.items()} for ends in stretch["ends"]),
                _watermark_ms(stretch),
                _watermark_ms(stretch),
            )
            for number, stretch in enumerate(figures["stretches"])
        ]
    return batch_logs(figures["batches"])


def batch_logs(batches: Sequence[Mapping[str, Any]]) -> list[BatchLog]:
    """Reads the `batches` of end_trial()."""
    return [
        BatchLog(
            int(batch["batch_id"]),
            tuple({int(p): int(row) for p, row in ends.items()} for ends in batch["ends"]),
            _watermark_ms(batch),
        )
        for batch in batches
    ]


def _watermark_ms(record: Mapping[str, Any]) -> int:
    return LEAST_MS if record["watermark_ms"] is None else int(record["watermark_ms"])


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
        ends = np.array([log.ends[frame].get(int(partition), 0) for log in logs])
        batch_of[here] = np.searchsorted(ends, numbers[here], side="right")
    if len(numbers) and batch_of.max() >= len(logs):
        raise ValueError("some offered rows were taken by no batch")
    return batch_of


def late_reported(figures: Mapping[str, Any], reports: Sequence[Mapping[str, Any]]) -> int | None:
    """Late drops by the engine's own account: records of its micro-batches, its reports, or its own counter.

    None if `late_dropped`, the counter, is None: the engine has lost it.
    """
    if "late_dropped" in figures and figures["late_dropped"] is None:
        return None
    in_batches = sum(int(batch["dropped"]) for batch in figures.get("batches", ()))
    in_reports = sum(int((body.get("batch") or {}).get("late", 0)) for body in reports)
    return in_batches + in_reports + int(figures.get("late_dropped", 0))
