"""Computes the watermark that each micro-batch must have had, from the rows that earlier batches took. Pure.

Spark's watermark is the largest event time of a frame, rounded down to a millisecond, minus the delay; of several
frames the least. Delay and rounding are those that the engine declares (`Rules.delay_us`, `Pace.step_us`). Another
engine may take the largest event time of each queue, and the least of those. It never falls.
It begins where the engine's own documentation says (`Rules.begins_ms`): Spark's at 0, which is 1970, so that no event
before that is in time; Flink's below every time. The engine's own figure is only a claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Ints
from streamgauge.bench.oracle.batches import BatchLog
from streamgauge.bench.workloads import Spec
from streamgauge.records.rules import LEAST_MS, Rules

#: stands for the watermark of a frame that has taken a sentinel, whose time is in no row
_BEYOND = np.iinfo(np.int64).max // 2


@dataclass(frozen=True)
class Watermarks:
    """Logs with the watermarks that the rows imply; wrong: one line on the first that the engine logged otherwise."""

    logs: tuple[BatchLog, ...]
    wrong: str | None
    checked: bool


def recomputed(rows: pa.Table, taken: Sequence[Ints], logs: Sequence[BatchLog], spec: Spec, rules: Rules) -> Watermarks:
    """Recomputes the watermarks of the logs, and compares.

    rows: without sentinels, with partition; taken: for each frame, the number of the batch that took each row.
    After a sentinel the logged watermark is accepted if all rows are late by it. Where no operator loses an event, all
    logged ones are accepted, and count as unchecked if there are any: they follow another clock.
    """
    ordered = sorted(logs, key=lambda log: log.batch_id)
    if rules.kind == "never":
        return Watermarks(tuple(ordered), None, all(log.watermark_ms in (0, LEAST_MS) for log in ordered))
    follow = _of_each_queue if rules.clock == "least queue" else _of_frame
    implied = np.min([follow(rows, batches, ordered, n, rules) for n, batches in enumerate(taken)], axis=0)
    past = _past_everything_ms(rows, spec, rules)
    corrected: list[BatchLog] = []
    wrong, before = None, rules.begins_ms
    for log, watermark in zip(ordered, implied.tolist(), strict=True):
        right, least = watermark, ""
        if watermark == _BEYOND:
            right, least = max(log.watermark_ms, past, before), "at least "
        if right != log.watermark_ms and wrong is None:
            sentence = f"the engine logged {_shown(log.watermark_ms)}, its rows imply {least}{_shown(right)}"
            wrong = f"watermark of batch {log.batch_id}: {sentence}"
        corrected.append(replace(log, watermark_ms=right))
        before = right
    return Watermarks(tuple(corrected), wrong, True)


def _shown(watermark_ms: int) -> str:
    return "no watermark" if watermark_ms == LEAST_MS else f"{watermark_ms} ms"


def _of_frame(rows: pa.Table, batches: Ints, logs: Sequence[BatchLog], frame: int, rules: Rules) -> Ints:
    """Watermark of each batch, ms, as if there were no other frame."""
    latest_us = np.full(len(logs), np.iinfo(np.int64).min // 2)
    np.maximum.at(latest_us, batches, rows["event_ts"].cast(pa.int64()).to_numpy())
    latest_us = np.maximum.accumulate(latest_us)
    seen: Ints = (latest_us - np.mod(latest_us, rules.pace.step_us) - rules.delay_us) // 1000
    counts = np.bincount(rows["partition"].to_numpy()) if rows.num_rows else np.zeros(0, np.int64)
    for number, log in enumerate(logs):
        ends = log.ends[frame].items()
        if any(end > (counts[partition] if partition < len(counts) else 0) for partition, end in ends):
            seen[number:] = _BEYOND
            break
    if not len(logs):
        return seen
    watermarks: Ints = np.maximum(rules.begins_ms, np.concatenate([[rules.begins_ms], seen[:-1]]))
    return watermarks


def _of_each_queue(rows: pa.Table, batches: Ints, logs: Sequence[BatchLog], frame: int, rules: Rules) -> Ints:
    """The least of what `_of_frame` finds for each queue by itself; `begins_ms` as long as one has brought no row."""
    queues = rows["partition"].to_numpy()
    of_queues = []
    for queue in sorted({queue for log in logs for queue in log.ends[frame]}):
        here = queues == queue
        alone = [replace(log, ends=({0: log.ends[frame].get(queue, 0)},)) for log in logs]
        mine = rows.filter(pa.array(here))
        mine = mine.set_column(mine.schema.get_field_index("partition"), "partition", pa.array([0] * mine.num_rows))
        of_queues.append(_of_frame(mine, batches[here], alone, 0, rules))
    return np.min(of_queues, axis=0) if of_queues else _of_frame(rows, batches, logs, frame, rules)


def _past_everything_ms(rows: pa.Table, spec: Spec, rules: Rules) -> int:
    """A watermark, ms, by which every row is late, in every window, for every operator."""
    if not rows.num_rows:
        return rules.begins_ms
    lag_us = max(operator.lag_us for operator in rules.operators)
    latest_us: int = pc.max(rows["event_ts"].cast(pa.int64())).as_py()
    return -(-(latest_us + spec.length_us + lag_us) // 1000)
