"""The stage ingest: turns a source's lines, or a generator's events, into events and quarantine.

A few large tasks read byte ranges with numpy and write Parquet with pyarrow. The first pass counts each split's
lines, so that the second knows every line's seq, whatever the splits.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import accumulate
from math import ceil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge import metrics
from streamgauge.base.arrow import int64s
from streamgauge.base.errors import UserError
from streamgauge.base.parquet import parquet_file, parquet_writer
from streamgauge.base.places import Remote, opened, publish, remove
from streamgauge.base.schemas import ENCODINGS, FILE_ROWS, QUARANTINE, ROW_GROUP_ROWS, events_schema
from streamgauge.base.units import ticks_per_second
from streamgauge.catalog.artifacts import Artifact, Build, Store
from streamgauge.catalog.source_files import stat_source
from streamgauge.config import Nexmark, Source
from streamgauge.records.manifests import EventsManifest
from streamgauge.streams.disorder.hints import NONE_SKIPPED, Place, Skipped
from streamgauge.streams.keys import Sourced, events_key
from streamgauge.streams.nexmark.generator import Generator, rows
from streamgauge.streams.stages import in_file
from streamgauge.streams.stages.workers import Workers
from streamgauge.streams.text import beyond, over_lines
from streamgauge.streams.text.parse import COMMENT, parse
from streamgauge.streams.text.ranges import first_lines
from streamgauge.streams.text.sample import no_data, sample, too_many_bad
from streamgauge.streams.text.splits import Split, source_splits

QUARANTINE_FILE = "quarantine.parquet"
INGESTED = metrics.counter("rows", "ingested")
QUARANTINED = metrics.counter("rows", "quarantined")


def run(workers: Workers, given: Sourced, store: Store, *, split_bytes: int = 32 << 20, lines: bool = True) -> Artifact:
    """Returns the events of a source, built unless they are there. Raises UserError.

    lines: keep each event's line; without it the events serve to measure their disorder only, in a scratch store.
    """
    source = given.source
    splits = source_splits(source, split_bytes)

    def make(build: Build) -> None:
        doubts = sample(source).doubts if source.files else []
        store.require_space(sum(stat_source(file).st_size for file in source.files) // 5)
        manifest = _build(workers, given, splits, build.path, split_bytes, lines)
        over_lines.refuse(source, _bad_lines(build.path / manifest.quarantine_file, over_lines.UNBALANCED))
        sources = tuple(store.source_fingerprint(source.files))
        build.manifest |= manifest.model_copy(update={"doubts": tuple(doubts), "sources": sources}).to_json()
        _check_quality(source, manifest, build.path)

    artifact = store.made("events", events_key(store, given), make)
    if artifact.reused:
        _check_quality(source, artifact.read(EventsManifest), artifact.path)
    return artifact


def _build(
    workers: Workers, given: Sourced, splits: list[Split], path: Path, split_bytes: int, lines: bool
) -> EventsManifest:
    source = given.source
    if source.nexmark is not None:
        source_lines, limit, wrote = _generated(workers, given, source.nexmark, path)
    else:
        source_lines, limit, wrote = _read(workers, given, splits, path, split_bytes, lines)
    parts = [path / name for step in wrote for name in step.parts]
    quarantine = _gather([path / name for step in wrote for name in step.quarantine], path / QUARANTINE_FILE)
    skipped = reduce(Skipped.and_then, (step.skipped for step in wrote), NONE_SKIPPED)
    as_read = in_file.measure(workers, parts, source, _places(wrote), skipped)
    if splits:
        out = beyond.hints(splits[0].layout, _bad_lines(path / quarantine, beyond.REASON))
        as_read = as_read.model_copy(update={"hints": (*as_read.hints, *out)})
    if source.order != "file":
        parts = _sorted(workers, source, parts, path)
    files = []
    for number, part in enumerate(parts):
        files.append(part.name if isinstance(part, Remote) else f"part-{number:05d}.parquet")
        if files[-1] != part.name:
            part.rename(path / files[-1])
    events = sum(_rows(path / name) for name in files)
    quarantined = _rows(path / quarantine)
    if events + quarantined != limit:
        raise RuntimeError(f"wrote {events} events and {quarantined} bad lines, expected {limit} in all")
    return EventsManifest(
        files=tuple(files),
        quarantine_file=quarantine,
        events=events,
        quarantined=quarantined,
        lines=limit,
        source_lines=source_lines,
        tick=source.tick,
        ticks_per_second=ticks_per_second(source.tick),
        columns=source.kinds,
        arrival=source.arrival is not None,
        order=source.order,
        in_file=as_read,
        split_bytes=split_bytes,
    )


def _read(
    workers: Workers, given: Sourced, splits: list[Split], path: Path, split_bytes: int, lines: bool
) -> tuple[int, int, list[Wrote]]:
    """Returns the number of lines in the files, of lines taken, and what was written."""
    source = given.source
    if len(splits) == 1 and splits[0].kind in ("packed", "own") and given.scale == 1:
        # nobody needs its count beforehand, and to unpack it takes longer than to parse it
        wrote = _write(Step(0, splits[0], 0, splits[0].first_line, None, None, path, split_bytes, lines))
        if not wrote.lines:
            raise no_data(source.files[0])
        return wrote.lines, wrote.lines, [wrote]
    counts = workers.each(splits, _count)
    for number, file in enumerate(source.files):
        if not sum(count for split, count in zip(splits, counts, strict=True) if split.file == number):
            raise no_data(file)
    limit = ceil(Fraction(repr(given.scale)) * sum(counts))
    steps = _steps(splits, counts, limit, path, split_bytes, lines)
    return sum(counts), limit, workers.each(steps, _write)


def _generated(workers: Workers, given: Sourced, settings: Nexmark, path: Path) -> tuple[int, int, list[Wrote]]:
    """Returns the same for a generator's events: one file per FILE_ROWS events, whatever the number of tasks."""
    limit = ceil(Fraction(repr(given.scale)) * settings.events)
    columns, schema = tuple(given.source.columns), events_schema(given.source.kinds, arrival=False)

    def write(first: int) -> Wrote:
        generator, name = Generator(settings), f"{first:015d}.parquet"
        ranges = (
            (at, min(ROW_GROUP_ROWS, limit - at)) for at in range(first, min(first + FILE_ROWS, limit), ROW_GROUP_ROWS)
        )
        written = _write_parquet(schema, (rows(generator, at, count, columns) for at, count in ranges), path / name)
        INGESTED.inc(min(FILE_ROWS, limit - first))
        return Wrote([written], [])

    return settings.events, limit, workers.each(range(0, limit, FILE_ROWS), write)


def _bad_lines(quarantine: Path, reason: str) -> Iterator[tuple[str, int, bytes]]:
    """Yields (file, line number, text) of the bad lines whose reason begins in that way, in order."""
    with parquet_file(quarantine) as file:
        for batch in file.iter_batches(columns=["file", "line_number", "reason", "text"]):
            for row in batch.filter(pc.starts_with(batch["reason"], reason)).to_pylist():
                yield row["file"], row["line_number"], row["text"]


def _check_quality(source: Source, manifest: EventsManifest, path: Path) -> None:
    """Raises UserError, with the first bad line, if too many lines are bad or no line is good."""
    bad, lines = manifest.quarantined, manifest.lines
    file = path / manifest.quarantine_file
    if source.comment is not None:
        with parquet_file(file) as quarantine:
            batches = quarantine.iter_batches(columns=["reason"])
            bad -= sum(pc.sum(pc.equal(batch["reason"], COMMENT)).as_py() or 0 for batch in batches)
    if bad <= source.max_bad_fraction * lines and manifest.events:
        return
    first = next(parquet_file(file).iter_batches(1)).to_pylist()[0]
    raise too_many_bad(source, first["file"], first["line_number"], first["reason"], first["text"], bad, lines)


# -- tasks


@dataclass(frozen=True)
class Step:
    """A split to be written; the names of its files begin with its number."""

    number: int
    split: Split
    first_seq: int
    first_line: int  # 1-based in its file, header counted
    lines: int | None  # in the split; None: not counted
    take: int | None  # how many of them are taken, from the first on; None: all
    directory: Path
    block_bytes: int
    keep_lines: bool


@dataclass(frozen=True)
class Wrote:
    parts: list[str]
    quarantine: list[str]
    lines: int = 0
    place: Place | None = None
    skipped: Skipped = NONE_SKIPPED


def _count(split: Split) -> int:
    _check_unchanged(split)
    return split.count()


def _check_unchanged(split: Split, *, as_expected: bool = True) -> None:
    if not as_expected or split.changed():
        raise UserError(f"{split.path}: changed while it was read; run again once it is no longer written to")


def _steps(
    splits: list[Split], counts: list[int], limit: int, path: Path, block_bytes: int, keep_lines: bool
) -> list[Step]:
    """The splits that hold the first `limit` lines, each with the position of its first line."""
    steps: list[Step] = []
    line = 1
    for number, (split, count, seq) in enumerate(zip(splits, counts, accumulate(counts, initial=0), strict=False)):
        if not number or splits[number - 1].file != split.file:
            line = split.first_line
        if count and seq < limit:
            take = min(count, limit - seq)
            steps.append(Step(number, split, seq, line, count, take, path, block_bytes, keep_lines))
        line += count
    return steps


def _write(step: Step) -> Wrote:
    """Parses one split and writes its parts; each appears under its name only when it is whole."""
    split, parts, quarantine = step.split, list[Future[str]](), list[Future[str]]()
    _check_unchanged(split)
    done, cut, skipped = 0, step.take if step.take != step.lines else None, NONE_SKIPPED
    with ThreadPoolExecutor(1) as writer:  # of a packed file, which is one split, some lines are parsed meanwhile
        for number, data in enumerate(split.blocks(step.block_bytes)):
            if cut is not None and done + data.count(b"\n") > cut:
                data = first_lines(data, cut - done)
            parsed = parse(data, split.layout, step.first_seq + done)
            skipped = skipped.and_then(parsed.skipped)
            for one in (*parts[-1:], *quarantine[-1:]):  # one block's parts at most wait in memory
                one.result()
            begin = step.directory / f"{step.number:05d}-{number:05d}"
            events = parsed.events if step.keep_lines else parsed.events.drop_columns(["line"])
            for k, at in enumerate(range(0, events.num_rows, FILE_ROWS)):
                file = begin.with_name(f"{begin.name}-{k:03d}.parquet")
                parts.append(writer.submit(write_rows, events.slice(at, FILE_ROWS), file))
            if parsed.bad is not None:
                bad = _bad(parsed.bad, step, done)
                quarantine.append(writer.submit(write_rows, bad, begin.with_name(f"{begin.name}.bad.parquet")))
                QUARANTINED.inc(bad.num_rows)
            INGESTED.inc(events.num_rows)
            done += events.num_rows + (parsed.bad.num_rows if parsed.bad is not None else 0)
            if cut is not None and done >= cut:
                break
    _check_unchanged(split, as_expected=step.take is None or done == step.take)
    place = Place(file=split.path, first_seq=step.first_seq, first_line=step.first_line)
    return Wrote([one.result() for one in parts], [one.result() for one in quarantine], done, place, skipped)


def _places(wrote: list[Wrote]) -> list[Place]:
    """Returns the beginning of each file."""
    places: dict[str, Place] = {}
    for place in (step.place for step in wrote if step.place is not None):
        places.setdefault(place.file, place)
    return list(places.values())


def _bad(bad: pa.Table, step: Step, before: int) -> pa.Table:
    """Rows of the quarantine for the lines that are bad. before: number of the split's lines before its block."""
    at = bad["at"].to_numpy() + before
    columns = {
        "file": [step.split.path] * len(at),
        "line_number": at + step.first_line,
        "seq": at + step.first_seq,
        "reason": bad["reason"],
        "text": bad["text"],
    }
    return pa.table(columns, schema=QUARANTINE)


def write_rows(table: pa.Table, path: Path) -> str:
    """Writes one Parquet file, encoded as our readers want it, whole or not at all; returns its name."""
    return _write_parquet(table.schema, [table], path)


def _write_parquet(schema: pa.Schema, tables: Iterator[pa.Table] | list[pa.Table], path: Path) -> str:
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


def _rows(path: Path) -> int:
    return int(pq.read_metadata(opened(path)).num_rows)


def _gather(pieces: list[Path], path: Path) -> str:
    written = _write_parquet(QUARANTINE, (parquet_file(p).read() for p in pieces), path)
    for piece in pieces:
        piece.unlink()
    return written


# -- another order than the file's


def _sorted(workers: Workers, source: Source, parts: list[Path], path: Path) -> list[Path]:
    """Sorts the parts' rows by (column, seq), nulls last, and renumbers them from 0; removes the given parts."""
    if not parts:
        return []
    column = "arrival_time" if source.order == "arrival" else "event_time"
    schema = pq.read_schema(opened(parts[0]))
    count = -(-sum(map(_rows, parts)) // FILE_ROWS)
    runs = workers.sort(parts, [column, "seq"], schema, path / "sorted", count)
    for part in parts:
        part.unlink()
    first = accumulate(map(_rows, runs), initial=0)
    jobs = [(run, path / f"sorted-{i:05d}.parquet", seq) for i, (run, seq) in enumerate(zip(runs, first, strict=False))]

    def renumber(job: tuple[Path, Path, int]) -> Path:
        run, target, seq = job
        return target.with_name(_write_parquet(schema, _numbered(run, schema, seq), target))

    done = workers.each(jobs, renumber)
    remove(path / "sorted")
    return done


def _numbered(run: Path, schema: pa.Schema, seq: int) -> Iterator[pa.Table]:
    with parquet_file(run) as file:
        for batch in file.iter_batches(ROW_GROUP_ROWS):
            table = pa.Table.from_batches([batch]).select(schema.names).cast(schema)
            yield table.set_column(0, schema.field(0), int64s(np.arange(seq, seq + len(table))))
            seq += len(table)
