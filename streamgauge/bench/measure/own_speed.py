"""Counts what a cell's query loses at its stream's own speed, whatever the rate of a trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Ints, Mask, ints
from streamgauge.base.parquet import parquet_file
from streamgauge.base.units import PS
from streamgauge.bench.oracle.late_rows import concerned
from streamgauge.bench.oracle.session_deals import numbered
from streamgauge.bench.workloads import Spec, find
from streamgauge.catalog.artifacts import Artifact
from streamgauge.records.loss import Loss
from streamgauge.records.rules import Rules
from streamgauge.streams.kafka.partitioner import partitions_of
from streamgauge.streams.lateness.loss import LossCount

_PIECE_ROWS = 1 << 20


def own_speed(stream: Artifact, spec: Spec, rules: Rules, queues: int = 1, partition_by: str | None = None) -> Loss:
    """Returns the loss by an engine's rules.

    queues: those over which the driver deals the events, in turn or by the keys in the column partition_by.
    """
    if rules.kind == "never":
        return Loss(0, stream.manifest["events"], rules.kind, rules.pace.cadence)
    count, pieces = LossCount(rules, queues), _pieces(stream, spec, partition_by)
    for rows in [pa.concat_tables(pieces).combine_chunks()] if rules.by_key else pieces:
        event_us, arrival_us = (_us(rows, name, stream.manifest["tick"]) for name in ("event_time", "ingestion_time"))
        read, narrow = (None, None) if rules.kind == "tolerance" else _taken(rows, event_us, spec, rules)
        keys = numbered(rows[str(spec.key)]) if rules.by_key else None
        queue = None if partition_by is None else partitions_of(rows[partition_by], queues)
        count.add(event_us, arrival_us, read=read, narrow=narrow, keys=keys, queue=queue)
    return count.loss()


def _pieces(stream: Artifact, spec: Spec, partition_by: str | None) -> Iterator[pa.Table]:
    """Yields the stream's rows in order, with the columns that decide what the query reads."""
    query = find(spec.query)
    filters = [name for frame in query.reads for name in frame]
    names = ("ingestion_time", "event_time", "seq", *query.columns, *filters, spec.key, spec.value, partition_by)
    wanted = [*dict.fromkeys(name for name in names if name is not None)]
    for file in stream.files():
        with parquet_file(file) as parquet:
            for batch in parquet.iter_batches(batch_size=_PIECE_ROWS, columns=wanted):
                yield pa.table(batch)


def _us(rows: pa.Table, column: str, tick: str) -> Ints:
    """A column of times, rounded down to µs as an engine sees them."""
    ticks = ints(rows[column].chunk(0)) if rows.num_rows else np.zeros(0, np.int64)
    return ticks // (PS["us"] // PS[tick])


def _taken(rows: pa.Table, event_us: Ints, spec: Spec, rules: Rules) -> tuple[Mask | None, Mask | None]:
    """Masks of what operators read that may lose it, and of what is only in the window that ends first.

    None: all, and none.
    """
    query = find(spec.query)
    if query.spans > 1:
        marked = pc.fill_null(pc.equal(rows[str(spec.value)].cast(pa.string()), spec.mark), False).to_numpy()
        return None, ~marked
    if not query.reads and query.streams == 1:
        return None, None
    timed = rows.append_column("event_ts", pa.array(event_us))
    losing = [frame for frame, one in enumerate(rules.operators) if one.kind != "never"]
    frames: Sequence[Mask] = [concerned(timed, frame, spec) for frame in losing]
    return np.logical_or.reduce(frames), None
