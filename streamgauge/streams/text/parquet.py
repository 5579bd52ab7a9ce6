"""Reads a Parquet file's rows as the text lines that they would be in a CSV file."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge.base.errors import UserError
from streamgauge.base.places import opened
from streamgauge.base.schemas import ROW_GROUP_ROWS
from streamgauge.streams.text import rows


@dataclass(frozen=True)
class Kept:
    """The columns that a line holds: those with a text form, and those that are needed."""

    tops: tuple[str, ...]  # the columns that are read
    places: tuple[int, ...]  # of the line's fields among their flat columns
    fields: tuple[int, ...]  # of the line's fields among all flat columns
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]


def kept(schema: pa.Schema, needed: Collection[int] = ()) -> Kept:
    """Columns of a line of a file with this schema; needed: places among its flat columns."""
    tops: list[str] = []
    columns: list[tuple[int, int, pa.Field]] = []
    at = read = 0
    for top in schema:
        leaves = rows.flat_schema(pa.schema([top]))
        wanted = [k for k, leaf in enumerate(leaves) if at + k in needed or rows.has_text(leaf.type)]
        if wanted:
            tops.append(top.name)
            columns += [(read + k, at + k, leaves.field(k)) for k in wanted]
            read += len(leaves)
        at += len(leaves)
    return Kept(
        tuple(tops),
        tuple(place for place, _, _ in columns),
        tuple(field for _, field, _ in columns),
        tuple(leaf.name for _, _, leaf in columns),
        tuple(leaf.type for _, _, leaf in columns),
    )


def tables(path: str, group: int | None, columns: Kept, count: int) -> Iterator[pa.Table]:
    """Yields a row group, or all, with a column for each field of a line: `count` rows, or about as many bytes."""
    with _whole(path, group), pq.ParquetFile(opened(path)) as file:
        groups = None if group is None else [group]
        size = count if group is None else _rows_of(file, group, count)
        batches = file.iter_batches(size, row_groups=groups, columns=list(columns.tops))
        if not any(file.schema.column(k).physical_type == "INT96" for k in range(len(file.schema))):
            for batch in batches:
                yield selected(batch, columns)
            return
        # an INT96 holds any year, and wraps when read as nanoseconds; seconds tell where it did
        with pq.ParquetFile(opened(path), coerce_int96_timestamp_unit="s") as coarse:
            others = coarse.iter_batches(size, row_groups=groups, columns=list(columns.tops))
            for batch, seconds in zip(batches, others, strict=True):
                yield _unwrapped(selected(batch, columns), selected(seconds, columns))


def selected(batch: pa.RecordBatch, columns: Kept) -> pa.Table:
    """Returns a column for each field of a line, of rows of which `batch` has the columns that are read."""
    return rows.flat(pa.Table.from_batches([batch])).select(list(columns.places))


def _unwrapped(table: pa.Table, seconds: pa.Table) -> pa.Table:
    """The table with texts in place of times of which some do not fit into 64-bit nanoseconds."""
    for k, field in enumerate(seconds.schema):
        own = table.schema.field(k)
        if field.type == own.type:
            continue
        fine, coarse = table.column(k), seconds.column(k)
        wrapped = pc.not_equal(pc.floor_temporal(fine, unit="second").cast(coarse.type), coarse)
        if pc.any(wrapped).as_py():
            texts = pc.if_else(wrapped, coarse.cast(pa.string()), fine.cast(pa.string()))
            table = table.set_column(k, own.name, texts)
    return table


def _rows_of(file: pq.ParquetFile, group: int, size: int) -> int:
    """Number of rows of a row group that have about `size` bytes."""
    about = file.metadata.row_group(group)
    rows: int = size * about.num_rows // max(1, about.total_byte_size)
    return max(1, min(ROW_GROUP_ROWS, rows))


@contextmanager
def _whole(path: str, group: int | None) -> Iterator[None]:
    """Raises UserError for a row group whose bytes are not what the file says."""
    try:
        yield
    except (pa.ArrowException, OSError) as problem:
        if isinstance(problem, OSError) and problem.errno is not None:
            raise  # the disk's or the store's, not the file's
        said = str(problem).strip().splitlines()[0].rstrip(".")
        where = path if group is None else f"{path}: row group {group}"
        raise UserError(f"{where} cannot be read: {said}; fetch or write the file again") from None
