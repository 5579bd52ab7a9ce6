"""Row groups of an artifact's Parquet files in stream order, with what the footers tell about event time.

A footer holds each row group's smallest and largest event time, so the running maximum before every
row group is known without reading a row: any task can start in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.base.parquet import parquet_file, reading_parquet
from streamgauge.streams.disorder.definitions import BEFORE_ALL, Times

LARGEST = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a Parquet file; times in ticks."""

    file: str
    number: int
    rows: int
    time_min: int
    time_max: int
    before: int  # running maximum before its first row

    @property
    def base_min(self) -> int:
        """Lower bound of the base within the row group."""
        return max(self.before, self.time_min)

    @property
    def base_max(self) -> int:
        return max(self.before, self.time_max)


def row_groups(files: Sequence[Path | str]) -> list[RowGroup]:
    """Lists the non-empty row groups of the files, in the order given."""
    listed: list[RowGroup] = []
    before = BEFORE_ALL
    for file in files:
        with parquet_file(file) as opened:
            footer = opened.metadata
        column = footer.schema.names.index("event_time")
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            if group.num_rows == 0:
                continue
            times = group.column(column).statistics
            listed.append(RowGroup(str(file), number, group.num_rows, times.min, times.max, before))
            before = max(before, times.max)
    return listed


def has_values(files: Sequence[Path | str], column: str) -> bool:
    return any(read([group], [column]).column(0).null_count < group.rows for group in row_groups(files))


def total_rows(groups: Sequence[RowGroup]) -> int:
    return sum(group.rows for group in groups)


def read(groups: Sequence[RowGroup], columns: list[str]) -> pa.Table:
    """Reads these columns of one or more row groups, in their order. Raises Damaged."""
    parts = []
    for group in groups:
        with reading_parquet(group.file):
            parts.append(_open(group.file).read_row_group(group.number, columns=columns, use_threads=False))
    return pa.concat_tables(parts)


@lru_cache(maxsize=2)
def read_one(group: RowGroup, columns: tuple[str, ...]) -> pa.Table:
    """Reads those columns of a row group; the last two results are cached, since neighbouring chunks share one."""
    return read([group], list(columns))


def read_times(groups: Sequence[RowGroup]) -> Times:
    """Event times, in ticks, of consecutive row groups."""
    return column_array(read(groups, ["event_time"]), "event_time")


def column_array(table: pa.Table, name: str) -> Times:
    """An int64 column as a numpy array, without a copy where it is one chunk."""
    chunks = [chunk.to_numpy() for chunk in table.column(name).chunks]
    array: Times = chunks[0] if len(chunks) == 1 else np.concatenate([np.zeros(0, np.int64), *chunks])
    return array


def parts_of(column: pa.ChunkedArray) -> tuple[list[str | None], Times]:
    """(names, place of each row's name among them) of a column whose values are parts; a number by its text."""
    encoded = column.combine_chunks().dictionary_encode("encode")
    names = [None if value is None else str(value) for value in encoded.dictionary.to_pylist()]
    return names, encoded.indices.to_numpy().astype(np.int64)


def shares(groups: Sequence[RowGroup], tasks: int) -> list[list[RowGroup]]:
    """Cuts row groups into at most `tasks` consecutive shares of about equally many rows, none empty."""
    wanted = total_rows(groups) / max(1, tasks)
    cut: list[list[RowGroup]] = []
    rows = 0
    for group in groups:
        if not cut or rows >= wanted * len(cut):
            cut.append([])
        cut[-1].append(group)
        rows += group.rows
    return cut


_opened: dict[str, pq.ParquetFile] = {}


def _open(file: str) -> pq.ParquetFile:
    """Opens a Parquet file; a few stay open per process, since a task reads neighbouring row groups."""
    if file not in _opened:
        if len(_opened) > 16:
            _opened.clear()
        _opened[file] = parquet_file(file, pre_buffer="://" in file)
    return _opened[file]
