"""Writes the files of a share of a stream, and tells their figures."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.base.arrow import Ints
from streamgauge.base.parquet import parquet_writer
from streamgauge.base.places import publishing
from streamgauge.base.schemas import ENCODINGS, ROW_GROUP_ROWS
from streamgauge.descriptions.source import Source
from streamgauge.records.manifests import Selection
from streamgauge.streams.disorder.chunks import Chunk
from streamgauge.streams.disorder.definitions import delays
from streamgauge.streams.disorder.duplicates import are_duplicated, with_duplicates
from streamgauge.streams.disorder.hash import StreamHash
from streamgauge.streams.disorder.outages import Delays
from streamgauge.streams.disorder.output import Output, generate_chunk
from streamgauge.streams.disorder.profile import Spread
from streamgauge.streams.disorder.row_groups import RowGroup, read_one, total_rows
from streamgauge.streams.stages import stream_texts

#: largest number of rows whose lines a task holds at a time, however many rows a chunk has
SLICE_ROWS = 1_000_000


class Tally:
    """Figures of the rows that a task wrote."""

    def __init__(self) -> None:
        self.rows = self.late = self.duplicates = 0
        self.delayed, self.observed, self.digest = Spread(), Spread(), StreamHash()

    def add(self, output: Output) -> None:
        """Adds the rows without duplicates, but not to the digest, which takes the lines too."""
        behind = delays(output.time, output.running_before)
        self.rows, self.late = self.rows + len(output.seq), self.late + len(behind)
        self.delayed, self.observed = self.delayed + Spread.of(output.delayed), self.observed + Spread.of(behind)


@dataclass(frozen=True)
class Written:
    """Files that a task wrote, and their figures."""

    files: list[str]
    texts: dict[str, list[str]]  # name of the part in each text format, if the task has rows
    tally: Tally


@dataclass(frozen=True)
class Writer:
    """Writes a share of chunks; one instance travels to every task."""

    directory: Path
    groups: list[RowGroup]
    delay: Delays
    seed: int
    selection: Selection
    duplicates: Fraction  # share of the events that come twice
    schema: pa.Schema
    outputs: Collection[str]
    source: Source
    head: bytes  # header of CSV, which begins the first part
    a_file: int  # number of chunks of a Parquet file

    def __call__(self, share: Sequence[tuple[int, Chunk]]) -> Written:
        files: list[str] = []
        tally = Tally()
        with self._texts(share[0][0]) as texts:
            for chunks in (share[at : at + self.a_file] for at in range(0, len(share), self.a_file)):
                before = tally.rows
                with self._parquet(chunks[0][0]) as (name, parquet):
                    for table in (table for _, chunk in chunks for table in self._tables(chunk, tally)):
                        if parquet:
                            parquet.write_table(table, ROW_GROUP_ROWS)
                        for one, (_, sink) in texts.items():
                            self._write_text(one, table, sink)
                if name and tally.rows > before:
                    files.append(name)
                elif name:
                    (self.directory / name).unlink()
            ends = {one: (name, sink.tell()) for one, (name, sink) in texts.items()}
        for name in (name for name, size in ends.values() if not size):
            (self.directory / name).unlink()
        return Written(files, {one: [name] if size else [] for one, (name, size) in ends.items()}, tally)

    def _tables(self, chunk: Chunk, tally: Tally) -> Iterator[pa.Table]:
        """Yields the rows of a chunk, some at a time, and adds their figures to the tally."""
        for output in generate_chunk(self.groups, chunk, self.delay, self.seed, self.selection):
            tally.add(output)
            if self.duplicates:
                numbers = output.first + output.rows[output.order]
                duplicated = are_duplicated(numbers, total_rows(self.groups), self.duplicates, self.seed)
                output = with_duplicates(output, duplicated)
                tally.duplicates += int(duplicated.sum())
            fixed = {"ingestion_time": output.ingestion, "seq": output.seq, "event_time": output.time}
            starts = range(0, len(output.seq), SLICE_ROWS)
            for part, columns in chain.from_iterable(
                self._slices(output, start, min(start + SLICE_ROWS, len(output.seq))) for start in starts
            ):
                tally.digest.add(output.ingestion[part], output.seq[part], output.time[part], columns.column("line"))
                yield pa.table(
                    [fixed[f.name][part] if f.name in fixed else columns.column(f.name) for f in self.schema],
                    schema=self.schema,
                )

    @contextmanager
    def _texts(self, number: int) -> Iterator[dict[str, tuple[str, pa.NativeFile]]]:
        """Yields name and sink of the part in each text format. number: that of the part's first chunk."""
        with ExitStack() as stack:
            texts = {}
            for one in (one for one in stream_texts.FILES if one in self.outputs):
                path = self.directory / f"part-{number:05d}.{stream_texts.ENDINGS[one]}"
                texts[one] = stack.enter_context(publishing(path))
                if number == 0 and one.startswith("csv"):
                    texts[one][1].write(self.head)
            yield texts

    def _slices(self, output: Output, start: int, end: int) -> Iterator[tuple[slice, pa.Table]]:
        """Yields the columns of these rows of the output, in parts whose lines have no more than 2 GiB."""
        part = slice(start, end)
        try:
            columns = self._columns(output, part)
        except pa.ArrowInvalid:  # more than 32-bit offsets reach
            if end - start < 2:
                raise
            middle = (start + end) // 2
            yield from self._slices(output, start, middle)
            yield from self._slices(output, middle, end)
        else:
            yield part, columns

    def _columns(self, output: Output, part: slice) -> pa.Table:
        """Reads line and the further columns of these rows of the output, in the output's order."""
        names = tuple(name for name in self.schema.names if name not in ("ingestion_time", "seq", "event_time"))
        rows, order = output.rows, output.order
        if part.stop - part.start < len(order):
            wanted = rows[order[part]]
            rows = np.unique(wanted)
            order = np.searchsorted(rows, wanted)
        parts, start = [], 0
        for group in output.groups:
            first, past = np.searchsorted(rows, [start, start + group.rows])
            if past > first:
                table = read_one(group, names)
                parts.append(table if past - first == group.rows else _take(table, rows[first:past] - start))
            start += group.rows
        return pa.concat_tables(parts).combine_chunks().take(pa.array(order))

    @contextmanager
    def _parquet(self, number: int) -> Iterator[tuple[str, pq.ParquetWriter | None]]:
        """Yields name and writer of a Parquet file; none if no Parquet is wanted. number: that of its first chunk."""
        if "parquet" not in self.outputs:
            yield "", None
            return
        with (
            publishing(self.directory / f"part-{number:05d}.parquet") as (name, sink),
            parquet_writer(
                sink,
                self.schema,
                use_dictionary=[name for name in self.schema.names if name not in ENCODINGS],
                column_encoding=ENCODINGS,
                write_statistics=["ingestion_time", "seq", "event_time"],
            ) as writer,
        ):
            yield name, writer

    def _write_text(self, format: str, rows: pa.Table, sink: pa.NativeFile) -> None:
        source = self.source
        for part in stream_texts.of_rows(format, rows, separator=source.separator, json_source=source.is_json):
            sink.write(part)


def _take(part: pa.Table, rows: Ints) -> pa.Table:
    """Takes these rows, by a slice if they are contiguous."""
    first, last = int(rows[0]), int(rows[-1])
    return part.slice(first, len(rows)) if last - first + 1 == len(rows) else part.take(pa.array(rows))
