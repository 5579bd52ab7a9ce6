"""The stage ingest: turns a source's lines, or a generator's events, into events and quarantine.

A few large tasks read byte ranges with numpy and write Parquet with pyarrow. The first pass counts each split's
lines, so that the second knows every line's seq, whatever the splits.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import accumulate, chain
from math import ceil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge import metrics
from streamgauge.base.errors import UserError
from streamgauge.base.parquet import parquet_file
from streamgauge.base.places import Remote
from streamgauge.base.schemas import FILE_ROWS, QUARANTINE, ROW_GROUP_ROWS, events_schema
from streamgauge.base.units import ticks_per_second
from streamgauge.catalog.artifacts import Artifact, Build, Store
from streamgauge.catalog.source_files import stat_source
from streamgauge.descriptions.nexmark import Nexmark
from streamgauge.descriptions.source import Source
from streamgauge.descriptions.topic import Topic
from streamgauge.records.manifests import EventsManifest
from streamgauge.streams.disorder.hints import NONE_SKIPPED, Place, Skipped
from streamgauge.streams.kafka import ranges
from streamgauge.streams.keys import Sourced, events_key
from streamgauge.streams.nexmark.generator import Generator, rows
from streamgauge.streams.sources import topics
from streamgauge.streams.stages import finished, in_file
from streamgauge.streams.stages.event_parts import gathered, in_order, row_count, write_parquet, write_rows
from streamgauge.streams.stages.finished import Wrote
from streamgauge.streams.stages.workers import Workers
from streamgauge.streams.text import beyond, over_lines
from streamgauge.streams.text.parse import NO_FAULTS, parse
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
    splits = source_splits(source, split_bytes, given.scale)

    def make(build: Build) -> None:
        doubts = sample(source).doubts if source.names else []
        store.require_space(sum(stat_source(file).st_size for file in source.files) // 5)
        manifest = _build(workers, given, splits, build, split_bytes, lines)
        over_lines.refuse(source, _bad_lines(build.path / manifest.quarantine_file, over_lines.UNBALANCED))
        sources = topics.identity(source.kafka) if source.kafka else tuple(store.source_fingerprint(source.files))
        build.manifest |= manifest.model_copy(update={"doubts": tuple(doubts), "sources": sources}).to_json()
        _check_quality(source, manifest, build.path)

    artifact = store.made("events", events_key(store, given), make)
    if artifact.reused:
        _check_quality(source, artifact.read(EventsManifest), artifact.path)
    return artifact


def _build(
    workers: Workers, given: Sourced, splits: list[Split], build: Build, split_bytes: int, lines: bool
) -> EventsManifest:
    source, path = given.source, build.path
    if source.nexmark is not None:
        source_lines, limit, wrote = _generated(workers, given, source.nexmark, path)
    elif source.kafka is not None:
        source_lines, limit, wrote = _consumed(workers, source.kafka, splits, build, split_bytes, lines)
    else:
        source_lines, limit, wrote = _read(workers, given, splits, path, split_bytes, lines)
    parts = [path / name for step in wrote for name in step.parts]
    quarantine = gathered([path / name for step in wrote for name in step.quarantine], path / QUARANTINE_FILE)
    skipped = reduce(Skipped.and_then, (step.skipped for step in wrote), NONE_SKIPPED)
    # partitions that are read one after the other are in no order that says anything
    merged = source.kafka is not None and source.kafka.has_parts and source.order != "file"
    as_read = None if merged else in_file.measure(workers, parts, source, _places(wrote), skipped)
    if source.order != "file":
        parts = in_order(workers, source, parts, path)
    if as_read is None:
        as_read = in_file.measure(workers, parts, source, (), NONE_SKIPPED)
    if splits:
        out = beyond.hints(splits[0].layout, _bad_lines(path / quarantine, beyond.REASON))
        as_read = as_read.model_copy(update={"hints": (*as_read.hints, *out)})
    if not source.is_merged:
        as_read = as_read.within_files()
    files = []
    for number, part in enumerate(parts):
        files.append(part.name if isinstance(part, Remote) else f"part-{number:05d}.parquet")
        if files[-1] != part.name:
            part.rename(path / files[-1])
    events = sum(row_count(path / name) for name in files)
    quarantined = row_count(path / quarantine)
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


def _consumed(
    workers: Workers, topic: Topic, splits: list[Split], build: Build, block_bytes: int, lines: bool
) -> tuple[int, int, list[Wrote]]:
    """Does as `_read` for the records of a topic. A seq is a place among the offsets, some of which have no record."""
    ranges.require_same(topic)
    firsts = list(accumulate((split.high - split.low for split in splits), initial=0))
    steps = [
        Step(number, split, seq, split.low, None, None, build.path, block_bytes, lines)
        for number, (split, seq) in enumerate(zip(splits, firsts, strict=False))
    ]
    kept = build.kept

    def write(step: Step) -> Wrote:
        if kept is None:
            return _write(step)
        name = f"{step.split.file}-{step.split.low}-{step.split.high}"
        wrote = finished.in_folder(kept, name, lambda folder: _write(replace(step, directory=folder)))
        return replace(wrote, place=_place(step))

    wrote = workers.each(steps, write)
    ranges.require_same(topic)
    records = sum(step.lines for step in wrote)
    if not records:
        raise ranges.no_record(topic)
    return firsts[-1], records, wrote


def _generated(workers: Workers, given: Sourced, settings: Nexmark, path: Path) -> tuple[int, int, list[Wrote]]:
    """Does as `_read` for a generator's events: one file per FILE_ROWS events, whatever the number of tasks."""
    limit = ceil(Fraction(repr(given.scale)) * settings.events)
    columns, schema = tuple(given.source.columns), events_schema(given.source.kinds, arrival=False)

    def write(first: int) -> Wrote:
        generator, name = Generator(settings), f"{first:015d}.parquet"
        ranges = (
            (at, min(ROW_GROUP_ROWS, limit - at)) for at in range(first, min(first + FILE_ROWS, limit), ROW_GROUP_ROWS)
        )
        written = write_parquet(schema, (rows(generator, at, count, columns) for at, count in ranges), path / name)
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
    if source.comment is not None or source.kafka is not None:
        none = pa.array(NO_FAULTS)
        with parquet_file(file) as quarantine:
            batches = quarantine.iter_batches(columns=["reason"])
            bad -= sum(pc.sum(pc.is_in(batch["reason"], none)).as_py() or 0 for batch in batches)
    if bad <= source.max_bad_fraction * lines and manifest.events:
        return
    with parquet_file(file) as quarantine:
        rows = (row for batch in quarantine.iter_batches() for row in batch.to_pylist())
        any_row = next(rows)
        first = next((row for row in chain([any_row], rows) if row["reason"] not in NO_FAULTS), any_row)
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
        for number, piece in enumerate(split.pieces(step.block_bytes)):
            if cut is not None and done + piece.lines.count(b"\n") > cut:
                piece = piece.first(cut - done)
            data, beside, known = piece
            before = done if beside is None else 0  # what is beside the lines tells their places in the split
            parsed = parse(data, split.layout, step.first_seq + before, beside, known)
            skipped = skipped.and_then(parsed.skipped)
            for one in (*parts[-1:], *quarantine[-1:]):  # one block's parts at most wait in memory
                one.result()
            begin = step.directory / f"{step.number:05d}-{number:05d}"
            events = parsed.events if step.keep_lines else parsed.events.drop_columns(["line"])
            for k, at in enumerate(range(0, events.num_rows, FILE_ROWS)):
                file = begin.with_name(f"{begin.name}-{k:03d}.parquet")
                parts.append(writer.submit(write_rows, events.slice(at, FILE_ROWS), file))
            if parsed.bad is not None:
                bad = _bad(parsed.bad, step, before)
                quarantine.append(writer.submit(write_rows, bad, begin.with_name(f"{begin.name}.bad.parquet")))
                QUARANTINED.inc(bad.num_rows)
            INGESTED.inc(events.num_rows)
            done += events.num_rows + (parsed.bad.num_rows if parsed.bad is not None else 0)
            if cut is not None and done >= cut:
                break
    _check_unchanged(split, as_expected=step.take is None or done == step.take)
    written, bad_lines = ([one.result() for one in files] for files in (parts, quarantine))
    return Wrote(written, bad_lines, done, _place(step), skipped)


def _place(step: Step) -> Place:
    return Place(file=step.split.path, first_seq=step.first_seq, first_line=step.first_line)


def _places(wrote: list[Wrote]) -> list[Place]:
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
