"""The stage generate (events + experiment -> stream): counts thresholds, solves for the target, writes.

Counting and writing are done by a few tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.base.arrow import Ints
from streamgauge.base.errors import UserError
from streamgauge.base.parquet import parquet_writer
from streamgauge.base.places import publishing
from streamgauge.base.schemas import ENCODINGS, ROW_GROUP_ROWS, stream_schema
from streamgauge.catalog.artifacts import Artifact, Build, Store
from streamgauge.config import Experiment, Source
from streamgauge.records.manifests import EventsManifest, Selection, StreamManifest
from streamgauge.streams.disorder import generation
from streamgauge.streams.disorder.chunks import Chunk, chunks
from streamgauge.streams.disorder.definitions import running_maximum
from streamgauge.streams.disorder.delays import Delays
from streamgauge.streams.disorder.hash import StreamHash, join
from streamgauge.streams.disorder.outages import delays_of
from streamgauge.streams.disorder.output import Output, generate_chunk
from streamgauge.streams.disorder.profile import Spread
from streamgauge.streams.disorder.row_groups import LARGEST, RowGroup, read_one, row_groups, total_rows
from streamgauge.streams.keys import Sourced, events_key, stream_key
from streamgauge.streams.nexmark.generator import HEADER
from streamgauge.streams.sources import topics
from streamgauge.streams.stages import stream_texts
from streamgauge.streams.stages.workers import Workers
from streamgauge.streams.text.parse import names_in
from streamgauge.streams.text.splits import header

#: with these a task's arrays are small enough for the allocator to use the same pages again, which saves system time
CHUNK_ROWS = 120_000
#: counts of at least so many chunks are added up where they are made. Each sum takes 256 KiB in the driver, so there
#: are at most so many of them, unless there are more cores
PART_CHUNKS, MOST_PARTS = 16, 64
#: largest number of rows whose lines a task holds at a time, however many rows a chunk has
SLICE_ROWS = 1_000_000
#: a Parquet file has the rows of so many chunks that it has about these rows
FILE_ROWS = 480_000
#: a chunk may grow up to this so as to span the longest delay; beyond it, chunks repeat each other's work instead
MAX_CHUNK_ROWS = 1_000_000


def run(
    workers: Workers,
    given: Sourced,
    store: Store,
    experiment: Experiment,
    *,
    chunk_rows: int = CHUNK_ROWS,
) -> Artifact:
    """Returns the stream artifact, built unless it is there.

    Raises Infeasible (nothing is written), or UserError for unusable delays and events without an order.
    """
    topics.require_order(given.source)

    def make(build: Build) -> None:
        build.manifest |= write_stream(
            workers,
            store.need("events", events_key(store, given), "ingest"),
            given.source,
            experiment,
            build.path,
            outputs={"parquet", *experiment.outputs},  # later stages read Parquet
            chunk_rows=chunk_rows,
        ).to_json()

    return store.made("stream", stream_key(store, given, experiment), make)


class _Tally:
    """Figures of the rows that a task wrote."""

    def __init__(self) -> None:
        self.rows = self.late = 0
        self.delayed, self.observed, self.digest = Spread(), Spread(), StreamHash()

    def add(self, output: Output) -> None:
        """Adds all but the digest, which takes the lines too."""
        behind = running_maximum(output.time, output.running_before) - output.time
        behind = behind[behind > 0]
        self.rows, self.late = self.rows + len(output.seq), self.late + len(behind)
        self.delayed, self.observed = self.delayed + Spread.of(output.delayed), self.observed + Spread.of(behind)


@dataclass(frozen=True)
class Written:
    """Files that a task wrote, and their figures."""

    files: list[str]
    texts: dict[str, list[str]]
    """name of the part in each text format, if the task has rows"""
    tally: _Tally


def write_stream(
    workers: Workers,
    events: Artifact,
    source: Source,
    experiment: Experiment,
    directory: Path,
    *,
    outputs: Collection[str],
    chunk_rows: int = CHUNK_ROWS,
) -> StreamManifest:
    """Writes the stream's files in those formats (see config.streams.Output); returns its manifest."""
    groups, given = row_groups(events.files()), events.read(EventsManifest)
    delay = delays_of(experiment.delay, given.tick)
    if groups and max(g.time_max for g in groups) + delay.maximum > LARGEST:
        raise UserError(
            f"delay.max: found {experiment.delay.max}, which can delay the last event "
            "beyond the largest 64-bit time; lower it"
        )
    head = _header(source) if any(one.startswith("csv") for one in outputs) else b""
    cuts = chunks(groups, _chunk_count(groups, delay.maximum, chunk_rows, workers))
    shares = _split(cuts, workers.cores)
    seed = experiment.seed

    size = max(PART_CHUNKS, -(-len(cuts) // MOST_PARTS))
    parts = [share[at : at + size] for share in shares for at in range(0, len(share), size)]

    def count(part: list[tuple[int, Chunk]]) -> generation.ChunkCounts:
        first, *rest = (generation.count_chunk(groups, chunk, delay, seed) for _, chunk in part)
        return sum(rest, first)

    solution = generation.solve(
        groups,
        [([chunk for _, chunk in part], sums) for part, sums in zip(parts, workers.each(parts, count), strict=True)],
        delay,
        seed,
        experiment.fraction,
        closest=experiment.on_infeasible == "closest",
    )
    schema = stream_schema(given.columns, arrival=given.arrival)
    writer = _Writer(
        directory, groups, delay, seed, solution.selection, schema, outputs, source, head, _a_file(groups, cuts)
    )
    written = workers.each(shares, writer)

    rows, late = sum(w.tally.rows for w in written), sum(w.tally.late for w in written)
    if rows != solution.events or late != solution.aimed:
        raise UserError(f"{events.path}: found {rows} rows, {late} late, expected {solution.events}, {solution.aimed}; "
                        "the events changed while they were read; run again")  # fmt: skip
    texts: dict[str, tuple[str, ...]] = {"csv_files": ()}
    for one in (one for one in stream_texts.FILES if one in outputs):
        names = [name for w in written for name in w.texts[one]]
        if one != "csv-parts":
            names = [stream_texts.join(directory, names, f"stream.{stream_texts.ENDINGS[one]}")] if names else []
        texts[stream_texts.FILES[one]] = tuple(names)
    delayed = sum((w.tally.delayed for w in written), Spread())
    observed = sum((w.tally.observed for w in written), Spread())
    return StreamManifest(
        events_key=events.key,
        tick=given.tick,
        columns=given.columns,
        arrival=given.arrival,
        seed=seed,
        target_percent=experiment.target_percent,
        events=rows,
        quarantined=given.quarantined,
        source_out_of_order=solution.source_out_of_order,
        target_out_of_order=solution.target,
        aimed_out_of_order=solution.aimed,
        achieved_out_of_order=late,
        feasible_max=solution.maximum,
        infeasible=solution.aimed != solution.target,
        newly_delayed=delayed.count,
        selection=solution.selection,
        delay_min=delay.minimum,
        delay_max=delay.maximum,
        delay_table=delay.ticks,
        drawn_delay=delayed.approximate(),
        observed_delay=observed.approximate(),
        sha256=join([w.tally.digest for w in written]),
        files=tuple(name for w in written for name in w.files),
    ).model_copy(update=texts | ({"outages": delay.record} if delay.record else {}))


@dataclass(frozen=True)
class _Writer:
    """Writes a share of chunks; one instance travels to every task."""

    directory: Path
    groups: list[RowGroup]
    delay: Delays
    seed: int
    selection: Selection
    schema: pa.Schema
    outputs: Collection[str]
    source: Source
    head: bytes
    """header of CSV, which begins the first part"""
    a_file: int
    """number of chunks of a Parquet file"""

    def __call__(self, share: list[tuple[int, Chunk]]) -> Written:
        files: list[str] = []
        tally = _Tally()
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

    def _tables(self, chunk: Chunk, tally: _Tally) -> Iterator[pa.Table]:
        """Yields the rows of a chunk, some at a time, and adds their figures to the tally."""
        for output in generate_chunk(self.groups, chunk, self.delay, self.seed, self.selection):
            tally.add(output)
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
            rows = np.sort(wanted)
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


def _chunk_count(groups: list[RowGroup], longest: int, chunk_rows: int, workers: Workers) -> int:
    """Number of chunks of about chunk_rows rows: at least one per core, but so wide that the halo is not most work."""
    rows = total_rows(groups)
    span = max(1, groups[-1].base_max - groups[0].time_min) if groups else 1
    rows_in_delay = int(rows * min(1.0, longest / span))
    wanted = min(MAX_CHUNK_ROWS, max(chunk_rows, rows_in_delay))
    cores = workers.cores if rows > chunk_rows else 1
    return max(1, -(-rows // wanted), cores if rows_in_delay * cores < rows else 1)


def _a_file(groups: list[RowGroup], cuts: list[Chunk]) -> int:
    """Number of chunks of a Parquet file."""
    return max(1, FILE_ROWS * len(cuts) // max(1, total_rows(groups)))


def _split(cuts: list[Chunk], tasks: int) -> list[list[tuple[int, Chunk]]]:
    """Gives each task consecutive chunks, with their numbers."""
    numbered = list(enumerate(cuts))
    tasks = min(tasks, len(numbered))
    return [numbered[len(numbered) * i // tasks : len(numbered) * (i + 1) // tasks] for i in range(tasks)]


def _header(source: Source) -> bytes:
    """Returns the two new names and the source's own header; empty when it has none. Raises UserError.

    A new name that the source has already is preceded by streamgauge_.
    """
    own = HEADER if source.nexmark else header(source)
    if not own:
        return b""
    taken = names_in(own, source, source.files[0] if source.files else "nexmark")
    new = [f"streamgauge_{name}" if name in taken else name for name in ("ingestion_time", "event_time")]
    return source.separator.encode().join([*(name.encode() for name in new), own])
