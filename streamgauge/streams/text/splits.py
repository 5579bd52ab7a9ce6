"""Cuts a source into splits: consecutive pieces of its files or its topic, each of which a task can read on its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.base.errors import UserError
from streamgauge.base.lines import first_lines, line_count
from streamgauge.base.places import opened, place
from streamgauge.catalog.source_files import stat_source
from streamgauge.descriptions.source import Source, TimeColumn
from streamgauge.streams.kafka.ranges import Span
from streamgauge.streams.sources import formats, topics
from streamgauge.streams.sources.topics import Piece
from streamgauge.streams.text import json_lines, parquet, ranges, rows, typed
from streamgauge.streams.text.parse import Layout, layout_of, names_in, parse
from streamgauge.streams.text.times import without_year

#: how far before a source's first time a later one may lie, if times have no year
_LATE_NS = 31 * 86400 * 10**9


@dataclass(frozen=True)
class Split:
    """Lines of one file. text: those that begin in bytes [low, high); parquet: of row group `low`; else all of them.

    topic: the records at the offsets [low, high) of a partition, which counts as a file whose lines are offsets.
    """

    path: str
    file: int  # position among the source's files, or the partition
    kind: Literal["text", "packed", "parquet", "own", "topic"]
    start: int  # first byte of data, after BOM and header
    low: int
    high: int
    layout: Layout
    mark: tuple[int, int]  # size and mtime of the file when the split was made
    columns: parquet.Kept | None = None  # parquet, own: the fields of a line
    first_line: int = 1  # 1-based number of the file's first line of data

    def count(self) -> int:
        """Number of lines, counted in bounded memory."""
        if self.kind == "packed":
            return sum(line_count(data) for data in ranges.blocks(self.path, self.start, 4 << 20))
        if self.kind == "parquet":
            return int(pq.read_metadata(opened(self.path)).row_group(self.low).num_rows)
        if self.kind == "own":
            return sum(batch.num_rows for batch in formats.batches_of(self.layout.source, self.path))
        return ranges.count_lines(self.path, self.start, self.low, self.high)

    def pieces(self, size: int) -> Iterator[Piece]:
        """Yields its lines, each ended by a newline, with what is known beside their text.

        They are about `size` bytes at a time, unless they are those of a range.
        """
        source = self.layout.source
        if source.kafka is not None:
            yield from topics.pieces(source.kafka, Span(self.file, self.low, self.high), self.layout.beside, size)
        elif self.columns is not None:
            for table in self._tables(self.columns, size):
                lines = rows.lines(table, source.separator, source.quote, self.path)
                yield Piece(lines, known=typed.known(table, self.layout))
        elif self.kind == "packed":
            yield from (Piece(ranges.ended(data)) for data in ranges.blocks(self.path, self.start, size))
        elif data := ranges.read_lines(self.path, self.start, self.low, self.high):
            yield Piece(ranges.ended(data))

    def _tables(self, columns: parquet.Kept, size: int) -> Iterator[pa.Table]:
        """Yields the rows of its lines, a column for each field."""
        if self.kind == "parquet":
            yield from parquet.tables(self.path, self.low, columns, size)
            return
        for some in formats.slices_of(self.layout.source, self.path, columns.tops, size):
            yield parquet.selected(some, columns)

    def changed(self) -> bool:
        """True if the file is no longer the one that the split was made for, by size and mtime."""
        return self.kind != "topic" and mark_of(self.path) != self.mark


def mark_of(path: str) -> tuple[int, int]:
    """(size, mtime in ns) of a source file. Raises UserError."""
    stat = stat_source(path)
    return stat.st_size, stat.st_mtime_ns


def header(source: Source) -> bytes:
    """The first file's header line with its end; empty without one. Raises UserError if the files' headers differ."""
    if source.is_json:
        return b"json\n"
    first, *others = source.files or ("",)
    own = _header(first, source)
    for path in others:
        if _header(path, source).rstrip(b"\r\n") != own.rstrip(b"\r\n"):
            raise UserError(
                f"{path}: its header is not that of {first}, and a CSV stream has one header; make them alike, "
                "or leave csv out"
            )
    return own


def _header(path: str, source: Source) -> bytes:
    if source.is_typed:
        _, columns = _typed_layout(formats.schema_of(source, path), source, path)
        names = [pa.array([name]) for name in columns.names]
        row = pa.RecordBatch.from_arrays(names, names=[str(k) for k in range(len(names))])
        return rows.lines(row, source.separator, source.quote, path)
    return ranges.ended(ranges.first_line(path, source.comment).line) if source.header else b""


def source_splits(source: Source, split_bytes: int, scale: float = 1.0) -> list[Split]:
    """Lists the splits in the order of their lines. Raises UserError for files that cannot be read as described.

    scale: of a topic, the part of each partition's range that is taken.
    """
    splits = _topic(source, scale) if source.kafka is not None else []
    cut = _own if source.own_code else _parquet if source.is_typed else _text
    for number, name in enumerate(source.files):
        path = str(place(name))
        mark = mark_of(path)
        if mark[0] == 0:
            raise UserError(f"{path}: the file is empty; name a file with data")
        try:
            splits += cut(path, number, source, split_bytes, mark)
        except OSError as problem:
            raise UserError(f"{path}: cannot be read: {problem.strerror or problem}") from None
    if not splits or not any(column is not None and without_year(column) for column in (source.time, source.arrival)):
        return splits
    data, beside, known = next(splits[0].pieces(1 << 20), Piece(b""))
    first = parse(data, splits[0].layout, 0, beside, known).events["event_time"]
    since_ns = int(first[0].as_py()) - _LATE_NS if len(first) else None
    return [replace(split, layout=replace(split.layout, since_ns=since_ns)) for split in splits]


def _topic(source: Source, scale: float) -> list[Split]:
    assert source.kafka is not None
    url = source.kafka.url
    names = json_lines.paths(source) if source.is_json else source.column_names
    layout = layout_of(source, None if names is None else list(names), url)
    return [
        Split(f"{url} partition {n}", n, "topic", 0, low, high, layout, (0, 0), first_line=low)
        for n, low, high in map(astuple, topics.spans(source.kafka, scale))
    ]


def first_records(source: Source, count: int) -> bytes:
    """Returns the first records of a topic's fixed range, at most so many, as lines."""
    data = next(source_splits(source, 1 << 20)[0].pieces(1 << 20), Piece(b"")).lines
    return first_lines(data, min(count, line_count(data))) if data else b""


def _text(path: str, file: int, source: Source, split_bytes: int, mark: tuple[int, int]) -> list[Split]:
    start, header, number = ranges.first_line(path, source.comment if source.header else None)
    names = list(source.column_names) if source.column_names is not None else None
    if source.header:
        start, number = start + len(header), number + 1
        names = names or names_in(ranges.ended(header), source, path)
    if source.format == "jsonl":
        names = json_lines.paths(source)
        json_lines.check(header, lambda: ranges.first_of(path, start, 1000), source, path)
    layout = layout_of(source, names, path)
    if names is not None and source.header and source.column_names is None:
        layout = replace(layout, most=len(names))
    if ranges.packing(path) is not None:
        return [Split(path, file, "packed", start, 0, 0, layout, mark, first_line=number)]
    return [
        Split(path, file, "text", start, low, high, layout, mark, first_line=number)
        for low, high in ranges.splits(start, mark[0], split_bytes)
    ]


def _parquet(path: str, number: int, source: Source, _: int, mark: tuple[int, int]) -> list[Split]:
    try:
        with pq.ParquetFile(opened(path)) as file:
            schema, groups = file.schema_arrow, file.num_row_groups
    except pa.ArrowInvalid as problem:
        raise UserError(f"{path}: not a Parquet file: {problem}; check source.format") from None
    layout, columns = _typed_layout(schema, source, path)
    return [Split(path, number, "parquet", 0, group, group + 1, layout, mark, columns) for group in range(groups)]


def _own(path: str, number: int, source: Source, _: int, mark: tuple[int, int]) -> list[Split]:
    layout, columns = _typed_layout(formats.schema_of(source, path), source, path)
    return [Split(path, number, "own", 0, 0, 0, layout, mark, columns)]


def _typed_layout(schema: pa.Schema, source: Source, path: str) -> tuple[Layout, parquet.Kept]:
    """(places of the needed fields in a line, the columns that a line holds). Raises UserError."""
    flat = rows.flat_schema(schema)
    layout = layout_of(source, flat.names, path)
    for index in layout.needed:
        if not rows.writable(flat.field(index).type):
            field = flat.field(index)
            raise UserError(f"{path}: column {field.name} ({field.type}) has no text form; name another column")
    for column, parts, key in ((source.time, layout.time, "time"), (source.arrival, layout.arrival, "arrival")):
        if column is not None and len(parts) == 1:
            _check_type(column, flat.field(parts[0]), f"{path}: source.{key}")
    columns = parquet.kept(schema, layout.needed)
    return layout.moved({field: place for place, field in enumerate(columns.fields)}), columns


def _check_type(column: TimeColumn, field: pa.Field, where: str) -> None:
    """Raises UserError unless the description of a time fits its column's type: a number needs a unit, a date none."""
    kind = field.type
    if pa.types.is_temporal(kind) and not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        raise UserError(f"{where}: {field.name} is a {kind}, which is no moment; name a column of timestamps or dates")
    if pa.types.is_temporal(kind) and not column.is_iso:
        raise UserError(f"{where}: {field.name} is a {kind}; leave out unit and format")
    if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and column.is_iso:
        raise UserError(f"{where}: {field.name} is a number ({kind}); give its unit, or a format such as %Y%m%d")
