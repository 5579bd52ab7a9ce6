"""Parquet files of events and of the quarantine: how ingest writes, gathers, sorts and renumbers them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.base.arrow import int64s
from streamgauge.base.parquet import parquet_file, parquet_writer
from streamgauge.base.places import opened, publish, remove
from streamgauge.base.schemas import ENCODINGS, FILE_ROWS, QUARANTINE, ROW_GROUP_ROWS
from streamgauge.descriptions.source import Source
from streamgauge.streams.stages.workers import Workers


def write_rows(table: pa.Table, path: Path) -> str:
    """Writes one Parquet file, encoded as our readers want it, whole or not at all; returns its name."""
    return write_parquet(table.schema, [table], path)


def write_parquet(schema: pa.Schema, tables: Iterator[pa.Table] | list[pa.Table], path: Path) -> str:
    """Writes one Parquet file of tables, whole or not at all; returns its name."""

    def write(sink: pa.NativeFile) -> None:
        with parquet_writer(
            sink,
            schema,
            use_dictionary=False,
            column_encoding={name: ENCODINGS[name] for name in schema.names if name in ENCODINGS},
            write_statistics=["seq", "event_time"],
        ) as writer:
            for table in tables:
                writer.write_table(table, ROW_GROUP_ROWS)

    return publish(path, write)


def row_count(path: Path) -> int:
    return int(pq.read_metadata(opened(path)).num_rows)


def gathered(pieces: list[Path], path: Path) -> str:
    """Joins pieces of the quarantine in one file; returns its name."""
    written = write_parquet(QUARANTINE, (parquet_file(p).read() for p in pieces), path)
    _remove_beside(path, pieces)
    return written


def _remove_beside(path: Path, files: list[Path]) -> None:
    """Removes those that lie in the same folder; what is kept elsewhere serves if this builder is killed."""
    for file in files:
        if file.parent == path.parent:
            file.unlink()


# -- another order than the file's


def in_order(workers: Workers, source: Source, parts: list[Path], path: Path) -> list[Path]:
    """Sorts the parts' rows by (column, seq), nulls last, and renumbers them from 0; removes the parts in `path`."""
    if not parts:
        return []
    column = "arrival_time" if source.order == "arrival" else "event_time"
    schema = pq.read_schema(opened(parts[0]))
    count = -(-sum(map(row_count, parts)) // FILE_ROWS)
    runs = workers.sort(parts, [column, "seq"], schema, path / "sorted", count)
    _remove_beside(path / "sorted", parts)
    first = accumulate(map(row_count, runs), initial=0)
    jobs = [(run, path / f"sorted-{i:05d}.parquet", seq) for i, (run, seq) in enumerate(zip(runs, first, strict=False))]

    def renumber(job: tuple[Path, Path, int]) -> Path:
        run, target, seq = job
        return target.with_name(write_parquet(schema, _numbered(run, schema, seq), target))

    done = workers.each(jobs, renumber)
    remove(path / "sorted")
    return done


def _numbered(run: Path, schema: pa.Schema, seq: int) -> Iterator[pa.Table]:
    with parquet_file(run) as file:
        for batch in file.iter_batches(ROW_GROUP_ROWS):
            table = pa.Table.from_batches([batch]).select(schema.names).cast(schema)
            yield table.set_column(0, schema.field(0), int64s(np.arange(seq, seq + len(table))))
            seq += len(table)
