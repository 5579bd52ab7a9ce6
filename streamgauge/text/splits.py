"""Cuts a source into splits: consecutive pieces of its files, each of which a task can read on its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.base.errors import UserError
from streamgauge.base.places import opened, place
from streamgauge.base.schemas import ROW_GROUP_ROWS
from streamgauge.catalog.source_files import stat_source
from streamgauge.config import Source, TimeColumn
from streamgauge.text import json_lines, ranges, rows
from streamgauge.text.parse import Layout, layout_of, names_in


@dataclass(frozen=True)
class Split:
    """Lines of one file. text: those that begin in bytes [low, high); packed: all; parquet: of row group `low`."""

    path: str
    file: int  # position among the source's files
    kind: Literal["text", "packed", "parquet"]
    start: int  # first byte of data, after BOM and header
    low: int
    high: int
    layout: Layout
    mark: tuple[int, int]  # size and mtime of the file when the split was made

    def count(self) -> int:
        """Number of lines, counted in bounded memory."""
        if self.kind == "packed":
            return sum(ranges.line_count(data) for data in ranges.blocks(self.path, self.start, 4 << 20))
        if self.kind == "parquet":
            return int(pq.read_metadata(opened(self.path)).row_group(self.low).num_rows)
        return ranges.count_lines(self.path, self.start, self.low, self.high)

    def blocks(self, size: int) -> Iterator[bytes]:
        """Yields its lines, each ended by a newline; of packed files and Parquet about `size` bytes at a time."""
        if self.kind == "packed":
            yield from map(ranges.ended, ranges.blocks(self.path, self.start, size))
        elif self.kind == "parquet":
            source = self.layout.source
            with _whole(self.path, self.low), pq.ParquetFile(opened(self.path)) as file:
                for batch in file.iter_batches(_rows_of(file, self.low, size), row_groups=[self.low]):
                    yield rows.lines(batch, source.separator, source.quote, self.path)
        elif data := ranges.read_lines(self.path, self.start, self.low, self.high):
            yield ranges.ended(data)

    def changed(self) -> bool:
        """True if the file is no longer the one that the split was made for, by size and mtime."""
        return mark_of(self.path) != self.mark


def _rows_of(file: pq.ParquetFile, group: int, size: int) -> int:
    """Number of rows of a row group that have about `size` bytes."""
    about = file.metadata.row_group(group)
    rows: int = size * about.num_rows // max(1, about.total_byte_size)
    return max(1, min(ROW_GROUP_ROWS, rows))


@contextmanager
def _whole(path: str, group: int) -> Iterator[None]:
    """Raises UserError for a row group whose bytes are not what the file says."""
    try:
        yield
    except (pa.ArrowException, OSError) as problem:
        if isinstance(problem, OSError) and problem.errno is not None:
            raise  # the disk's or the store's, not the file's
        said = str(problem).strip().splitlines()[0].rstrip(".")
        raise UserError(f"{path}: row group {group} cannot be read: {said}; fetch or write the file again") from None


def mark_of(path: str) -> tuple[int, int]:
    """(size, mtime in ns) of a source file. Raises UserError."""
    stat = stat_source(path)
    return stat.st_size, stat.st_mtime_ns


def header(source: Source) -> bytes:
    """The first file's header line with its end; empty without one. Raises UserError if the files' headers differ."""
    first, *others = source.files
    own = _header(first, source)
    for path in others:
        if _header(path, source).rstrip(b"\r\n") != own.rstrip(b"\r\n"):
            raise UserError(
                f"{path}: its header is not that of {first}, and a CSV stream has one header; make them alike, "
                "or leave csv out"
            )
    return own


def _header(path: str, source: Source) -> bytes:
    if source.format == "jsonl":
        return b"json\n"
    if source.format == "parquet":
        names = [pa.array([name]) for name in rows.flat_schema(pq.read_schema(opened(path))).names]
        row = pa.RecordBatch.from_arrays(names, names=[str(k) for k in range(len(names))])
        return rows.lines(row, source.separator, source.quote, path)
    return ranges.ended(ranges.first_line(path)[1]) if source.header else b""


def source_splits(source: Source, split_bytes: int) -> list[Split]:
    """Lists the splits in the order of their lines. Raises UserError for files that cannot be read as described."""
    found: list[Split] = []
    for number, name in enumerate(source.files):
        path = str(place(name))
        mark = mark_of(path)
        if mark[0] == 0:
            raise UserError(f"{path}: the file is empty; name a file with data")
        try:
            found += (_parquet if source.format == "parquet" else _text)(path, number, source, split_bytes, mark)
        except OSError as problem:
            raise UserError(f"{path}: cannot be read: {problem.strerror or problem}") from None
    return found


def _text(path: str, number: int, source: Source, split_bytes: int, mark: tuple[int, int]) -> list[Split]:
    start, header = ranges.first_line(path)
    names = list(source.column_names) if source.column_names is not None else None
    if source.header:
        start += len(header)
        names = names or names_in(ranges.ended(header), source, path)
    if source.format == "jsonl":
        names = json_lines.paths(source)
        json_lines.check(header, source, path)
    layout = layout_of(source, names, path)
    if ranges.packing(path) is not None:
        return [Split(path, number, "packed", start, 0, 0, layout, mark)]
    return [
        Split(path, number, "text", start, low, high, layout, mark)
        for low, high in ranges.splits(start, mark[0], split_bytes)
    ]


def _parquet(path: str, number: int, source: Source, _: int, mark: tuple[int, int]) -> list[Split]:
    try:
        with pq.ParquetFile(opened(path)) as file:
            schema, groups = rows.flat_schema(file.schema_arrow), file.num_row_groups
    except pa.ArrowInvalid as problem:
        raise UserError(f"{path}: not a Parquet file: {problem}; check source.format") from None
    if (nested := rows.unwritable(schema)) is not None:
        raise UserError(f"{path}: column {nested} has no text form; leave it out of the file")
    layout = layout_of(source, schema.names, path)
    _check_type(source.time, schema.field(layout.time), f"{path}: source.time")
    if source.arrival is not None and layout.arrival is not None:
        _check_type(source.arrival, schema.field(layout.arrival), f"{path}: source.arrival")
    return [Split(path, number, "parquet", 0, group, group + 1, layout, mark) for group in range(groups)]


def _check_type(column: TimeColumn, field: pa.Field, where: str) -> None:
    """Checks the type of a Parquet time column: a timestamp needs no description, a number needs its unit.

    Raises UserError.
    """
    kind = field.type
    if pa.types.is_temporal(kind) and not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        raise UserError(f"{where}: {field.name} is a {kind}, which is no moment; name a column of timestamps or dates")
    if pa.types.is_temporal(kind) and not column.is_iso:
        raise UserError(f"{where}: {field.name} is a {kind}; leave out unit and format")
    if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and column.unit is None:
        raise UserError(f"{where}: {field.name} is a number ({kind}); give its unit")
